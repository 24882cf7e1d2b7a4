"""Turns the error record of a failed check into the exception eager would raise."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from monograph.errors import CompileError
from monograph.runtime.program import FIRST_ERROR_VALUE, Error, Native, Program

__all__ = ["RAISABLE", "exception", "name_line"]

RAISABLE = frozenset({
    "ArithmeticError", "AssertionError", "IndexError", "KeyError", "NotImplementedError", "OverflowError",
    "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError",
})


def exception(program: Program, step: Native, record: Sequence[int]) -> Exception:
    """The exception for `record` (code, code, values...) left by `step`, with the user's line as a note."""
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
    name_line(made, error.file, error.line)
    return made


def name_line(error: BaseException, file: str, line: int) -> None:
    """Note the user's line, where it is known, on an exception."""
    if file and hasattr(error, "add_note"):
        error.add_note(f'raised by compiled code for\n  File "{file}", line {line}')


def _class(error: Error) -> type[Exception]:
    return getattr(builtins, error.exception) if error.exception in RAISABLE else RuntimeError


def _message(error: Error, values: Sequence[int]) -> str:
    try:
        return error.message.format(*values)
    except (IndexError, KeyError, ValueError):      # braces that were meant literally
        return error.message


def _unknown(step: Native, code: int) -> CompileError:
    return CompileError(f"kernel {step.symbol} stopped with code {code}, which the program does not explain")
