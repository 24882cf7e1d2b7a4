"""One arena for all intermediates.

    Block ::= values that share memory (each made in place over the one before), bytes, first and last item that uses it

Blocks whose lifetimes overlap never overlap in memory. The largest are placed first, each at the lowest gap that
is the tightest fit; offsets are multiples of 64 bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from monograph.ir import dtypes
from monograph.ir.graph import Value
from monograph.ops import templates
from monograph.schedule import views
from monograph.schedule.flow import Flow
from monograph.schedule.kernel import Fused, Item, Layout, Template
from monograph.schedule.roles import Role
from monograph.schedule.views import shape_of

__all__ = ["ALIGNMENT", "Arena", "Block", "extent_bytes", "plan_memory"]

ALIGNMENT = 64
LONG_ROW = 64           # points; rows shorter than this may be unrolled into one expression


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


def extent_bytes(value: Value, layout: Layout) -> int:
    """Bytes from the first to the last element."""
    shape = shape_of(value)
    if 0 in shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(shape, layout.strides, strict=True))
    return (last + 1) * dtypes.itemsize(value.tensor.dtype)


def plan_memory(flow: Flow, items: list[Item], layouts: dict[Value, Layout], placed: set[Value]) -> Arena:
    """The arena for `items` in this order; values in `placed` live elsewhere."""
    last: dict[Value, int] = {}
    for at, item in enumerate(items):
        for value in (*item.outputs, *item.inputs):
            last[value] = at
    blocks: list[Block] = []
    block_of: dict[Value, Block] = {}
    arena = Arena()
    for at, item in enumerate(items):
        for value in item.outputs:
            if value in placed:
                continue
            size = extent_bytes(value, layouts[value])
            arena.total += size
            heir = _dying_input(flow, item, value, layouts, block_of, last, at)
            if heir is not None:
                block = block_of[heir]
                block.last = last[value]
            else:
                block = Block(size, at, last[value])
                blocks.append(block)
            block.values.append(value)
            block_of[value] = block
    arena.bytes = _place(blocks)
    for block in blocks:
        for value in block.values:
            arena.offsets[value] = block.offset
    return arena


def _dying_input(
    flow: Flow, item: Item, value: Value, layouts: dict[Value, Layout], block_of: dict[Value, Block],
    last: dict[Value, int], at: int,
) -> Value | None:
    """An input whose memory `value` may take: read here for the last time, and only at the element being written."""
    if len(item.outputs) != 1 or not isinstance(item, (Fused, Template)):
        return None
    if isinstance(item, Template) and not templates.ANCHORS[item.anchor.op.name].in_place:
        return None
    if isinstance(item, Fused) and item.domain.reduced and not _by_rows(item, value, layouts[value]):
        return None
    for candidate in item.inputs:
        if candidate in block_of and block_of[candidate].last == at and last[candidate] == at:
            same = shape_of(candidate) == shape_of(value) and candidate.tensor.dtype == value.tensor.dtype
            if same and layouts[candidate].strides == layouts[value].strides and _pointwise(flow, item, candidate):
                return candidate
    return None


def _by_rows(item: Fused, value: Value, layout: Layout) -> bool:
    """Does a kernel with reductions surely finish them for a row before it writes to it? Short rows it may unroll,
    and rows that are not contiguous it may walk in another order."""
    shape, reduced = item.domain.shape, item.domain.reduced
    inner = math.prod(shape[d] for d in reduced)
    trailing = tuple(reduced) == tuple(range(len(shape) - len(reduced), len(shape)))
    full = shape_of(value) == shape
    return full and trailing and inner >= LONG_ROW and views.same_order(views.Affine(shape, layout.strides))


def _pointwise(flow: Flow, item: Fused | Template, source: Value) -> bool:
    """Does `item` read `source` only where it writes?"""
    if isinstance(item, Template) and any(operand.value is source for operand in item.operands.values()):
        return False
    aligned = {source}      # values whose flat element i depends on flat element i of the source, or not on it
    touched = {source}
    shape = shape_of(source)
    for node in item.nodes:
        reads = [value for value in node.inputs if value in touched]
        if not reads:
            continue
        touched.update(node.results)
        if any(value not in aligned for value in reads):
            return False
        role = flow.role.get(node, Role.POINTWISE)
        same = all(shape_of(value) == shape_of(node.results[0]) for value in reads)
        if (role is Role.POINTWISE and same) or (role is Role.VIEW and views.preserves_order(node)):
            aligned.update(node.results)
        elif role is Role.REDUCTION:
            touched.difference_update(node.results)     # a row's number is ready before the row is written
        else:
            return False
    result = item.outputs[0]
    return result in aligned and shape_of(result) == shape


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


