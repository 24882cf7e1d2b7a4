"""A result requires grad where the path that the call took gives it a history."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan

import monograph

WEIGHT = torch.ones(3, requires_grad=True)


def chosen(x):
    if x.sum() > 0:
        y = x * WEIGHT
    else:
        y = x * 2
    return y, y + 1, (y * WEIGHT).sum()


def twice(x):
    y = x * WEIGHT if x.sum() > 0 else x * 2
    if x.sum() > 3:
        return y * 3, y.sum()
    return x * 1, y.sum()


def chain(x):
    if x.sum() > 3:
        y = x * WEIGHT
    elif x.sum() > 0:
        y = x * 3
    else:
        y = WEIGHT * 3
    return y + 1


def unrecorded(x):
    if x.sum() > 0:
        with torch.no_grad():
            y = x * WEIGHT
    else:
        y = WEIGHT * 2
    return y


def detached(x):
    y = WEIGHT * x
    if x.sum() > 0:
        y = y.detach() * 2
    return y + x, y


def written_in_turn(x):
    result = torch.zeros(3)
    for threshold in (0, 1):
        if x.sum() > threshold * 3:
            result += x * WEIGHT
    return result


def kept_from_a_scan(x):
    def step(carry, row):
        return carry + row, carry * row

    _, result = scan(step, x * WEIGHT, torch.stack([x, x + 1]))
    if x.sum() > 0:
        result = (x * WEIGHT).detach()
    return result


def seen(function: Any, x: torch.Tensor) -> Any:
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    WEIGHT.grad = None
    total = sum(result.sum() for result in results if result.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    return ([(result.tolist(), result.requires_grad, result.is_leaf) for result in results],
            None if WEIGHT.grad is None else WEIGHT.grad.tolist())


@pytest.mark.parametrize("function", [chosen, twice, chain, unrecorded, detached, written_in_turn],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_requires_grad_is_that_of_the_path(function: Any, backend: str) -> None:
    compiled = monograph.compile(function, backend=backend)
    for value in (2.0, -1.0, 0.5, 2.0):
        x = torch.full((3,), value)
        assert seen(compiled, x) == seen(function, x), value
    assert not compiled.recompiles


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_what_a_path_leaves_as_it_was_keeps_its_history(backend: str) -> None:
    compiled = monograph.compile(kept_from_a_scan, backend=backend)
    for value in (2.0, -1.0, 0.5, 2.0):
        x = torch.full((3,), value)
        assert seen(compiled, x) == seen(kept_from_a_scan, x), value
