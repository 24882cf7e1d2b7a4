"""What a branch or loop does to objects that cannot be put back: the path of the call is taken."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import monograph

P = torch.tensor([1.0, 2.0, -0.5])
SEEN: list[int] = []


def generator_in_a_branch(x):
    numbers = (i for i in range(5))
    if x.sum() > 0:
        x = x + next(numbers)
    return x * (next(numbers) + 1)


def iterator_in_a_loop(x):
    numbers = iter([1, 2, 3, 4])
    while x.sum() < 5:
        x = x + next(numbers)
    return x, next(numbers)


def zipped(x):
    pairs = zip([1, 2, 3], [4, 5, 6], strict=True)
    if x.sum() > 0:
        x = x + sum(next(pairs))
    return x * sum(next(pairs))


def counted(x):
    count = itertools.count(1)
    if x.max() > 1:
        x = x * next(count)
    return x * next(count)


def _remember(value: int) -> None:
    SEEN.append(value)


def global_in_a_called_function(x):
    if x.sum() > 0:
        _remember(1)
        return x * 2
    return x


@pytest.mark.parametrize("function", [generator_in_a_branch, iterator_in_a_loop, zipped, counted,
                                      global_in_a_called_function])
def test_iterators(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for x in (P, -P, P * 3, P, -P * 0.1):
            before = list(SEEN)
            want, left = function(x) if x.sum() < 100 else None, SEEN[len(before):]
            SEEN[:] = before
            torch.testing.assert_close(fast(x), want)
            assert before + left == SEEN


NOTES: list[str] = []


def test_a_generator_left_in_the_middle_ends_where_the_loop_ends() -> None:
    def function(x):
        b = x * 1

        def counting():
            try:
                yield x
                yield x + 1
            finally:
                NOTES.append("closed")
                b.add_(1)

        y = x
        for g in counting():
            y = y * g
            if x.sum() > 0:
                break
        NOTES.append("after")
        return y + b

    fast = monograph.compile(function, backend="reference")
    for sign in (1, -1, 1, -1):
        NOTES.clear()
        x = torch.ones(3) * sign
        assert torch.equal(fast(x), function(x)) and NOTES == ["closed", "after"] * 2
