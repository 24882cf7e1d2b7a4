"""A result that is an argument, or a view of one, on some paths only is that very tensor on those."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

import monograph
from monograph.api import dispatcher_of
from tests.capture.harness import alias_relation


def given_back(x, y):
    if x.sum() > 0:
        return x
    return y * 2


def two_results(x, y):
    z = x.clone()
    if x.sum() > 0:
        w = x
    else:
        w = z
    return w, z, y


def nested(x, y):
    if x.sum() > 0:
        if y.sum() > 0:
            w = x
        else:
            w = y
    else:
        w = x * 2
    return w[0], w, w


def looped(x, y):
    i, w = 0, x
    while i < y.sum():
        w = w + 1 if i % 2 else y
        i += 1
    return w


def chosen_inside(x, y):
    if x.sum() > 0:
        t = x + 1
        u = t if y.sum() > 0 else y
    else:
        t = u = x
    return t, u


def written(x, y):
    v = x[0] if y.sum() > 0 else y[1]
    v.add_(1)
    return v


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", [given_back, two_results, nested, looped, chosen_inside, written])
def test_identity(function: Any, backend: str) -> None:
    fast = monograph.compile(function, backend=backend)
    seen = []
    with torch.no_grad():
        for run in (function, fast):
            for a, b in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
                x, y = torch.ones(2, 3) * a, torch.ones(2, 3) * b * 0.5
                result = run(x, y)
                tensors = [x, y, *(result if isinstance(result, tuple) else [result])]
                seen.append((alias_relation(tensors), [t.tolist() for t in tensors]))
    assert seen[:4] == seen[4:]
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


def rows_of_one(x, y):
    k = x * 1
    if y.sum() > 0:
        k, m = k[0], k[1]
    else:
        k, m = k[1], k[0]
    k.add_(m)
    return k, m


def parts_of_rows_of_one(x, y):
    k = x * 1
    m = k[0] if y.sum() > 0 else k[1]
    m.add_(1)
    return m[1:], m[:2], k[0]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", [rows_of_one, parts_of_rows_of_one])
def test_places_in_one_storage(function: Any, backend: str) -> None:
    fast = monograph.compile(function, backend=backend)
    for sign in (1, -1):
        x, y = torch.arange(6.0).reshape(2, 3), torch.tensor([float(sign)])
        mine, theirs = fast(x, y), function(x, y)
        assert [t.tolist() for t in mine] == [t.tolist() for t in theirs]
        assert alias_relation([x, *mine]) == alias_relation([x, *theirs])


def one_of_a_loop(x, y):
    a, b, i = x[0], x[1], 0
    while i < y.sum():
        a = a.clone()
        b = a
        i = i + 1
    return a, b


def test_two_results_of_a_loop_that_are_one() -> None:
    fast = monograph.compile(one_of_a_loop, backend="reference")
    with torch.no_grad():
        for number in (-1.0, 1.0, 2.0):
            x, y = torch.arange(6.0).reshape(2, 3), torch.tensor([number])
            mine, theirs = fast(x, y), one_of_a_loop(x, y)
            assert alias_relation([x, *mine]) == alias_relation([x, *theirs])


@dataclasses.dataclass
class Output:
    result: torch.Tensor
    others: list[torch.Tensor] = dataclasses.field(default_factory=list)


def in_a_dataclass(x, y):
    z = x if x.sum() > 0 else y * 2
    return Output(z + 1).result


def test_what_dataclasses_write_does_not_ask_which_tensor_a_branch_chose() -> None:
    fast = monograph.compile(in_a_dataclass, backend="reference")
    with torch.no_grad():
        for sign in (1, -1):
            x, y = torch.ones(3) * sign, torch.ones(3)
            assert torch.equal(fast(x, y), in_a_dataclass(x, y))
    assert len(dispatcher_of(fast).entries) == 1
