"""Variables without a value on some path that a nested function, a lambda or a comprehension reads."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph


def in_function(x, k):
    z = x + 1
    if k > 2:
        del z

    def scaled(by):
        return z * by

    return scaled(3)


def in_lambda(x, k):
    if k > 2:
        z = x * 2
    return (lambda: z + 1)()


def in_comprehension(x, k):
    if k > 2:
        z = x * 2
    return torch.stack([row * z for row in (x, x + 1)])


def in_generator(x, k):
    if k > 2:
        z = x.sum()
    return any(entry > z for entry in x)


def in_loop(x, k):
    i = 0
    while i < k:
        z = x * i
        i += 1
    return [entry + z for entry in (x, x)]


def written(x, k):
    if k > 2:
        z = x

    def double():
        nonlocal z
        z = z * 2

    double()
    return z


def outcome(function: Any, k: int) -> Any:
    try:
        return function(torch.ones(3), torch.tensor(k))
    except NameError as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", [in_function, in_lambda, in_comprehension, in_generator, in_loop, written])
def test_read_where_it_may_have_no_value(function: Any) -> None:
    compiled = monograph.compile(function)
    for k in (3, 0, 5, 1, 3):
        want, got = outcome(function, k), outcome(compiled, k)
        if isinstance(want, (torch.Tensor, list)):
            torch.testing.assert_close(got, want, rtol=0, atol=0)
        else:
            assert got == want
