"""One arena for all intermediates.

    Block ::= values that share memory (each made in place over the one before), bytes, first and last item that uses it

A value that enters a loop, or leaves it, is alive in all of it; the two regions of a cond follow each other in the list
of items, so what is only alive in one of them may lie where the other has its own. Blocks whose lifetimes overlap never
overlap in memory. The largest are placed first, each at the lowest gap that
is the tightest fit; offsets are multiples of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from monograph.ir.graph import Value
from monograph.schedule.extent import extent_bytes
from monograph.schedule.flat import Flat
from monograph.schedule.inplace import overwrites
from monograph.schedule.kernel import Item, is_held

__all__ = ["ALIGNMENT", "Arena", "Block", "lives_of", "plan_memory"]

ALIGNMENT = 64


@dataclass(eq=False, slots=True)
class Block:
    bytes: int
    first: int
    last: int
    values: list[Value] = field(default_factory=list)
    offset: int = 0


@dataclass(slots=True)
class Arena:
    """Offsets of all values in the arena, its size, and the sum of their sizes."""

    offsets: dict[Value, int] = field(default_factory=dict)
    bytes: int = 0
    total: int = 0


def plan_memory(flat: Flat, placed: set[Value]) -> Arena:
    """The arena for the items of `flat`; values that share memory with one in `placed` live elsewhere."""
    lives = lives_of(flat)
    blocks: list[Block] = []
    block_of: dict[Value, Block] = {}       # by home
    arena = Arena()
    for at, item in enumerate(flat.items):
        for value in item.outputs:
            home = flat.home(value)
            if home in placed or home in flat.rows or home in block_of or is_held(value):
                continue
            size = extent_bytes(value, flat.layouts[value])
            arena.total += size
            first, last = lives[home]
            heir = _dying_input(flat, item, value, block_of, lives, at)
            if heir is not None:
                block = block_of[heir]
                block.last = last
            else:
                block = Block(size, first, last)
                blocks.append(block)
            block.values.append(home)
            block_of[home] = block
    arena.bytes = _place(blocks)
    for block in blocks:
        for value in block.values:
            arena.offsets[value] = block.offset
    return arena


def lives_of(flat: Flat, given: Iterable[Value] = ()) -> dict[Value, tuple[int, int]]:
    """Home -> the first and last item it is alive in; `given` are there before the first."""
    lives: dict[Value, tuple[int, int]] = {value: (-1, -1) for value in given}
    for at, item in enumerate(flat.items):
        for value in (*item.outputs, *item.inputs):
            home = flat.home(value)
            lives[home] = (lives[home][0] if home in lives else at, at)
    if flat.loops:
        lives = {value: flat.extended(*life) for value, life in lives.items()}
    return lives


def _dying_input(
    flat: Flat, item: Item, value: Value, block_of: dict[Value, Block], lives: dict[Value, tuple[int, int]], at: int,
) -> Value | None:
    """The home of an input whose memory `value` may take: read here for the last time, and only at the element being
    written."""
    for candidate in item.inputs:
        home = flat.home(candidate)
        is_dying = home in block_of and block_of[home].last == at and lives[home][1] == at
        if is_dying and overwrites(flat.roles, item, value, candidate, flat.layouts):
            return home
    return None


def _place(blocks: list[Block]) -> int:
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


