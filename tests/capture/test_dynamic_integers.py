"""Integers among the arguments that vary are symbols: one program for all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph
from monograph.api import dispatcher_of

X = torch.arange(60.0).reshape(20, 3)


def scaled(x, n):
    return x * n + n


def prefix(x, n):
    return x[:n] * 2


def rows_of_many(x, n):
    return torch.zeros(n, 3) + x[0], n, n * 2


def window(x, start, *, length):
    return x.narrow(0, start, length).sum(0), x[start:start + length].cos()


def keyed(x, sizes):
    return x[: sizes["rows"], : sizes["columns"]] + sizes["rows"]


def tensor_and_number(x, n):
    return x.view(n, -1) + torch.arange(n)[:, None]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("function", "calls"), [
    (scaled, [((n,), {}) for n in (4, 7, 9, 12, 3, 15, 1, 0, -4, 12)]),
    (prefix, [((n,), {}) for n in (4, 7, 9, 12, 3, 15, 1, 0, -4, 19)]),
    (rows_of_many, [((n,), {}) for n in (4, 7, 9, 12, 3, 15, 1, 0)]),
    (window, [((a,), {"length": n}) for a, n in ((2, 3), (4, 5), (3, 7), (6, 2), (5, 9), (0, 4), (7, 7))]),
    (keyed, [(({"rows": n, "columns": 2},), {}) for n in (4, 7, 9, 12, 3, 15)]),
    (tensor_and_number, [((n,), {}) for n in (4, 5, 10, 20, 2, 6, 12)]),
])
def test_integers(function: Any, calls: Any, grad: bool, backend: str) -> None:
    fast = monograph.compile(function, backend=backend)
    for args, kwargs in calls:
        x, y = (X.clone().requires_grad_(grad) for _ in range(2))
        want, got = function(x, *args, **kwargs), fast(y, *args, **kwargs)
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)
        if grad:
            for result in (want, got):
                first = result[0] if isinstance(result, tuple) else result
                first.sum().backward()
            torch.testing.assert_close(y.grad, x.grad)
    small = len({str(call) for call in calls if any(type(v) is int and v < 2 for v in [*call[0], *call[1].values()])})
    assert len(dispatcher_of(fast).entries) <= 5 + small


def test_a_flag_has_programs_of_its_own() -> None:
    def function(x: torch.Tensor, dim: int) -> torch.Tensor:
        return x.sum(dim)

    fast = monograph.compile(function, backend="reference")
    x = torch.randn(2, 3, 4, 5, 6)
    for dim in (0, 1, 2, 3, 4, 2, -1):
        torch.testing.assert_close(fast(x, dim), function(x, dim))


def test_integers_too_large_for_a_size_have_programs_of_their_own() -> None:
    fast = monograph.compile(lambda x, n: (x * n, n * n), backend="reference")
    x = torch.ones(3, dtype=torch.float64)
    for n in (4, 5, 6, 7, 2 ** 40, 2 ** 62, 2 ** 63 - 1, 8):
        torch.testing.assert_close(fast(x, n)[0], x * n)
        assert fast(x, n)[1] == n * n
    assert len(dispatcher_of(fast).entries) == 3 + 3


def test_errors_are_those_of_eager() -> None:
    fast = monograph.compile(prefix_of_view, backend="reference")
    for n in (4, 5, 10, 20, 7, 2):
        try:
            want: Any = prefix_of_view(X, n)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match="invalid for input"):
                fast(X, n)
            assert "invalid for input" in str(error)
        else:
            torch.testing.assert_close(fast(X, n), want)


def prefix_of_view(x, n):
    return x.view(n, -1) * 2
