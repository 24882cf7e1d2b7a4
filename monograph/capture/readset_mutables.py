"""What the trace can change and no later call could change again: it is put back, and the program refused by name.

    Mutables ::= (read, before, put back, path)*      arrays, streams, context variables, settings, globals by text
"""

from __future__ import annotations

import array
import contextvars
import decimal
import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from monograph.capture.guards import ABSENT
from monograph.errors import UnsupportedError

__all__ = ["Mutables", "decimal_settings"]

BUFFERS = (bytearray, array.array)


class Mutables:
    def __init__(self) -> None:
        self.entries: dict[Any, tuple[Callable[[], Any], Any, Callable[[Any], None], str]] = {}
        self.changed = ""                # the first that an attempt has changed

    def watch(self, key: Any, path: str, read: Callable[[], Any], put_back: Callable[[Any], None]) -> None:
        """Remember what `read()` gives now, for `put_back` to restore."""
        if key not in self.entries:
            self.entries[key] = read, read(), put_back, path

    def value(self, value: Any, path: str) -> None:
        """Watch the content of an object of one of the kinds that have some."""
        if isinstance(value, np.ndarray) and not value.dtype.hasobject and value.flags.writeable:
            self.watch(id(value), path, lambda: (value.shape, value.tobytes()), lambda old: _fill_array(value, old))
        elif isinstance(value, BUFFERS):
            self.watch(id(value), path, lambda: value[:], lambda old: value.__setitem__(slice(None), old))
        elif isinstance(value, (io.StringIO, io.BytesIO)) and not value.closed:
            self.watch(id(value), path, lambda: (value.getvalue(), value.tell()), lambda old: _rewrite(value, old))
        elif isinstance(value, contextvars.ContextVar):
            self.watch(id(value), path, lambda: value.get(ABSENT), value.set)

    def of_globals(self, table: dict[str, Any], path: str, lent: Callable[[str], bool]) -> None:
        """Watch all globals of a module, but for those that stand-ins are `lent` to."""
        def put_back(old: Globals) -> None:
            for name in [name for name in table if name[:2] != "__" and name not in old.content and not lent(name)]:
                del table[name]
            table.update({name: value for name, value in old.content.items() if not lent(name)})

        self.watch((id(table), "globals"), path, lambda: Globals(table, lent), put_back)

    def decimals(self) -> None:
        self.watch("decimal", "the decimal context", decimal_settings, _set_decimals)

    def unchanged(self) -> list[Any]:
        """The keys of what is as it was."""
        return [key for key, (read, before, _, _) in self.entries.items() if read() == before]

    def refresh(self, keys: Iterable[Any]) -> None:
        """These are to be as they are now."""
        for key in keys:
            read, _, put_back, path = self.entries[key]
            self.entries[key] = read, read(), put_back, path

    def take_back(self) -> None:
        """All are as they were."""
        self.changed = ""
        for read, before, put_back, path in self.entries.values():
            if read() != before:
                put_back(before)
                self.changed = self.changed or path

    def check(self) -> None:
        """UnsupportedError where something was changed."""
        if self.changed:
            raise UnsupportedError(f"the program changes {self.changed} while it runs",
                                   why="it is put back, and nothing would do it again in later calls",
                                   hint="return the new value")


class Globals:
    """Those of a module at one moment, `without` some; equal to others that are the same objects."""

    def __init__(self, table: Any, without: Callable[[str], bool]) -> None:
        self.content = {name: value for name, value in table.items() if name[:2] != "__"}
        self.without = without

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Globals):
            return NotImplemented
        names = self.content.keys() | other.content.keys()
        return all(self.without(name) or name in self.content and name in other.content
                   and self.content[name] is other.content[name] for name in names)

    __hash__ = None  # type: ignore[assignment]


def decimal_settings() -> tuple[Any, ...]:
    """What decides how decimals are computed; flags that a computation raises left out."""
    context = decimal.getcontext()
    return (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp,
            tuple(context.traps.items()))


def _set_decimals(settings: tuple[Any, ...]) -> None:
    context = decimal.getcontext()
    (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps) = settings
    context.traps.update(traps)


def _fill_array(value: Any, old: tuple[Any, bytes]) -> None:
    shape, content = old
    if value.shape != shape:
        value.resize(shape, refcheck=False)
    value[...] = np.frombuffer(content, value.dtype).reshape(shape)


def _rewrite(stream: Any, old: tuple[Any, int]) -> None:
    content, position = old
    stream.seek(0)
    stream.truncate()
    stream.write(content)
    stream.seek(position)
