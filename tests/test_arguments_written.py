"""Arguments written in place under autograd, or that start to require grad, are left as eager leaves them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import monograph

WEIGHT = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)


def scaled(x):
    x.mul_(2)
    return x.sum()


def nothing_returned(x):
    x.mul_(WEIGHT)


def itself(x):
    x.mul_(WEIGHT).add_(1)
    return x


def views(x):
    x.mul_(WEIGHT).add_(1)
    return x[1:], x[1:] * 2, x.detach()


def element(x):
    x[0] = WEIGHT.sum()
    return x * 3


def overwritten(x):
    x.copy_(WEIGHT)
    return x + 1


def read_before(x):
    y = x * 2
    x.add_(WEIGHT)
    return y * x, x.detach()


def on_both_paths(x):
    if x.sum() > 0:
        x.mul_(WEIGHT)
    else:
        x.add_(1)
    return x * 2


def on_one_path(x):
    if x.sum() > 0:
        x[0] = WEIGHT[1]
    return x * 2


def in_a_loop(x):
    i = 0
    while i < x.abs().sum() and i < 4:
        x.mul_(WEIGHT)
        i = i + 1
    return x + WEIGHT


def starts(x):
    x.requires_grad_()
    return x * 2


def starts_and_nothing_else(x):
    x.requires_grad_()


def ceases(x):
    y = x * WEIGHT
    x.requires_grad_(False)
    return y, x * 2


def without_grad(x):
    with torch.no_grad():
        x.mul_(2)
    return x * WEIGHT


def detached(x):
    x.detach_()
    return x * WEIGHT


def detached_on_one_path(x):
    if x.sum() > 0:
        x.detach_()
    return x * WEIGHT


def saved(x):
    y = x * x
    x.mul_(2)
    return y


def zeros(x):
    x.zero_()
    return x * WEIGHT


FUNCTIONS = (scaled, nothing_returned, itself, views, element, overwritten, read_before, on_both_paths, on_one_path,
             in_a_loop, starts, starts_and_nothing_else, ceases, without_grad, detached, detached_on_one_path, saved,
             zeros)


def part_of_two(leaf):
    return torch.stack([leaf * 1, leaf * 2]).unbind()[0]


ARGUMENTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda leaf: leaf.detach(),
    "leaf": lambda leaf: leaf,
    "with a history": lambda leaf: leaf * 1,
    "view": lambda leaf: torch.stack([leaf * 1, leaf * 2])[0],
    "view of a leaf": lambda leaf: leaf[:],
    "one of several views": part_of_two,
}


def seen(function: Callable[..., Any], kind: str, numbers: list[float]) -> Any:
    """All that a caller sees: results, the argument and what it is a view of, gradients, errors."""
    WEIGHT.grad = None
    leaf = torch.tensor(numbers, requires_grad=True)
    x = ARGUMENTS[kind](leaf)
    base = x if x._base is None else x._base
    before = x._version
    try:
        results = function(x)
        results = [] if results is None else list(results) if isinstance(results, tuple) else [results]
        found = [(y.tolist(), y.requires_grad, y.is_leaf, y is x, y._base is base) for y in (*results, x, base)]
        made = [y for y in (*results, x, base) if y.requires_grad]
        if made:
            sum((y * torch.arange(1, y.numel() + 1).view(y.shape)).sum() for y in made).backward()
    except RuntimeError as error:
        return str(error)[:20]
    return found, leaf.grad, x.grad if x.is_leaf else None, WEIGHT.grad, x._version != before


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_arguments_have_the_history_that_eager_gives_them(function: Callable[..., Any], kind: str) -> None:
    fast = monograph.compile(function, backend="reference")
    for numbers in ([1.0, 1.0, 0.5], [-1.0, -2.0, 0.5], [1.0, 1.0, 0.5]):
        want, got = seen(function, kind, numbers), seen(fast, kind, numbers)
        if isinstance(want, str):
            assert got == want
            continue
        assert got[0] == want[0]
        torch.testing.assert_close(got[1:4], want[1:4])
        assert not want[4] or got[4]


@pytest.mark.parametrize("function", [itself, views, on_one_path, starts], ids=lambda f: f.__name__)
def test_native_programs(function: Callable[..., Any]) -> None:
    fast = monograph.compile(function)
    for kind in ("plain", "with a history", "view"):
        for numbers in ([1.0, 1.0, 0.5], [-1.0, -2.0, 0.5]):
            want, got = seen(function, kind, numbers), seen(fast, kind, numbers)
            assert got[0] == want[0]
            torch.testing.assert_close(got[1:4], want[1:4])


def test_one_program_for_all_paths() -> None:
    fast = monograph.compile(on_one_path, backend="reference")
    for numbers in ([1.0, 1.0, 0.5], [-1.0, -2.0, 0.5]):
        fast(torch.tensor(numbers, requires_grad=True) * 1)
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


def test_a_call_that_raises_leaves_the_argument_alone() -> None:
    def picked(x, i):
        x.requires_grad_()
        return (x * 2)[i]

    fast = monograph.compile(picked, backend="reference")
    assert fast(torch.ones(3), torch.tensor([1])).requires_grad
    x = torch.ones(3)
    with pytest.raises(IndexError):
        fast(x, torch.tensor([7]))
    plain = torch.ones(3)
    with pytest.raises(IndexError):
        picked(plain, torch.tensor([7]))
    assert x.requires_grad == plain.requires_grad


def test_a_leaf_is_no_tensor_with_a_history() -> None:
    def said(x):
        print("here")
        x.mul_(2)
        return x * 1

    fast = monograph.compile(said, backend="reference")
    for kind in ("with a history", "leaf", "view", "one of several views", "view of a leaf", "with a history"):
        with contextlib.redirect_stdout(io.StringIO()) as mine:
            got = seen(fast, kind, [1.0, 2.0, 3.0])
        with contextlib.redirect_stdout(io.StringIO()) as theirs:
            want = seen(said, kind, [1.0, 2.0, 3.0])
        assert mine.getvalue() == theirs.getvalue() == "here\n"
        assert got[0] == want[0]


@pytest.mark.parametrize("kinds", [("leaf", "with a history"), ("with a history", "leaf")], ids="-".join)
def test_a_write_that_autograd_refuses_one_argument_and_the_code_survives(kinds: tuple[str, str]) -> None:
    def tried(x):
        try:
            x.view(-1).mul_(2)
        except RuntimeError:
            return x * 3
        return x * 1

    fast = monograph.compile(tried, backend="reference")
    for kind in kinds:
        got, want = seen(fast, kind, [1.0, 2.0, 3.0]), seen(tried, kind, [1.0, 2.0, 3.0])
        assert got[0] == want[0] and torch.equal(got[1], want[1])
