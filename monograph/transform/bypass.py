"""Values that a region only hands through are values of the block around it.

    cond(p) {return x} {return x}                        -> x
    cond(p) {return True} {return False}                 -> p            and not p the other way round
    while(x) {..} {input c: ... return c}                -> x            c stands for x inside as well
    while(x, x) {..} {input c, d: ... return e, e}       -> one carry

`cse` has made equal what is equal; `dce` drops what is left unread.
"""

from __future__ import annotations

from collections.abc import Sequence

from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ops.build import Builder
from monograph.transform.known import is_flag
from monograph.transform.rewrite import alike, settle_outputs

__all__ = ["bypass"]


def bypass(graph: Graph) -> bool:
    """Replace results of regions by the values behind them."""
    if not any(node.regions for node in graph.nodes):
        return False
    return _block(graph, {})


def _block(graph: Graph, mapping: dict[Value, Value]) -> bool:
    """`mapping` has what to replace in this block and those inside it; chains are followed."""

    def final(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    changed = False
    for node in list(graph.nodes):
        changed |= any(value in mapping for value in node.inputs)
        node.operands = tuple(map_operand(operand, final) for operand in node.operands)
        if "body" in node.op.regions:
            _carries(node, mapping, [final(value) for value in node.regions[1].outputs])
        for region in node.regions:
            changed |= _block(region, mapping)
        if node.regions and "body" not in node.op.regions:
            _results(graph, node, mapping)
    return settle_outputs(graph, [final(value) for value in graph.outputs]) or changed


def _carries(node: Node, mapping: dict[Value, Value], outputs: Sequence[Value]) -> None:
    """Carries that never change, and those that are always equal to an earlier one."""
    condition, body = node.regions
    for k, (start, taken, given) in enumerate(zip(node.inputs, body.inputs, outputs, strict=True)):
        if not alike(start, taken):
            continue
        if given is taken or given is start:
            stands = (start, start, start)
        else:
            twin = next((j for j in range(k) if node.inputs[j] is start and outputs[j] is given), None)
            if twin is None:
                continue
            stands = (condition.inputs[twin], body.inputs[twin], node.results[twin])
        for old, new in zip((condition.inputs[k], taken, node.results[k]), stands, strict=True):
            if old not in mapping:
                mapping[old] = new


def _results(graph: Graph, node: Node, mapping: dict[Value, Value]) -> None:
    """Results that both branches agree on, and those that say which branch was taken."""
    inside = {value for region in node.regions for inner in region.nodes for value in inner.results}
    predicate = node.operands[0]
    for result, yes, no in zip(node.results, node.regions[0].outputs, node.regions[1].outputs, strict=True):
        if result in mapping:
            continue
        if yes is no and yes not in inside and alike(yes, result):
            mapping[result] = yes
        elif is_flag(predicate) and alike(predicate, result) and _is_constant(yes) and _is_constant(no):
            truths = (_constant(yes), _constant(no))
            if truths == (True, False):
                mapping[result] = predicate
            elif truths == (False, True):
                mapping[result] = Builder(graph, before=node).call("aten.logical_not.default", predicate)


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.op.name == "aten.full.default" and is_flag(value)


def _constant(value: Value) -> bool:
    assert value.node is not None
    return bool(value.node.attributes["fill_value"])
