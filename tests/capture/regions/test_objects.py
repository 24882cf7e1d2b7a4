"""Branches and loops that change lists, dicts and attributes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import monograph


class Seen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.count = 0


class ListOfAttributeInLoop(Seen):
    def forward(self, x):
        while (x > 2).any():
            self.seen[:] = [self.count]
            x = x - 1
        return x * 0.5


class LoopForObjectsOnly(Seen):
    def forward(self, x):
        while (x[0] > 2).any() and len(self.seen) < 3:
            self.seen[:] = [self.count, *self.seen]
        return x * 0.5


class ListOfAttributeInBranch(Seen):
    def forward(self, x):
        if (x > 2).any():
            self.seen.append(self.count)
            self.count += 1
        return x * 0.5


@pytest.mark.parametrize("kind", [ListOfAttributeInLoop, LoopForObjectsOnly, ListOfAttributeInBranch])
def test_objects_behind_the_module(kind: type[Seen]) -> None:
    plain, other = kind(), kind()
    fast = monograph.compile(other, backend="reference")
    with torch.no_grad():
        for x in (torch.zeros(3), torch.ones(3) * 4, torch.zeros(3), torch.ones(3) * 4):
            assert torch.equal(fast(x), plain(x))
            assert (other.seen, other.count) == (plain.seen, plain.count)


class KeepsDetached(Seen):
    def forward(self, x):
        self.last = (x * 1).detach()


def test_what_a_module_keeps_has_no_history() -> None:
    module = KeepsDetached()
    monograph.compile(module, backend="reference")(torch.ones(3, requires_grad=True) * 1)
    assert not module.last.requires_grad
