"""Writing nodes down, each with the user's line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from monograph.capture.dims import dims, encoded
from monograph.capture.layout import Layout
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Op
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.ops import table
from monograph.source import SourceLoc

__all__ = ["Recorder", "type_of"]


def type_of(sizes: Iterable[Any], dtype: torch.dtype) -> TensorType:
    return TensorType(dtype, dims(sizes))


class Recorder:
    """Appends to `graph`. `loc` is the line that new nodes get; the tracer sets it before each op."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.loc: SourceLoc | None = None

    def node(self, op: Op, args: Sequence[Any], kwargs: Mapping[str, Any], types: Iterable[Type]) -> Node:
        """A node of `op` on `args` and `kwargs`, in which values stand where tensors stood."""
        operands, attributes = table.bind(op, [*map(encoded, args)], {name: encoded(kwargs[name]) for name in kwargs})
        return self.graph.append(Node(op, operands, attributes, types, loc=self.loc))

    def emit(self, name: str, *args: Any, like: Layout | None = None, sizes: Iterable[Any] = (),
             dtype: torch.dtype | None = None, **attributes: Any) -> Value:
        """The only result of op `name`, of the sizes and dtype of `like` unless they are given."""
        if like is not None:
            sizes = like.sizes
            dtype = dtype or like.dtype
        assert dtype is not None
        return self.node(table.lookup(name), args, attributes, (type_of(sizes, dtype),)).results[0]

    def cast(self, value: Value, sizes: Sequence[Any], dtype: torch.dtype) -> Value:
        """`value` converted and broadcast to `sizes` and `dtype`; itself when it has them."""
        if value.tensor.dtype != dtype:
            value = self.to_dtype(value, dtype)
        if value.tensor.shape != dims(sizes):
            value = self.emit("aten.expand.default", value, dims(sizes), sizes=sizes, dtype=dtype)
        return value

    def to_dtype(self, value: Value, dtype: torch.dtype) -> Value:
        return self.node(table.lookup("aten._to_copy.default"), (value,), {"dtype": dtype},
                         (TensorType(dtype, value.tensor.shape),)).results[0]

    def full(self, sizes: Sequence[Any], value: Any, dtype: torch.dtype) -> Value:
        shape = dims(sizes)
        return self.node(table.lookup("aten.full.default"), (shape, value), {"dtype": dtype},
                         (TensorType(dtype, shape),)).results[0]

    def reshape(self, value: Value, sizes: Sequence[Any]) -> Value:
        """The elements of `value` in row-major order, as `sizes`."""
        shape = dims(sizes)
        if value.tensor.shape == shape:
            return value
        return self.emit("aten.view.default", value, shape, sizes=sizes, dtype=value.tensor.dtype)

    def permute(self, value: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(len(order))):
            return value
        shape = value.tensor.shape
        return self.emit("aten.permute.default", value, tuple(order), sizes=[shape[d] for d in order],
                         dtype=value.tensor.dtype)

    def number(self, value: Value, symbol: Symbol, number: int) -> None:
        """Let the one integer in `value` tell `symbol`; `number`: of the read, for calls in which it is too small."""
        attributes = {"symbol": symbol.name, "lo": symbol.lo, "number": number}
        self.node(table.lookup("mono.number"), (value,), attributes, (ScalarType("int", symbol.name),))

    def clone(self, value: Value) -> Value:
        return self.emit("aten.clone.default", value, sizes=value.tensor.shape, dtype=value.tensor.dtype)

