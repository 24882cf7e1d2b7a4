"""Views as strides.

    Affine ::= shape, strides, offset          element (i, j, ...) lies at offset + i*strides[0] + j*strides[1] + ...

`through(node, k, affine)` is the affine map of result k of a view node over an operand that lies at `affine`; None
where strides cannot tell it (a reshape across a gap). Over a contiguous operand every view here has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monograph.ir.graph import Node, Value
from monograph.ir.sized import maximum, minimum

__all__ = [
    "RULES", "Affine", "broadcast", "contiguous", "preserves_order", "reshape", "row_major", "same_order",
    "shape_of", "strides_seen", "through",
]

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Affine:
    shape: Ints
    strides: Ints
    offset: int = 0

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def shape_of(value: Value) -> Ints:
    """The shape of a static tensor value."""
    return value.tensor.shape   # type: ignore[return-value]


def row_major(shape: Ints) -> Ints:
    """Strides of a contiguous tensor (a size of 0 counts as 1, as in torch; one that only a call knows as itself)."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


def strides_seen(value: Value) -> Ints:
    """The strides of a graph input or output, which the outside world sees; row-major where its type says nothing."""
    strides = value.tensor.strides
    return row_major(shape_of(value)) if strides is None else strides   # type: ignore[return-value]


def contiguous(shape: Ints) -> Affine:
    return Affine(shape, row_major(shape))


def broadcast(affine: Affine, shape: Ints) -> Affine:
    """`affine` expanded to `shape`, dims aligned at the right."""
    lead = len(shape) - len(affine.shape)
    strides = [0] * lead + [
        stride if size == wanted else 0
        for size, stride, wanted in zip(affine.shape, affine.strides, shape[lead:], strict=True)
    ]
    return Affine(shape, tuple(strides), affine.offset)


def reshape(affine: Affine, shape: Ints) -> Affine | None:
    """`affine` seen with another shape of as many elements, in the same order."""
    if affine.numel == 0 or affine.shape == shape:
        return affine if affine.shape == shape else contiguous(shape)
    runs = _runs(affine)
    strides: list[int] = []
    for size in reversed(shape):
        if size == 1:
            strides.append(0 if not runs else runs[-1][1])
            continue
        while runs and runs[-1][0] == 1:
            runs.pop()
        if not runs or runs[-1][0] % size:
            return None
        left, step = runs.pop()
        strides.append(step)
        runs.append((left // size, step * size))
    return Affine(shape, tuple(reversed(strides)), affine.offset)


def _runs(affine: Affine) -> list[tuple[int, int]]:
    """(points, step) of the maximal runs of dims that one stride can walk, outermost first."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(affine.shape, affine.strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == stride * size:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def through(node: Node, position: int, operand: Affine) -> Affine | None:
    """Where result `position` of view `node` lies when its operand lies at `operand`; None if strides cannot tell."""
    rule = RULES.get(node.op.name)
    return None if rule is None else rule(operand, node.attributes, shape_of(node.results[position]), position)


def preserves_order(node: Node, position: int = 0) -> bool:
    """Is flat element i of the result flat element i of the operand, for all of them?"""
    operand = contiguous(shape_of(node.inputs[0]))
    result = through(node, position, operand)
    if result is None or result.numel != operand.numel:
        return False
    return result.offset == 0 and same_order(result)


def same_order(affine: Affine) -> bool:
    """Are the strides those of a contiguous tensor, wherever a dim has more than one element?"""
    return all(
        size == 1 or stride == plain
        for size, stride, plain in zip(affine.shape, affine.strides, row_major(affine.shape), strict=True)
    )


# ---- one rule per view op: (operand, attributes, result shape, result position) -> Affine | None

def _reshape(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return reshape(x, shape)


def _same(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return x


def _permute(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    rank = len(x.shape)
    return Affine(shape, tuple(x.strides[d % rank] for d in attributes["dims"]), x.offset)


def _swap(x: Affine, first: int, second: int) -> Affine:
    rank = max(len(x.shape), 1)
    shape, strides = list(x.shape), list(x.strides)
    if shape:
        a, b = first % rank, second % rank
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    return Affine(tuple(shape), tuple(strides), x.offset)


def _transpose(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return _swap(x, attributes["dim0"], attributes["dim1"])


def _t(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return _swap(x, 0, 1) if len(x.shape) == 2 else x


def _expand(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return broadcast(x, shape)


def _clamp(value: int | None, size: int, default: int) -> int:
    if value is None:
        return default
    return minimum(maximum(value + size if value < 0 else value, 0), size)


def _slice(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    dim = attributes["dim"] % len(x.shape)
    start = _clamp(attributes["start"], x.shape[dim], 0)
    return _cut(x, dim, start, shape[dim], attributes["step"])


def _cut(x: Affine, dim: int, start: int, size: int, step: int = 1) -> Affine:
    shape, strides = list(x.shape), list(x.strides)
    offset = x.offset + start * strides[dim]
    shape[dim] = size
    strides[dim] *= step
    return Affine(tuple(shape), tuple(strides), offset)


def _drop(x: Affine, dim: int, at: int) -> Affine:
    offset = x.offset + at * x.strides[dim]
    return Affine(x.shape[:dim] + x.shape[dim + 1:], x.strides[:dim] + x.strides[dim + 1:], offset)


def _select(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    dim, index = attributes["dim"] % len(x.shape), attributes["index"]
    if not isinstance(index, int):
        return None
    return _drop(x, dim, index % x.shape[dim])


def _unbind(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return _drop(x, attributes["dim"] % len(x.shape), position)


def _split(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    dim = attributes["dim"] % len(x.shape)
    return _cut(x, dim, position * attributes["split_size"], shape[dim])


def _split_with_sizes(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    dim = attributes["dim"] % len(x.shape)
    return _cut(x, dim, sum(attributes["split_sizes"][:position]), shape[dim])


def _diagonal(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    rank, shift = len(x.shape), attributes["offset"]
    first, second = attributes["dim1"] % rank, attributes["dim2"] % rank
    start = shift * x.strides[second] if shift >= 0 else -shift * x.strides[first]
    kept = [d for d in range(rank) if d not in (first, second)]
    strides = (*(x.strides[d] for d in kept), x.strides[first] + x.strides[second])
    return Affine(shape, strides, x.offset + (start if shape[-1] else 0))


def _unfold(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    if not x.shape:
        return Affine(shape, (1,), x.offset)
    dim = attributes["dimension"] % len(x.shape)
    strides = list(x.strides)
    inner = strides[dim]
    strides[dim] *= attributes["step"]
    return Affine(shape, (*strides, inner), x.offset)


def _pad(x: Affine, attributes: dict[str, Any], shape: Ints, position: int) -> Affine | None:
    return None if any(attributes["pad"]) else x


Rule = Callable[[Affine, dict[str, Any], Ints, int], Affine | None]

RULES: dict[str, Rule] = {
    "aten.view.default": _reshape,
    "aten._unsafe_view.default": _reshape,
    "aten.reshape.default": _reshape,
    "aten._reshape_alias.default": _reshape,
    "aten.flatten.using_ints": _reshape,
    "aten.unflatten.int": _reshape,
    "aten.squeeze.default": _reshape,
    "aten.squeeze.dim": _reshape,
    "aten.squeeze.dims": _reshape,
    "aten.unsqueeze.default": _reshape,
    "aten.alias.default": _same,
    "aten.detach.default": _same,
    "aten.lift_fresh.default": _same,
    "aten.permute.default": _permute,
    "aten.transpose.int": _transpose,
    "aten.t.default": _t,
    "aten.expand.default": _expand,
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.unbind.int": _unbind,
    "aten.split.Tensor": _split,
    "aten.split_with_sizes.default": _split_with_sizes,
    "aten.diagonal.default": _diagonal,
    "aten.unfold.default": _unfold,
    "aten.constant_pad_nd.default": _pad,       # one that adds nothing
}
