"""What a node does besides computing, now that its types and numbers are known.

An op's effects (`ops.traits`) hold for all its uses. A floating-point division never raises, nor does one by a
number other than zero: `is_pure` and `may_raise` know, where `Node.is_pure` must assume the worst.
"""

from __future__ import annotations

from monograph.ir.graph import Node, Value
from monograph.ir.op import Effect, Trait

__all__ = ["is_pure", "may_raise"]


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
