"""Where blocks of memory with lifetimes lie.

`place(blocks)` sets their offsets: those alive at one time do not overlap. The largest are placed first, each at the
lowest gap that is the tightest fit; offsets are multiples of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALIGNMENT", "Block", "place"]

ALIGNMENT = 64


@dataclass(eq=False, slots=True)
class Block:
    """`bytes`, used from step `first` to step `last`."""

    bytes: int
    first: int
    last: int
    offset: int = 0


def place(blocks: Sequence[Block]) -> int:
    """Set every offset; returns the bytes needed."""
    placed: list[Block] = []
    top = 0
    for block in sorted(blocks, key=lambda b: (-b.bytes, b.first)):
        neighbours = [other for other in placed if other.first <= block.last and block.first <= other.last]
        block.offset = _fit(block.bytes, neighbours)
        placed.append(block)
        top = max(top, block.offset + block.bytes)
    return _round(top)


def _fit(size: int, neighbours: list[Block]) -> int:
    """The start of the smallest gap between `neighbours` that takes `size` bytes, else the end of the last."""
    best: tuple[int, int] | None = None
    end = 0
    for other in sorted(neighbours, key=lambda b: b.offset):
        gap = other.offset - end
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, end)
        end = max(end, _round(other.offset + other.bytes))
    return end if best is None else best[1]


def _round(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


