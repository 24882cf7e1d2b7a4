"""Which nodes a template would take as its epilogue, seen from the anchor.

`follow` collects the pointwise nodes that see the anchor's result element by element, directly or through each
other; those that would only add an output to the template, though the kernel that reads them computes them for free,
are left to that kernel. Whether the rest may join is decided later, node by node (cycles).
"""

from __future__ import annotations

import heapq

from monograph.ir.graph import Node, Value
from monograph.schedule import roles
from monograph.schedule.flow import Flow, size
from monograph.schedule.roles import Role

__all__ = ["follow"]

MOST_SEEN = 64          # nodes looked at
MOST_OUTPUTS = 3        # each is one more store per element of the tile


def follow(flow: Flow, anchor: Node) -> frozenset[Node]:
    """The nodes that a template at `anchor` wants as its epilogue."""
    found: dict[Node, None] = {anchor: None}
    foreign: set[Node] = set()      # depend on the anchor, and are no part of its epilogue
    points = size(anchor.results[0])
    queue = _readers(flow, anchor)
    heapq.heapify(queue)
    for _ in range(MOST_SEEN):
        while queue and (flow.nodes[queue[0]] in found or flow.nodes[queue[0]] in foreign):
            heapq.heappop(queue)
        if not queue:
            break
        node = flow.nodes[heapq.heappop(queue)]
        if _fits(flow, node, found, foreign, points):
            found[node] = None
        else:
            foreign.add(node)
        for reader in _readers(flow, node):
            heapq.heappush(queue, reader)
    return frozenset(_trim(flow, list(found)))


def _readers(flow: Flow, node: Node) -> list[int]:
    return [flow.position[reader] for result in node.results for reader in flow.readers.get(result, ())]


def _fits(flow: Flow, node: Node, found: dict[Node, None], foreign: set[Node], points: int) -> bool:
    """Does `node` see the values of `found` element by element, in order, and nothing else that depends on them?"""
    if any(flow.producer(value) in foreign for value in node.inputs):
        return False
    if flow.role[node] is not Role.POINTWISE or roles.may_raise(node) or size(node.results[0]) != points:
        return False
    mine = [value for value in node.inputs if flow.producer(value) in found]
    return all(size(value) == points and flow.in_order(value) for value in mine)


def _trim(flow: Flow, nodes: list[Node]) -> list[Node]:
    """`nodes` without those that are better left to their reader, and with few outputs."""
    kept = list(nodes)
    for node in reversed(nodes[1:]):
        if _left_to_reader(flow, node, set(kept)):
            kept.remove(node)
    while len(kept) > 1 and len(_outputs(flow, kept)) > MOST_OUTPUTS:
        kept.pop()
    return kept[1:]


def _left_to_reader(flow: Flow, node: Node, kept: set[Node]) -> bool:
    """Is the result of `node` read by one kernel only, and everything it needs from the template stored anyway?"""
    result = node.results[0]
    readers = flow.readers.get(result, [])
    if result in flow.escapes or len(readers) != 1 or readers[0] in kept:
        return False
    if flow.role[readers[0]] in (Role.TEMPLATE, Role.LIBRARY, Role.WINDOW, Role.GATHER):
        return False
    mine = {flow.base_of(value) for value in node.inputs if flow.producer(value) in kept}
    return all(_is_read(flow, value, kept - {node}) for value in mine)


def _is_read(flow: Flow, value: Value, inside: set[Node]) -> bool:
    """Does anyone but `inside` and the node just taken out of it read `value`?"""
    outside = [reader for reader in flow.readers.get(value, ()) if reader not in inside]
    return value in flow.escapes or len(outside) > 1


def _outputs(flow: Flow, nodes: list[Node]) -> list[Value]:
    inside = set(nodes)
    return [
        result for node in nodes for result in node.results
        if result in flow.escapes or any(reader not in inside for reader in flow.readers.get(result, ()))
    ]
