"""Creation, copies, and moving elements by a fixed rule.

    zeros, ones, empty, *_like, new_*      -> full
    repeat(x, r)                           -> reshape(expand(x as [1, s, 1, s, ...]))
    slice_scatter(x, src, start, end)      -> cat([x[:start], src, x[end:]])
    select_scatter(x, src, i)              -> cat([x[:i], src[None], x[i + 1:]])
    diagonal_scatter(x, src)               -> where(row + offset == column, src, x)
    take(x, i)                             -> flatten(x)[i]
"""

from __future__ import annotations

from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import to_dtype

__all__ = ["RULES"]


def _filled(number: Any) -> Any:
    def rule(b: Builder, node: Node) -> Value:
        type = node.results[0].tensor
        fill = node.attributes["fill_value"] if number is None else number
        return b.call("aten.full.default", type.shape, fill, dtype=type.dtype)

    return rule


def _arange(b: Builder, node: Node) -> Value:
    attributes = node.attributes
    return b.call("aten.arange.start_step", attributes.get("start", 0), attributes["end"], 1,
                  dtype=node.results[0].tensor.dtype)


def _operand(node: Node, name: str) -> Value:
    value = node.operand(name)
    assert isinstance(value, Value)
    return value


def _copy(b: Builder, node: Node) -> Value:
    """src in the dtype and shape of self"""
    target = node.results[0].tensor
    source = to_dtype(b, _operand(node, "src"), target.dtype)
    if source.tensor.shape != target.shape:
        source = b.call("aten.expand.default", source, target.shape)
    return source


def _repeat(b: Builder, node: Node) -> Value:
    x, repeats = _operand(node, "self"), node.attributes["repeats"]
    lead = len(repeats) - x.tensor.rank
    sizes = (*[1] * lead, *x.tensor.shape)
    spread = [size for pair in zip([1] * len(sizes), sizes) for size in pair]
    wanted = [size for pair in zip(repeats, sizes) for size in pair]
    expanded = b.call("aten.expand.default", b.call("aten.view.default", x, tuple(spread)), tuple(wanted))
    return b.call("aten.reshape.default", expanded, node.results[0].tensor.shape)


def _stack(b: Builder, node: Node) -> Value:
    tensors, dim = node.operands[0], node.attributes["dim"]
    assert isinstance(tensors, tuple)
    dtype = node.results[0].tensor.dtype
    dim %= node.results[0].tensor.rank
    raised = tuple(b.call("aten.unsqueeze.default", to_dtype(b, x, dtype), dim) for x in tensors)
    return b.call("aten.cat.default", raised, dim)


def _slice_scatter(b: Builder, node: Node) -> Value | None:
    x, source = _operand(node, "self"), _operand(node, "src")
    attributes = node.attributes
    dim = attributes["dim"] % x.tensor.rank
    size, length = x.tensor.shape[dim], source.tensor.shape[dim]
    start = 0 if attributes["start"] is None else attributes["start"]
    if attributes["step"] != 1 or not all(isinstance(n, int) for n in (size, length, start)):
        return None
    start = min(max(start + size if start < 0 else start, 0), size)
    source = to_dtype(b, source, x.tensor.dtype)
    shape = (*x.tensor.shape[:dim], length, *x.tensor.shape[dim + 1:])
    if source.tensor.shape != shape:
        source = b.call("aten.expand.default", source, shape)
    return _spliced(b, x, source, dim, start, start + length)


def _select_scatter(b: Builder, node: Node) -> Value | None:
    x, source = _operand(node, "self"), _operand(node, "src")
    dim, index = node.attributes["dim"] % x.tensor.rank, node.attributes["index"]
    size = x.tensor.shape[dim]
    if not isinstance(index, int) or not isinstance(size, int):
        return None
    index %= size
    source = b.call("aten.unsqueeze.default", to_dtype(b, source, x.tensor.dtype), dim)
    return _spliced(b, x, source, dim, index, index + 1)


def _spliced(b: Builder, x: Value, middle: Value, dim: int, start: int, end: int) -> Value:
    """x with x[start:end] along `dim` replaced."""
    size: Any = x.tensor.shape[dim]
    parts = [middle]
    if start > 0:
        parts.insert(0, b.call("aten.slice.Tensor", x, dim, 0, start))
    if end < size:
        parts.append(b.call("aten.slice.Tensor", x, dim, end, size))
    return b.call("aten.cat.default", tuple(parts), dim) if len(parts) > 1 else middle


def _take(b: Builder, node: Node) -> Value:
    """Elements of the flat tensor."""
    flat = b.call("aten.reshape.default", _operand(node, "self"), (-1,))
    return b.call("aten.index.Tensor", flat, (_operand(node, "index"),))


def _diagonal_scatter(b: Builder, node: Node) -> Value | None:
    """src on the diagonal: padded to the length of the dim it is counted along, chosen where row + offset = column"""
    x, source = _operand(node, "self"), _operand(node, "src")
    attributes, rank = node.attributes, x.tensor.rank
    offset, row, column = attributes["offset"], attributes["dim1"] % rank, attributes["dim2"] % rank
    if not x.tensor.is_static or not isinstance(offset, int):
        return None
    shape: Any = x.tensor.shape
    counted = row if offset >= 0 else column
    source = to_dtype(b, source, x.tensor.dtype)
    source = b.call("aten.constant_pad_nd.default", source, (0, shape[counted] - source.tensor.shape[-1]))
    # The dims of src are those of x without row and column, then the diagonal.
    kept = [d for d in range(rank) if d not in (row, column)]
    order = sorted([*kept, counted])
    source = b.call("aten.permute.default", source, tuple([*kept, counted].index(d) for d in order))
    source = b.call("aten.unsqueeze.default", source, column if counted == row else row)
    rows, columns = (_count_along(b, shape, d) for d in (row, column))
    on = b.call("aten.eq.Tensor", b.call("aten.add.Tensor", rows, offset), columns)
    return b.call("aten.where.self", on, source, x)


def _count_along(b: Builder, shape: Any, dim: int) -> Value:
    """0, 1, 2, ... along `dim`, other dims of size 1"""
    count = b.call("aten.arange.start_step", 0, shape[dim], 1, dtype=torch.int64)
    return b.call("aten.view.default", count, tuple(-1 if d == dim else 1 for d in range(len(shape))))


def _diagonal_backward(b: Builder, node: Node) -> Value:
    """grad on the diagonal of zeros"""
    grad, attributes = _operand(node, "grad_output"), node.attributes
    zeros = b.call("aten.full.default", node.results[0].tensor.shape, 0, dtype=grad.tensor.dtype)
    return b.call("aten.diagonal_scatter.default", zeros, grad, *(attributes[n] for n in ("offset", "dim1", "dim2")))


RULES = {
    "aten.take.default": _take,
    "aten.diagonal_scatter.default": _diagonal_scatter,
    "aten.diagonal_backward.default": _diagonal_backward,
    "aten.zeros.default": _filled(0),
    "aten.ones.default": _filled(1),
    "aten.empty.memory_format": _filled(0),
    "aten.empty_permuted.default": _filled(0),
    "aten.empty_strided.default": _filled(0),
    "aten.empty_like.default": _filled(0),
    "aten.zeros_like.default": _filled(0),
    "aten.ones_like.default": _filled(1),
    "aten.full_like.default": _filled(None),
    "aten.new_zeros.default": _filled(0),
    "aten.new_ones.default": _filled(1),
    "aten.new_empty.default": _filled(0),
    "aten.new_empty_strided.default": _filled(0),
    "aten.new_full.default": _filled(None),
    "aten.arange.default": _arange,
    "aten.arange.start": _arange,
    "aten.copy.default": _copy,
    "aten.repeat.default": _repeat,
    "aten.stack.default": _stack,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.select_scatter.default": _select_scatter,
}
