"""Thousands of facts for the price of a few: as long as a dict did not change, what was read in it did not either.

    Watched ::= dict*  Fact*  tags          a Fact may be watched when the dicts in `Fact.watch` alone decide it

CPython 3.10 to 3.12 keep a version tag in every dict (PEP 509). A check compares all tags at once; for a dict whose
tag moved, the facts on it are evaluated, and where they hold the new tag is taken over. Where there are
no tags, `watched` takes no facts and each is evaluated at every call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from monograph.capture.guards import Fact, Text

__all__ = ["Watched", "watched"]

TAG = 24          # offset of ma_version_tag in PyDictObject: after reference count, type and size


class Memory:
    """All memory as 64-bit words, for numpy; word 0 is at address 8. Reads are as safe as the addresses."""

    __array_interface__ = {"data": (8, False), "shape": (1 << 44,), "typestr": "<u8", "version": 3}


def words_of(tables: Sequence[dict[Any, Any]]) -> np.ndarray:
    return np.array([(id(table) + TAG - 8) // 8 for table in tables], np.int64)


@functools.cache
def memory() -> np.ndarray | None:
    """The words, None where dicts have no tag: a probe dict tells."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13) or sys.maxsize < 1 << 62:
        return None
    words = np.asarray(Memory())
    probe: dict[str, Any] = {"a": 0}
    place = words_of([probe])
    seen = set()
    for change in (lambda: None, lambda: probe.update(a=1), lambda: probe.update(b=2), lambda: probe.pop("b")):
        change()
        tag = int(words.take(place)[0])
        if int(words.take(place)[0]) != tag:
            return None
        seen.add(tag)
    return words if len(seen) == 4 else None


def watched(facts: Sequence[Fact]) -> tuple[Watched | None, list[Fact]]:
    """The facts that tags can answer for, which hold now, and the others."""
    if memory() is None:
        return None, list(facts)
    chosen = [fact for fact in facts if fact.watch]
    return (Watched(chosen) if chosen else None), [fact for fact in facts if not fact.watch]


class Watched:
    """`check()` tells whether all of `facts` hold. Safe in any number of threads."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        words = memory()
        assert words is not None
        tables = {id(table): table for fact in facts for table in fact.watch}
        positions = {key: position for position, key in enumerate(tables)}
        self.tables = list(tables.values())            # kept alive: their addresses are read
        self.facts: list[list[Fact]] = [[] for _ in self.tables]
        for fact in facts:
            for table in fact.watch:
                self.facts[positions[id(table)]].append(fact)
        self.places = words_of(self.tables)
        self.take = words.take
        self.tags = self._read()
        self.tests: dict[int, Callable[[], Any]] = {}

    def _read(self) -> bytes:
        return self.take(self.places, mode="clip").tobytes()

    def check(self) -> bool:
        return self.take(self.places, mode="clip").tobytes() == self.tags or self._again()

    def _again(self) -> bool:
        now, before = self._read(), self.tags
        moved = np.nonzero(np.frombuffer(now, np.uint64) != np.frombuffer(before, np.uint64))[0]
        for position in moved.tolist():
            if self._test(position)() is None:
                return False
        self.tags = now
        return True

    def _test(self, position: int) -> Callable[[], Any]:
        """The generated check of the facts on one dict."""
        found = self.tests.get(position)
        if found is None:
            text = Text()
            text.require([text.condition(fact) for fact in self.facts[position]])
            text.lines.append("return True")
            found = self.tests[position] = text.function("test", "")
        return found
