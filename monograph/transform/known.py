"""What is known of values before the program runs: small tensors that depend on no input, and what a branch implies.

    Known ::= (Value -> tensor)*       the content of a value, of an int too, wherever the block at hand may read it

`results` evaluates one node in torch when everything it reads is known. `assume` tells what follows from a truth
value: in the branch taken, in the body of a loop, behind a loop.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

import torch

from monograph.ir.edit import symbols_read
from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ir.op import Effect, Trait
from monograph.ir.types import TensorType
from monograph.ops import evaluate, families

__all__ = ["AND", "LARGEST", "NOT", "OR", "Known", "assume", "is_flag", "learn", "results", "truth"]

Known: TypeAlias = "ChainMap[Value, torch.Tensor]"

LARGEST = 64        # elements of a tensor that is worth knowing

NOT = "aten.logical_not.default"
AND = ("aten.logical_and.default", "aten.bitwise_and.Tensor")
OR = ("aten.logical_or.default", "aten.bitwise_or.Tensor")


def is_flag(value: object) -> TypeGuard[Value]:
    """A bool tensor of one element."""
    return isinstance(value, Value) and isinstance(value.type, TensorType) and value.type.dtype is torch.bool \
        and value.type.numel == 1


def truth(operand: object, known: Known) -> bool | None:
    """Whether a one-element value holds; None when that is not known."""
    if isinstance(operand, (bool, int, float)):
        return bool(operand)
    found = known.get(operand) if isinstance(operand, Value) else None
    return None if found is None or found.numel() != 1 else bool(found)


def results(node: Node, known: Known) -> tuple[torch.Tensor, ...] | None:
    """What a node gives, when that is known."""
    absorbed = _absorbed(node, known)
    if absorbed is not None:
        return (absorbed,)
    if any(value not in known for value in node.inputs) or not _is_computable(node):
        return None

    def content(value: Value) -> torch.Tensor | int:
        return known[value] if isinstance(value.type, TensorType) else int(known[value])

    operands = [map_operand(operand, content) for operand in node.operands]
    try:
        found = evaluate.run_alone(node, operands)
    except (RuntimeError, ArithmeticError, IndexError, ValueError):      # the program is to raise it when it gets there
        return None
    return tuple(x for x in found if isinstance(x, torch.Tensor))


def _is_computable(node: Node) -> bool:
    if node.regions or not node.results or node.op.has(Trait.RANDOM) or node.op.effects - {Effect.RAISES}:
        return False
    return all(_is_small(value) for value in node.results) and not symbols_read(node)


def _is_small(value: Value) -> bool:
    type = value.type
    if not isinstance(type, TensorType) or type.device != "cpu" or type.dtype not in families.DTYPES:
        return False
    size = type.numel
    return isinstance(size, int) and size <= LARGEST


def _absorbed(node: Node, known: Known) -> torch.Tensor | None:
    """False and x -> False;  True or x -> True"""
    if node.op.name not in AND + OR or not all(is_flag(operand) for operand in (*node.operands, *node.results)):
        return None
    absorbing = node.op.name in OR
    if any(truth(operand, known) is absorbing for operand in node.operands):
        return torch.full(_shape(node.results[0]), absorbing)
    return None


def learn(graph: Graph, known: Known) -> None:
    """Add what can be known of the values a block makes."""
    for node in graph.nodes:
        found = results(node, known) if not node.regions else None
        if found is not None:
            known.update(zip(node.results, found, strict=True))


def assume(value: Value, holds: bool) -> dict[Value, torch.Tensor]:
    """What is known where the one-element `value` is true, or false: of itself and of what it was computed from."""
    facts: dict[Value, torch.Tensor] = {}
    stack = [(value, holds)] if is_flag(value) else []
    while stack:
        value, holds = stack.pop()
        facts[value] = torch.full(_shape(value), holds)
        node = value.node
        if node is None:
            continue
        flags = [operand for operand in node.operands if is_flag(operand)]
        if node.op.name == NOT:
            stack += [(flag, not holds) for flag in flags]
        elif node.op.name in (AND if holds else OR) and len(flags) == len(node.operands):
            stack += [(flag, holds) for flag in flags]
        elif node.op.name == ("aten.eq.Scalar" if holds else "aten.ne.Scalar"):
            facts.update(_equal(node))
    return facts


def _equal(node: Node) -> Mapping[Value, torch.Tensor]:
    """x == 3 -> x is 3, for integers"""
    x, number = node.operands[0], node.attributes["other"]
    if not isinstance(x, Value) or not isinstance(number, int) or x.tensor.numel != 1 \
            or x.tensor.dtype not in (torch.int64, torch.int32):
        return {}
    return {x: torch.full(_shape(x), number, dtype=x.tensor.dtype)}


def _shape(value: Value) -> tuple[int, ...]:
    return value.tensor.shape  # type: ignore[return-value]
