"""State of Python's that a program reads by odd ways: another value is never answered with the old program."""

import collections
import functools
import itertools
import logging
import operator
import threading
import types
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import monograph
from tests.capture.harness import assert_change_is_seen


class Plain:
    value = 1.0


class Meta(type):
    @property
    def value(cls):
        return STORE["value"]


class OfMeta(metaclass=Meta):
    pass


class Asked:
    """Everything that syntax asks of an object."""

    def __len__(self):
        return int(STORE["value"])

    def __contains__(self, key):
        return STORE["value"] == 1

    def __iter__(self):
        return iter([STORE["value"]])

    def __float__(self):
        return STORE["value"]

    def __getattr__(self, name):
        return STORE["value"]


STORE = {"value": 1.0}
PLAIN, WEAK_TARGET, ASKED = Plain(), Plain(), Asked()
WEAK, LOCAL = weakref.ref(WEAK_TARGET), threading.local()
CHAIN = collections.ChainMap({}, {"value": 1.0})
PART = functools.partial(operator.add, 1.0)
NUMBERS, TABLE = list(range(5000)), dict.fromkeys(range(5000), 1.0)
COUNT, STARTED = itertools.count(), (number * 2 for number in itertools.count())
next(STARTED)


@functools.lru_cache
def cached(key):
    return STORE["value"]


def marked():
    pass


def store(value):
    STORE["value"] = value


CASES = {
    "metaclass": (lambda x: x + OfMeta.value, store),
    "len": (lambda x: x + len(ASKED), store), "in": (lambda x: x + (3 in ASKED), store),
    "iter": (lambda x: x + sum(ASKED), store), "float": (lambda x: x + float(ASKED), store),
    "getattr": (lambda x: x + ASKED.anything, store),
    "weak reference": (lambda x: x + WEAK().value, lambda value: setattr(WEAK_TARGET, "value", value)),
    "thread local": (lambda x: x + LOCAL.value, lambda value: setattr(LOCAL, "value", value)),
    "chain map": (lambda x: x + CHAIN["value"], lambda value: CHAIN.maps[1].__setitem__("value", value)),
    "partial": (lambda x: x + PART(1.0), lambda value: PART.__setstate__((operator.add, (value,), {}, {}))),
    "long list": (lambda x: x + NUMBERS[4500], lambda value: NUMBERS.__setitem__(4500, value)),
    "long dict": (lambda x: x + TABLE[4500], lambda value: TABLE.__setitem__(4500, value)),
    "function attribute": (lambda x: x + marked.value, lambda value: setattr(marked, "value", value)),
    "vars": (lambda x: x + vars(PLAIN)["value"], lambda value: setattr(PLAIN, "value", value)),
    "__dict__": (lambda x: x + PLAIN.__dict__["value"], lambda value: setattr(PLAIN, "value", value)),
    "attrgetter": (lambda x: x + operator.attrgetter("value")(PLAIN), lambda value: setattr(PLAIN, "value", value)),
    "cached": (lambda x: x + cached(0), lambda value: (store(value), cached.cache_clear())),
    "numpy errors": (lambda x: x + len(np.geterr()["divide"]), lambda value: np.seterr(
        divide="raise" if value > 1 else "ignore")),
    "flag": (lambda x: x + torch.backends.mkldnn.enabled, lambda value: torch.backends.mkldnn.set_flags(
        value < 2)),        # the attribute cannot be set once the operator database is imported
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_change_is_seen(name):
    assert_change_is_seen(*CASES[name])


@pytest.mark.parametrize(("function", "kind"), [
    (lambda x: x + next(COUNT), "a count"), (lambda x: x + next(STARTED), "a generator"),
], ids=["count", "generator"])
def test_an_iterator_that_is_advanced_is_refused(function, kind):
    with pytest.raises(monograph.UnsupportedError, match=kind):
        monograph.compile(function)(torch.zeros(1))


def test_an_iterator_that_is_advanced_is_refused_while_other_threads_run():
    """A second trace, as after another thread's draws, would find it exhausted, and its sum to be 0."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait, args=(60,))
    thread.start()
    try:
        with pytest.raises(monograph.UnsupportedError, match="advances argument, a generator"):
            monograph.compile(lambda x, numbers: x + sum(numbers))(torch.ones(1), (i for i in range(3)))
    finally:
        done.set()
        thread.join()


def test_a_generator_that_is_given_back_is_not_advanced():
    numbers = (i for i in range(3))
    compiled = monograph.compile(lambda x, numbers: (x + 1, numbers))
    for _ in range(2):
        assert compiled(torch.ones(1), numbers)[1] is numbers
    assert list(numbers) == [0, 1, 2]


def test_an_iterator_that_is_only_seen_is_not_refused():
    box = types.SimpleNamespace(source=itertools.count(), scale=2.0)
    compiled = monograph.compile(lambda x: x * box.scale)
    assert compiled(torch.ones(1)) == 2
    assert next(box.source) == 0 and compiled(torch.ones(1)) == 2


def test_functions_given_to_exec_are_guarded():
    names = {"torch": torch, "factor": 1.0}
    exec("""
def function(x, k=2.0):
    return x * factor * k + other(x)

def other(x):
    return x * term

term = 3.0
""", names)
    function, x = names["function"], torch.ones(1)
    compiled = monograph.compile(function)
    changes = [
        lambda: names.update(factor=5.0), lambda: names.update(term=7.0),
        lambda: setattr(function, "__defaults__", (4.0,)), lambda: names.update(other=lambda x: x),
        lambda: setattr(function, "__code__", (lambda x, k=2.0: x - 1).__code__),
    ]
    for change in (lambda: None, *changes):
        change()
        assert compiled(x) == function(x)
    assert len(compiled.recompiles) == len(changes)


class Described(nn.Module):
    """A descriptor that looks into the module's own dict."""

    class Value:
        def __get__(self, owner, kind):
            return owner.__dict__.get("hidden", 1.0)

        def __set__(self, owner, value):
            owner.__dict__["hidden"] = value

    value = Value()

    def forward(self, x):
        before = self.value
        self.value = 5.0
        return x * before + self.value


def test_a_descriptor_that_reads_the_dict_of_a_module():
    ours, theirs, x = Described(), Described(), torch.ones(1)
    compiled = monograph.compile(ours)
    for value in (None, None, 3.0):
        if value is not None:
            ours.value = theirs.value = value
        assert compiled(x) == theirs(x) and ours.value == theirs.value


@functools.singledispatch
def kind_of(value):
    return 1.0


kind_of.register(torch.Tensor)(lambda value: 2.0)
kind_of.register(float)(lambda value: 3.0)
kind_of.register(int)(lambda value: 4.0)
kind_of.register(bool)(lambda value: 5.0)


def test_dispatch_by_the_class_of_traced_values():
    def function(x):
        numbers = x.sum().item(), x.long().sum().item(), (x.sum() > 1).item()
        return [x * kind_of(value) for value in (x, *numbers, x.shape[0], None)]

    x = torch.ones(2)
    assert str(monograph.compile(function)(x)) == str(function(x))


def test_methods_that_the_user_gives_to_tensors():
    compiled, x = monograph.compile(lambda x: x.shifted_by_hand()), torch.zeros(1)
    try:
        for shift in (1.0, 1.0, 2.0):
            torch.Tensor.shifted_by_hand = lambda tensor, shift=shift: tensor + shift
            assert compiled(x) == shift
    finally:
        del torch.Tensor.shifted_by_hand


def test_the_level_of_a_logger():
    logger = logging.getLogger("monograph.test.level")
    compiled, x = monograph.compile(lambda x: x + logger.getEffectiveLevel()), torch.zeros(1)
    try:
        for level in (10, 10, 40):
            logger.setLevel(level)
            assert compiled(x) == level
    finally:
        logger.setLevel(logging.NOTSET)


def test_what_is_remembered_of_a_number_is_not_of_one_that_equals_it():
    for number in (False, complex(0.0, -0.0), 0.0, 0, 0j, True, 1, 1.0, 1 + 0j):
        result = monograph.compile(functools.partial(operator.mul, number))(torch.arange(7.0))
        assert result.dtype is (torch.arange(7.0) * number).dtype
