"""What a program changes that no later call would change again: refused by name, put back, made in Python otherwise."""

from __future__ import annotations

import array
import collections
import contextvars
import decimal
import gc
import io
import os
import queue
import sys
from typing import Any

import numpy as np
import pytest
import torch

import monograph
from tests.capture import read_module

ARRAY = np.zeros(3)
NUMBERS = array.array("d", [1.0])
BYTES = bytearray(b"abc")
STREAM = io.StringIO()
CONTEXT = contextvars.ContextVar("CONTEXT", default=0)
COUNTER: collections.Counter[str] = collections.Counter()
QUEUE: queue.Queue[int] = queue.Queue()


class Class:
    count = 0


class Holder:
    def __init__(self) -> None:
        self.array = np.zeros(2)


HOLDER = Holder()


def an_array(x):
    ARRAY[0] += 1
    return x * 2


def an_array_of_an_object(x):
    HOLDER.array += 1
    return x * 2


def numbers(x):
    NUMBERS.append(2.0)
    return x * 2


def some_bytes(x):
    BYTES.append(1)
    return x * 2


def a_stream(x):
    STREAM.write("text")
    return x * 2


def a_context_variable(x):
    CONTEXT.set(CONTEXT.get() + 1)
    return x * 2


def a_class(x):
    Class.count += 1
    return x * 2


def a_new_attribute_of_a_class(x):
    setattr(Class, "other", 1)          # noqa: B010
    return x * 2


def globals_by_text(x):
    globals()["NEW"] = 1
    return x * 2


def a_module(x):
    read_module.other = 1
    return x * 2


def decimals(x):
    decimal.getcontext().prec = 5
    return x * 2


def the_grad_mode(x):
    torch.set_grad_enabled(False)
    return x * 2


def on_a_path(x):
    if x.sum() > 0:
        x = x + 1
    ARRAY[1] += 1
    return x


def raising(x):
    ARRAY[1] += 1
    return x * (1 if x.sum() > 0 else "text")


def a_counter(x):
    COUNTER["a"] += 1
    return x * 2


def a_queue(x):
    QUEUE.put(1)
    return x * 2


def a_function(x):
    a_function.count = getattr(a_function, "count", 0) + 1
    return x * 2


def state() -> Any:
    return (ARRAY.tolist(), HOLDER.array.tolist(), NUMBERS.tolist(), bytes(BYTES), STREAM.getvalue(), CONTEXT.get(),
            Class.count, getattr(Class, "other", None), globals().get("NEW"), getattr(read_module, "other", None),
            decimal.getcontext().prec, torch.is_grad_enabled(), dict(COUNTER), list(QUEUE.queue),
            getattr(a_function, "count", None))


def reset() -> None:
    ARRAY[:] = 0
    HOLDER.array[:] = 0
    NUMBERS[:] = array.array("d", [1.0])
    BYTES[:] = b"abc"
    STREAM.seek(0)
    STREAM.truncate()
    CONTEXT.set(0)
    Class.count = 0
    for table, name in ((vars(read_module), "other"), (globals(), "NEW"), (vars(a_function), "count")):
        table.pop(name, None)
    if hasattr(Class, "other"):
        del Class.other
    decimal.getcontext().prec = 28
    torch.set_grad_enabled(True)
    COUNTER.clear()
    QUEUE.queue.clear()


REFUSED = [an_array, an_array_of_an_object, numbers, some_bytes, a_stream, a_context_variable, globals_by_text,
           a_module, decimals, the_grad_mode, on_a_path, raising]


def run(function: Any) -> Any:
    reset()
    try:
        return [function(torch.ones(2)).tolist() for _ in range(3)], state()
    finally:
        reset()


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_refused_and_put_back(function: Any) -> None:
    reset()
    before = state()
    with pytest.raises(monograph.MonographError, match="changes|sets|runs eagerly"):
        monograph.compile(function, backend="reference")(torch.ones(2))
    if function is not raising:              # which runs in Python to find out
        assert state() == before
    reset()


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("function", [function for function in REFUSED if function is not raising],
                         ids=lambda function: function.__name__)
def test_in_python(function: Any) -> None:
    assert run(monograph.compile(function, backend="reference", fullgraph=False)) == run(function)


@pytest.mark.parametrize("function", [a_counter, a_queue, a_function, a_class, a_new_attribute_of_a_class],
                         ids=lambda function: function.__name__)
def test_made_again_in_every_call(function: Any) -> None:
    assert run(monograph.compile(function, backend="reference")) == run(function)


@pytest.mark.parametrize(("call", "name"), [
    (lambda: torch.set_default_dtype(torch.float64), "torch.set_default_dtype"),
    (lambda: np.seterr(divide="raise"), "numpy.seterr"), (lambda: gc.disable(), "gc.disable"),
    (lambda: sys.setrecursionlimit(999), "sys.setrecursionlimit"), (lambda: os.chdir("/"), "os.chdir"),
], ids=["dtype", "numpy", "gc", "sys", "os"])
def test_settings(call: Any, name: str) -> None:
    def function(x):
        call()
        return x * 2

    with pytest.raises(monograph.UnsupportedError, match=name):
        monograph.compile(function, backend="reference")(torch.ones(2))


def test_a_setting_for_a_while_is_no_change() -> None:
    def function(x):
        with np.errstate(divide="raise"), torch.no_grad(), decimal.localcontext() as context:
            context.prec = 3
            return x * float(decimal.Decimal(1) / decimal.Decimal(3))

    assert torch.equal(monograph.compile(function, backend="reference")(torch.ones(2)), function(torch.ones(2)))
