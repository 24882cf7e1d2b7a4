"""Indices that only the run knows, under names of Python integers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph

X = torch.arange(12.0).view(4, 3)


def read(x, k):
    i = int(k)
    return x[i] * 2


def written_in_loop(x, k):
    y, i = x.clone(), 0
    while i < k:
        y[i] = y[i] * 2
        i += 1
    return y


def summed_in_loop(x, k):
    total, i = torch.zeros(3), 0
    while i < k:
        total = total + x[i, 1:].sum()
        i += 1
    return total


def view_in_branch(x, k):
    if k > 1:
        return x[k]
    return x[0]


def view(x, k):
    return x[k]


def view_and_base(x, k):
    i, y = int(k), x * 2
    return y[i], y


def written_after_branch(x, k):
    row = x[0]
    if k > 1:
        row = x[k % 4]
    row.add_(1)
    return row * 2, x * 1


def read_after_branch(x, k):
    row = x[0]
    if k > 1:
        row = x[k % 4]
    x.add_(1)
    return row * 2, x * 1


def returned_on_one_path(x, k):
    y, left = x * 2, 0
    if k > 0:
        if k > 1:
            return y[k % 4]
        left = 1
    return x + left


def kept_on_one_path(x, k):
    y, rows = x * 2, {}
    if k > 1:
        rows["k"] = y[k % 4]
    if "k" in rows:
        rows["k"].zero_()
    return y


def outcome(function: Any, k: int) -> Any:
    x = X.clone()
    try:
        result = function(x, torch.tensor(k))
    except Exception as error:
        return type(error), str(error)
    first = result[0] if isinstance(result, tuple) else result
    first.add_(100)             # tells whose memory it is
    return result, x


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", [read, written_in_loop, summed_in_loop, view_in_branch, view, view_and_base,
                                      written_after_branch, read_after_branch, returned_on_one_path,
                                      kept_on_one_path])
def test_places(function: Any, backend: str) -> None:
    fast = monograph.compile(function, backend=backend)
    with torch.no_grad():
        for k in (1, 2, 0, -1, -4, 3, 5):
            want, got = outcome(function, k), outcome(fast, k)
            if isinstance(want[0], type):
                assert want == got
            else:
                torch.testing.assert_close(got, want, rtol=0, atol=0)
    if function in (read, written_in_loop, summed_in_loop):
        assert not fast.recompiles
