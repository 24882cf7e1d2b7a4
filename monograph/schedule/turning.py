"""Values stored turned, so that a reader which needs an operand in one piece finds it so.

Heads of attention are the usual case: a product (b * h, s, d) is seen as (b, h, s, d), transposed to (b, s, h, d) and
seen as (b * s, h * d) by the next product. Stored with the strides of the last shape, all these views are free. Where
no strides of the value itself can do that, but strides of one of its views can, that view is what is stored: `stored`.
"""

from __future__ import annotations

from collections.abc import Iterator

from monograph.ir.graph import Node, Value
from monograph.schedule import views
from monograph.schedule.flow import Flow, Step
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["stored", "turned", "undo"]

Strides = tuple[int, ...]
COPY = "aten.clone.default"


def turned(flow: Flow, value: Value) -> Strides | None:
    """Strides with which a reader that needs an operand in one piece finds it so, where row-major ones would not do."""
    for reader in flow.readers.get(value, ()):
        if flow.role[reader] not in (Role.TEMPLATE, Role.LIBRARY):
            continue
        for operand in reader.inputs:
            path = flow.path_of(operand)
            if flow.base_of(operand) is not value or not path or _whole(path, value):
                continue
            strides = undo(path, Affine(shape_of(operand), views.row_major(shape_of(operand))))
            if strides is not None:
                return strides
    return None


def _whole(path: tuple[Step, ...], value: Value) -> bool:
    """Can strides tell the end of `path` over a row-major `value`?"""
    affine: Affine | None = views.contiguous(shape_of(value))
    for step in path:
        affine = views.through(step.node, step.position, affine) if affine is not None else None
    return affine is not None


def stored(flow: Flow) -> set[Node]:
    """Views to store instead of what they look at."""
    users: dict[Value, int] = {}
    for node in flow.graph.nodes:
        for value in node.reads:
            users[value] = users.get(value, 0) + 1
    found: set[Node] = set()
    for value, strides in _operands(flow):
        path, base = flow.path_of(value), flow.base_of(value)
        if not path or base.node not in flow.own or base in flow.escapes or flow.role[base.node] is Role.CONSTANT:
            continue
        if undo(path, Affine(shape_of(value), strides)) is not None:
            continue
        for k, step in enumerate(path):
            if not step.in_order or users[step.node.inputs[0]] != 1:
                break
            if undo(path[k + 1:], Affine(shape_of(value), strides)) is not None:
                found.add(step.node)
                break
    return found


def _operands(flow: Flow) -> Iterator[tuple[Value, Strides]]:
    """Views that must lie in one piece, with the strides they should have."""
    for node in flow.graph.nodes:
        if flow.role[node] in (Role.TEMPLATE, Role.LIBRARY):
            for value in node.inputs:
                path, base = flow.path_of(value), flow.base_of(value)
                if path and base.node in flow.own and not _whole(path, base):
                    yield value, views.row_major(shape_of(value))
        elif node.op.name == COPY and node.results[0] in flow.escapes:
            yield node.inputs[0], views.strides_seen(node.results[0])


def undo(path: tuple[Step, ...], wanted: Affine) -> tuple[int, ...] | None:
    """Strides of the base with which the end of `path` lies at `wanted`; None if there are none."""
    for step in reversed(path):
        shape = shape_of(step.node.inputs[0])
        if step.in_order:
            back = views.reshape(wanted, shape)
        else:
            back = _unpermute(step.affine, shape, wanted)
        if back is None:
            return None
        wanted = back
    return wanted.strides


def _unpermute(step: Affine, shape: tuple[int, ...], wanted: Affine) -> Affine | None:
    """`wanted` before a permutation of the dims of `shape`; None when `step` is none."""
    at = {stride: d for d, (n, stride) in enumerate(zip(shape, views.row_major(shape), strict=True)) if n != 1}
    strides = [0] * len(shape)
    for n, stride, target in zip(step.shape, step.strides, wanted.strides, strict=True):
        if n == 1:
            continue
        d = at.pop(stride, None)
        if d is None or shape[d] != n:
            return None
        strides[d] = target
    return None if at or step.offset else Affine(shape, tuple(strides))
