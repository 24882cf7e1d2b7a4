"""Strided loads as transposed blocks.

Where an unrolled serial loop in a vector loop reads buffer[.. + stride * lane + c] for c = 0, 1, 2, ... in its
copies, `lanes` copies together read a square block: one contiguous vector per lane, transposed in registers,
instead of one element at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monograph.codegen.text import Text, Value, type_name
from monograph.loops.nodes import Load, Var

if TYPE_CHECKING:
    from monograph.codegen.function import Function

__all__ = ["position", "rows", "transposed"]

LARGEST = 8         # lanes: beyond, a block has more rows than there are registers


def position(fn: Function, expr: Load) -> tuple[int, int] | None:
    """(depth, c): the scope of the unrolled loop whose copies read neighbours, and this copy's place in a block."""
    assert fn.vector is not None
    lanes = fn.vector.lanes
    if lanes > LARGEST or expr.buffer in fn.facts.mutable:
        return None
    terms = fn.facts.linear(expr.index).terms
    for atom, coefficient in terms.items():
        if not isinstance(atom, Var) or coefficient != 1 or fn.groups.get(atom, 0) % lanes or atom not in fn.groups:
            continue
        bound = fn.variables[atom]
        others = [fn.variables[a].depth if isinstance(a, Var) else fn.depth_of(a) for a in terms if a is not atom]
        if bound.base is not None and all(depth <= bound.depth for depth in others):
            return bound.depth, bound.offset % lanes
    return None


def rows(text: Text, element: str, lanes: int, size: int, base: Value, first: int, stride: int) -> tuple[Value, ...]:
    """The block whose row l lies at base + first + l * stride, transposed."""
    loaded = []
    for lane in range(lanes):
        at = text.emit("ptr", 0, f"getelementptr {element}, {base}, i64 {first + lane * stride}")
        loaded.append(text.emit(element, lanes, f"load {type_name(element, lanes)}, {at}, align {size}"))
    return transposed(text, loaded)


def transposed(text: Text, block: list[Value]) -> tuple[Value, ...]:
    """A square block, its off-diagonal halves exchanged, then those of its quarters, and so on."""
    lanes = len(block)
    half = lanes // 2
    while half:
        result = list(block)
        for i in range(lanes):
            if i & half:
                continue
            upper, lower = block[i], block[i + half]
            keep = [lane if not lane & half else lanes + lane - half for lane in range(lanes)]
            take = [lane + half if not lane & half else lanes + lane for lane in range(lanes)]
            result[i] = text.shuffle(upper, lower, keep)
            result[i + half] = text.shuffle(upper, lower, take)
        block = result
        half //= 2
    return tuple(block)
