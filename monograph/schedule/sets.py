"""Sets of nodes that become one node with a region.

    sets(graph, accepts, known) -> lists of nodes       each maximal, none with a path out of it and back
    insert(graph, node, nodes, known)                   `node` takes the place of `nodes`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.schedule import roles

__all__ = ["insert", "sets"]


@dataclass(eq=False)
class _Set:
    """Nodes that may become one region; `after` are values that depend on it from outside."""

    nodes: list[Node] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    after: set[Value] = field(default_factory=set)
    told: set[str] = field(default_factory=set)         # symbols that such values tell
    orders: bool = False        # does a draw or another ordered node depend on it, so that later ones do?

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.made.update(node.results)

    def follow(self, node: Node, known: set[str]) -> None:
        """`node`, outside, depends on the set."""
        self.after.update(node.results)
        self.orders |= roles.is_ordered(node)
        self.told |= set().union(*(edit.symbols_in(value.type) for value in node.results)) - known

    def is_read(self, node: Node) -> bool:
        return not self.made.isdisjoint(node.reads)

    def is_after(self, node: Node) -> bool:
        """Does `node` depend on the set by way of nodes outside of it?"""
        if not self.after.isdisjoint(node.reads) or (self.orders and roles.is_ordered(node)):
            return True
        return bool(self.told and edit.symbols_read(node) & self.told)


def sets(graph: Graph, accepts: Callable[[Node], bool], known: set[str]) -> list[list[Node]]:
    """The nodes that `accepts`, taken together as far as they may run at one time. `known` are symbols told before."""
    finished: list[list[Node]] = []
    now = _Set()
    for node in graph.nodes:
        if accepts(node):
            if now.is_after(node):
                finished.append(now.nodes)
                now = _Set()
            now.add(node)
        elif now.is_after(node) or now.is_read(node):
            now.follow(node, known)
    return [*finished, now.nodes]


def insert(graph: Graph, made: Node, nodes: Sequence[Node], known: set[str]) -> None:
    """Put `made` in the place of the last of `nodes`; what depends on them and stands before comes after."""
    group = _Set()
    for node in nodes:
        group.add(node)
    inside = set(nodes)
    last = max(place for place, node in enumerate(graph.nodes) if node in inside)
    moved: list[Node] = []
    kept: list[Node] = []
    for node in graph.nodes[:last + 1]:
        if node in inside:
            continue
        if group.is_after(node) or group.is_read(node):
            group.follow(node, known)
            moved.append(node)
        else:
            kept.append(node)
    graph.nodes[:] = [*kept, made, *moved, *graph.nodes[last + 1:]]
