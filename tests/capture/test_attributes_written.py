"""Attributes of every kind that the program reads, writes and deletes: slots, functions', past `__setattr__`."""

import contextlib
import dataclasses
import functools
import logging

import pytest
import torch
from torch import nn

import monograph

ONE = torch.ones(2)


class Plain:
    pass


class Slotted:
    __slots__ = ("k", "t")

    def __init__(self):
        self.k, self.t = 1, torch.zeros(2)


class Both(Plain):
    __slots__ = ("k",)


@dataclasses.dataclass(slots=True)
class Data:
    n: int = 0
    seen: list = dataclasses.field(default_factory=list)


class Private:
    __slots__ = ("__v",)

    def __init__(self):
        self.__v = 1

    @property
    def v(self):
        return self.__v

    @v.setter
    def v(self, value):
        self.__v = value


class Cached(nn.Module):
    @functools.cached_property
    def w(self):
        return torch.arange(2.0)

    def forward(self, x):
        return x * self.w


def slot_written(compiled):
    a = Slotted()

    def f(x):
        a.k += 1
        return x * a.k

    f = compiled(f)
    results = [f(ONE), f(ONE), a.k]
    a.k = 10
    return [*results, f(ONE), a.k]


def slot_beside_a_dict(compiled):
    a = Both()
    a.k, a.other = 1, 5
    f = compiled(lambda x: x * a.k * a.other)
    results = [f(ONE)]
    a.k = 3
    results.append(f(ONE))
    a.other = 7
    return [*results, f(ONE)]


def slot_in_a_branch(compiled):
    s = Slotted()

    def f(x):
        if x.sum() > 0:
            s.k += 1
            s.t = s.t + x
        else:
            s.t = s.t - 1
        return s.t * s.k

    f = compiled(f)
    return [f(ONE), f(-ONE), f(ONE), s.k, s.t]


def slot_of_the_calls_own(compiled):
    def f(x):
        s = Slotted()
        if x.sum() > 0:
            s.t = s.t + x
        else:
            s.t = s.t - 1
        return s.t * 2

    f = compiled(f)
    return [f(ONE), f(-ONE)]


def slot_in_a_loop(compiled):
    def f(x, n):
        s = Slotted()
        for _ in range(int(n)):
            s.t = s.t + x
            s.k = s.k + 1
        return s.t, s.k

    f = compiled(f)
    return [f(ONE, torch.tensor(3)), f(ONE, torch.tensor(5))]


def empty_slot(compiled):
    s = Slotted()
    del s.k
    f = compiled(lambda x: x * getattr(s, "k", 9))
    results = [f(ONE)]
    s.k = 2
    return [*results, f(ONE)]


def data_with_slots(compiled):
    d = Data()

    def f(x):
        d.n += 1
        d.seen.append(d.n)
        return x * d.n

    f = compiled(f)
    return [f(ONE), f(ONE), f(ONE), d.n, d.seen]


def data_given(compiled):
    d = Data()

    def f(x, d):
        d.n += 1
        return x * d.n

    f = compiled(f)
    return [f(ONE, d), f(ONE, d), f(ONE, Data(5)), d.n]


def private_slot(compiled):
    p = Private()

    def f(x):
        p.v += 2
        return x * p.v

    f = compiled(f)
    return [f(ONE), f(ONE), p.v]


def deleted(compiled, owner):
    owner.n = 1

    def f(x):
        try:
            del owner.n
        except AttributeError:
            owner.n = 4
        return x * getattr(owner, "n", 7)

    f = compiled(f)
    return [f(ONE), f(ONE), f(ONE), hasattr(owner, "n")]


def cached_on_a_module(compiled):
    model = Cached()
    fast = compiled(model)
    first = fast(ONE)
    model.w.add_(1)
    return [first, fast(ONE), fast(ONE)]


def function_in_a_cell(compiled):
    def f(x):
        f.n = getattr(f, "n", 0) + 1
        return x * f.n

    fast = compiled(f)
    return [fast(ONE), fast(ONE), f.n]


def decorated(compiled):
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args):
            wrapper.calls += 1
            return function(*args) * wrapper.calls
        wrapper.calls = 0
        return wrapper

    @counted
    def f(x):
        return x + 1

    fast, inside = compiled(f), compiled(lambda x: f(x))
    return [fast(ONE), fast(ONE), inside(ONE), f.calls]


def context_managers_in_a_cell(compiled):
    log = []

    @contextlib.contextmanager
    def block(n):
        log.append(("in", n))
        yield n * 2
        log.append(("out", n))

    def f(x):
        with block(3) as k, block(4) as j:
            return x * k * j

    f = compiled(f)
    return [f(ONE), f(ONE), log]


def logger_of_its_own(compiled):
    logger, said = logging.getLogger("of its own"), []

    class Handler(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())

    logger.handlers = [Handler()]
    logger.setLevel("INFO")

    def f(x):
        logger.info("shape %s", tuple(x.shape))
        return x

    f = compiled(f)
    f(ONE), f(ONE)
    logger.setLevel("ERROR")
    f(ONE)
    return said


def order_put_back(compiled):
    d = {"a": 1}

    def f(x):
        d.pop("a", None)
        d.setdefault("b", 3)
        return x * len(d)

    f = compiled(f)
    results = [f(ONE), list(d.items())]
    d["a"], d["c"] = 4, 5
    return [*results, f(ONE), list(d.items())]


PROGRAMS = [slot_written, slot_beside_a_dict, slot_in_a_branch, slot_of_the_calls_own, slot_in_a_loop, empty_slot,
            data_with_slots, data_given, private_slot, cached_on_a_module, function_in_a_cell, decorated,
            context_managers_in_a_cell, logger_of_its_own, order_put_back]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_program(program):
    assert str(program(monograph.compile)) == str(program(lambda function: function))


@pytest.mark.parametrize("owner", [Slotted, Plain, nn.Module], ids=["slots", "dict", "module"])
def test_deleted(owner):
    if owner is Slotted:
        class Owner:
            __slots__ = ("n",)
        owner = Owner
    assert str(deleted(monograph.compile, owner())) == str(deleted(lambda function: function, owner()))
