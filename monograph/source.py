"""Where in the user's program something came from, and how a traceback says so."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SourceLoc", "function_around", "stand_in"]


@dataclass(frozen=True, slots=True)
class SourceLoc:
    """One line of user code: absolute file name, 1-based line, name of the enclosing function."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        return f"{where} in {self.function}" if self.function else where

    @property
    def short(self) -> str:
        """`file.py:12`, without the folder."""
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"


def stand_in(loc: SourceLoc, following: types.TracebackType | None = None) -> types.TracebackType:
    """A traceback entry that shows a line of which no frame ran: compiled code did."""
    name = (loc.function or function_around(loc.file, loc.line)).rpartition(".")[2]
    code = _never_run.__code__.replace(co_filename=loc.file, co_name=name, co_firstlineno=loc.line)
    frame = types.FunctionType(code, {"__name__": name})().gi_frame
    return types.TracebackType(following, frame, -1, loc.line)


def _never_run() -> Iterator[None]:
    yield


def function_around(file: str, line: int) -> str:
    """The innermost function that holds a line, by the source; `<module>` where there is none."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return "<module>"
    around = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
              and node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno).name if around else "<module>"
