"""Objects of every kind that a branch changes: what the other path sees is not changed."""

from __future__ import annotations

import array
import collections
import functools
import io
from typing import Any

import numpy as np
import pytest
import torch

import monograph
from monograph.capture.regions import whole

FUNCTIONS: dict[str, Any] = {}


def case(function: Any) -> Any:
    FUNCTIONS[function.__name__] = function
    return function


@case
def a_deque_grows(a):
    e = collections.deque([a * 1], maxlen=3)
    if a.sum() > 0:
        e.append(a)
    return list(e)


@case
def a_deque_turns(a):
    e = collections.deque([a * 1, a + 1])
    if a.sum() > 0:
        e.rotate(1)
        e[0] = e[0] * 2
    return list(e)


@case
def a_deque_in_a_loop(a):
    e = collections.deque([a * 1, a + 1])
    n = torch.zeros(())
    while n < a.sum():
        n = n + 1
        e[0] = e[0] + 1
        e.rotate(1)
    return list(e)


@case
def an_order(a):
    d = collections.OrderedDict(a=1, b=2)
    if a.sum() > 0:
        d.move_to_end("a")
    return a + list(d.values())[0]


@case
def a_local_class(a):
    class Counter:
        n = 1

    o = Counter()
    if a.sum() > 0:
        Counter.n = 3
    return a + o.n


@case
def bytes_of_a_bytearray(a):
    b = bytearray(b"abc")
    if a.sum() > 0:
        b[0] = 100
        b.append(3)
    return a + b[0] + len(b)


@case
def an_array(a):
    b = array.array("d", [1, 2])
    if a.sum() > 0:
        b[0] = 100
    return a + b[0]


@case
def an_array_of_numpy(a):
    b = np.zeros((2, 3), dtype=np.float32)
    if a.sum() > 0:
        b[0] = 2
    return a + torch.from_numpy(b)


@case
def a_buffer(a):
    b = io.StringIO()
    b.write("ab")
    if a.sum() > 0:
        b.write("c")
    return a + len(b.getvalue())


@case
def an_exception(a):
    e = ValueError(1)
    if a.sum() > 0:
        e.args = (5,)
    return a + e.args[0]


@case
def an_attribute_of_a_function(a):
    def g():
        pass

    g.n = 1
    if a.sum() > 0:
        g.n = 4
    return a + g.n


@case
def a_method_of_a_list(a):
    entries = [1]
    put = entries.append
    if a.sum() > 0:
        put(3)
    return a + len(entries)


@case
def a_part_of_a_function(a):
    entries = [1]
    put = functools.partial(entries.append, 3)
    if a.sum() > 0:
        put()
    return a + len(entries)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_branch_changes(name: str) -> None:
    torch.set_num_threads(1)
    function = FUNCTIONS[name]
    fast = monograph.compile(function, backend="reference")
    for sign in (1, -1, 1, -1):
        a = torch.ones(3) * sign
        torch.testing.assert_close(fast(a), function(a), rtol=0, atol=0)


def test_a_class_that_the_trace_hooks_is_no_changed_one():
    class Config:
        scale = 3.0

    before = whole.state(Config)
    Config.__getattribute__ = hook = lambda self, name: object.__getattribute__(self, name)
    assert whole.is_same(before, whole.state(Config))
    Config.scale = 4.0
    assert not whole.is_same(before, whole.state(Config))
    whole.put_back(Config, before)
    assert Config.scale == 3.0 and vars(Config)["__getattribute__"] is hook


TALLY = 0


def up(a):
    global TALLY
    TALLY += 1
    return a - 1 if a.sum() > 1 else a * 0.5


def test_a_function_called_in_a_branch_writes_a_global() -> None:
    def function(a, s):
        return a if float(s) > 0.5 else a + up(a)

    fast = monograph.compile(function, backend="reference")
    seen = []
    for run in (function, fast, fast):
        for s in (1.0, 0.0, 0.0, 1.0):
            before = TALLY
            seen.append((run(torch.ones(3), torch.tensor(s)).tolist(), TALLY - before))
    assert seen[:4] == seen[4:8] == seen[8:]


def test_what_a_trace_hooks_in_a_class_is_no_change_of_it() -> None:
    class Plain:
        size = 1

    before = whole.state(Plain)
    for name in ("__getattribute__", "__setattr__", "__delattr__"):
        setattr(Plain, name, getattr(object, name))
    assert whole.is_same(before, whole.state(Plain))
    whole.put_back(Plain, before)
    assert {"__getattribute__", "__setattr__", "__delattr__"} <= vars(Plain).keys()
    Plain.size = 2
    assert not whole.is_same(before, whole.state(Plain))
