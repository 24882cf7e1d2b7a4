"""Pieces of the step runner's LLVM IR: loads of words from its tables."""

from __future__ import annotations

from monograph.runtime.abi import FrameWord, LayoutWord

__all__ = ["field", "frame", "layout", "word"]


def word(name: str, table: str, number: int, kind: str = "i64") -> str:
    return f"""  %{name}.at = getelementptr i64, ptr {table}, i64 {int(number)}
  %{name} = load {kind}, ptr %{name}.at
"""


def frame(**words: tuple[FrameWord, str]) -> str:
    return "".join(word(name, "%frame", number, kind) for name, (number, kind) in words.items())


def layout(*words: LayoutWord) -> str:
    """Loads `%IMPL`, `%KEYS` ... from the layout table."""
    return "".join(word(entry.name, "%layout", entry) for entry in words)


def field(name: str, base: str, offset: str, kind: str) -> str:
    return f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.at\n"
