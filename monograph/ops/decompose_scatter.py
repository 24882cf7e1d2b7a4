"""Writes at one computed place, which only the run knows: a row of a cache, an element of a state.

    index_copy(x, dim, [i], src)           -> where(arange = [i], src, x)     along dim; i is looked up, which checks it
    index_put(x, [i, j, :], values)        -> where(row = i and column = j, values, x)

Writes at several places stay calls of torch.
"""

from __future__ import annotations

from typing import Any

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import to_dtype
from monograph.ops.families import DTYPES, MASKS

__all__ = ["RULES"]


def _is_one(index: Any) -> bool:
    return isinstance(index, Value) and index.tensor.is_static and index.tensor.numel == 1


def _here(b: Builder, x: Value, dim: int, index: Value, *, signed: bool) -> Value:
    """Where along `dim` the one place is, as a mask that broadcasts over x; raises where there is none. `signed`: it
    may count from the end."""
    size = x.tensor.shape[dim]
    places = b.call("aten.arange.start_step", 0, size, 1, dtype=index.tensor.dtype)
    flat = b.call("aten.reshape.default", index, (1,))
    if signed:
        place = b.call("aten.index.Tensor", places, (flat,))
    else:
        place = b.call("aten.index_select.default", places, 0, flat)
    mask = b.call("aten.eq.Tensor", places, place)
    made: Value = b.call("aten.reshape.default", mask, (size, *[1] * (x.tensor.rank - dim - 1)))
    return made


def _index_copy(b: Builder, node: Node) -> Value | None:
    x, index, source = node.operand("self"), node.operand("index"), node.operand("source")
    assert isinstance(x, Value) and isinstance(source, Value)
    if not _is_one(index) or not x.tensor.rank or x.tensor.dtype not in DTYPES:
        return None
    dim = node.attributes["dim"] % x.tensor.rank
    assert isinstance(index, Value)
    made: Value = b.call("aten.where.self", _here(b, x, dim, index, signed=False), source, x)
    return made


def _index_put(b: Builder, node: Node) -> Value | None:
    x, indices, values = node.operand("self"), node.operand("indices"), node.operand("values")
    assert isinstance(x, Value) and isinstance(values, Value) and isinstance(indices, tuple)
    places = {dim: index for dim, index in enumerate(indices) if index is not None}
    is_covered = places and all(map(_is_one, places.values())) and x.tensor.dtype in DTYPES
    if not is_covered or any(index.tensor.dtype in MASKS for index in places.values()):
        return None
    if node.attributes["accumulate"]:
        return None
    rank = max(index.tensor.rank for index in places.values())
    kept = [size for dim, size in enumerate(x.tensor.shape) if dim not in places]
    first, last = min(places), max(places)
    lead = first if last - first + 1 == len(places) else 0      # dims in front of those that the places stand for
    taken = (*kept[:lead], *[1] * rank, *kept[lead:])
    spread = b.call("aten.expand.default", to_dtype(b, values, x.tensor.dtype), taken)
    sizes = tuple(1 if dim in places else size for dim, size in enumerate(x.tensor.shape))
    source = b.call("aten.reshape.default", spread, sizes)
    masks = [_here(b, x, dim, index, signed=True) for dim, index in places.items()]
    mask = masks[0]
    for other in masks[1:]:
        mask = b.call("aten.logical_and.default", mask, other)
    made: Value = b.call("aten.where.self", mask, source, x)
    return made


RULES = {
    "aten.index_copy.default": _index_copy,
    "aten.index_put.default": _index_put,
    "aten._unsafe_index_put.default": _index_put,
}
