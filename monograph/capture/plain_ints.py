"""What the user's code sees of a size that is a symbol: an int.

A torch.SymInt computes and compares as an int does, but it is none: `isinstance(n, int)`, `str(n)` and `hash(n)` would
tell. While a trace runs they are answered as for an int where the user's code asks, and as ever where torch does. What
shows the number itself makes it a number for good: the trace starts again without that symbol.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from monograph.capture.blame import is_ours, is_user_code

__all__ = ["plain_ints"]

KINDS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
SHOWN = ("__repr__", "__str__", "__format__", "__hash__")
EXTRA: dict[str, Callable[[Any], Any]] = {"__divmod__": lambda a, b: (a // b, a % b),       # type: ignore[dict-item]
                                          "__rdivmod__": lambda a, b: (b // a, b % a)}      # type: ignore[dict-item]


def _asked_by_user() -> bool:
    """Whether the caller's caller is code of the user's."""
    return is_user_code(sys._getframe(2).f_code)


def _shown(kind: type, name: str, before: Any) -> Callable[..., Any]:
    own = getattr(kind, name)

    def shown(self: Any, *args: Any) -> Any:
        if _asked_by_user() or (name == "__hash__" and is_ours(sys._getframe(1).f_code)):      # a key of the user's
            return own(kind(self), *args)
        return before(self, *args)

    return shown


def _get(symbolic: type, kind: type) -> Callable[..., Any]:
    """`__getattribute__`: it is how isinstance asks for `__class__`."""
    def get(self: Any, name: str) -> Any:
        if name == "__class__":
            return kind if _asked_by_user() else symbolic
        return object.__getattribute__(self, name)

    return get


def _times(before: Any, repeated: Callable[[Any, list[Any]], Any]) -> Callable[..., Any]:
    def times(self: Any, other: Any) -> Any:
        found = repeated(self, other) if type(other) is list else NotImplemented
        return before(self, other) if found is NotImplemented else found

    return times


@contextmanager
def plain_ints(repeated: Callable[[Any, list[Any]], Any]) -> Iterator[None]:
    """Inside, sizes look like ints to code that is not torch's. `repeated(n, entries)` is asked first what
    `entries * n` is; it may say NotImplemented."""
    before: list[tuple[type, str, Any]] = []
    for symbolic, kind in KINDS.items():
        changed = {name: _shown(kind, name, getattr(symbolic, name)) for name in SHOWN}
        changed["__getattribute__"] = _get(symbolic, kind)
        if kind is int:
            changed |= EXTRA
            changed |= {name: _times(getattr(symbolic, name), repeated) for name in ("__mul__", "__rmul__")}
        for name, value in changed.items():
            before.append((symbolic, name, symbolic.__dict__.get(name)))
            setattr(symbolic, name, value)
    try:
        yield
    finally:
        for symbolic, name, value in before:
            if value is None:
                delattr(symbolic, name)
            else:
                setattr(symbolic, name, value)
