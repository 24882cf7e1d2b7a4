"""What nobody reads of a node with regions: results of a cond, carries and stacks of a while.

A carry lives when its result or its stack is read, or when a carry that lives, the condition or an effect of the body
needs its value: one that only feeds itself dies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from monograph.ir.edit import symbols_in, symbols_read, tellers
from monograph.ir.graph import Graph, Node, Value
from monograph.ops.effects import is_pure

__all__ = ["prune"]


def prune(node: Node, is_live: Callable[[Value], bool]) -> bool:
    """Drop what is dead of the results of `node`, in place, given which of them somebody needs."""
    if not node.regions or all(map(is_live, node.results)):
        return False
    if "body" in node.op.regions:
        return _prune_loop(node, is_live)
    kept = [k for k, result in enumerate(node.results) if is_live(result)]
    for region in node.regions:
        region.outputs[:] = _chosen(region.outputs, kept)
    _keep_results(node, kept)
    return True


def _prune_loop(node: Node, is_live: Callable[[Value], bool]) -> bool:
    condition, body = node.regions
    count = len(body.inputs)
    history: Sequence[int] = node.attributes["history"]
    stacks = [k for k in range(len(history)) if is_live(node.results[count + 1 + k])]
    kept = _live_carries(node, [k for k in range(count) if is_live(node.results[k])] + [history[k] for k in stacks])
    counts = node.attributes["trips"] is not None and (bool(stacks) or is_live(node.results[count]))
    trips = [count] if counts else []
    if len(kept) == count and len(stacks) == len(history) and counts == (node.attributes["trips"] is not None):
        return False
    place = {old: new for new, old in enumerate(kept)}
    node.attributes["history"] = tuple(place[history[k]] for k in stacks)
    node.attributes["trips"] = node.attributes["trips"] if counts else None
    node.operands = (tuple(_chosen(node.inputs, kept)),)
    body.outputs[:] = _chosen(body.outputs, kept)
    for region in (condition, body):
        _keep_inputs(region, kept)
    _keep_results(node, [*kept, *trips, *(count + 1 + k for k in stacks)])
    return True


def _live_carries(node: Node, read: Iterable[int]) -> list[int]:
    condition, body = node.regions
    live = set(read)
    tested = _needed(condition, condition.outputs)
    while True:
        needed = _needed(body, [body.outputs[k] for k in live])
        pairs = enumerate(zip(condition.inputs, body.inputs, strict=True))
        found = {k for k, (tests, carries) in pairs if tests in tested or carries in needed}
        if found <= live:
            return sorted(live)
        live |= found


def _needed(region: Graph, outputs: Iterable[Value]) -> set[Value]:
    """What a region needs for some of its outputs and for its effects."""
    needed = set(outputs)
    symbols = set().union(*(symbols_in(value.type) for value in needed))
    tells = tellers(region)
    for inner in reversed(region.nodes):
        told = any(not symbols.isdisjoint(tells.get(result, ())) for result in inner.results)
        if is_pure(inner) and needed.isdisjoint(inner.results) and not told:
            continue
        needed.update(inner.reads)
        symbols |= symbols_read(inner)
    needed.update(value for value in region.inputs if not symbols.isdisjoint(symbols_in(value.type)))
    return needed


def _keep_results(node: Node, kept: Sequence[int]) -> None:
    node.results = tuple(_chosen(node.results, kept))
    _number(node.results)


def _keep_inputs(region: Graph, kept: Sequence[int]) -> None:
    region.inputs[:] = _chosen(region.inputs, kept)
    region.sources[:] = [region.sources[k] for k in kept]
    _number(region.inputs)


def _number(values: Collection[Value]) -> None:
    for index, value in enumerate(values):
        value.index = index


def _chosen(values: Sequence[Value], kept: Iterable[int]) -> list[Value]:
    return [values[k] for k in kept]
