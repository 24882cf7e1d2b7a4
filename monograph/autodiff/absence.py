"""Gradients that a call may not have: eager leaves None where the path it took read nothing.

    absent(value) -> True | False | a bool[] value

A derivative of regions (`autodiff.regions`) holds zeros for what a branch does not read. From such zeros it
follows which gradients are zero because nothing flows, for the predicates of a call: through a `cond` by its
predicate, through the backward of a loop when it makes no trip, through a sum when all of it is absent, through any
other op when one operand is. The flags are recorded as nodes, each behind the node it tells about; a `cond` gets
results for what only its regions know.
"""

from __future__ import annotations

from collections.abc import Iterator

from monograph.ir.graph import Graph, Node, Value
from monograph.ops.build import Builder
from monograph.ops.flags import Flag, all_of, behind, by_branch, not_

__all__ = ["Absence"]

SUMS = frozenset({"aten.add.Tensor", "aten.sub.Tensor", "aten.stack.default", "aten.cat.default"})


class Absence:
    """Over a recorded graph whose backward are the nodes from number `start` on."""

    def __init__(self, graph: Graph, start: int = 0) -> None:
        self.homes = dict(_homes(graph, start))
        self.known: dict[Value, Flag] = {}

    def of(self, value: Value) -> Flag:
        """Whether a gradient is absent."""
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.node
            if current in self.known:
                pending.pop()
                continue
            operands = [] if node is None or node not in self.homes or node.regions else list(node.inputs)
            missing = [operand for operand in operands if operand not in self.known]
            if missing:
                pending += missing
                continue
            pending.pop()
            self.known[current] = self._flag(current, node, operands)
        return self.known[value]

    def _flag(self, value: Value, node: Node | None, operands: list[Value]) -> Flag:
        if node is None or node not in self.homes:
            return False
        builder = behind(node, self.homes[node])
        if node.op.name == "mono.cond":
            return self._cond(value, node, builder)
        if node.op.name == "mono.while":
            return self._loop(value, node, builder)
        flags = [self.known[operand] for operand in operands]
        if node.op.name in SUMS:
            return all_of(flags, builder)
        return not_(all_of([not_(flag, builder) for flag in flags], builder), builder) if any(
            flag is not False for flag in flags) else False

    def _cond(self, value: Value, node: Node, builder: Builder) -> Flag:
        """By the predicate, what the branch leaves; the zeros that fill a branch are absent."""
        inside = []
        for region in node.regions:
            output = region.outputs[value.index]
            inside.append(_is_filler(output, region) or self.of(output))
        return by_branch(node, *inside, builder)

    def _loop(self, value: Value, node: Node, builder: Builder) -> Flag:
        """The backward of a loop adds to zeros: nothing flows when it makes no trip."""
        carried = node.operands[0]
        assert isinstance(carried, tuple)
        if value.index == 0 or not _is_zeros(carried[value.index]):
            return False
        count = carried[0]
        return builder.call("aten.eq.Scalar", count, 0)


def _homes(graph: Graph, start: int = 0) -> Iterator[tuple[Node, Graph]]:
    """Each node from number `start` on and those in its regions, with the graph that it stands in."""
    for node in graph.nodes[start:]:
        yield node, graph
        for region in node.regions:
            yield from _homes(region)


def _is_zeros(value: Value) -> bool:
    node = value.node
    return node is not None and node.op.name == "aten.full.default" and node.attributes["fill_value"] == 0


def _is_filler(value: Value, region: Graph) -> bool:
    return _is_zeros(value) and value.node in region.nodes
