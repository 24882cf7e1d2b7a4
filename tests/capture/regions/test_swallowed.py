"""Handlers of the user's that swallow everything do not swallow what makes a trace start again."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph


def returns_in_finally(x):
    y = x + 1
    try:
        if x.sum() > 0:
            y = y * 2
    finally:
        return y      # noqa: B012


def catches_all(x):
    try:
        y = x * int(x.sum()) if x.sum() > 0 else [x, 1][int(x.sum() > 0)]
    except:           # noqa: E722
        y = x * 3
    return y


@pytest.mark.parametrize("function", [returns_in_finally, catches_all])
def test_swallowed(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for x in (torch.ones(3), -torch.ones(3), torch.ones(3) * 2):
            assert torch.equal(fast(x), function(x))
