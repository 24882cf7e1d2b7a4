"""Creation, copies, and moving elements by a fixed rule.

    zeros, ones, empty, *_like, new_*      -> full
    repeat(x, r)                           -> reshape(expand(x as [1, s, 1, s, ...]))
    slice_scatter(x, src, start, end)      -> cat([x[:start], src, x[end:]])
    select_scatter(x, src, i)              -> cat([x[:i], src[None], x[i + 1:]])
"""

from __future__ import annotations

from typing import Any

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


RULES = {
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
