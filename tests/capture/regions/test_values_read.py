"""Sizes and integers that Python needs are read from the call, and calls that differ are captured anew."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import monograph

P = torch.tensor([1.0, 2.0, -0.5, 3.0])


def masked(x):
    return x[x > 1] * 2


def over_places(x):
    s = torch.zeros(())
    for i in (x > 0).nonzero().flatten():
        s = s + x[i] * 2
    return s


def uniques(x):
    return torch.unique(x.detach().round(), return_inverse=True, return_counts=True)


def repeated(x, n):
    return x.repeat_interleave(n, dim=0), torch.bincount(n)


def several_masks(x):
    y = x.clone()
    y[y > 0] = 5
    return y, torch.masked_select(x, x > 0), len(torch.nonzero(x)), torch.where(x > 0)


def filtered(x):
    return [v for v in x if v > 0]


def sliced(x, n):
    return x[:n], x[n:], x.split(int(n))


def sized(x, n):
    return torch.zeros(n.item(), 3), torch.arange(int(n)), x.expand(n.item(), -1)


def indexed_list(x, n):
    return x * [1, 2, 3, 4][n.item()]


CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (masked, [(P,), (-P,)]),
    (over_places, [(P,), (-P,)]),
    (uniques, [(P,), (P.abs(),), (P * 0,)]),
    (repeated, [(P, torch.tensor([1, 2, 0, 1])), (P, torch.tensor([1, 1, 1, 1]))]),
    (several_masks, [(P,), (-P,), (P * 0,)]),
    (filtered, [(P,), (-P,)]),
    (sliced, [(P, torch.tensor(1)), (P, torch.tensor(2))]),
    (sized, [(P, torch.tensor(2)), (P, torch.tensor(4))]),
    (indexed_list, [(P, torch.tensor(2)), (P, torch.tensor(-1))]),
]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("function", "inputs"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_values_read(function: Any, inputs: list[tuple[Any, ...]], grad: bool, backend: str) -> None:
    fast = monograph.compile(function, backend=backend)
    with torch.set_grad_enabled(grad):
        for given in [*inputs, *inputs]:
            given = tuple(x.clone().requires_grad_(grad and x.is_floating_point()) for x in given)
            torch.testing.assert_close(fast(*given), function(*given))
    assert len(fast.recompiles) < len(inputs)


def test_a_call_that_differs_draws_nothing() -> None:
    def fn(x):
        y = torch.rand(3)
        return x[x > 0].sum() + y.sum() + torch.rand(1)

    fast = monograph.compile(fn)
    for x in (P, -P, P * 2):
        torch.manual_seed(0)
        want = fn(x), torch.rand(2)
        torch.manual_seed(0)
        torch.testing.assert_close((fast(x), torch.rand(2)), want)


def experts(x, chosen):
    out = torch.zeros_like(x)
    for expert in range(50):
        rows = torch.where(chosen == expert)[0]
        out[rows] = x[rows] * expert
        if rows.numel():
            out = out + int(rows[0])
    return out


def test_many_values_may_be_read():
    compiled = monograph.compile(experts, backend="reference")
    chosen = torch.arange(100) % 50
    x = torch.arange(100.0)
    assert torch.equal(compiled(x, chosen), experts(x, chosen))
    assert torch.equal(compiled(x, chosen.flip(0)), experts(x, chosen.flip(0)))


def scaled(x, size):
    factor = (int(size[0]) + 0.1) / 4
    return torch.nn.functional.interpolate(x, scale_factor=(factor, factor))


def test_a_float_that_integers_decide():
    compiled = monograph.compile(scaled)
    x = torch.randn(1, 2, 4, 4)
    for size in (9, 6, 9, 6):
        assert torch.equal(compiled(x, torch.tensor([size])), scaled(x, torch.tensor([size])))
    assert len(compiled.recompiles) == 1


@pytest.mark.parametrize("number", [lambda x, size: math.exp(x.sum()), lambda x, size: math.exp(size + torch.rand(1))],
                         ids=["floats", "draws"])
def test_a_float_that_other_things_decide_is_a_number_of_the_program(number):
    def scaled(x, size):
        return x * number(x, size)

    compiled = monograph.compile(scaled)
    for seed in range(3):
        results = []
        for function in (scaled, compiled):
            torch.manual_seed(seed)
            results.append(function(torch.randn(2), torch.tensor([seed])))
        torch.testing.assert_close(*results)
    assert not compiled.recompiles
