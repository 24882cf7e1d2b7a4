"""What programs read of classes and containers without spelling it: another value is another program."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.capture.harness import assert_change_is_seen


class Above:
    value = 1.0


class Other:
    value = 2.0


class Below(Above):
    pass


class Plain:
    def __init__(self) -> None:
        self.value = 1.0


class Numbers(list):
    def __getitem__(self, index):
        return 2 * super().__getitem__(index)


PLAIN, NUMBERS, ARRAY, ORDERED = Plain(), Numbers([1.0]), np.zeros(2), collections.OrderedDict(a=1.0, b=2.0)
PROXY = weakref.proxy(PLAIN)


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[float], Any]]] = {
    "bases": (lambda x: x + Below.value, lambda value: setattr(Below, "__bases__", (Above if value == 1 else Other,))),
    "a list with methods of its own": (lambda x: x + NUMBERS[0], lambda value: list.__setitem__(NUMBERS, 0, value)),
    "shape of an array": (lambda x: x + ARRAY.ndim,
                          lambda value: setattr(ARRAY, "shape", (2,) if value == 1 else (2, 1))),
    "proxy": (lambda x: x + PROXY.value, lambda value: setattr(PLAIN, "value", value)),
    "order of keys": (lambda x: x + next(iter(ORDERED.values())),
                      lambda value: ORDERED.move_to_end("a", last=value == 2)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_change_is_seen(name: str) -> None:
    assert_change_is_seen(*CASES[name], backend="reference")
