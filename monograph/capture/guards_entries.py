"""Facts on what many names of one dict mean, for the price of one: it is looked at where the dict has changed.

    Entries ::= table  {name: value | ABSENT | ANY}  kind of names that may not be added

A class is such a table, and so are a module's globals and Python's built-ins.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monograph.capture.guards import ABSENT, Fact, brief, same

__all__ = ["ANY", "Entries", "entries", "is_ours"]

ANY = object()      # a value that other facts tell, or that the program sets
OWN = __name__.partition(".")[0] + "."

Counts = Callable[[str, Any], bool]


@dataclass(slots=True, eq=False)
class Entries(Fact):
    """Made by `entries`."""

    def failure(self) -> str:
        table, _, wanted, counts = self.objects
        name, now, then = next(differences(table, wanted, counts), ("", ABSENT, ABSENT))
        label = f"{self.label}.{name}" if self.label else name
        if ABSENT in (now, then):
            return f"{label} {'went away' if now is ABSENT else 'is new'}"
        texts = brief(then), brief(now)
        return f"{label} is another {type(then).__name__}" if texts[0] == texts[1] else f"{label}: {' -> '.join(texts)}"


def entries(label: str, table: Mapping[str, Any], wanted: dict[str, Any], watch: tuple[Any, ...],
            counts: Counts | None = None) -> Entries:
    """`table` has under each name of `wanted` what it says there; of other names it has none that `counts`. The dict
    `wanted` may grow until the guard is made."""
    return Entries(label, "{1}({0}, {2}, {3})", (table, holds, wanted, counts), watch=watch)


def holds(table: Mapping[str, Any], wanted: Mapping[str, Any], counts: Counts | None) -> bool:
    return next(differences(table, wanted, counts), None) is None


def differences(table: Mapping[str, Any], wanted: Mapping[str, Any], counts: Counts | None,
                ) -> Iterator[tuple[str, Any, Any]]:
    """Each name that means something else: what now, what then. What a trace puts there for a while does not count."""
    for name, then in wanted.items():
        now = table.get(name, ABSENT)
        if now is not then and then is not ANY and not same(now, then) and not is_ours(now):
            yield name, now, then
    if counts is not None:
        for name, now in list(table.items()):
            if name not in wanted and counts(name, now) and not is_ours(now):
                yield name, now, ABSENT


def is_ours(value: Any) -> bool:
    """Whether it is a function of Monograph's, which stands in a class while a trace runs."""
    function = getattr(value, "__func__", value)
    return isinstance(function, types.FunctionType) and (function.__module__ or "").startswith(OWN)
