"""Integers of Python's that take more than 64 bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import monograph
from monograph.transform.pipeline import pipeline
from monograph.transform.runner import run


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


def summed(x):
    n = int(x)
    return n + n, n + 1, n - 1, 5 - n, -5 - n, -n, abs(n), n - (-2**63), n << 2, n >> 3, sum([n, n, True])


def divided(x):
    n, sign = int(x), int(x > 0) * 2 - 1
    return n // sign, n // -1, -2**63 // sign, n / 3


def compared_with_floats(x):
    n = int(x)
    return n == 2.0**53, n < x.double().item(), n >= 1.5, n < float("inf")


def summed_in_branches(x):
    n, total = int(x), 0
    if x > 0:
        total = total + n
    for entry in x.expand(70):
        total += int(entry)
    return total, x


@pytest.mark.parametrize("function", [cubed, doubled_in_a_loop, hashed, beside_long_ones, beside_floats, summed,
                                      divided, compared_with_floats, summed_in_branches],
                         ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    fast = monograph.compile(function, backend="reference")
    for number in (3, -7, 3 * 10**6, 2**40, 2**53 + 1, -2**62, 2**62, 2**63 - 1, -2**63):
        x = torch.tensor(number)
        assert str(fast(x)) == str(function(x))


def test_one_program_for_all_values() -> None:
    for function in (cubed, summed, summed_in_branches):
        fast = monograph.compile(function, backend="reference")
        for number in (3, 2**40, -7, 2**63 - 1):
            fast(torch.tensor(number))
        assert len(monograph.api.dispatcher_of(fast).entries) == 1


def test_unsigned() -> None:
    fast = monograph.compile(lambda x: x.item() + 1, backend="reference")
    assert fast(torch.tensor(2**64 - 1, dtype=torch.uint64)) == 2**64


def counted(x, k):
    i = j = 0
    n = int(x.argmax())
    while x.sum() < 100:
        x = x + 1
        i += 1
        if x[0] > 3:
            j -= 2
        m = int(k) if k < 10 else n + 1
        while m > -5:
            m -= 1
            j += 1
    return x, i, j


def test_no_check_where_ranges_tell() -> None:
    args = torch.randn(4), torch.tensor(3)
    compiled = monograph.compile(counted, backend="reference")
    compiled(*args)
    graph = monograph.capture(counted, *args).graph
    assert "mono.check" in {node.op.name for node in graph.walk()}
    run(graph, pipeline())
    assert "mono.check" not in {node.op.name for node in graph.walk()}
    assert str(compiled(*args)) == str(counted(*args))
