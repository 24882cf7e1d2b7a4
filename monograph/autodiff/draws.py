"""Random draws in regions, kept for the way back.

What a region drew must not be drawn again. `keep` makes it a result of the node, in place:

    cond     one more result: what the branch drew, zeros where the other one was taken
    while    one more carry: what the last iteration drew; the history of iteration k + 1 has what iteration k drew

`replace` puts the kept values in the place of the draws in a copy of the region. A draw in a loop inside of another
region, or of a size known at run time only, is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ir.types import TensorType
from monograph.ops.build import Builder

__all__ = ["keep", "replace", "zeros"]


def keep(node: Node, before: Builder) -> dict[Value, Value]:
    """Make what the regions of `node` draw results of it: {what is drawn: the result}. `before` builds before it."""
    if "body" in node.op.regions:
        drawn = _drawn(node.regions[1])
        return {leaf: _carry(node, value, before) for leaf, value in drawn.items()}
    kept: dict[Value, Value] = {}
    for region, other in zip(node.regions, reversed(node.regions), strict=True):
        for leaf, value in _drawn(region).items():
            region.outputs.append(value)
            other.outputs.append(zeros(Builder(other, loc=node.loc), value))
            kept[leaf] = _result(node, len(node.results), value.tensor)
    return kept


def replace(region: Graph, kept: Mapping[Value, Value]) -> None:
    """Read `kept[v]` for what a draw in `region` gave, v being the copy's own value; draw no more."""
    region.replace(kept)
    for block in (region, *(inner for node in region.walk() for inner in node.regions)):
        edit.erase(block, [node for node in block.nodes if node.results and node.results[0] in kept])


def _drawn(region: Graph) -> dict[Value, Value]:
    """What a region draws, as values of the region itself."""
    found: dict[Value, Value] = {}
    for node in list(region.nodes):
        if node.op.has(Trait.RANDOM) and len(node.results) == 1 and _is_static(node.results[0]):
            found[node.result] = node.result
        elif node.regions and "body" not in node.op.regions and not node.is_pure:
            found.update(keep(node, Builder(region, before=node)))
    return found


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static


def _carry(node: Node, value: Value, before: Builder) -> Value:
    """One more carry of a loop: what `value`, of its body, was in the last iteration."""
    count = len(node.inputs)
    start = zeros(before, value)
    node.operands = ((*node.inputs, start),)
    for region in node.regions:
        region.add_input(changed(value.tensor, strides=None))
    node.regions[1].outputs.append(value)
    return _result(node, count, value.tensor)


def _result(node: Node, place: int, type: TensorType) -> Value:
    made = Value(changed(type, strides=None), node=node)
    results: Sequence[Value] = (*node.results[:place], made, *node.results[place:])
    node.results = tuple(results)
    for index, result in enumerate(node.results):
        result.index = index
    return made


def zeros(builder: Builder, like: Value) -> Value:
    """Zeros of the size and dtype of a value."""
    made: Value = builder.call("aten.full.default", like.tensor.shape, 0, dtype=like.tensor.dtype)
    return made
