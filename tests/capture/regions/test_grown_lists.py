"""Lists that a loop grows: one program for every number of entries, and as in eager whatever is done with them."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

import monograph
from monograph.api import dispatcher_of
from tests.capture.regions import functions_lists as functions

TRIPS = (3, 0, 1, 7)


def call(function, number, grad=False):
    """What a call leaves: results, which of them are one object, the argument, gradients; or what it raises."""
    torch.manual_seed(number)
    leaf = torch.randn(3, requires_grad=grad)
    x = leaf * 1
    try:
        results = function(x, torch.tensor(number))
    except IndexError as error:
        return [str(error)]
    leaves = pytree.tree_leaves(results)
    same = [[a is b for b in (*leaves, x)] for a in leaves if isinstance(a, torch.Tensor)]
    seen = [results, same, x.detach().clone()]
    needs = [leaf.sum() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if needs:
        sum(needs).backward()
        seen.append(leaf.grad)
    return seen


def check(function, fast, number, grad=False):
    expected, found = call(function, number, grad), call(fast, number, grad)
    assert pytree.tree_structure(found) == pytree.tree_structure(expected)
    for a, b in zip(pytree.tree_leaves(expected), pytree.tree_leaves(found), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a)
            assert (b.stride(), b.requires_grad) == (a.stride(), a.requires_grad)
        else:
            assert a == b


@pytest.mark.parametrize("name", [function.__name__ for function in functions.ONE_PROGRAM])
def test_one_program_for_every_length(name):
    function = getattr(functions, name)
    fast = monograph.compile(function, backend="reference")
    for number in TRIPS:
        check(function, fast, number)
    assert len(dispatcher_of(fast).entries) <= 2          # one of them where there are no entries


@pytest.mark.parametrize("name", [function.__name__ for function in functions.EXACT])
def test_as_in_eager(name):
    function = getattr(functions, name)
    fast = monograph.compile(function, backend="reference")
    for number in TRIPS[:3]:
        check(function, fast, number)


@pytest.mark.parametrize("name", ["stacked", "ends_and_length", "looped_over", "until"])
def test_with_gradients(name):
    function = getattr(functions, name)
    fast = monograph.compile(function, backend="reference")
    for number in TRIPS[:3]:
        check(function, fast, number, grad=True)


WEIGHT = torch.tensor([0.5, -1.5, 1.0], requires_grad=True)


def decoded(x, n):
    outs, h = [], torch.zeros(3)
    for i in range(int(n)):
        h = (h * WEIGHT + x).tanh()
        outs.append((h, h.sum(), i))
    total = x
    for tensor, size, number in outs:
        total = total + tensor * size * number
    return torch.stack([tensor for tensor, _, _ in outs]) * 2 if outs else x, total


def until_it_is_large(x, n):
    outs = []
    while len(outs) < n:
        if x.sum() > 0:
            outs.append(x * WEIGHT)
        outs.append(x)
        x = x + WEIGHT.abs()
    outs.append(x)
    return torch.stack(outs)


def first_without(x, n):
    outs, h = [], torch.zeros(3)
    for _ in range(int(n)):
        outs.append(h)
        h = h + WEIGHT
    return outs[0] * 2 + x if outs else x


@pytest.mark.parametrize("function, graphs", [(decoded, 2), (until_it_is_large, 2), (first_without, 3)])
def test_gradients_for_every_length(function, graphs):
    fast = monograph.compile(function, backend="reference")
    for number in TRIPS[:3]:
        WEIGHT.grad = None
        expected = call(function, number, True), WEIGHT.grad
        WEIGHT.grad = None
        torch.testing.assert_close((call(fast, number, True), WEIGHT.grad), expected)
    assert len(dispatcher_of(fast).entries) <= graphs


@pytest.mark.parametrize("name", ["stacked", "some_only"])
def test_compiled_natively(name):
    function = getattr(functions, name)
    fast = monograph.compile(function)
    for number in (3, 1, 40, 0):
        check(function, fast, number)


def test_a_list_longer_than_there_is_room_for_is_captured_again():
    fast = monograph.compile(functions.until, backend="reference")
    for number in (3, 64, 65, 100, 128):
        check(functions.until, fast, number)
    assert len(dispatcher_of(fast).entries) == 2


def test_a_seed_before_a_loop_that_draws():
    def seeded(x, n):
        torch.manual_seed(0)
        for _ in range(int(n)):
            x = torch.nn.functional.dropout(x, 0.3) + 1
        return x

    fast = monograph.compile(seeded, backend="reference")
    for number in TRIPS:
        check(seeded, fast, number)
    assert len(dispatcher_of(fast).entries) == 1
