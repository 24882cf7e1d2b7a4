"""Why a trace starts again. None of these leaves the driver.

They are no `Exception`s, so that handlers of the user's code let them pass. What swallows them all the same
(`finally: return`, a bare `except`) is found out at the end of the region or attempt: see `swallowed`. Where a
`finally` of theirs raises another one, that one counts. Refusals are `Exception`s: `caught` finds those that the user's
code has handled, which eager would not have raised.
"""

from __future__ import annotations

import threading
import traceback
from types import CodeType
from typing import Any

from monograph.capture import blame
from monograph.errors import MADE, MonographError

__all__ = ["Again", "Asked", "Cases", "Caught", "Fork", "Numbers", "Outline", "Seen", "Unmergeable", "Whole", "caught",
           "forget", "let_go", "made", "swallowed", "unwind"]


class _Pending(threading.local):
    error: BaseException | None = None


PENDING = _Pending()


def forget() -> None:
    """An attempt begins, or what was raised is dealt with."""
    PENDING.error = None
    MADE.errors = []


def swallowed() -> BaseException | None:
    """What was raised in this attempt and not dealt with."""
    return PENDING.error


def caught(since: int = 0) -> MonographError | None:
    """The first error of ours in this attempt, `since` so many were `made`, that code of the user's has handled."""
    return next((error for error in (MADE.errors or ())[since:] if blame.has_reached_user(error)), None)


def made() -> int:
    return len(MADE.errors or ())


def let_go(handled: BaseException | None) -> None:
    """The attempt is over: nothing that was raised in it holds the frames that it passed, and the fakes in them.
    `handled` was there before."""
    pending = PENDING.error
    PENDING.error = MADE.errors = None
    unwind(pending, handled)


def unwind(error: BaseException | None, handled: BaseException | None) -> None:
    """End the frames that `error` passed, and those of what it came from, up to `handled`: with them end generators,
    whose `finally` runs here."""
    pending: list[Any] = [error]
    seen = {id(handled)}
    while pending:
        error = pending.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            traceback.clear_frames(error.__traceback__)
            pending += [error.__context__, error.__cause__, getattr(error, "error", None)]


class Again(BaseException):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        if PENDING.error is None:
            PENDING.error = self


class Asked(Again):
    """Python asked for a traced value in `code`, which can be converted. `error` is what to say if it cannot."""

    def __init__(self, code: CodeType, error: Exception) -> None:
        self.code = code
        self.error = error
        super().__init__(code.co_name)


class Unmergeable(Again):
    """A region cannot stand for what its branches or iterations leave behind. `site`: whose, if not the innermost."""

    def __init__(self, why: str, site: Any = None) -> None:
        self.site = site
        super().__init__(why)


class Seen(Again):
    """More of the user's functions are converted, for what the attempt has shown."""

    def __init__(self) -> None:
        super().__init__("functions that compare objects")


class Numbers(Again):
    """A number is a key of Python's: numbers are to be read from this call."""

    def __init__(self) -> None:
        super().__init__("a number is a key")


class Caught(Again):
    """Torch raised on a number or size of this call, where a handler of the user's may catch it."""

    def __init__(self) -> None:
        super().__init__("an error that may be caught")


class Whole(Again):
    """A hook of the backward, by number, does more than compute: it is to be called whole."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"hook {number}")


class Outline(Again):
    """The function of `code` is to be called whole by the program; or `why` it cannot be."""

    def __init__(self, code: CodeType, why: str = "") -> None:
        self.code = code
        self.why = why
        super().__init__(code.co_name)


class Cases(Again):
    """The body of the loop at `site` needs the number that its entry is: it is traced once per number."""

    def __init__(self, site: Any) -> None:
        self.site = site
        super().__init__("a number of few values")


class Fork(Again):
    """Trace again; at `site` take the path that this call takes. Of a loop, up to `most` iterations are tried before
    all of it."""

    def __init__(self, site: Any, why: str, most: int = 2) -> None:
        self.site = site
        self.most = most
        super().__init__(why)
