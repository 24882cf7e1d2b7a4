"""Thousands of facts for the price of a few: as long as a word of memory did not change, what it stands for did not.

    Watched ::= owner*  Fact*  words        a Fact may be watched when the owners in `Fact.watch` alone decide it
    owner   ::= dict: its version tag                            CPython 3.10 to 3.12 (PEP 509)
              | cell: the address of its content
              | function: the addresses of its code, its defaults and its keyword defaults
              | class: the address of its order of bases
              | any other object: the address of its class

A check compares all words at once. Where one moved, the facts on its owner are evaluated, and where they hold the new
words are taken over. What an address points to is kept alive, for it may come back as that of another object. Where a
kind of owner has no such words, `watched` takes no facts on it and each is evaluated at every call.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monograph.capture.guards import Fact, Text

__all__ = ["Watched", "watched"]

WORD = 8
TAG = 24          # offset of ma_version_tag in PyDictObject: after reference count, type and size


class Memory:
    """All memory as 64-bit words, for numpy; word 0 is at address 8. Reads are as safe as the addresses."""

    __array_interface__ = {"data": (WORD, False), "shape": (1 << 44,), "typestr": "<u8", "version": 3}


@dataclass(frozen=True)
class Layout:
    """Where the words of an owner lie. `content`: what they are the addresses of, in the same order."""

    offsets: tuple[int, ...]
    content: Callable[[Any], tuple[Any, ...]]

    def places(self, owner: Any) -> list[int]:
        return [(id(owner) + offset) // WORD - 1 for offset in self.offsets]


class First:
    __slots__ = ()


class Second:
    __slots__ = ()


def of_cell(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


# For each kind of owner what the addresses in it are those of, and two examples without a part in common.
KINDS: dict[type, tuple[Callable[[Any], tuple[Any, ...]], tuple[Any, Any]]] = {
    dict: (lambda owner: (), ({}, {})),
    types.FunctionType: (lambda owner: (owner.__code__, owner.__defaults__, owner.__kwdefaults__),
                         (lambda a=1, *, b=2: a, lambda a=3, *, b=4: b)),
    types.CellType: (of_cell, (types.CellType(1), types.CellType(2))),
    type: (lambda owner: (owner.__mro__,), (First, Second)),
    object: (lambda owner: (type(owner),), (First(), Second())),
}


@functools.cache
def memory() -> np.ndarray:
    return np.asarray(Memory())


@functools.cache
def layouts() -> dict[type, Layout]:
    """By kind of owner; a kind whose examples do not look as expected is left out."""
    if sys.implementation.name != "cpython" or sys.maxsize < 1 << 62 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return {}
    found: dict[type, Layout] = {}
    for kind, (content, examples) in KINDS.items():
        if kind is dict:
            offsets = [TAG] if sys.version_info < (3, 13) and has_tag({"a": 0}) else []
        else:
            places = range(WORD, type(examples[0]).__basicsize__, WORD)
            matching = [[place for place in places if all(word(one, place) == id(content(one)[i]) for one in examples)]
                        for i in range(len(content(examples[0])))]
            offsets = [group[0] for group in matching if len(group) == 1]
        if len(offsets) == max(1, len(content(examples[0]))):
            found[kind] = Layout(tuple(offsets), content)
    return found


def word(owner: Any, offset: int) -> int:
    return int(memory()[(id(owner) + offset) // WORD - 1])


def has_tag(probe: dict[str, Any]) -> bool:
    """Whether the word at `TAG` moves when the dict changes, and only then."""
    seen = set()
    for change in (lambda: None, lambda: probe.update(a=1), lambda: probe.update(b=2), lambda: probe.pop("b")):
        change()
        tag = word(probe, TAG)
        if word(probe, TAG) != tag:
            return False
        seen.add(tag)
    return len(seen) == 4


def points_to(address: int, value: Any) -> bool:
    return address == id(value) or (value is None and address == 0)


def layout(owner: Any) -> Layout | None:
    cls = type(owner)
    return layouts().get(cls if cls in KINDS else next(kind for kind in KINDS if issubclass(cls, kind)))


def watched(facts: Sequence[Fact]) -> tuple[Watched | None, list[Fact]]:
    """The facts that words can answer for, which hold now, and the others."""
    chosen, others = [], []
    for fact in facts:
        (chosen if fact.watch and all(map(layout, fact.watch)) else others).append(fact)
    return (Watched(chosen) if chosen else None), others


class Watched:
    """`check()` tells whether all of `facts` hold. Safe in any number of threads."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        owners = {id(owner): owner for fact in facts for owner in fact.watch}
        self.owners = [owners[key] for key in sorted(owners)]      # kept alive; in the order of memory, for its caches
        positions = {id(owner): position for position, owner in enumerate(self.owners)}
        self.facts: list[list[Fact]] = [[] for _ in self.owners]
        for fact in facts:
            for owner in fact.watch:
                self.facts[positions[id(owner)]].append(fact)
        self.layouts = [found for owner in self.owners if (found := layout(owner)) is not None]
        places = [found.places(owner) for owner, found in zip(self.owners, self.layouts, strict=True)]
        self.places = np.array([place for group in places for place in group], np.int64)
        self.first = np.cumsum([0, *map(len, places)])             # of each owner's words
        self.take = memory().take
        self.tests: dict[int, Callable[[], Any]] = {}
        self.seen: tuple[bytes, dict[int, tuple[Any, ...]]] = bytes(WORD * len(self.places)), {}
        self._take_over(self._read(), range(len(self.owners)))

    def _read(self) -> bytes:
        return self.take(self.places, mode="clip").tobytes()

    def check(self) -> bool:
        return self.take(self.places, mode="clip").tobytes() == self.seen[0] or self._again()

    def _again(self) -> bool:
        now, before = self._read(), self.seen[0]
        moved = np.nonzero(np.frombuffer(now, np.uint64) != np.frombuffer(before, np.uint64))[0]
        owners = np.unique(np.searchsorted(self.first, moved, side="right") - 1).tolist()
        for position in owners:
            if self._test(position)() is None:
                return False
        self._take_over(now, owners)
        return True

    def _take_over(self, now: bytes, positions: Sequence[int]) -> None:
        """These owners need no test while their words are `now`; unless another thread changed one meanwhile."""
        words = np.frombuffer(now, np.uint64)
        before = self.seen                   # what it holds must outlive its words
        held = dict(before[1])
        for position in positions:
            content = self.layouts[position].content(self.owners[position])
            first = self.first[position]
            if not all(map(points_to, words[first:first + len(content)].tolist(), content)):
                return
            if content:
                held[position] = content
        self.seen = now, held

    def _test(self, position: int) -> Callable[[], Any]:
        """The generated check of the facts on one owner."""
        found = self.tests.get(position)
        if found is None:
            text = Text()
            text.require([text.condition(fact) for fact in self.facts[position]])
            text.lines.append("return True")
            found = self.tests[position] = text.function("test", "")
        return found
