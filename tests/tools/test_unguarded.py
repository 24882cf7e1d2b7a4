"""verify reports values of Python's that reached the graph without a guard, and nothing else."""

import array
import contextvars
import ctypes
import os
import time
from collections import deque

import pytest
import torch
from torch import nn

import monograph

number = ctypes.c_double(2.0)
buffer = bytearray(b"\x03")
view = memoryview(buffer)
numbers = array.array("d", [1.0, 2.0])
queue = deque([1.0, 2.0, 3.0])
kept = [1.5]
context = contextvars.ContextVar("context", default=2.0)
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
clock = ctypes.CDLL(None).clock
X = torch.ones(3)


def changing(change):
    """The same input twice, and `change()` between."""
    yield X
    change()
    yield X


def rename():
    os.environ["MONOGRAPH_TEST_UNGUARDED"] = "7"


def put(value):
    view[0] = value


UNGUARDED = {
    "the processor's clock": (lambda x: x + clock(), lambda: None),
    "the address of a new object": (lambda x: x + id(object()) % (1 << 20), lambda: None),
    "memory behind ctypes": (lambda x: x * number.value, lambda: setattr(number, "value", number.value + 1)),
    "the environment, read by C": (lambda x: x * int(getenv(b"MONOGRAPH_TEST_UNGUARDED") or b"1"), rename),
    "a result": (lambda x: (x + 1, clock()), lambda: None),
    "a tensor made of one": (lambda x: x + torch.tensor([float(clock())]), lambda: None),
}


@pytest.mark.parametrize("name", UNGUARDED)
def test_unguarded_values_are_reported(name: str):
    function, change = UNGUARDED[name]
    with pytest.raises(monograph.MismatchError, match="reached the graph without a guard") as caught:
        monograph.verify(function, changing(change))
    if name != "a result" and "tensor" not in name:
        assert caught.value.loc is not None and caught.value.loc.file == __file__


def rise():
    kept[0] += 1


GUARDED = {
    "a list": (lambda x: x * kept[0], rise),
    "memory behind a view": (lambda x: x * view[0], lambda: put(view[0] + 1)),
    "bytes": (lambda x: x * buffer[0], lambda: put(view[0] + 1)),
    "an array": (lambda x: x * numbers[0], lambda: numbers.reverse()),
    "a deque": (lambda x: x * queue[0], lambda: queue.rotate()),
    "a context variable": (lambda x: x * context.get(), lambda: context.set(3.0)),
    "the environment": (lambda x: x * int(os.environ.get("MONOGRAPH_TEST_GUARDED", 1)),
                        lambda: os.environ.__setitem__("MONOGRAPH_TEST_GUARDED", "2")),
    "the clock": (lambda x: x + 0 * time.time(), lambda: None),
    "draws": (lambda x: nn.functional.dropout(x, 0.5), lambda: torch.rand(1)),
    "a value read": (lambda x: x.new_zeros(int(x.sum())) + x, lambda: None),
    "a branch": (lambda x: x + 1 if x.sum() > 0 else x - 1, lambda: None),
}


@pytest.mark.parametrize("name", GUARDED)
def test_nothing_else_is(name: str):
    function, change = GUARDED[name]
    assert monograph.verify(function, changing(change)).calls == 2
