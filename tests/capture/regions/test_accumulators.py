"""What a branch or loop writes in place starts to require grad, or shares memory with what does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph


def sum_in_loop(x):
    total = torch.zeros(3)
    while total.sum() < 5:
        total += x.abs()
    return total


def sum_in_branch(x):
    total = torch.zeros(3)
    if x.sum() > 0:
        total += x
    return total + x * 2


def row_in_branch(x):
    total = torch.zeros(2, 3)
    if x.sum() > 0:
        total[0] += x
    return total.sum(0) + x


def written_before(x):
    total = torch.zeros(3)
    total += x
    if x.sum() > 0:
        return total * 2
    return total * 3


def detached_alias(x):
    y = x.clone()
    z = y.detach()
    if x.sum() > 0:
        return y * z
    return y + z


def views_of_one(x):
    y = torch.zeros(3)
    a, b = y[:1], y[1:]
    if x.sum() > 0:
        a += x[0]
    else:
        b += x[1:]
    return y * x


def index_add(x):
    out = torch.zeros(4, 3)
    for i in range(4):
        if x.sum() * i > 1:
            out.index_add_(0, torch.tensor([i]), (x * i)[None])
    return out.sum(0) + x


FUNCTIONS = [sum_in_loop, sum_in_branch, row_in_branch, written_before, detached_alias, views_of_one, index_add]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    for numbers in ([1.0, 2.0, -0.5], [-1.0, -2.0, 0.5], [3.0, 4.0, 5.0]):
        found = []
        for called in (function, fast):
            leaf = torch.tensor(numbers, requires_grad=True)
            result = called(leaf * 1)
            (result * torch.arange(1.0, 4.0)).sum().backward()
            found.append((result.detach(), leaf.grad))
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_list_returned_and_written_afterwards() -> None:
    def function(x: torch.Tensor) -> Any:
        seen: list[int] = []
        kept = [x]
        try:
            if x.sum() > 0:
                return x * 2, seen, kept
            x = x + 1
        finally:
            seen.append(1)
            kept.append(x)
        return x, seen, kept

    fast = monograph.compile(function, backend="reference")
    for x in (torch.ones(3), -torch.ones(3)):
        want, got = function(x), fast(x)
        assert want[1] == got[1] == [1]
        torch.testing.assert_close([got[0], *got[2]], [want[0], *want[2]], rtol=0, atol=0)


def test_one_list_under_two_names() -> None:
    def function(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            a = b = [x * 2]
        else:
            a, b = [x], [x + 1]
        b.append(x * 5)
        return a, b

    fast = monograph.compile(function, backend="reference")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(fast(x), function(x), rtol=0, atol=0)
