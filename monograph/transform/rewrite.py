"""The driver of local rewrites.

A rule looks at one node and returns the value that stands for its only result, or None for "no
change". Rules stand in a table keyed by op name, so that a pass costs one look-up per node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ir.types import TensorType
from monograph.ops.build import Builder

__all__ = ["Rule", "alike", "replace_all", "rewrite", "settle_outputs", "stands_for"]

Rule: TypeAlias = Callable[[Node, Builder], Value | None]


def rewrite(graph: Graph, rules: Mapping[str, Rule]) -> bool:
    """One forward sweep: apply the rule of each node's op where there is one, in regions too.

    New nodes take the place and the line of the one they replace, which is left for `dce` to remove.
    """
    mapping: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    changed = False
    for node in list(graph.nodes):
        if mapping:
            node.operands = tuple(map_operand(operand, lambda v: mapping.get(v, v)) for operand in node.operands)
        for region in node.regions:
            region.replace(mapping)
            changed |= rewrite(region, rules)
        rule = rules.get(node.op.name)
        if rule is None:
            continue
        new = rule(node, Builder(graph, before=node, loc=node.loc))
        if new is None or not stands_for(node.results[0], new, outputs):
            continue
        mapping[node.results[0]] = new
    if mapping:
        graph.outputs[:] = [mapping.get(value, value) for value in graph.outputs]
    return changed or bool(mapping)


def stands_for(old: Value, new: Value, outputs: Collection[Value]) -> bool:
    """Whether `new` may replace `old` everywhere, given the graph's outputs.

    An output's strides are promised to the caller: an interior `new` takes them over, a value that
    already promises others cannot stand in.
    """
    if old not in outputs or old.type == new.type or not _promises(old):
        return True
    if new.node is None or new in outputs or not isinstance(new.type, TensorType):
        return False
    new.type = old.type
    return True


def alike(a: Value, b: Value) -> bool:
    """Two tensors of one type, strides aside."""
    if isinstance(a.type, TensorType) and isinstance(b.type, TensorType):
        return (a.type.dtype, a.type.shape, a.type.device) == (b.type.dtype, b.type.shape, b.type.device)
    return False


def replace_all(graph: Graph, mapping: Mapping[Value, Value]) -> None:
    """`Graph.replace`, the outputs keeping the strides promised to the caller."""
    promised = list(graph.outputs)
    graph.replace(mapping)
    new, graph.outputs[:] = list(graph.outputs), promised
    settle_outputs(graph, new)


def settle_outputs(graph: Graph, new: Sequence[Value]) -> bool:
    """Make `new` the outputs, in place of values that they stand for. Where one cannot take over the strides promised
    to the caller, a copy does."""
    changed = False
    for position, (before, after) in enumerate(zip(graph.outputs, new, strict=True)):
        if after is before:
            continue
        others = {*graph.outputs[:position], *new[position + 1:]}
        if not stands_for(before, after, {before} | others):
            after = Builder(graph, loc=before.node.loc if before.node is not None else None).call(
                "aten.clone.default", after)
            after.type = before.type
        graph.outputs[position] = after
        changed = True
    return changed


def _promises(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.strides is not None
