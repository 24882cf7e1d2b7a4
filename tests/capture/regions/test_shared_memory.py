"""Tensors that share memory while autograd follows one of them: in-place sums, views, detached ones, in branches and
loops."""

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


def detached_on_one_path(x):
    y = x * 2
    if x.sum() > 0:
        y = y.detach()
    return y * x


def detached_in_loop(x):
    h, i = x * 1, 0
    while i < x.abs().sum():
        h = torch.tanh(h + x)
        h = h.detach()
        i += 1
    return h * x


def detached_now_and_then(x):
    h, i = x * 1, 0
    while i < x.abs().sum():
        h = torch.tanh(h + x)
        if i % 2 == 0:
            h = h.detach()
        i += 1
    return h * x


def view_of_what_is_written(x):
    a = x * 2
    b = a.view(3)
    if x.sum() > 0:
        b = b + 1
    a.add_(1)
    return a * b


def two_names_in_both_branches(x):
    if x.sum() > 0:
        t = x * 2
        u = t.view(3)
    else:
        t = x * 3
        u = t.view(3)
    t.add_(1)
    return u * t


def some_views(x):
    t = x * 2
    if x.sum() > 0:
        u, v = t[1:], t.detach()
    else:
        u, v = t[:2], t * 1
    v = v + 1
    t.mul_(2)
    return u.sum() + v + t


FUNCTIONS = [sum_in_loop, sum_in_branch, row_in_branch, written_before, detached_alias, views_of_one, index_add,
             detached_on_one_path, detached_in_loop, detached_now_and_then, view_of_what_is_written,
             two_names_in_both_branches, some_views]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for numbers in ([1.0, 2.0, -0.5], [-1.0, -2.0, 0.5]):
            torch.testing.assert_close(fast(torch.tensor(numbers)), function(torch.tensor(numbers)), rtol=0, atol=0)


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
