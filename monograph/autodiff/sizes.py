"""Ops whose results have sizes that values decide, written so that their derivative needs no such size.

    masked_select(x, m)      ->  index(x, columns of nonzero(m))
    index(x, [m, i])         ->  index(x, [columns of nonzero(m), i])        m a mask of bools

`nonzero` gives integers, which have no derivative: it stays outside of what is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from monograph.errors import UnsupportedError
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.ops.infer import broadcast
from monograph.ops.table import lookup

__all__ = ["opened", "tells_real"]

INDEX = "aten.index.Tensor"
SELECT = "aten.masked_select.default"


def tells_real(node: Node) -> bool:
    """Does `node` give floating-point results of sizes that only values tell?"""
    real = any(isinstance(v.type, TensorType) and v.type.dtype.is_floating_point for v in node.results)
    return real and not node.regions and (node.op.has(Trait.SYNC) or (node.op.name == INDEX and _masks(node) != []))


def _masks(node: Node) -> list[Value]:
    return [v for v in node.inputs[1:] if v.tensor.dtype is torch.bool]


def opened(builder: Builder, node: Node, block: Graph, enter: Callable[[Value], Value]) -> Value:
    """Write `node` into `block`, its integers into `builder`. `enter` gives the value of the block for one outside."""
    if node.op.name == SELECT:
        x, mask = node.inputs
        shape = broadcast(x.tensor.shape, mask.tensor.shape)
        inner = Builder(block, loc=node.loc)
        source = _expanded(inner, enter(x), shape)
        columns = _columns(builder, _expanded(builder, mask, shape), node)
        return _index(block, node, source, tuple(map(enter, columns)))
    if node.op.name == INDEX:
        slots: list[Value | None] = []
        indices = node.operands[1]
        assert isinstance(indices, tuple)
        for entry in indices:
            if isinstance(entry, Value) and entry.tensor.dtype is torch.bool:
                slots += map(enter, _columns(builder, entry, node))
            else:
                slots.append(enter(entry) if isinstance(entry, Value) else None)
        return _index(block, node, enter(node.inputs[0]), tuple(slots))
    raise UnsupportedError(f"the gradient of {node.op.name}, whose result has a size that depends on values, inside of "
                           "data-dependent control flow", loc=node.loc,
                           why="what it saves for the backward has no one size",
                           hint="use a mask of full size")


def _expanded(builder: Builder, value: Value, shape: tuple[object, ...]) -> Value:
    made: Value = value if value.tensor.shape == shape else builder.call("aten.expand.default", value, shape)
    return made


def _columns(builder: Builder, mask: Value, node: Node) -> list[Value]:
    """Where `mask` holds: one vector of positions per dim."""
    count = node.results[0].tensor.shape[_place(node)]
    op = lookup("aten.nonzero.default")
    type = TensorType(torch.int64, (count, mask.tensor.rank), mask.tensor.device)
    found = builder.insert(Node(op, (mask,), {}, [type], loc=node.loc)).result
    return [builder.call("aten.select.int", found, 1, dim) for dim in range(mask.tensor.rank)]


def _place(node: Node) -> int:
    """The dim of the result that a mask's positions run over."""
    if node.op.name == SELECT:
        return 0
    indices = node.operands[1]
    assert isinstance(indices, tuple)
    given = [k for k, entry in enumerate(indices) if entry is not None]
    if given != list(range(given[0], given[-1] + 1)):
        return 0        # with a gap between the indices, their dims come first
    return given[0]


def _index(block: Graph, node: Node, source: Value, indices: tuple[Value | None, ...]) -> Value:
    type = replace(node.results[0].tensor, strides=None)
    return block.append(Node(lookup(INDEX), (source, indices), {}, [type], loc=node.loc)).result
