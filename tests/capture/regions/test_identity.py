"""A result that is an argument, or a view of one, on some paths only is that very tensor on those."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph
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
