"""Attributes and globals that a program perhaps writes, or sets to what they are: the next call may find others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import monograph

LEVEL = 0


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count: Any = 0


class InLoopOverRange(Held):
    def forward(self, k):
        for _ in range(k):
            self.count = 7
        return k + 1


class InBranch(Held):
    def forward(self, k):
        if k > 0:
            self.count = 7
        return k + 1


class InWhile(Held):
    def forward(self, k):
        while k > 0:
            self.count = 7
            k = k - 1
        return k + 1


class InBoth(Held):
    def forward(self, k):
        if k > 0:
            self.count = 7
        else:
            self.count = 8
        return k + 1


class Always(Held):
    def forward(self, k):
        self.count = 7
        return k + 1


class Checked(Held):
    """Its own `__setattr__` is asked too."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def forward(self, k):
        self.count = 7
        return k + 1


class Plain:
    count = 0

    def __call__(self, k):
        if k > 1:
            self.count = 7
        return k + 1


class Slow:
    """`count` is a property: what it writes is what counts."""

    def __init__(self):
        self.inner = 0

    @property
    def count(self):
        return self.inner

    @count.setter
    def count(self, value):
        self.inner = value

    def __call__(self, k):
        if k > 1:
            self.count = 7
        return k + 1


class Global:
    def __init__(self, function):
        self.function = function

    @property
    def count(self):
        return LEVEL

    @count.setter
    def count(self, value):
        globals()["LEVEL"] = value


def always(k):
    global LEVEL
    LEVEL = 7
    return k + 1


def perhaps(k):
    global LEVEL
    if k > 1:
        LEVEL = 7
    return k + 1


@pytest.mark.parametrize("kind", [InLoopOverRange, InBranch, InWhile, InBoth, Always, Checked, Plain, Slow, always,
                                  perhaps], ids=lambda kind: kind.__name__)
def test_what_is_not_written_stays(kind: Any) -> None:
    made, other = (Global(kind), Global(kind)) if kind in (always, perhaps) else (kind(), kind())
    plain, fast = (kind, monograph.compile(kind, backend="reference")) if kind in (always, perhaps) else (
        made, monograph.compile(other, backend="reference"))
    for before, k in ((0, 0), (3, 0), (7, 0), (7, 2), (5, 0), (4, 2), (7, 0), (2, 2), (6, 0)):
        made.count = before
        expected = plain(torch.tensor(k)), made.count
        other.count = before
        assert (fast(torch.tensor(k)), other.count) == expected, (before, k)


def test_what_is_always_written_needs_no_programs_of_its_own() -> None:
    module = Always()
    fast = monograph.compile(module, backend="reference")
    for before in (0, 3, 5, 7, 9):
        module.count = before
        fast(torch.tensor(1))
        assert module.count == 7
    assert not fast.recompiles


class Scaled:
    def __init__(self) -> None:
        self.scale = 2

    def __call__(self, x):
        return x * self.scale if x.sum() > 0 else x


def test_what_a_second_attempt_reads_first_is_guarded() -> None:
    scaled = Scaled()
    fast = monograph.compile(scaled, backend="reference")
    for scale in (2, 3):
        scaled.scale = scale
        assert torch.equal(fast(torch.ones(2)), torch.full((2,), float(scale)))
