"""Texts with numbers in them that only the run knows: `f"{n} tokens"` of a traced number.

    TracedText ::= (str | Piece)*        Piece ::= traced number or tensor, conversion, format

Results, prints and attributes may hold one: torch's pytrees see the numbers in it, and put back together with those
of a call it is a str. In an exception it makes the call run in Python, which says it in its own words. Whoever looks
at the text itself is answered with the numbers of the call that is being traced (`asking.ask`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.convert.operators import Operators
from monograph.capture.number import TracedNumber

__all__ = ["Piece", "TracedText", "joined"]

PYTHON = Operators()


@dataclass(frozen=True)
class Piece:
    number: Any                  # traced; or a traced tensor of its own, which nothing writes to
    conversion: int = -1
    spec: str = ""


class TracedText:
    """Stands for a str. Its methods ask for the numbers."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[str | Piece, ...]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else PYTHON.formatted(part.number, part.conversion, part.spec)
                       for part in self.parts)

    def __repr__(self) -> str:
        return repr(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __hash__(self) -> int:
        return hash(str(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(str(self), name)

    def __copy__(self) -> TracedText:
        return self

    def __deepcopy__(self, memo: Any) -> TracedText:
        return self

    def __eq__(self, other: Any) -> Any:
        return str(self) == str(other) if isinstance(other, (str, TracedText)) else NotImplemented

    def __len__(self) -> int:
        return len(str(self))

    def __iter__(self) -> Any:
        return iter(str(self))

    def __contains__(self, item: Any) -> bool:
        return item in str(self)

    def __getitem__(self, index: Any) -> str:
        return str(self)[index]

    def __mod__(self, values: Any) -> Any:
        return str(self) % values

    def __add__(self, other: Any) -> Any:
        return joined((self, other)) if isinstance(other, (str, TracedText)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return joined((other, self)) if isinstance(other, str) else NotImplemented


def joined(parts: tuple[Any, ...]) -> Any:
    """One text of several: a str, or a TracedText when one of them is."""
    if not any(isinstance(part, TracedText) for part in parts):
        return "".join(parts)
    return TracedText(tuple(inner for part in parts
                            for inner in (part.parts if isinstance(part, TracedText) else (part,))))


def _flatten(text: TracedText) -> tuple[list[Any], Any]:
    numbers = [part.number for part in text.parts if isinstance(part, Piece)]
    return numbers, tuple(part if isinstance(part, str) else (part.conversion, part.spec) for part in text.parts)


def _unflatten(numbers: Any, template: Any) -> Any:
    """A str where the numbers are those of a run."""
    numbers = iter(numbers)
    parts = [part if isinstance(part, str) else Piece(next(numbers), *part) for part in template]
    values = [part.number for part in parts if isinstance(part, Piece)]
    text = TracedText(tuple(parts))
    return text if any(isinstance(value, (TracedNumber, compat.FakeTensor)) for value in values) else str(text)


pytree.register_pytree_node(TracedText, _flatten, _unflatten, serialized_type_name="monograph.TracedText")
