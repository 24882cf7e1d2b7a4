"""May an item write its result over one of its inputs? See `schedule.kernel`, "In place"."""

from __future__ import annotations

import math
from collections.abc import Mapping

from monograph.ir.graph import Node, Value
from monograph.ir.sized import is_sized
from monograph.ops import templates
from monograph.schedule import views
from monograph.schedule.kernel import Fused, Item, Layout, Template
from monograph.schedule.roles import Role
from monograph.schedule.views import shape_of

__all__ = ["overwrites"]

LONG_ROW = 64           # points; rows shorter than this may be unrolled into one expression


def overwrites(
    roles: Mapping[Node, Role], item: Item, value: Value, source: Value, layouts: Mapping[Value, Layout]
) -> bool:
    """Does `item` read `source` only at the element of `value` being written?"""
    if not isinstance(item, (Fused, Template)) or len(item.outputs) != 1 or source not in item.inputs:
        return False
    if isinstance(item, Template) and not templates.ANCHORS[item.anchor.op.name].in_place:
        return False
    same = shape_of(source) == shape_of(value) and source.tensor.dtype == value.tensor.dtype
    if not same or layouts[source].strides != layouts[value].strides:
        return False
    if isinstance(item, Fused) and item.domain.reduced and not _by_rows(item, value, layouts[value]):
        return False
    return _pointwise(roles, item, source)


def _by_rows(item: Fused, value: Value, layout: Layout) -> bool:
    """Does a kernel with reductions surely finish them for a row before it writes to it? Short rows it may unroll,
    and rows that are not contiguous it may walk in another order."""
    shape, reduced = item.domain.shape, item.domain.reduced
    inner = math.prod(shape[d] for d in reduced)
    trailing = tuple(reduced) == tuple(range(len(shape) - len(reduced), len(shape)))
    full = shape_of(value) == shape
    is_long = is_sized(inner) or inner >= LONG_ROW      # nothing is unrolled whose length only a call knows
    return full and trailing and is_long and views.same_order(views.Affine(shape, layout.strides))


def _pointwise(roles: Mapping[Node, Role], item: Fused | Template, source: Value) -> bool:
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
        role = roles.get(node, Role.POINTWISE)
        same = all(shape_of(value) == shape_of(node.results[0]) for value in reads)
        if (role is Role.POINTWISE and same) or (role is Role.VIEW and views.preserves_order(node)):
            aligned.update(node.results)
        elif role is Role.REDUCTION:
            touched.difference_update(node.results)     # a row's number is ready before the row is written
        else:
            return False
    result = item.outputs[0]
    return result in aligned and shape_of(result) == shape
