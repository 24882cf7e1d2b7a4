"""Turns the error record of a failed check into the exception eager would raise."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from monograph.errors import CompileError
from monograph.runtime.program import FIRST_ERROR_VALUE, Error, Native, Program
from monograph.source import SourceLoc, stand_in

__all__ = ["RAISABLE", "exception", "point_at"]

RAISABLE = frozenset({
    "ArithmeticError", "AssertionError", "IndexError", "KeyError", "NotImplementedError", "OverflowError",
    "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError",
})


def exception(program: Program, step: Native, record: Sequence[int]) -> Exception:
    """The exception for `record` (code, code, values...) left by `step`, with the user's line as its traceback."""
    code, values = record[0], record[FIRST_ERROR_VALUE:]
    index = code
    if step.errors:
        if not 0 <= code < len(step.errors):
            return _unknown(step, code)
        index = step.errors[code]
    if not 0 <= index < len(program.errors):
        return _unknown(step, code)
    error = program.errors[index]
    made = _class(error)(_message(error, values))
    point_at(made, error.file, error.line)
    return made


def point_at(error: BaseException, file: str, line: int) -> None:
    """Show the user's line, where it is known, in the traceback of an exception."""
    if file:
        error.__traceback__ = stand_in(SourceLoc(file, line), error.__traceback__)


def _class(error: Error) -> type[Exception]:
    return getattr(builtins, error.exception) if error.exception in RAISABLE else RuntimeError


def _message(error: Error, values: Sequence[int]) -> str:
    try:
        return error.message.format(*values)
    except (IndexError, KeyError, ValueError):      # braces that were meant literally
        return error.message


def _unknown(step: Native, code: int) -> CompileError:
    return CompileError(f"kernel {step.symbol} stopped with code {code}, which the program does not explain")
