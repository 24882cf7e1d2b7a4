"""The order of the keys of a dict is part of what a program writes: it is put back, and made again at every call."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch

import monograph

KEPT: OrderedDict[str, int] = OrderedDict()
PLAIN: dict[str, int] = {}


def least_recent(x):
    KEPT.move_to_end(next(iter(KEPT)))
    return x + next(iter(KEPT.values()))


def last_again(x):
    PLAIN["a"] = PLAIN.pop("a")
    return x + next(iter(PLAIN.values()))


def another_first(x):
    key = next(iter(PLAIN))
    number = PLAIN.pop(key)
    PLAIN[key] = number
    PLAIN["new"] = 5
    return x * number


@pytest.mark.parametrize("function", [least_recent, last_again, another_first], ids=["moved", "last", "first"])
def test_order(function: Any) -> None:
    seen = []
    for run in (function, monograph.compile(function, backend="reference")):
        for table in (KEPT, PLAIN):
            table.clear()
            table.update(a=1, b=2, c=3)
        seen.append([(run(torch.ones(2) * sign).tolist(), list(KEPT.items()), list(PLAIN.items()))
                     for sign in (1, 0, 1, 1)])
    assert seen[0] == seen[1]
