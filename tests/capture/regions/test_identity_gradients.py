"""A result with a history that is an argument, or shares memory, on some paths only is the same in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph
from tests.capture.harness import alias_relation


def given_back(x, y, c):
    return x if c.sum() > 0 else y * 2


def beside_others(x, y, c):
    z = x if c.sum() > 0 else y * 2
    return z, z + 1, z


def viewed(x, y, c):
    z = x if c.sum() > 0 else y * 2
    return z[0], z.sum()


def carried(x, y, c):
    i = 0
    while i < c.sum():
        x = x * y
        i = i + 1
    return x


def swapped(x, y, c):
    i = 0
    while i < c.sum():
        x, y = y, x
        i = i + 1
    return x, y


def another_result(x, y, c):
    z = x.sin()
    w = z if c.sum() > 0 else y
    return w, z


def views_of_one(x, y, c):
    if c.sum() > 0:
        t = x.sin()
        z, w = t, t[0]
    else:
        z, w = x, y[0]
    return z, w


def view_after_a_loop(x, y, c):
    i = 0
    while i < c.sum():
        x = x * y
        i = i + 1
    return x[0]


def seen(run: Any) -> list[Any]:
    found = []
    for number in (-1.0, 0.5, 1.5):
        x, y = (torch.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [3.0, 4.0]))
        result = run(x, y, torch.tensor([number]))
        leaves = result if isinstance(result, tuple) else (result,)
        sum((leaf * leaf).sum() for leaf in leaves).backward()
        found.append((alias_relation([x, y, *leaves]), [leaf.tolist() for leaf in leaves],
                      [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, y)]))
    return found


@pytest.mark.parametrize("function", [given_back, beside_others, viewed, carried, swapped, another_result, views_of_one,
                                      view_after_a_loop], ids=lambda function: function.__name__)
def test_results(function: Any) -> None:
    assert str(seen(monograph.compile(function, backend="reference"))) == str(seen(function))


@pytest.mark.parametrize("function", [given_back, beside_others, carried, swapped], ids=lambda f: f.__name__)
def test_one_program_for_all_paths(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    seen(fast)
    assert len(monograph.api.dispatcher_of(fast).entries) == 1
