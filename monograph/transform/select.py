"""Small conditionals without branches: both sides computed, the result chosen.

    cond(p) {%a = neg(%x); return %a} {return %x}     ->     where(p, neg(%x), %x)

Worth it where computing both costs less than branching does. What a branch costs: the predicate must be in memory
before the branch is taken, nothing fuses across it, and each side is a kernel of its own, a microsecond or two. So
both sides together may take `LIMIT` element operations, about two microseconds of one core, `HEAVY` times as many for
a node that is not a few cheap instructions per element, and there may be at most `NODES` of them. Allowed are
pointwise ops, views and constants that cannot raise.
"""

from __future__ import annotations

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import families
from monograph.ops.build import Builder
from monograph.ops.effects import is_pure
from monograph.transform.rewrite import alike, replace_all

__all__ = ["HEAVY", "LIMIT", "NODES", "select"]

LIMIT = 1 << 15
HEAVY = 8
NODES = 16

# A few instructions per element; everything else counts as heavy.
CHEAP = frozenset("""
    add sub rsub mul neg abs sign relu clamp clamp_min clamp_max maximum minimum where masked_fill eq ne lt le gt ge
    logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not clone _to_copy square
""".split())


def select(graph: Graph) -> bool:
    """Turn small conds into `aten.where`, innermost first."""
    mapping: dict[Value, Value] = {}
    changed = False
    for node in list(graph.nodes):
        for region in node.regions:
            changed |= select(region)
        if node.op.name == "mono.cond" and _is_cheap(node):
            mapping.update(_converted(graph, node))
    if not mapping:
        return changed
    replace_all(graph, mapping)
    return True


def _is_cheap(node: Node) -> bool:
    nodes = [inner for region in node.regions for inner in region.nodes]
    if len(nodes) > NODES or not all(map(_may_run_anyway, nodes)):
        return False
    if not all(isinstance(result.type, TensorType) and result.type.is_static for result in node.results):
        return False
    if not all(alike(given, result) for region in node.regions
           for given, result in zip(region.outputs, node.results, strict=True)):
        return False
    return sum(map(_cost, nodes)) + sum(_size(result) for result in node.results) <= LIMIT


def _may_run_anyway(node: Node) -> bool:
    if node.regions or not is_pure(node) or not node.results:
        return False
    if not (node.op.has(Trait.POINTWISE) or node.op.has(Trait.VIEW) or node.op.has(Trait.FACTORY)):
        return False
    return all(isinstance(value.type, TensorType) and value.type.is_static and value.type.dtype in families.DTYPES
               for value in (*node.inputs, *node.results))


def _cost(node: Node) -> int:
    if not node.op.has(Trait.POINTWISE):
        return 0
    return _size(node.results[0]) * (1 if node.op.name.split(".")[1] in CHEAP else HEAVY)


def _size(value: Value) -> int:
    size = value.tensor.numel
    assert isinstance(size, int)
    return size


def _converted(graph: Graph, node: Node) -> dict[Value, Value]:
    """Put both sides before `node`, which is left for `dce`; what stands for its results."""
    builder = Builder(graph, before=node, loc=node.loc)
    then, otherwise = node.regions
    for region in node.regions:
        for inner in region.nodes:
            builder.insert(inner)
        region.nodes.clear()
    chosen = _flag(builder, node.operands[0]) if node.results else None
    mapping = {
        result: yes if yes is no else builder.call("aten.where.self", chosen, yes, no)
        for result, yes, no in zip(node.results, then.outputs, otherwise.outputs, strict=True)
    }
    graph.nodes.remove(node)
    return mapping


def _flag(builder: Builder, predicate: object) -> Value:
    """The predicate as bool[]."""
    if not isinstance(predicate, Value) or isinstance(predicate.type, ScalarType):
        made: Value = builder.call("mono.scalar", predicate, dtype=torch.bool)
        return made
    flag = predicate if predicate.tensor.dtype is torch.bool else builder.call("aten.ne.Scalar", predicate, 0)
    return flag if flag.tensor.rank == 0 else builder.call("aten.view.default", flag, ())
