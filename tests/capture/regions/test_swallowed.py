"""Handlers of the user's that swallow everything do not swallow what makes a trace start again."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch

import monograph
from monograph.capture import fn_mode


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


def plus(x):
    return x + 1 if x.sum() > 3 else x


def replaced_in_finally(x):
    n = 0
    while x.sum() < 20:
        n += 1
        if n > 4:
            break
        try:
            if x.sum() > 4:
                x = x[x > 0] * 2
        finally:
            x = plus(x) + 1
    return x


def swallowed_in_a_branch(x):
    if x.sum() > 0:
        try:
            y = x[x > 0] if x.max() > 1 else x
        except:       # noqa: E722
            y = x * 3
        return y + 1
    return x


FUNCTIONS = [returns_in_finally, catches_all, replaced_in_finally, swallowed_in_a_branch]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_swallowed(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for x in (torch.ones(3), -torch.ones(3), torch.ones(3) * 2):
            assert torch.equal(fast(x), function(x))


def handled(x):
    try:
        n = x.data_ptr()
    except Exception:
        n = 7
    return x + n


def suppressed(x):
    with contextlib.suppress(Exception):
        return x + x.data_ptr()
    return x + 7


def replaced(x):
    try:
        return x + x.data_ptr()
    except Exception as error:
        raise ValueError("mine") from error


def handled_in_a_branch(x):
    return handled(x) if x.sum() > 0 else x


@pytest.mark.parametrize("function", [handled, suppressed, replaced, handled_in_a_branch])
def test_refusals_are_not_swallowed(function: Any) -> None:
    """Eager would not have raised them."""
    with pytest.raises(monograph.errors.UnsupportedError, match="data_ptr"):
        monograph.compile(function, backend="reference")(torch.ones(3))


def test_a_refusal_on_a_path_that_no_call_takes() -> None:
    compiled = monograph.compile(handled_in_a_branch, backend="reference")
    assert torch.equal(compiled(-torch.ones(3)), -torch.ones(3))


def test_faults_of_the_tracer_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(x):
        try:
            return x * 2
        except Exception:
            return x

    monkeypatch.delattr(fn_mode, "INDEXING")
    with pytest.raises(monograph.errors.UnsupportedError, match=r"NameError: .*INDEXING"):
        monograph.compile(tried, backend="reference")(torch.ones(3))
