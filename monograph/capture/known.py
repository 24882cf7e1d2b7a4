"""Values that depend on no input of the program: numbers written in the code, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from monograph import compat
from monograph.ir.edit import symbols_named
from monograph.ir.graph import Value, map_operand
from monograph.ir.types import TensorType
from monograph.ops import evaluate

__all__ = ["constant"]

LARGEST = 1 << 16       # elements; more than this is not worth computing while tracing
DEEPEST = 200           # nodes


def constant(value: Value, literals: Mapping[Value, torch.Tensor]) -> torch.Tensor | None:
    """The value itself, when random draws and inputs have no part in it; else None."""
    nodes = _closed(value, literals)
    if nodes is None:
        return None
    values: dict[Value, Any] = dict(literals)
    with compat.plain_torch():
        for node in nodes:
            operands = [map_operand(operand, values.__getitem__) for operand in node.operands]
            results = evaluate.run_node(node, operands)
            values.update(zip(node.results, results, strict=True))
        return values[value]


def _closed(value: Value, literals: Mapping[Value, torch.Tensor]) -> list[Any] | None:
    """The nodes behind `value` in order, None when some input, random draw or large tensor is among them."""
    order: list[Any] = []
    seen: set[int] = set()

    def visit(current: Value) -> bool:
        if current in literals:
            return True
        node = current.node
        if node is None or not node.op.is_pure and not _only_raises(node) or node.regions:
            return False
        if symbols_named(node):
            return False
        if id(node) in seen:
            return True
        seen.add(id(node))
        if len(seen) > DEEPEST or any(_numel(result) > LARGEST for result in node.results):
            return False
        if not all(visit(operand) for operand in node.inputs):
            return False
        order.append(node)
        return True

    return order if visit(value) else None


def _only_raises(node: Any) -> bool:
    return all(effect.name == "RAISES" for effect in node.op.effects) and not any(
        trait.name == "RANDOM" for trait in node.op.traits)


def _numel(value: Value) -> int:
    if not isinstance(value.type, TensorType):
        return 1
    size = value.tensor.numel
    return size if isinstance(size, int) else LARGEST + 1
