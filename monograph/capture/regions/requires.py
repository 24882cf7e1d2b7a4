"""Which results require grad in a call: one that does on some path only does where that path was taken.

    flag(result) -> True | False | a bool[] value      recorded at the end of the graph

Autograd's graph of the trace knows it but for regions, on whose node all results of any branch hang. There the branch
tells: whether what it leaves depends, past `aten.detach`, on something that the region reads and that requires grad. A
loop carries it where it depends on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.regions.rewritten import CONTINUES
from monograph.ir.graph import Graph, Node, Value
from monograph.ops import own
from monograph.ops.build import Builder
from monograph.ops.flags import Flag, add_flags, all_of, any_of, as_value, behind, by_branch

if TYPE_CHECKING:
    from monograph.capture.regions.gradient import Link

__all__ = ["Requires"]

CUTS = frozenset({"aten.detach.default", "aten.full.default"})


class Requires:
    """`link(node)`: of an autograd node, what it is if it stands for a region, else None."""

    def __init__(self, graph: Graph, link: Any) -> None:
        self.link = link
        self.graph = graph
        self.builder = Builder(graph)
        self.known: dict[tuple[Any, int], Flag] = {}
        self.loops: dict[tuple[Node, frozenset[Value]], list[Flag]] = {}

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
        start = 1 if edge[0].name() == CONTINUES else 0
        return [other for other in edge[0].next_functions[start:] if other[0] is not None]

    def _flag(self, edge: tuple[Any, int]) -> Flag:
        following = self._following(edge)
        link: Link | None = self.link(edge[0])
        if not following:                    # a leaf
            return True
        if link is None:
            return any_of([self.known[other] for other in following], self.builder)
        groups: dict[Flag, set[Value]] = {}      # what the region reads, by whether it requires grad
        for value, other in zip(link.inputs, edge[0].next_functions, strict=False):      # then come tensors written
            groups.setdefault(self.known.get(other, False), set()).add(value)
        groups.pop(False, None)
        flags = []
        for flag, values in groups.items():
            flags.append(all_of([flag, self._reads(link.node, link.values[edge[1]].index, values)], self.builder))
        return any_of(flags, self.builder)

    def _reads(self, node: Node, index: int, values: set[Value]) -> Flag:
        """Whether a result of a region depends on one of the values that it reads."""
        if node.op.name == "mono.cond":
            return _Reads(dict.fromkeys(values, True)).of_cond(node, index, self.builder)
        key = node, frozenset(values)
        if key not in self.loops:
            self.loops[key] = _Reads(dict.fromkeys(values, True)).of_loop(node, self.graph)
        return self.loops[key][index]


class _Reads:
    """Whether values in a graph depend on one of those known to require grad, past what cuts a history: True, False, or
    a value of the graph that tells. `sure`: True where they do on every path, False where they do not on some, nothing
    is recorded; `unsure`: True where they do on some path."""

    def __init__(self, known: Mapping[Value, Flag], mode: str = "tells") -> None:
        self.mode = mode
        self.known = {value: self._settled(flag) for value, flag in known.items()}

    def _settled(self, flag: Flag) -> Flag:
        return flag if isinstance(flag, bool) or self.mode == "tells" else self.mode == "unsure"

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
            operands = [] if cut or node is None else [other for other in _read(node) if _is_followed(other)]
            missing = [operand for operand in operands if operand not in self.known]
            if missing:
                pending += missing
                continue
            pending.pop()
            self.known[current] = False if cut or node is None else self._flag(current, node, operands, graph)
        return self.known[value]

    def _flag(self, value: Value, node: Node, operands: list[Value], graph: Graph) -> Flag:
        if all(self.known[operand] is False for operand in operands):
            return False
        if node.op.name == "mono.cond":
            return self.of_cond(node, value.index, behind(node, graph))
        if node.op.name == "mono.while":
            return self.of_loop(node, graph)[value.index]
        return any_of([self.known[operand] for operand in operands], behind(node, graph))

    def of_cond(self, node: Node, index: int, builder: Builder) -> Flag:
        """The same of a result of a cond, by its predicate; `builder` stands behind it."""
        then, otherwise = (_Reads(self.known, self.mode).of(region.outputs[index], region) for region in node.regions)
        if self.mode == "tells":
            return by_branch(node, then, otherwise, builder)
        return (then or otherwise) if self.mode == "unsure" else (then and otherwise)

    def of_loop(self, node: Node, graph: Graph) -> list[Flag]:
        """The same of all results of a loop: what does for some numbers of iterations only is carried beside it."""
        body, count = node.regions[1], len(node.inputs)
        starts = [self.known.get(value, False) for value in node.inputs]
        never, always = self._ever(body, starts), self._always(body, starts)
        if self.mode != "tells":
            return [k not in never if self.mode == "unsure" else k in always for k in range(count)]
        flags: list[Flag] = [k in always for k in range(count)]
        carried = [k for k in range(count) if k not in never and k not in always]
        if not carried:
            return flags
        inputs, results = add_flags(node, [as_value(starts[k], graph, node.loc, node) for k in carried])
        known: dict[Value, Flag] = {body.inputs[k]: flags[k] for k in range(count)}
        known |= {body.inputs[k]: flag for k, flag in zip(carried, inputs, strict=True)}
        reads = _Reads(self.known | known)
        body.outputs += [as_value(reads.of(body.outputs[k], body), body, node.loc) for k in carried]
        for k, result in zip(carried, results, strict=True):
            flags[k] = result
        return flags

    def _ever(self, body: Graph, starts: list[Flag]) -> set[int]:
        """The carries that never depend."""
        found = {k for k, start in enumerate(starts) if start is not False}
        while True:
            reads = _Reads(self.known | {taken: k in found for k, taken in enumerate(body.inputs)}, "unsure")
            more = {k for k, given in enumerate(body.outputs) if _is_followed(given) and reads.of(given, body)} - found
            if not more:
                return set(range(len(starts))) - found
            found |= more

    def _always(self, body: Graph, starts: list[Flag]) -> set[int]:
        """The carries that depend after any number of iterations."""
        found = {k for k, start in enumerate(starts) if start is True}
        while True:
            reads = _Reads(self.known | {taken: k in found for k, taken in enumerate(body.inputs)}, "sure")
            left = {k for k in found if reads.of(body.outputs[k], body)}
            if left == found:
                return found
            found = left


def _read(node: Node) -> Iterable[Value]:
    """What a node's results are computed from, as autograd sees it."""
    if node.op is not own.CUSTOM_VJP:
        return node.reads
    given = node.operands[1]
    assert isinstance(given, tuple)
    return [value for value in given if isinstance(value, Value)]


def _is_followed(value: Value) -> bool:
    dtype = getattr(value.type, "dtype", None)
    return dtype is not None and (dtype.is_floating_point or dtype.is_complex)
