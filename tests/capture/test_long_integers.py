"""Integers of Python's that take more than 64 bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph


def cubed(x):
    n = int(x)
    return n * n * n, n ** 3, x * (1 if n * n * n > 0 else 2)


def doubled_in_a_loop(x):
    n, i = int(x), 0
    while i < 70 and -5 < n < 10**30:
        n = n * 2
        i = i + 1
    return x.double() + float(i), i


def hashed(x):
    h = 7
    for v in x.reshape(-1):
        h = (h * 31 + int(v)) % 1000003
    return h, x


def beside_long_ones(x):
    n = int(x)
    return n + 10**20, 10**20 - n, n // 10**20, 10**20 % n, n & (1 << 70), n / 10**20, n == 10**20, n < 10**20


def beside_floats(x):
    n = float(x)
    return n + 10**20, n < 10**20, n * 10**25


@pytest.mark.parametrize("function", [cubed, doubled_in_a_loop, hashed, beside_long_ones, beside_floats],
                         ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    for number in (3, -7, 3 * 10**6, 2**40, -2**62):
        x = torch.tensor(number)
        assert str(fast(x)) == str(function(x))


def test_one_program_for_all_values() -> None:
    fast = monograph.compile(cubed, backend="reference")
    for number in (3, 2**40, -7):
        fast(torch.tensor(number))
    assert len(monograph.api.dispatcher_of(fast).entries) == 1
