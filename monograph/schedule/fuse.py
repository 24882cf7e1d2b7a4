"""Which nodes run together.

    fuse(flow) -> Group*

One walk over the graph, producers first. A composite that a template takes opens a group of its own, and pointwise
nodes that follow it at the same elements join it (its epilogue). Every other node opens a group and then draws in
the groups it reads, latest first, as long as

    - no cycle arises between groups: each group knows, as a bit set, which groups it depends on;
    - the union may be one kernel (`rows.domain`);
    - nothing dear is computed again and again (`recompute.affordable`).

Views and constants belong to nobody: each reader composes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from monograph.ir import edit
from monograph.ir.graph import Node, Value
from monograph.ops import templates
from monograph.ops.templates import Capability
from monograph.schedule import epilogue, recompute, roles, rows
from monograph.schedule.flow import Flow
from monograph.schedule.kernel import Domain
from monograph.schedule.roles import Role

__all__ = ["ALONE", "Group", "Groups", "fuse"]

MOST_NODES = 120        # of a kernel
ALONE = (Role.LIBRARY, Role.REGION)
SINGLE = (*ALONE, Role.FILL)            # these groups no other node joins


@dataclass(eq=False, slots=True)
class Group:
    """Nodes that run together, in order; `before` has a bit for every group this one depends on."""

    number: int
    role: Role
    nodes: list[Node]
    before: int = 0
    domain: Domain | None = None
    capability: Capability | None = None
    wanted: frozenset[Node] = frozenset()      # what a template would take as its epilogue

    @property
    def bit(self) -> int:
        return 1 << self.number


class Groups:
    """A partition of nodes into groups whose dependencies stay free of cycles."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.of: dict[Node, Group] = {}
        self.alive: dict[int, Group] = {}
        self.count = 0
        self.follows: dict[Node, Node] = {}         # ordered node -> the one before it
        self.last_ordered: Node | None = None

    def open(self, node: Node, role: Role) -> Group:
        """A new group of one node, after everything it reads."""
        group = Group(self.count, role, [node])
        self.count += 1
        if roles.is_ordered(node):
            if self.last_ordered is not None:
                self.follows[node] = self.last_ordered
            self.last_ordered = node
        for producer in self.producers(node):
            group.before |= producer.before | producer.bit
        self.of[node] = group
        self.alive[group.number] = group
        return group

    def producers(self, node: Node) -> list[Group]:
        """The groups whose values `node` reads, latest first."""
        found = {self.of[p] for p in self.sources(node) if p in self.of}
        return sorted(found, key=lambda group: -group.number)

    def reads(self, group: Group) -> list[Group]:
        """The groups whose values `group` reads, latest first."""
        found = {self.of[p] for node in group.nodes for p in self.sources(node) if p in self.of}
        return sorted(found - {group}, key=lambda other: -self.flow.position[other.nodes[0]])

    def sources(self, node: Node) -> Iterator[Node]:
        """The nodes that compute what `node` reads, or must have run before it."""
        if node in self.follows:
            yield self.follows[node]
        for value in node.reads:
            producer = self.flow.producer(value)
            if producer is not None:
                yield producer
        if self.flow.binders:
            for name in edit.symbols_read(node):
                binder = self.flow.binders.get(name, node)
                if binder is not node:
                    yield binder

    def joinable(self, early: Group, late: Group) -> bool:
        """May the two be one without a cycle? No third group may stand between them."""
        if early.before & late.bit:
            early, late = late, early
        if not late.before & early.bit:
            return True
        return not any(group.before & early.bit for group in self.reads(late) if group is not early)

    def merge(self, kept: Group, other: Group, nodes: list[Node]) -> None:
        """`kept` takes over `other`; `nodes` are those of both, in order."""
        kept.nodes = nodes
        kept.before = (kept.before | other.before) & ~(kept.bit | other.bit)
        for node in other.nodes:
            self.of[node] = kept
        del self.alive[other.number]
        mask = kept.bit | other.bit
        for group in self.alive.values():
            if group is not kept and group.before & mask:
                group.before = (group.before & ~other.bit) | kept.bit | kept.before

    def drop(self, group: Group) -> None:
        """Forget a group that no other depends on."""
        for node in group.nodes:
            del self.of[node]
        del self.alive[group.number]

    def escaping(self, nodes: Iterable[Node], inside: set[Node]) -> list[Value]:
        """The values of `nodes` that someone outside of `inside` reads."""
        flow = self.flow
        found = []
        for node in nodes:
            unread = True
            for value in node.results:
                readers = flow.readers.get(value, ())
                unread = unread and not readers and value not in flow.escapes
                if value in flow.escapes or any(reader not in inside for reader in readers):
                    found.append(value)
            if unread and node.results:      # kept for its effect: it must run all the same
                found.append(node.results[0])
        return found


def fuse(flow: Flow) -> Groups:
    """The groups of a graph."""
    groups = Groups(flow)
    for node in flow.graph.nodes:
        role = flow.role[node]
        if role in (Role.VIEW, Role.CONSTANT):
            continue
        if role in SINGLE:
            groups.open(node, role)
        elif role is Role.TEMPLATE:
            group = groups.open(node, role)
            group.capability = templates.match(node)
            if group.capability is not None and group.capability.epilogue:
                group.wanted = epilogue.follow(flow, node)
        elif not (role is Role.POINTWISE and _join_epilogue(groups, node)):
            _draw_in(groups, groups.open(node, role))
    return groups


def _join_epilogue(groups: Groups, node: Node) -> bool:
    """Make `node` part of the epilogue of a template it reads, if one wants it and no cycle arises."""
    for group in groups.producers(node):
        if node not in group.wanted or not _sees_all(groups.flow, group, node):
            continue
        single = groups.open(node, Role.POINTWISE)
        if groups.joinable(group, single):
            groups.merge(group, single, [*group.nodes, node])
            return True
        groups.drop(single)
    return False


def _sees_all(flow: Flow, group: Group, node: Node) -> bool:
    """Did everything between the anchor and `node` join the group?"""
    return all(flow.producer(value) in group.nodes for value in node.inputs if flow.producer(value) in group.wanted)


def _draw_in(groups: Groups, group: Group) -> None:
    """Merge `group`, which has just been opened, with the groups it reads."""
    flow = groups.flow
    for producer in groups.producers(group.nodes[0]):
        if producer.capability is not None or producer.role in SINGLE or producer.number not in groups.alive:
            continue
        if len(producer.nodes) + len(group.nodes) > MOST_NODES or not groups.joinable(producer, group):
            continue
        nodes = sorted([*producer.nodes, *group.nodes], key=flow.position.__getitem__)
        outputs = groups.escaping(nodes, set(nodes))
        domain = rows.domain(flow, nodes, outputs)
        if domain is not None and recompute.affordable(flow, nodes, outputs):
            groups.merge(group, producer, nodes)
            group.domain = domain
    if group.domain is None:
        outputs = groups.escaping(group.nodes, set(group.nodes))
        group.domain = rows.domain(flow, group.nodes, outputs)
