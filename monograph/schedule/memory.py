"""One arena for all intermediates.

    Block ::= values that share memory (each made in place over the one before), bytes, first and last item that uses it

A value that enters a loop, or leaves it, is alive in all of it; the two regions of a cond follow each other in the list
of items, so what is only alive in one of them may lie where the other has its own. Blocks whose lifetimes overlap never
overlap in memory: see `ir.placement`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from monograph.ir import placement
from monograph.ir.graph import Value
from monograph.ir.placement import place
from monograph.ir.sized import example, is_sized
from monograph.schedule.extent import extent_bytes
from monograph.schedule.flat import Flat
from monograph.schedule.inplace import overwrites
from monograph.schedule.kernel import Item, is_held

__all__ = ["Arena", "Block", "lives_of", "plan_memory"]

@dataclass(eq=False, slots=True)
class Block(placement.Block):
    values: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Arena:
    """Offsets of all values in the arena, its size, and the sum of their sizes. `sized` are blocks of a size that only
    a call knows: these are placed then."""

    offsets: dict[Value, int] = field(default_factory=dict)
    bytes: int = 0
    total: int = 0
    sized: list[Block] = field(default_factory=list)


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
            arena.total += example(size)
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
    arena.sized = [block for block in blocks if is_sized(block.bytes)]
    fixed = [block for block in blocks if not is_sized(block.bytes)]
    arena.bytes = place(fixed)
    for block in fixed:
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
