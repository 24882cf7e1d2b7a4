"""Which results require grad in a call: one that does on some path only does where that path was taken.

    flag(result) -> True | False | a bool[] value      recorded at the end of the graph

Autograd's graph of the trace knows it but for regions, on whose node all results of any branch hang. There the branch
tells: whether what it leaves depends, past `aten.detach`, on something that the region reads and that requires grad.
Of what a loop leaves it is taken for granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.ir.graph import Graph, Node, Value
from monograph.ops.build import Builder
from monograph.ops.flags import Flag, all_of, any_of, behind, by_branch

if TYPE_CHECKING:
    from monograph.capture.regions.gradient import Link

__all__ = ["Requires"]

CUTS = frozenset({"aten.detach.default", "aten.full.default"})


class Requires:
    """`link(node)`: of an autograd node, what it is if it stands for a region, else None."""

    def __init__(self, graph: Graph, link: Any) -> None:
        self.link = link
        self.builder = Builder(graph)
        self.known: dict[tuple[Any, int], Flag] = {}

    def of(self, result: torch.Tensor) -> Flag:
        """Whether a result requires grad."""
        start = compat.gradient_edge(result), result.output_nr
        pending = [start]
        while pending:
            edge = pending[-1]
            missing = [other for other in self._following(edge) if other not in self.known]
            if edge in self.known or not missing:
                pending.pop()
                self.known.setdefault(edge, self._flag(edge))
            else:
                pending += missing
        return self.known[start]

    def _following(self, edge: tuple[Any, int]) -> list[tuple[Any, int]]:
        return [other for other in edge[0].next_functions if other[0] is not None]

    def _flag(self, edge: tuple[Any, int]) -> Flag:
        following = self._following(edge)
        link: Link | None = self.link(edge[0])
        if not following:                    # a leaf
            return True
        if link is None or link.node.op.name != "mono.cond":
            return any_of([self.known[other] for other in following], self.builder)
        groups: dict[Flag, set[Value]] = {}      # what the region reads, by whether it requires grad
        for value, other in zip(link.inputs, edge[0].next_functions, strict=True):
            groups.setdefault(self.known.get(other, False), set()).add(value)
        groups.pop(False, None)
        flags = []
        for flag, values in groups.items():
            reads = _Reads(values).of_cond(link.node, link.values[edge[1]].index, self.builder)
            flags.append(all_of([flag, reads], self.builder))
        return any_of(flags, self.builder)


class _Reads:
    """Whether values in a graph depend on one of `wanted`, past what cuts a history: True, False, or a value of the
    graph that tells."""

    def __init__(self, wanted: set[Value]) -> None:
        self.known: dict[Value, Flag] = dict.fromkeys(wanted, True)

    def of(self, value: Value, graph: Graph) -> Flag:
        inside = {result for node in graph.nodes for result in node.results}
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.node
            if current in self.known:
                pending.pop()
                continue
            cut = node is None or current not in inside or node.op.name in CUTS
            operands = [] if cut or node is None else [other for other in node.reads if _is_followed(other)]
            missing = [operand for operand in operands if operand not in self.known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if node is not None and node.op.name == "mono.cond" and not cut:
                self.known[current] = self.of_cond(node, current.index, behind(node, graph))
            else:
                self.known[current] = any(self.known[operand] is not False for operand in operands)
        return self.known[value]

    def of_cond(self, node: Node, index: int, builder: Builder) -> Flag:
        """The same of a result of a cond, by its predicate; `builder` stands behind it."""
        maybe = {value for value, flag in self.known.items() if flag is not False}
        then, otherwise = (_Reads(maybe).of(region.outputs[index], region) for region in node.regions)
        return by_branch(node, then, otherwise, builder)


def _is_followed(value: Value) -> bool:
    dtype = getattr(value.type, "dtype", None)
    return dtype is not None and (dtype.is_floating_point or dtype.is_complex)
