"""Every error Monograph raises of its own.

    MonographError
    ├── CaptureError                 the function could not be captured as one graph
    │   ├── DataDependentError       a tensor's value decides Python control flow
    │   └── UnsupportedError         a construct or op that is refused, by name
    │       └── UninitializedError   the first call of a lazy module, which makes its weights
    ├── InputError                   an argument that the call cannot take
    │   └── DeviceError              a tensor on a device that is not supported
    ├── CompileError                 code generation failed; the message says where
    ├── VerificationError            a graph or kernel breaks its grammar: a bug of ours
    └── MismatchError                `verify` found a difference between compiled and eager

Exceptions that the user's program raises in eager (IndexError of a gather, ZeroDivisionError of an
integer division, its own `raise`) are raised as those very classes: `exception_class` finds them by name.
`WrongPath` never leaves the package: a call took another path than the program was made for.
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
from typing import Any

from monograph.source import SourceLoc

__all__ = [
    "CaptureError", "CompileError", "DataDependentError", "DeviceError", "InputError",
    "MADE", "MismatchError", "MonographError", "RaisesInBackward", "Replay", "UninitializedError", "UnsupportedError",
    "VerificationError", "WrongPath", "exception_class",
]


WHY = "one graph stands for every such call, and this cannot be a part of it"
WAY = "do this before or after the compiled function and pass the result in"
EAGERLY = "let the call run eagerly (fullgraph=False)"


class _Made(threading.local):
    """The errors made in this thread while a trace runs that is to know of them."""

    errors: list[MonographError] | None = None


MADE = _Made()


class MonographError(Exception):
    """Base of all. `what` happened, `loc` in the user's code, `why` it cannot be, `hint`: what to do about it."""

    def __init__(self, what: str, *, loc: SourceLoc | None = None, why: str = "", hint: str = "") -> None:
        self.what = what
        self.loc = loc
        self.why = why
        self.hint = hint
        super().__init__(self._text())
        if MADE.errors is not None:
            MADE.errors.append(self)

    def _text(self) -> str:
        at = "" if self.loc is None else f"at {self.loc}"
        because = self.why and f"because {self.why}"
        return "\n  ".join(line for line in (self.what, at, because, self.hint) if line)

    def locate(self, loc: SourceLoc | None) -> None:
        """Say where, unless it is said already."""
        if self.loc is None and loc is not None:
            self.loc = loc
            self.args = (self._text(),)


class CaptureError(MonographError):
    """The function could not be captured as one graph."""

    final = False                        # what the call was given is used up: it cannot run in Python either


class DataDependentError(CaptureError):
    """Python asked for the value of a traced tensor. `expression` is the source text that asked."""

    def __init__(self, what: str, *, loc: SourceLoc | None = None, why: str = "", hint: str = "", expression: str = ""
                 ) -> None:
        self.expression = expression
        why = why or "the graph is made before the run that would tell"
        super().__init__(what, loc=loc, why=why, hint=_two_ways(hint))


class UnsupportedError(CaptureError):
    """A construct or an op that is refused by name. Two ways round are always named: `hint` and the general one."""

    may_pass = False                     # another trace, at a quieter time, may succeed
    wraps = False                        # of a tensor around tensors, which says how it is opened

    def __init__(self, what: str, *, loc: SourceLoc | None = None, why: str = "", hint: str = "") -> None:
        super().__init__(what, loc=loc, why=why or WHY, hint=_two_ways(hint))


class UninitializedError(UnsupportedError):
    """A lazy module whose weights its first call makes. That call runs in Python; the next is compiled."""


def _two_ways(hint: str) -> str:
    hint = hint or WAY
    return hint if "fullgraph" in hint else f"{hint}, or {EAGERLY}"


class InputError(MonographError):
    """An argument that the call cannot take."""


class DeviceError(InputError):
    """A tensor on a device that is not supported."""


class CompileError(MonographError):
    """Code generation failed."""


class VerificationError(MonographError):
    """A graph or a kernel breaks its grammar. Always a bug of ours."""


class MismatchError(MonographError):
    """Compiled and eager results differ."""


class WrongPath(Exception):
    """A value read while tracing differs in this call. `number` says which read, `actual` what it gives now.

    Below 0: what code that is not looked into gives has other sizes."""

    def __init__(self, number: int, actual: tuple[Any, ...]) -> None:
        self.number = number
        self.actual = actual
        if number < 0:
            super().__init__(f"what a custom op or function gives is now of sizes {', '.join(map(str, actual))}")
            return
        super().__init__(f"value number {number} that the trace read is now {', '.join(map(str, actual))}")


class RaisesInBackward(Exception):
    """The program's backward raised `fault` while it was traced: eager's raises it too. Never leaves the package."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(fault)
        self.fault = fault


class Replay(Exception):
    """The program raises here: the call runs in Python, which finds the words, or goes on where the user's code catches
    what is raised. Never leaves the package."""


def exception_class(name: str) -> type[BaseException]:
    """The class called `name`: that of a builtin exception, or `module:QualName` of a module already imported.

    CompileError where there is none: the program was made in a process that had it.
    """
    module, colon, path = name.rpartition(":")
    home = sys.modules.get(module) if colon else builtins
    try:
        found = functools.reduce(getattr, path.split("."), home)
    except AttributeError:
        found = None
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise CompileError(f"the program raises {name}, which this process does not have")
    return found
