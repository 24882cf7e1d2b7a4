"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Hashable

from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ir.op import Trait
from monograph.transform.rewrite import stands_for

__all__ = ["attribute_key", "cse"]


def cse(graph: Graph) -> bool:
    """Share equal pure nodes: same op, operands and attributes. The first keeps its line."""
    return _share(graph, {})


def _share(graph: Graph, seen: dict[Hashable, Node]) -> bool:
    mapping: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    kept = []
    changed = False
    for node in graph.nodes:
        if mapping:
            node.operands = tuple(map_operand(operand, lambda v: mapping.get(v, v)) for operand in node.operands)
        for region in node.regions:
            region.replace(mapping)
            changed |= _share(region, dict(seen))
        if not node.op.is_pure or node.regions:
            kept.append(node)
            continue
        key = _key(node)
        first = seen.setdefault(key, node)
        pairs = list(zip(node.results, first.results, strict=True))
        if first is node or not all(stands_for(old, new, outputs) for old, new in pairs):
            kept.append(node)
            continue
        mapping.update(pairs)
    if mapping:
        graph.nodes[:] = kept
        graph.outputs[:] = [mapping.get(value, value) for value in graph.outputs]
        changed = True
    return changed


def _key(node: Node) -> Hashable:
    operands = [_operand_key(operand) for operand in node.operands]
    if node.op.has(Trait.COMMUTATIVE) and node.attributes.get("alpha", 1) == 1:
        operands.sort(key=repr)
    attributes = tuple((name, attribute_key(value)) for name, value in sorted(node.attributes.items()))
    return (node.op.name, tuple(operands), attributes)


def _operand_key(operand: Operand) -> Hashable:
    if isinstance(operand, Value):
        return ("value", id(operand))
    if isinstance(operand, tuple):
        return tuple(_operand_key(entry) for entry in operand)
    return attribute_key(operand)


def attribute_key(value: object) -> Hashable:
    """Equal for equal attributes only: 1, 1.0 and True differ, so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, tuple):
        return tuple(attribute_key(entry) for entry in value)
    return (type(value), repr(value))
