"""Short loops with a known number of iterations, written out.

    while(full(0), x) {i < 3} {i + 1, f(x)}      ->      f(f(f(x)))

The number is found by running what is known of the loop: its condition must be known before every iteration. At
most `TRIPS` iterations and `NODES` nodes in all, so that the program stays small: what writing out gains is the branch,
a kernel boundary or two per iteration, and constants to fold.
"""

from __future__ import annotations

from collections import ChainMap

import torch

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.ops.build import Builder
from monograph.ops.effects import is_pure
from monograph.transform.known import Known, learn, truth
from monograph.transform.rewrite import alike, replace_all

__all__ = ["NODES", "TRIPS", "unroll"]

TRIPS = 8
NODES = 48


def unroll(graph: Graph) -> bool:
    """Write out short loops, innermost first."""
    return any(node.regions for node in graph.nodes) and _block(graph, ChainMap())


def _block(graph: Graph, outer: Known) -> bool:
    known = outer.new_child()
    learn(graph, known)
    changed = False
    mapping: dict[Value, Value] = {}
    for node in list(graph.nodes):
        for region in node.regions:
            changed |= _block(region, known)
        trips = _trips(node, known) if "body" in node.op.regions else None
        if trips is not None:
            _write_out(graph, node, trips, mapping)
    if mapping:
        replace_all(graph, mapping)
    return changed or bool(mapping)


def _trips(node: Node, known: Known) -> int | None:
    """How often a loop runs, where that is known and small."""
    condition, body = node.regions
    size = sum(1 for _ in body.walk())
    if size > NODES or edit.tellers(body) or not all(map(is_pure, condition.nodes)):
        return None
    if not all(alike(start, taken) and alike(given, taken) for start, taken, given in
               zip(node.inputs, body.inputs, body.outputs, strict=True)):
        return None
    state: list[torch.Tensor | None] = [known.get(value) for value in node.inputs]
    for trips in range(TRIPS + 1):
        going = truth(condition.outputs[0], _after(condition, state, known))
        if going is not True:
            return trips if going is False else None
        if (trips + 1) * size > NODES:
            return None
        after = _after(body, state, known)
        state = [after.get(value) for value in body.outputs]
    return None


def _after(region: Graph, state: list[torch.Tensor | None], known: Known) -> Known:
    inside = known.new_child({v: x for v, x in zip(region.inputs, state, strict=True) if x is not None})
    learn(region, inside)
    return inside


def _write_out(graph: Graph, node: Node, trips: int, mapping: dict[Value, Value]) -> None:
    builder = Builder(graph, before=node, loc=node.loc)
    body = node.regions[1]
    carried = list(node.inputs)
    history: list[list[Value]] = [[] for _ in node.attributes["history"]]
    for _ in range(trips):
        for stack, position in zip(history, node.attributes["history"], strict=True):
            stack.append(carried[position])
        copies = dict(zip(body.inputs, carried, strict=True))
        for inner in body.nodes:
            builder.insert(edit.copy_node(inner, copies))
        carried = [copies.get(value, value) for value in body.outputs]
    if node.attributes["trips"] is not None:
        count = builder.call("aten.full.default", (), trips, dtype=torch.int64)
        carried.append(builder.call("mono.number", count, symbol=node.attributes["trips"]))
        for stack, result in zip(history, node.results[len(carried):], strict=True):
            carried.append(_stacked(builder, stack, result))
        edit.substitute(graph, {node.attributes["trips"]: trips})
    mapping.update(zip(node.results, carried, strict=True))
    edit.erase(graph, [node])


def _stacked(builder: Builder, values: list[Value], result: Value) -> Value:
    shape = result.tensor.shape[1:]
    rows = [builder.call("aten.unsqueeze.default", value, 0) for value in values]
    if rows:
        made: Value = builder.call("aten.cat.default", rows)
    else:
        made = builder.call("aten.full.default", (0, *shape), 0, dtype=result.tensor.dtype)
    return made
