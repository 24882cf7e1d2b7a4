"""Log records, and texts written to the standard streams, of user code while it is traced.

    Message ::= ... | record(level, text, arguments, place)  |  write(stream, text)

Whether a logger listens to a level is a fact; what it would have handled becomes a message, handled with the values of
each call, from the user's line. What is said inside of a function that remembers its results (`functools.lru_cache`) is
said once, as in eager.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Logged", "Stream", "Written", "caller", "is_remembered", "keep_enabled", "keep_log"]

REMEMBERS: Any = type(functools.lru_cache(len))
OWN = (__file__, logging.__file__)


@dataclass(frozen=True)
class Logged:
    logger: logging.Logger
    level: int
    file: str
    line: int
    function: str
    exc_info: Any
    extra: Any
    values: tuple[Any, ...]
    once: bool = False

    def say(self, values: tuple[Any, ...]) -> None:
        """Handle a record of `values`, which are the text and its arguments in this call."""
        text, arguments = values
        self.logger.handle(self.logger.makeRecord(
            self.logger.name, self.level, self.file, self.line, text, arguments, self.exc_info, self.function,
            self.extra))


@dataclass(frozen=True)
class Written:
    """`stream` is the name in `sys`."""

    stream: str
    text: str
    once: bool = False
    values: tuple[Any, ...] = ()

    def say(self, values: tuple[Any, ...]) -> None:
        getattr(sys, self.stream).write(self.text)


class Stream:
    """Stands for a standard stream: what user code writes is kept."""

    def __init__(self, name: str, stream: Any, user_frame: Callable[[], Any], keep: Callable[[Any], None]) -> None:
        self.__dict__.update(_name=name, _stream=stream, _user_frame=user_frame, _keep=keep)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stream, name, value)

    def write(self, text: str) -> Any:
        frame = self._user_frame()
        if frame is None or not isinstance(text, str):
            return self._stream.write(text)
        self._keep(Written(self._name, text, is_remembered(frame)))
        return len(text)


def caller(stacklevel: int = 1) -> Any:
    """The frame outside of logging that asks for a record."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in OWN:
        frame = frame.f_back
    for _ in range(stacklevel - 1):
        frame = frame.f_back or frame
    return frame


def is_remembered(frame: Any) -> bool:
    """Whether a function behind `frame`, or behind what called it, is one that `lru_cache` runs once per argument."""
    while frame is not None:
        code, name = frame.f_code, frame.f_code.co_name
        places = [frame.f_globals]
        if code.co_argcount and code.co_varnames[0] in frame.f_locals:
            first = frame.f_locals[code.co_varnames[0]]
            places += [cls.__dict__ for cls in (first if isinstance(first, type) else type(first)).__mro__]
        for place in places:
            found = place.get(name)
            found = getattr(found, "__func__", found)
            if type(found) is REMEMBERS and getattr(found.__wrapped__, "__code__", None) is code:
                return True
        frame = frame.f_back
    return False


def keep_log(keep: Callable[..., None], is_user: Callable[[Any], bool], old: Any) -> Any:
    """In place of `Logger._log`; `keep(message, frame)` notes a record that user code made."""

    def _log(self: logging.Logger, level: int, msg: Any, args: Any, exc_info: Any = None, extra: Any = None,
             stack_info: bool = False, stacklevel: int = 1) -> None:
        frame = caller()
        if not is_user(frame):
            old(self, level, msg, args, exc_info, extra, stack_info, stacklevel + 1)
            return
        if exc_info and not isinstance(exc_info, tuple):
            exc_info = ((type(exc_info), exc_info, exc_info.__traceback__) if isinstance(exc_info, BaseException)
                        else sys.exc_info())
        code = (place := caller(stacklevel)).f_code
        keep(Logged(self, level, code.co_filename, place.f_lineno, code.co_name, exc_info or None, extra, (msg, args),
                    is_remembered(frame)), frame)

    return _log


def keep_enabled(note: Callable[[logging.Logger, int, bool], None], is_user: Callable[[Any], bool], old: Any) -> Any:
    """In place of `Logger.isEnabledFor`; `note` is told the answers that user code got."""

    def isEnabledFor(self: logging.Logger, level: int) -> bool:
        enabled = bool(old(self, level))
        if is_user(caller()):
            note(self, level, enabled)
        return enabled

    return isEnabledFor
