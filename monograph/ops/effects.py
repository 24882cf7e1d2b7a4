"""What a node does besides computing, now that its types and numbers are known.

An op's effects (`ops.traits`) hold for all its uses. A floating-point division never raises, nor does one by a
number other than zero: `is_pure` and `may_raise` know, where `Node.is_pure` must assume the worst.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Effect, Trait

__all__ = ["is_pure", "may_raise", "varies"]


def may_raise(node: Node) -> bool:
    """Does it stop the program on some values: an index out of range, an integer division by zero? Regions aside."""
    if Effect.RAISES not in node.op.effects:
        return False
    if not node.op.has(Trait.POINTWISE):
        return True
    if node.results[0].tensor.dtype.is_floating_point:
        return False
    divisor = node.operands[1] if len(node.operands) > 1 else node.attributes.get("other")
    if isinstance(divisor, Value) and divisor.node is not None and divisor.node.op.name == "aten.full.default":
        divisor = divisor.node.attributes["fill_value"]
    return not isinstance(divisor, (int, float)) or divisor == 0


def is_pure(node: Node, known: dict[Node, bool] | None = None) -> bool:
    """No effect and no draw, in regions neither: may be removed when unused, merged with an equal node, moved.

    `known` remembers what was found for nodes with regions.
    """
    if node.op.has(Trait.RANDOM) or node.op.effects - {Effect.RAISES} or may_raise(node):
        return False
    if not node.regions:
        return True
    found = None if known is None else known.get(node)
    if found is None:
        found = all(is_pure(inner, known) for region in node.regions for inner in region.nodes)
        if known is not None:
            known[node] = found
    return found


def varies(values: Iterable[Value], graph: Graph, written: Collection[int] = ()) -> bool:
    """Do values of a graph depend on what a call brings, rather than on constants and buffers of integers alone? Inputs
    that are `written`, trained weights and what acts count as if they did."""
    tellers = {name: value for value, names in edit.tellers(graph, joint=True).items() for name in names}
    pending, seen = list(values), set[Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.node
        if node is None:
            if value not in graph.inputs or value.index in written or not graph.sources[value.index].is_weight \
                    or value.tensor.dtype.is_floating_point:
                return True
            continue
        if _acts(node):
            return True
        pending += node.reads
        for name in edit.symbols_read(node):
            if name not in tellers:
                return True
            if tellers[name].node is not node:
                pending.append(tellers[name])
    return False


def _acts(node: Node) -> bool:
    """Does it draw, or do more than compute or raise, in its regions too?"""
    return node.op.has(Trait.RANDOM) or bool(node.op.effects - {Effect.RAISES}) or any(
        _acts(inner) for region in node.regions for inner in region.nodes)
