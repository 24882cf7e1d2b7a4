"""Branches and loops that write in place under autograd are regions: values, histories and errors are eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import monograph
from monograph import api

WEIGHT = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
INPUTS = ([1.0, 1.0, 0.5], [-1.0, -2.0, 0.5], [1.0, 2.0, 0.25], [1.0, 1.0, -1.5])


def one_path(x):
    h = x * WEIGHT
    if x.sum() > 0:
        h.mul_(3)
    return h + 1


def both_paths(x):
    h = x * WEIGHT
    if x.sum() > 0:
        h.mul_(WEIGHT)
    else:
        h.add_(WEIGHT)
    return h * 2


def row_of_zeros(x):
    out = torch.zeros(2, 3)
    if x.sum() > 0:
        out[0] = x * WEIGHT
    return out * 2


def rows_in_a_loop(x):
    out = torch.zeros(4, 3)
    i = 0
    while i < x.sum():
        out[i] = x * WEIGHT * i
        out[i] += WEIGHT
        i = i + 1
    return out.sum(0)


def rows_with_a_history(x):
    h = torch.outer(x, WEIGHT)
    for i in range(int(x.sum().clamp(0, 3))):
        h[i, 1:].mul_(2).add_(WEIGHT[0])
        h[i] = h[i] * 2 + i
    return h + 1


def in_a_loop(x):
    h = x * WEIGHT
    i = 0
    while i < x.sum():
        h.mul_(1.5)
        i = i + 1
    return h


def branch_in_a_loop(x):
    h = x * WEIGHT
    i = 0
    while i < x.sum():
        if h.sum() > 1:
            h.sub_(WEIGHT)
        else:
            h.add_(2 * WEIGHT)
        i = i + 1
    return h


def view_made_before(x):
    h = x * WEIGHT
    v = h[1:]
    if x.sum() > 0:
        v.mul_(2)
    return h + 1, v * 3


def detached(x):
    h = x * WEIGHT
    if x.sum() > 0:
        h.detach_()
    return h * WEIGHT, h


def overwritten(x):
    h, k, m = x * WEIGHT, x * WEIGHT, x * WEIGHT
    if x.sum() > 0:
        h.zero_()
        k.copy_(x)
        m[:] = 2
    return h, k, m * WEIGHT


def given_what_is_detached(x):
    h = x * WEIGHT
    out = torch.zeros(3)
    if x.sum() > 0:
        out.copy_(h.detach())
        out.add_(WEIGHT)
    return out, h


def in_a_list(x):
    parts = [x * WEIGHT, x + WEIGHT]
    if x.sum() > 0:
        parts[0].mul_(2)
        parts[1][0] = 0
    return parts[0] * parts[1]


def masked(x):
    h = x * WEIGHT
    if x.sum() > 0:
        h[h > 0] = 0.5
    else:
        h.masked_fill_(h < 0, 2)
    return h.exp()


def over_rows(x):
    out = torch.zeros(3)
    for r in x:
        if r > 0:
            out.add_(WEIGHT * r)
        else:
            out.sub_(WEIGHT.exp() * r)
    return out


def on_one_path_only(x):
    out = torch.zeros(3)
    if x.sum() > 0:
        out += WEIGHT
    return out


def after_some_iterations(x):
    a, b = torch.zeros(3), torch.zeros(3)
    for r in x:
        t = a * 1
        for _ in range(int(r.clamp(0, 3))):
            t = t + WEIGHT
        b = b + t.detach() + t * 2
        a = b
    return a, b


def written_past_autograd(x):
    h = x * WEIGHT
    if x.sum() > 0:
        with torch.no_grad():
            h.mul_(3)
    return h * 2


def made_inside_and_written_past_autograd(x):
    if x.sum() > 0:
        h = x * WEIGHT
        with torch.no_grad():
            h.mul_(3)
    else:
        h = x * WEIGHT
    return h * 2


def written_through_an_alias(x):
    h = x * WEIGHT
    if x.sum() > 0:
        h.detach().mul_(3)
    return h * 2


def carried_and_written_past_autograd(x):
    h, weight = x * 1, WEIGHT * 1
    for _ in range(int(x.sum().clamp(0, 4))):
        h = h + weight * x
        weight.data.mul_(0.5)
        with torch.no_grad():
            weight[0] = 0.25
    return h + weight


REGIONS = (one_path, both_paths, row_of_zeros, rows_in_a_loop, rows_with_a_history, in_a_loop, branch_in_a_loop,
           view_made_before, detached, overwritten, given_what_is_detached, in_a_list, masked, over_rows,
           on_one_path_only, after_some_iterations, written_past_autograd,
           made_inside_and_written_past_autograd, written_through_an_alias, carried_and_written_past_autograd)


# -- the path of the call is taken: the derivative is not that of the ops, or eager refuses it on some path -----------


def saved_before(x):
    h = x * WEIGHT
    y = h * h
    if x.sum() > 0:
        h.mul_(2)
    return y + h


def saved_inside(x):
    h = x * WEIGHT
    y = x * 1
    if x.sum() > 0:
        y = h * h
        h.mul_(2)
    return y + h


def saved_inside_and_written_later(x):
    h = x * WEIGHT
    y = x * WEIGHT
    if x.sum() > 0:
        y = h * h
    h.mul_(2)
    return y + h


def result_saved_and_written_later(x):
    h = x * WEIGHT
    y = h.exp() if x.sum() > 0 else h + 1
    y.mul_(2)
    return y


def mask_saved_and_written_later(x):
    h = x * WEIGHT
    if x.sum() > 0:
        mask = (h > 0).float()
        y = h * mask
    else:
        mask = torch.ones(3)
        y = h + 1
    mask.mul_(2)
    return y


def saved_for_the_next_iteration(x):
    h = x * WEIGHT
    y = x * 1
    i = 0
    while i < x.sum():
        h.mul_(2)
        y = y + h * h
        i = i + 1
    return y


def leaf(x):
    if x.sum() > 0:
        WEIGHT.mul_(2)
    return x * WEIGHT


def leaf_that_is_carried(x):
    y = WEIGHT
    i = 0
    while i < x.sum():
        y = y.add_(1) * 2
        i = i + 1
    return y * x


def one_of_two(x):
    a, b = torch.zeros(3), torch.ones(3)
    c = a if x.sum() > 0 else b
    c.add_(WEIGHT)
    return a * 2, b * 2


def perhaps_one_of_two(x):
    a, b = torch.zeros(3), torch.ones(3)
    c = a if x.sum() > 0 else b
    a.add_(WEIGHT)
    return c * 2


def view_of_zeros(x):
    h = torch.zeros(3)
    v = h[1:]
    if x.sum() > 0:
        v.add_((x * WEIGHT)[1:])
    return h + 1, v * 3


PATHS = (saved_before, saved_inside, saved_inside_and_written_later, result_saved_and_written_later,
         mask_saved_and_written_later,
         saved_for_the_next_iteration, leaf, leaf_that_is_carried, one_of_two, perhaps_one_of_two, view_of_zeros)


def seen(function: Callable[..., Any], numbers: list[float]) -> Any:
    """What a call gives, and the gradient of all of it; what it or its backward raises."""
    WEIGHT.grad = None
    try:
        results = function(torch.tensor(numbers))
        results = results if isinstance(results, tuple) else (results,)
        found = [(result.tolist(), result.requires_grad, result.is_leaf) for result in results]
        total = sum((result * torch.arange(1, result.numel() + 1).view(result.shape)).sum()
                    for result in results if result.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
    except RuntimeError as error:
        return str(error)[:60]
    return found, None if WEIGHT.grad is None else WEIGHT.grad.tolist()


def check(fast: Callable[..., Any], function: Callable[..., Any], numbers: list[float]) -> None:
    want, got = seen(function, numbers), seen(fast, numbers)
    if isinstance(want, str):
        assert got == want
        return
    assert [result[1:] for result in got[0]] == [result[1:] for result in want[0]]
    for a, b in zip((*(result[0] for result in got[0]), got[1]), (*(result[0] for result in want[0]), want[1]),
                    strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b))


@pytest.mark.parametrize("function", REGIONS, ids=lambda f: f.__name__)
def test_writes_under_autograd_are_regions(function: Callable[..., Any]) -> None:
    fast = monograph.compile(function, backend="reference")
    for numbers in (*INPUTS, INPUTS[0]):
        check(fast, function, numbers)
    assert len(api.dispatcher_of(fast).entries) == 1


@pytest.mark.parametrize("function", [rows_in_a_loop, branch_in_a_loop, overwritten, view_made_before, over_rows],
                         ids=lambda f: f.__name__)
def test_native_programs(function: Callable[..., Any]) -> None:
    fast = monograph.compile(function)
    for numbers in (*INPUTS, INPUTS[0]):
        check(fast, function, numbers)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("function", PATHS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [0, 1], ids=["then", "otherwise"])
def test_what_no_region_tells_is_that_of_the_path(function: Callable[..., Any], first: int) -> None:
    fast = monograph.compile(function, backend="reference")
    for numbers in (*INPUTS[first:], *INPUTS):
        check(fast, function, numbers)


def test_a_loop_in_a_loop_has_one_backward():
    def written_inside(a, v, t):
        w = a * 1
        while bool(t):
            while v.sum() > 0:
                w[1:] = v[0]
                v = v - 1
            t = t - 1
        return w

    x = torch.randn(3, 2, requires_grad=True)
    compiled = monograph.compile(written_inside, backend="reference")
    for v, t in ((torch.ones(2), 1), (-torch.ones(2), 1), (torch.ones(2), 0), (torch.ones(2), 2)):
        expected, = torch.autograd.grad((written_inside(x, v, torch.tensor(t)) ** 2).sum(), x)
        found, = torch.autograd.grad((compiled(x, v, torch.tensor(t)) ** 2).sum(), x)
        torch.testing.assert_close(found, expected)
    graph = monograph.capture(written_inside, x, v, torch.tensor(1)).graph
    assert sum(node.op.name == "mono.while" for node in graph.walk()) == 5     # two, once more in the backward, its own
