"""Results that are any objects around tensors, and such objects kept beyond the call."""

import collections
import dataclasses
import enum
import functools
import threading
import types

import pytest
import torch

import monograph
from monograph.errors import UnsupportedError


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Frozen(frozenset):
    pass


class Row(tuple):
    pass


class Grouped(collections.defaultdict):
    pass


@dataclasses.dataclass(slots=True, frozen=True)
class Sealed:
    a: torch.Tensor


class Linked:
    made = 0

    def __init__(self, value):
        type(self).made += 1
        self.value, self.next, self.me = value, None, self

    def doubled(self):
        return self.value * 2


def cyclic_list(x):
    entries = [x * 2]
    entries.append(entries)
    return entries


def shared_list(x):
    entries = [x * 2]
    return entries, entries, {"k": entries}


def linked(x):
    first = Linked(x * 2)
    first.next = Linked(x * 3)
    first.next.next = first
    return first


def closure(x):
    y, count = x * 2, 0

    def add(z, *, by=x * 4):
        nonlocal count
        count += 1
        return y + z * by + count

    add.made_for = y
    return add


def recursive(x):
    y = x * 2

    def descend(n):
        return y if n == 0 else descend(n - 1) + 1

    return descend


def converted(x):
    entries = []
    if x.sum() > 0:
        entries.append(x)
    else:
        entries.append(-x)
    return lambda: entries[0] if x.sum() > 0 else entries[0] * 2


def generator_function(x):
    def generate():
        if x.sum() > 0:
            yield x
        yield x * 2
    return generate


# What is returned, what is looked at in it.
RESULTS = {
    "key": (lambda x: {x + 1: 1}, lambda r: list(r)),
    "key within": (lambda x: {(x + 3,): 4}, lambda r: list(r)[0]),
    "set": (lambda x: {x + 1}, list),
    "frozenset": (lambda x: frozenset([x + 2]), list),
    "kind of frozenset": (lambda x: Frozen([x * 2]), lambda r: (type(r), list(r))),
    "kind of tuple": (lambda x: Row([x * 2]), lambda r: (type(r), r[0])),
    "kind of defaultdict": (lambda x: Grouped(list, {"a": [x * 2]}), lambda r: (type(r), r["a"], r["c"])),
    "slots": (lambda x: Slots(x * 2), lambda r: (r.a, hasattr(r, "b"))),
    "slots of a dataclass": (lambda x: Sealed(x * 2), lambda r: r.a),
    "partial": (lambda x: functools.partial(torch.add, x * 2), lambda r: r(1)),
    "deque": (lambda x: collections.deque([x * 2], 3), lambda r: (r[0], r.maxlen)),
    "chain": (lambda x: collections.ChainMap({"a": x * 2}), lambda r: r["a"]),
    "namespace": (lambda x: types.SimpleNamespace(a=x * 2), lambda r: r.a),
    "proxy": (lambda x: types.MappingProxyType({"a": x * 3}), lambda r: r["a"]),
    "counter": (lambda x: collections.Counter({"a": x * 2}), lambda r: (type(r), r["a"], r["b"])),
    "ordered": (lambda x: collections.OrderedDict(b=x, a=x * 2), lambda r: (type(r), list(r), r["a"])),
    "cycle": (cyclic_list, lambda r: (r[0], r[1] is r)),
    "shared": (shared_list, lambda r: (r[0] is r[1], r[2]["k"] is r[0], r[0])),
    "linked": (linked, lambda r: (r.next.next is r, r.me is r, r.next.value)),
    "method": (lambda x: Linked(x).doubled, lambda r: r()),
    "method of C": (lambda x: (x * 2).mean, lambda r: r()),
    "closure": (closure, lambda r: (r(1), r(2), r.made_for, r.__name__)),
    "recursive": (recursive, lambda r: r(2)),
    "converted": (converted, lambda r: r()),
    "generator function": (generator_function, lambda r: list(r())),
    "default": (lambda x: lambda y=x * 2: y, lambda r: r()),
    "iterator": (lambda x: iter([x * 2]), list),
    "reversed": (lambda x: reversed([x, x * 2]), list),
    "zip": (lambda x: zip([x * 2], [x]), list),
    "map": (lambda x: map(lambda a: a + 1, [x * 2]), list),
    "enumerate": (lambda x: enumerate([x * 2]), list),
    "values": (lambda x: {"a": x * 2}.values(), list),
    "items": (lambda x: {"a": x * 2}.items(), list),
    "slice": (lambda x: slice(x * 2, None), lambda r: r.start),
    "exception": (lambda x: ValueError(x * 2, "why"), lambda r: r.args),
    "module": (lambda x: torch.nn.BatchNorm1d(3), lambda r: (r.running_mean, r.training)),
    "number in slots": (lambda x: Slots(x.sum().item()), lambda r: r.a),
    "number in a deque": (lambda x: collections.deque([x.sum().item()]), list),
    "numbers as keys": (lambda x: {bool(x[0] > 0): 1, not (x[1] > 0): 2, int(x[0] * 3): 3}, lambda r: r),
    "keys that a branch chose": (lambda x: {(3 if x[0] > 0 else 4) + 1: 1, any(v > 2 for v in x): 2}, lambda r: r),
    "array": (lambda x: [(x * 2).numpy(), {"k": x.numpy().sum()}], lambda r: (r[0].tolist(), float(r[1]["k"]))),
}


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and torch.equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("name", RESULTS)
def test_made_again_at_every_call(name):
    function, look = RESULTS[name]
    compiled = monograph.compile(function)
    for value in (1.0, -1.0, 1.0):
        x = torch.full((3,), value)
        results = [compiled(x), compiled(x)]
        assert results[0] is not results[1]
        for result in results:
            assert same(look(result), look(function(x)))


def test_code_of_the_class_does_not_run_again():
    compiled = monograph.compile(linked)
    compiled(torch.ones(3))
    before = Linked.made
    compiled(torch.ones(3))
    assert Linked.made - before in (0, 2)              # what eager writes at every call is made again


class Settings:
    def __init__(self, size):
        self.size, self.lock = size, threading.Lock()


MISSING = Settings(0)


def test_objects_without_tensors_are_each_calls_own():
    def settings(x, default=MISSING):
        return x * 2, Settings(3), {"k": Settings([1])}, MISSING, default, Color.RED

    compiled = monograph.compile(settings)
    first, second = compiled(torch.ones(3)), compiled(torch.ones(3))
    assert first[1] is not second[1] and first[2]["k"].size is not second[2]["k"].size
    first[1].size = 4
    assert compiled(torch.ones(3))[1].size == 3
    assert first[3] is first[4] is MISSING and first[5] is Color.RED


class Color(enum.Enum):
    RED = 1


class Keeper:
    pass


def kept_key(x, keeper):
    y = x * 2
    keeper.table[(1, y)] = y
    return y


def kept_set(x, keeper):
    y = x * 2
    keeper.entries.add(y)
    return y


def kept_closure(x, keeper):
    y = x * 2
    keeper.call = lambda z: y + z
    return y


def kept_cycle(x, keeper):
    keeper.node = Linked(x * 2)
    return keeper.node.value


def kept_and_returned(x, keeper):
    keeper.part = functools.partial(torch.add, x)
    keeper.last = [x * 2]
    keeper.all.append(keeper.last)
    return keeper.last


@pytest.mark.parametrize("function, look", [
    (kept_key, lambda k, r: (list(k.table)[-1][1] is r, list(k.table.values())[-1] is r)),
    (kept_set, lambda k, r: (r in k.entries, len(k.entries))),
    (kept_closure, lambda k, r: (k.call(1), r)),
    (kept_cycle, lambda k, r: (k.node.me is k.node, k.node.value is r, r)),
    (kept_and_returned, lambda k, r: (k.last is r, k.all[-1] is r, k.part(1), r)),
], ids=["key", "set", "closure", "cycle", "result"])
def test_kept_beyond_the_call(function, look):
    def keeper():
        made = Keeper()
        made.table, made.entries, made.all = {}, set(), []
        return made

    mine, eager = keeper(), keeper()
    compiled = monograph.compile(lambda x: function(x, mine))
    for value in (1.0, 2.0, 2.0):
        x = torch.full((3,), value)
        assert same(look(mine, compiled(x)), look(eager, function(x, eager)))


def test_what_cannot_be_made_again_is_refused_by_name():
    def generators(x):
        return (entry for entry in [x]), x

    def local_class(x):
        return type("Local", (), {"a": x * 2})

    for function, kind in ((generators, "generator"), (local_class, "type")):
        with pytest.raises(UnsupportedError, match=f"holds traced values within a {kind}"):
            monograph.compile(function)(torch.ones(3))
