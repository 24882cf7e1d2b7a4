"""What lies behind keys, views, enums, texts with attributes, `type(x)`, copies and names that are no globals."""

from __future__ import annotations

import builtins
import copy
import enum
import pickle
import types
from collections import defaultdict
from typing import Any

import pytest

from tests.capture.harness import assert_change_is_seen


class Holder:
    scale = 1.0

    def of_class() -> float:        # called through the class alone
        return 1.0


class Colour(enum.Enum):
    RED = 1


class Text(str):
    def times(self) -> float:
        return 1.0


class Whole(int):
    pass


HELD, COPIED, TEXT, WHOLE, TABLE, FACTORY = Holder(), Holder(), Text("a"), Whole(3), {"value": 1.0}, defaultdict(int)
KEYS, ENTRIES, FROZEN, VIEW, PROXY = {HELD: 0}, {HELD}, frozenset([HELD]), TABLE.values(), types.MappingProxyType(TABLE)
PALETTE = {"red": Colour.RED}


def attribute(target: Any, name: str, other: Any = None) -> Any:
    """A change of an attribute to the value, or between what is there and `other`."""
    before = getattr(target, name, None)
    return lambda value: setattr(target, name, value if other is None else before if value == 1 else other)


def name_in(table: dict[str, Any], name: str, other: Any) -> Any:
    """A change that puts `other` under a name, or what was there."""
    before = table.get(name)

    def change(value: float) -> None:
        if value != 1:
            table[name] = other
        elif before is not None:
            table[name] = before
        else:
            table.pop(name, None)

    return change


def spread(*values: Any, **options: Any) -> float:
    return 7.0


OWN = attribute(HELD, "own")
CASES = {
    "keys of a dict": (lambda x: x + sum(key.own for key in KEYS), OWN),
    "entries of a set": (lambda x: x + sum(entry.own for entry in ENTRIES), OWN),
    "entries of a frozenset": (lambda x: x + sum(entry.own for entry in FROZEN), OWN),
    "view of a dict": (lambda x: x + sum(VIEW), lambda value: TABLE.update(value=value)),
    "proxy of a dict": (lambda x: x + PROXY["value"], lambda value: TABLE.update(value=value)),
    "factory of a dict": (lambda x: x + FACTORY.default_factory(), attribute(FACTORY, "default_factory", lambda: 2)),
    "attribute of an enum's member": (lambda x: x + Colour.RED.shade, attribute(Colour.RED, "shade")),
    "value of an enum's member": (lambda x: x + PALETTE["red"].value, attribute(Colour.RED, "_value_")),
    "members of an enum": (lambda x: x + sum(member.shade for member in Colour), attribute(Colour.RED, "shade")),
    "attribute of a text": (lambda x: x + TEXT.shade, attribute(TEXT, "shade")),
    "method of a text": (lambda x: x + TEXT.times(), attribute(Text, "times", lambda self: 2.0)),
    "attribute of an integer": (lambda x: x + WHOLE.shade, attribute(WHOLE, "shade")),
    "type(x)": (lambda x: x + type(HELD).of_class(), attribute(Holder, "of_class", lambda: 2.0)),
    "x.__class__": (lambda x: x + HELD.__class__.of_class(), attribute(Holder, "of_class", lambda: 2.0)),
    "absent from type(x)": (lambda x: x + hasattr(type(HELD), "late"), lambda value: setattr(Holder, "late", 1)
                            if value != 1 else delattr(Holder, "late") if hasattr(Holder, "late") else None),
    "copy": (lambda x: x + copy.copy(COPIED).own, attribute(COPIED, "own")),
    "deep copy": (lambda x: x + copy.deepcopy(COPIED).own, attribute(COPIED, "own")),
    "pickle": (lambda x: x + pickle.loads(pickle.dumps(COPIED)).own, attribute(COPIED, "own")),
    "built-in": (lambda x: x + divmod(3, 2)[0], name_in(vars(builtins), "divmod", lambda a, b: (9, 9))),
    "global before a built-in": (lambda x: x + max(1, 2), name_in(globals(), "max", spread)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_change_is_seen(name: str) -> None:
    assert_change_is_seen(*CASES[name], backend="reference")
