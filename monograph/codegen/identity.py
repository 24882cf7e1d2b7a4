"""Names of kernels: items that compute the same thing on memory of the same shape share one.

The identity of an item is a nested tuple of all that code generation reads: ops, attributes and wiring of its nodes,
types and strides of its buffers, the template with its parameters and operands. Nodes that may raise also count
with the user's line, so that an error names the right one.
"""

from __future__ import annotations

import hashlib
from typing import Any

from monograph.ir.graph import Node, Value
from monograph.ir.op import Effect, Trait
from monograph.schedule.kernel import Fused, Schedule, Template

__all__ = ["digest", "identity", "label", "symbol"]

LABEL_OPS = 6


def identity(item: Fused | Template, schedule: Schedule) -> tuple[Any, ...]:
    """Equal for items whose kernels are equal."""
    number: dict[Value, Any] = {}
    for k, value in enumerate(item.inputs):
        number[value] = ("in", k)
    for n, node in enumerate(item.nodes):
        for value in node.results:
            number.setdefault(value, (n, value.index))
    buffers = tuple(_buffer(schedule, value, number) for value in (*item.inputs, *item.outputs))
    nodes = tuple(_node(node, number) for node in item.nodes)
    if isinstance(item, Fused):
        return "fused", nodes, buffers, item.domain.shape, item.domain.reduced
    operands = tuple(
        (role, number[operand.value], operand.shape, operand.strides, operand.offset)
        for role, operand in sorted(item.operands.items())
    )
    return item.name, nodes, buffers, item.nodes.index(item.anchor), operands, tuple(sorted(item.parameters.items()))


def _buffer(schedule: Schedule, value: Value, number: dict[Value, Any]) -> tuple[Any, ...]:
    return number[value], value.tensor.dtype, value.tensor.shape, tuple(schedule.layouts[value].strides)


def _node(node: Node, number: dict[Value, Any]) -> tuple[Any, ...]:
    loc = str(node.loc) if Effect.RAISES in node.op.effects else ""
    operands = tuple(_operand(operand, number) for operand in node.operands)
    types = tuple(result.type for result in node.results)
    return node.op.name, operands, tuple(sorted(node.attributes.items())), types, loc


def _operand(operand: Any, number: dict[Value, Any]) -> Any:
    if isinstance(operand, Value):
        return number.get(operand, ("anchor", operand.type))     # an operand of the anchor, told by `operands`
    if isinstance(operand, tuple):
        return tuple(_operand(entry, number) for entry in operand)
    return type(operand).__name__, repr(operand)


def label(item: Fused | Template) -> str:
    """The ops of an item, short."""
    names = [node.op.name.split(".")[1] for node in item.nodes if not node.op.has(Trait.VIEW)]
    shown = "_".join(names[:LABEL_OPS])
    return shown + (f"_and_{len(names) - LABEL_OPS}" if len(names) > LABEL_OPS else "")


def digest(identity: Any) -> str:
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def symbol(item: Fused | Template, schedule: Schedule, machine: str) -> str:
    """The name of an item's kernel: what it is, and a digest of its identity and of the machine it is for."""
    return f"{label(item)[:40]}_{digest((identity(item, schedule), machine))}"
