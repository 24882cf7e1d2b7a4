"""Where in the user's program something came from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SourceLoc"]


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
