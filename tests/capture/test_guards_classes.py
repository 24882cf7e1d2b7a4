"""What a program finds in classes: methods replaced and added later, and what methods of objects it makes read."""

from __future__ import annotations

import time
from time import time as now
from typing import Any

import pytest
import torch
from torch import nn

import monograph
from tests.capture.harness import assert_change_is_seen

STORE = {"value": 1.0}
SCALE = 1.0


def scale(value: float) -> None:
    global SCALE
    SCALE = value


class Plain:
    def __init__(self, x: Any = None) -> None:
        self.x = x

    def scaled(self) -> Any:
        return self.inner()

    def inner(self) -> Any:
        return self.x * SCALE

    @property
    def computed(self) -> Any:
        return self.x * SCALE

    @classmethod
    def make(cls, x: Any) -> Any:
        return cls(x)

    @staticmethod
    def times(x: Any) -> Any:
        return x * SCALE

    def __add__(self, other: Any) -> Any:
        return other * SCALE


class Heir(Plain):
    def scaled(self) -> Any:
        return super().scaled()


class Items:
    def __iter__(self) -> Any:
        return iter([3.0])


class Bare(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * (2.0 if self else 3.0) + getattr(self, "late", 1.0)


class Meta(type):
    pass


class OfMeta(metaclass=Meta):
    pass


class Described:
    class Value:
        value = 1.0

        def __get__(self, owner: Any, kind: Any) -> float:
            return self.value

    entry = Value()


class Sample:
    kind = None


PLAIN, SAMPLE, ITEMS, BARE = Plain(torch.ones(1)), Sample(), Items(), Bare()
SAMPLE.own = 1.0
CLASSES, ENTRIES = [Plain], {"plain": Plain}


def put(cls: type, name: str, raw: Any) -> Any:
    """A change that gives a class what it did not have, and takes it away again."""
    def change(value: float) -> None:
        if value != 1:
            setattr(cls, name, raw)
        elif name in cls.__dict__:
            delattr(cls, name)

    return change


def replace(cls: type, name: str, raw: Any) -> Any:
    old = cls.__dict__[name]
    return lambda value: setattr(cls, name, old if value == 1 else raw)


def special(self: Any, name: str) -> Any:
    if name == "late":
        return 2.0
    return nn.Module.__getattr__(self, name)


CASES = {
    "__bool__": (lambda x: x + (1 if SAMPLE else 2), put(Sample, "__bool__", lambda self: False)),
    "__len__": (lambda x: x + (1 if SAMPLE else 2), put(Sample, "__len__", lambda self: 0)),
    "__eq__": (lambda x: x + (SAMPLE == 3), put(Sample, "__eq__", lambda self, other: True)),
    "__getattr__": (lambda x: x + getattr(SAMPLE, "late", 1), put(Sample, "__getattr__", lambda self, name: 2)),
    "__contains__": (lambda x: x + (3.0 in ITEMS), put(Items, "__contains__", lambda self, value: False)),
    "callable": (lambda x: x + callable(SAMPLE), put(Sample, "__call__", lambda self: None)),
    "property over an attribute": (lambda x: x + SAMPLE.own, put(Sample, "own", property(
        lambda self: 2.0, lambda self, value: None))),
    "of a module": (lambda x: BARE(x), put(Bare, "__bool__", lambda self: False)),
    "__getattr__ of a module": (lambda x: BARE(x), put(Bare, "__getattr__", special)),
    "__call__ of all modules": (lambda x: BARE(x), replace(nn.Module, "__call__", lambda self, x: x + 7)),
    "method of tensors": (lambda x: x.cos(), put(torch.Tensor, "cos", lambda self: self + 7)),
    "operator of tensors": (lambda x: x + 1, put(torch.Tensor, "__add__", lambda self, other: self - 7)),
    "metaclass": (lambda x: x + (1 if OfMeta else 2), put(Meta, "__bool__", lambda cls: False)),
    "descriptor": (lambda x: x + SAMPLE.entry.value if hasattr(SAMPLE, "entry") else x + Described().entry,
                   lambda value: setattr(Described.__dict__["entry"], "value", value)),
    "new in a class": (lambda x: x + getattr(Sample, "late", 1), put(Sample, "late", 2)),
    "made object": (lambda x: Plain(x + 1).scaled(), scale), "made heir": (lambda x: Heir(x + 1).scaled(), scale),
    "property of a made object": (lambda x: Plain(x + 1).computed, scale),
    "class method": (lambda x: Plain.make(x + 1).scaled(), scale),
    "operator of a made object": (lambda x: Plain(x) + (x + 1), scale),
    "class in a list": (lambda x: CLASSES[0].times(x + 1), scale),
    "class in a dict": (lambda x: ENTRIES["plain"](x + 1).scaled(), scale),
    "method of a class in a list": (lambda x: CLASSES[0].times(x + 1), replace(
        Plain, "times", staticmethod(lambda x: x + 9))),
    "__new__ of what is made": (lambda x: x + isinstance(Sample(), Sample), put(
        Sample, "__new__", lambda cls: None)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_change_is_seen(name: str) -> None:
    assert_change_is_seen(*CASES[name], backend="reference")


def test_what_no_program_reads_of_a_class_may_change() -> None:
    compiled, x = monograph.compile(lambda x: x * PLAIN.x + len(vars(Sample)), backend="reference"), torch.ones(1)
    assert compiled(x) == 1 + len(vars(Sample))
    try:
        for value in (1, 2):
            Plain.unread = Plain.__doc__ = value
            compiled(x)
        assert not compiled.recompiles
    finally:
        del Plain.unread


def test_a_clock_that_only_a_property_names() -> None:
    class Timed:
        @property
        def moment(self) -> float:
            return now()

    timed = Timed()
    compiled = monograph.compile(lambda x: x + timed.moment, backend="reference")
    x, before = torch.zeros(1, dtype=torch.float64), time.time()
    assert before <= compiled(x) <= (later := time.time()) <= compiled(x) and later > 0


def test_what_the_program_sets_in_a_class() -> None:
    class Kept:
        last = None

    def function(x: Any) -> Any:
        Kept.last = x * 2
        return x + 1

    compiled = monograph.compile(function, backend="reference")
    for value in (1.0, 2.0, 3.0):
        assert compiled(torch.full((1,), value)) == value + 1 and Kept.last == 2 * value
