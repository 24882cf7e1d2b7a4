"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from types import MappingProxyType

from monograph.ir.edit import substitute
from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ir.op import Trait
from monograph.ir.symbolic import Dim, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.ops.effects import is_pure
from monograph.transform.rewrite import stands_for

__all__ = ["attribute_key", "cse", "node_key"]


def cse(graph: Graph) -> bool:
    """Share equal pure nodes: same op, operands and attributes. The first keeps its line; regions see what stands
    before them, nothing sees into a region."""
    return _share(graph, {}, graph.symbols)


def _share(graph: Graph, seen: dict[Hashable, Node], symbols: Mapping[str, Symbol]) -> bool:
    mapping: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    kept = []
    changed = False
    for node in graph.nodes:
        if mapping:
            node.operands = tuple(map_operand(operand, lambda v: mapping.get(v, v)) for operand in node.operands)
        for region in node.regions:
            region.replace(mapping)
            changed |= _share(region, dict(seen), symbols)
        if node.regions or not node.results or not is_pure(node):
            kept.append(node)
            continue
        key = node_key(node)
        first = seen.setdefault(key, node)
        pairs = list(zip(node.results, first.results, strict=True))
        if first is node or not all(_replaces(old, new, outputs) for old, new in pairs):
            kept.append(node)
            continue
        mapping.update(pairs)
        substitute(graph, {name: dim for old, new in pairs for name, dim in _renamed(old.type, new.type, symbols)})
    if mapping:
        graph.nodes[:] = kept
        graph.outputs[:] = [mapping.get(value, value) for value in graph.outputs]
        changed = True
    return changed


def _replaces(old: Value, new: Value, outputs: Collection[Value]) -> bool:
    if isinstance(old.type, ScalarType) and isinstance(new.type, ScalarType):
        return old.type == new.type or (None not in (old.type.symbol, new.type.symbol) and old not in outputs)
    return stands_for(old, new, outputs)


def _renamed(old: Type, new: Type, symbols: Mapping[str, Symbol]) -> Iterator[tuple[str, Dim]]:
    """Two equal nodes tell one thing by two names: the second name and what to say instead."""
    if isinstance(old, TensorType) and isinstance(new, TensorType):
        yield from ((a.name, b) for a, b in zip(old.shape, new.shape, strict=True) if isinstance(a, Symbol) and a != b)
    elif isinstance(old, ScalarType) and isinstance(new, ScalarType) and old.symbol != new.symbol:
        assert old.symbol is not None and new.symbol is not None
        yield old.symbol, symbols[new.symbol]


def node_key(node: Node, mapping: Mapping[Value, Value] = MappingProxyType({})) -> Hashable:
    """Equal for nodes without regions that compute the same; `mapping` has what stands for some operands."""
    operands = [_operand_key(operand, mapping) for operand in node.operands]
    if node.op.has(Trait.COMMUTATIVE) and node.attributes.get("alpha", 1) == 1:
        operands.sort(key=repr)
    told = [value.type.symbol for value in node.results if isinstance(value.type, ScalarType)]
    attributes = tuple(
        (name, attribute_key(value)) for name, value in sorted(node.attributes.items())
        if not (isinstance(value, str) and value in told)       # the name of what it tells
    )
    regions = tuple(id(region) for region in node.regions)
    return (node.op.name, tuple(operands), attributes, regions)


def _operand_key(operand: Operand, mapping: Mapping[Value, Value]) -> Hashable:
    if isinstance(operand, Value):
        return ("value", id(mapping.get(operand, operand)))
    if isinstance(operand, tuple):
        return tuple(_operand_key(entry, mapping) for entry in operand)
    return attribute_key(operand)


def attribute_key(value: object) -> Hashable:
    """Equal for equal attributes only: 1, 1.0 and True differ, so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, tuple):
        return tuple(attribute_key(entry) for entry in value)
    return (type(value), repr(value))
