"""Functions that decorators of torch and of the standard library wrap: what they read is guarded like any other's."""

import contextlib

import pytest
import torch
from torch import nn

import monograph

ONE = torch.ones(2)
K = 2


@torch.no_grad()
def scaled(x):
    return x * K


@contextlib.contextmanager
def block():
    yield K


def within(x):
    with block() as k:
        return x * k


class Model(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return x * K


class Method(nn.Module):
    @torch.inference_mode()
    def encode(self, x):
        return x * K

    def forward(self, x):
        return self.encode(x) + 0


@torch.autocast("cpu", enabled=False)
def unconverted(x):
    return x * K


PROGRAMS = {"function": lambda: scaled, "called": lambda: lambda x: scaled(x), "context manager": lambda: within,
            "forward": Model, "method": Method, "autocast": lambda: unconverted}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_global_changes(name, monkeypatch):
    function = PROGRAMS[name]()
    fast = monograph.compile(function)
    for value in (2, 5, 2):
        monkeypatch.setitem(globals(), "K", value)
        torch.testing.assert_close(fast(ONE), function(ONE))
