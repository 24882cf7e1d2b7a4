"""Integer constants without dims become numbers of the ops that read them.

    %c = aten.full([], 1, i64);  aten.add.Tensor(%i, %c)       ->       aten.add.Tensor(%i, 1)
    %c = aten.full([], 3, i64);  aten.lt.Tensor(%i, %c)        ->       aten.lt.Scalar(%i, other=3)

for i64 and bool operands, where a number and a tensor of that type mean the same. Then rules for numbers
(x + 0 -> x) apply, and a branch is known by what it compares with.
"""

from __future__ import annotations

import torch

from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.op import Op, ParameterKind, Trait
from monograph.ir.types import TensorType
from monograph.ops import families
from monograph.ops.build import Builder
from monograph.ops.table import lookup
from monograph.transform.rewrite import replace_all
from monograph.transform.simplify import is_full

__all__ = ["literals"]

# Whose overload for tensors takes numbers as well.
PLAIN = frozenset({"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor"})


def literals(graph: Graph) -> bool:
    """Write constants into pointwise ops of two operands; commutative ones are turned round for it."""
    mapping: dict[Value, Value] = {}
    changed = False
    for node in list(graph.nodes):
        for region in node.regions:
            changed |= literals(region)
        found = _second(node)
        if found is None:
            continue
        first, number = found
        if node.op.name in PLAIN:
            node.operands = (first, number)
            changed = True
        else:
            scalar = _with_number(node.op)
            if scalar is not None:
                made = Builder(graph, before=node, loc=node.loc).call(scalar, first, number)
                made.name = node.result.name
                mapping[node.result] = made
    replace_all(graph, mapping)
    return changed or bool(mapping)


def _second(node: Node) -> tuple[Operand, int] | None:
    """The first operand and the number that the second one is."""
    kinds = [parameter.kind for parameter in node.op.operand_parameters]
    if not node.op.has(Trait.POINTWISE) or kinds != [ParameterKind.TENSOR] * 2:
        return None
    first, second = node.operands
    number = _literal(first, second)
    if number is None and node.op.has(Trait.COMMUTATIVE) and node.attributes.get("alpha", 1) == 1:
        first, second = second, first
        number = _literal(first, second)
    return None if number is None else (first, number)


def _literal(other: Operand, operand: Operand) -> int | None:
    """The number to write for `operand` beside `other`."""
    if not isinstance(other, Value) or not isinstance(other.type, TensorType) or not is_full(operand):
        return None
    type = operand.tensor
    if type.rank or type.dtype not in (torch.int64, torch.bool) or other.type.dtype is not type.dtype:
        return None
    fill = operand.node.attributes["fill_value"] if operand.node is not None else None
    return fill if isinstance(fill, int) else None


def _with_number(op: Op) -> str | None:
    """The overload of `op` that takes a number in place of its second operand, and nothing else."""
    packet, _, overload = op.name.rpartition(".")
    name = f"{packet}.Scalar"
    if overload != "Tensor" or name not in families.KERNELS or op.attribute_parameters:
        return None
    return name if len(lookup(name).parameters) == 2 and lookup(name).has(Trait.POINTWISE) else None
