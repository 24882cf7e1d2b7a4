"""`z is x` of a tensor that a branch or loop chose is what it is in eager, however Python asks."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

import monograph

WEIGHT = torch.tensor([1.0, 2.0])


def compare(a, b):
    return 5.0 if a is b else 7.0


def chosen(x, y, c):
    z = x if c.sum() > 0 else y
    r = 10.0 if z is not y else 20.0
    if z is x:
        r = r + 1
    return z * r


def in_a_callee(x, y, c):
    z = x if c.sum() > 0 else y
    return z * compare(z, x)


def against_a_global(x, y, c):
    z = WEIGHT
    if c.sum() > 0:
        z = z * 2
    return z + compare(z, WEIGHT)


def against_another_choice(x, y, c):
    z = x if c.sum() > 0 else y
    w = y if c.sum() > 1 else z
    return z + compare(w, z) + 10 * compare(w, x)


def two_names_of_one(x, y, c):
    if c.sum() > 0:
        t = x + 1
        z, w = t, t
    else:
        z, w = x, y
    return z * compare(z, w)


def nested(x, y, c):
    if c.sum() > 0:
        z = x if c.sum() > 1 else y
    else:
        z = x * 2
    return z * compare(z, x), z * compare(z, y)


def view_of_the_same(x, y, c):
    z = x if c.sum() > 0 else x.view_as(x)
    return x * compare(z, x)


def carried(x, y, c):
    n, z = 0, x
    while n < c.sum():
        z = y if n > 0 else z
        n = n + 1
        y = y + compare(z, x)
    return y * compare(z, x)


def swapped(x, y, c):
    a, b, i = x, y, 0
    while i < c.sum():
        a, b = b, a
        i = i + 1
    return a * compare(a, x) + b * compare(b, x) * 10


def made_in_a_loop(x, y, c):
    a, b, i = x, y, 0
    while i < c.sum():
        a = b = a + b
        i = i + 1
    return a * compare(a, b)


def view_in_a_loop(x, y, c):
    z, i = x, 0
    while i < c.sum():
        z = z.view_as(z)
        i = i + 1
    return z * compare(z, x)


def in_a_list(x, y, c):
    z = x if c.sum() > 0 else y
    return x[:1].nan_to_num() + (10.0 if z in (y,) else 20.0) + (100.0 if [z] == [x] else 200.0)


def by_index(x, y, c):
    z = x if c.sum() > 0 else y
    entries = [x, y]
    position = entries.index(z)
    entries.remove(z)
    return torch.ones(1) * position, len(entries), entries.count(z)


def by_number(x, y, c):
    z = x if c.sum() > 0 else y
    return z + (1.0 if id(z) == id(x) else 2.0) + (10.0 if list(map(id, (x, z)))[1] == id(y) else 20.0)


def by_function(x, y, c):
    z = x if c.sum() > 0 else y
    return z * (2.0 if operator.is_(z, x) else 3.0) + (10.0 if operator.is_not(z, y) else 20.0)


def as_key(x, y, c):
    z = x if c.sum() > 0 else y
    return z * {x: 2.0, y: 3.0}[z]


def pairs(x, y, c):
    first, second = (x, y), (y, x)
    z = first if c.sum() > 0 else second
    return z[0] * compare(z, first)


FUNCTIONS = [chosen, in_a_callee, against_a_global, against_another_choice, two_names_of_one, nested, view_of_the_same,
             carried, swapped, made_in_a_loop, view_in_a_loop, by_number, by_function, as_key, pairs]


def run(function: Any, width: int, grad: bool) -> list[Any]:
    seen = []
    for number in (-1.0, 0.5, 1.5, 2.5):
        x, y = (torch.full((width,), value, requires_grad=grad) for value in (float("nan") if width == 1 else 2.0, 3.0))
        with torch.set_grad_enabled(grad):
            result = function(x, y, torch.tensor([number]))
        leaves = result if isinstance(result, tuple) else (result,)
        seen.append([leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves])
    return seen


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_compared(function: Any, grad: bool) -> None:
    assert run(monograph.compile(function, backend="reference"), 2, grad) == run(function, 2, grad)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", [in_a_list, by_index], ids=lambda function: function.__name__)
def test_found_by_identity_first(function: Any, grad: bool) -> None:
    """Of numbers that equal nothing."""
    fast = monograph.compile(function, backend="reference")
    assert str(run(fast, 1, grad)) == str(run(function, 1, grad))


def test_one_program_for_all_paths() -> None:
    fast = monograph.compile(in_a_callee, backend="reference")
    run(fast, 2, False)
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


class Shares(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (2.0 if x is self.weight else 3.0) + self.weight


def test_an_argument_that_is_a_weight() -> None:
    model = Shares()
    fast = monograph.compile(model, backend="reference")
    for x in (model.weight, torch.ones(2), model.weight):
        assert torch.equal(fast(x), model(x))
