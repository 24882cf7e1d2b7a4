"""From groups of nodes to items: what each reads, what it stores, and the views in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monograph.ir import edit
from monograph.ir.graph import Node, Value
from monograph.schedule.block import Control, Part
from monograph.schedule.flow import Flow, size
from monograph.schedule.fuse import ALONE, Group, Groups
from monograph.schedule.kernel import Domain, Fused, LibraryCall, Template, is_held
from monograph.schedule.roles import Role

__all__ = ["closure", "inputs_of", "items"]


def items(flow: Flow, groups: Groups, handed: Sequence[Value] = ()) -> list[Part]:
    """One item per group, each after those it reads; operands of templates and library calls not yet bound. `handed`:
    what a region hands on as it is."""
    done: dict[Group, None] = {}
    for first in sorted(groups.alive.values(), key=lambda group: flow.position[group.nodes[0]]):
        stack = [first]
        while stack:
            group = stack[-1]
            before = [] if group in done else [g for g in groups.reads(group) if g not in done]
            if before:
                stack.extend(before)
            else:
                done[stack.pop()] = None
    stored = {group: groups.escaping(group.nodes, set(group.nodes)) for group in done}
    called = {flow.base_of(value) for group in done if group.role in ALONE for value in group.nodes[0].reads}
    called.update(handed)
    return [_item(flow, group, stored[group]) for group in done if not _is_empty(group, stored[group], called)]


def _is_empty(group: Group, outputs: list[Value], called: set[Value]) -> bool:
    """A kernel that stores no element, for nobody but other kernels: a library call wants a tensor all the same, and
    so do regions, which may have some."""
    if group.capability is not None or group.role in ALONE or not called.isdisjoint(outputs):
        return False
    return not any(map(size, outputs))


def _item(flow: Flow, group: Group, outputs: list[Value]) -> Part:
    if group.role in ALONE:
        node = group.nodes[0]
        reads = list(dict.fromkeys(flow.base_of(value) for value in node.reads))
        if group.role is Role.LIBRARY:
            telling = [value for value in node.results if is_held(value) and edit.symbols_in(value.type)]
            return LibraryCall(node, reads, list(dict.fromkeys([*outputs, *telling])))
        stored = [value for value in reads if value.node is None or flow.role[value.node] is not Role.CONSTANT]
        return Control(node, stored, list(node.results))
    nodes = closure(flow, group.nodes)
    inputs = inputs_of(flow, nodes)
    if group.capability is not None:
        return Template(group.capability.template, group.nodes[0], nodes, inputs, outputs)
    return Fused(nodes, inputs, outputs, group.domain or Domain(()))


def closure(flow: Flow, nodes: Sequence[Node]) -> list[Node]:
    """`nodes` with the views and constants they read, in the order of the graph."""
    found = dict.fromkeys(nodes)
    stack = [value for node in nodes for value in node.inputs]
    while stack:
        node = stack.pop().node
        if node is not None and node not in found and flow.role[node] in (Role.VIEW, Role.CONSTANT):
            found[node] = None
            stack.extend(node.inputs)
    return sorted(found, key=lambda node: flow.position[node])


def inputs_of(flow: Flow, nodes: Iterable[Node]) -> list[Value]:
    """The values `nodes` read and do not compute, in order of first use."""
    inside = set(nodes)
    reads = (value for node in nodes for value in node.inputs)
    return list(dict.fromkeys(value for value in reads if value.node is None or value.node not in inside))
