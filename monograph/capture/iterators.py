"""Iterators that were there before the trace: nothing can wind them back, so that the program may not advance them.

Among the arguments an iterator is handed to the program as a stand-in, `OneWay`, which refuses when it is first asked.
Of others `position` tells afterwards whether they were advanced; then the call cannot run again, not in Python either.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from monograph.capture.readset_code import is_user_class
from monograph.errors import UnsupportedError

__all__ = ["OneWay", "is_one_way", "position", "refusal"]


def is_one_way(value: Any) -> bool:
    """Whether a value is an iterator whose state is not attributes of the user's; a closed file gives nothing."""
    return (type(value) is not OneWay and isinstance(value, Iterator) and not is_user_class(type(value))
            and getattr(value, "closed", False) is not True)


def refusal(path: str, kind: type) -> UnsupportedError:
    return UnsupportedError(f"the program advances {path}, a {kind.__name__}",
                            why="the trace runs once for many calls, and an iterator cannot be wound back",
                            hint="take what it gives before the call and pass it in")


class OneWay:
    """Stands for the iterator `real`, as long as nobody asks it for anything."""

    __slots__ = ("path", "real")

    def __init__(self, real: Any, path: str) -> None:
        self.real = real
        self.path = path

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(object.__getattribute__(self, "real"))

    def __iter__(self) -> OneWay:
        return self

    def __next__(self) -> Any:
        raise refusal(self.path, type(self.real))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        if callable(value) and not name.startswith("__"):        # `send`, `read`
            raise refusal(self.path, type(self.real))
        return value

    @staticmethod
    def behind(value: Any) -> Any:
        """The iterator that a stand-in stands for; any other value as it is."""
        return object.__getattribute__(value, "real") if type(value) is OneWay else value


def position(iterator: Any) -> Any:
    """What changes when an iterator gives something; None where it does not tell."""
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        return "done" if frame is None else (frame.f_lasti, [
            position(value) if isinstance(value, Iterator) else value for value in frame.f_locals.values()
            if isinstance(value, (int, float, str, Iterator))])
    try:
        return _part(iterator.tell() if hasattr(iterator, "tell") else iterator.__reduce__())
    except (TypeError, RecursionError, OSError, ValueError):
        return None


def _part(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_part, value))
    if isinstance(value, Iterator):
        return position(value)
    if isinstance(value, (list, dict, set)):       # perhaps made to answer
        return type(value), len(value)
    return value if isinstance(value, (int, float, str, range)) else id(value)
