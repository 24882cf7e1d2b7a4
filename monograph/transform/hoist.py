"""Work that does not belong in a region: what is the same in every iteration, and what both branches do.

Moved are nodes without effects that read nothing a region makes: out of loops, however often they run (a loop that
never starts then costs them once), and out of a cond where both branches have an equal one. Views and constants cost
nothing where they are: they move only with what needs them. Loops, and what tells sizes, stay.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

from monograph.ir import edit
from monograph.ir.edit import symbols_in, symbols_named
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ops.effects import is_pure
from monograph.transform.cse import node_key

__all__ = ["hoist"]


def hoist(graph: Graph) -> bool:
    """Move invariant work out of loops and common work out of branches, innermost regions first."""
    if not any(node.regions for node in graph.nodes):
        return False
    hoisting = _Hoisting()
    hoisting.block(graph, set())
    return hoisting.changed


class _Hoisting:
    """What is known of nodes with regions that are done: values they read, symbols they need, whether they may move."""

    def __init__(self) -> None:
        self.changed = False
        self.outer_reads: dict[Node, list[Value]] = {}
        self.needs: dict[Node, set[str]] = {}
        self.movable: dict[Node, bool] = {}
        self.renamed: dict[Value, Value] = {}       # merged since

    def block(self, graph: Graph, outer: Collection[str]) -> None:
        known = set(outer).union(*(symbols_in(value.type) for value in graph.inputs))
        for node in list(graph.nodes):
            for region in node.regions:
                self.block(region, known)
            if "body" in node.op.regions:
                for region in node.regions:
                    moved = _worthwhile(self.candidates(region, known), ())
                    _move(graph, node, region, moved)
                    self.changed |= bool(moved)
            elif len(node.regions) == 2:
                self.changed |= self.merge(graph, node, known)
            if node.regions:
                self.note(node)
            known.update(*(symbols_in(value.type) for value in node.results))

    def note(self, node: Node) -> None:
        reads = dict.fromkeys(node.inputs)
        needs = symbols_named(node)
        for region in node.regions:
            made = set(region.inputs).union(*(inner.results for inner in region.nodes))
            used = [value for inner in region.nodes for value in self.reads(inner)]
            reads.update((value, None) for value in (*used, *region.outputs) if value not in made)
            needs.update(*(symbols_in(value.type) for value in region.inputs), *map(self.symbols, region.nodes))
        self.outer_reads[node] = list(reads)
        self.needs[node] = needs
        inside = [inner for region in node.regions for inner in region.nodes]
        self.movable[node] = "body" not in node.op.regions and all(map(self.may_move, inside))

    def reads(self, node: Node) -> Sequence[Value]:
        if not node.regions:
            return node.inputs
        return [self.renamed.get(value, value) for value in self.outer_reads[node]]

    def symbols(self, node: Node) -> set[str]:
        return self.needs[node] if node.regions else symbols_named(node)

    def may_move(self, node: Node) -> bool:
        if node.regions:
            return self.movable[node]
        return bool(node.results) and not node.op.has(Trait.SYNC) and is_pure(node)

    def candidates(self, region: Graph, known: Collection[str]) -> list[Node]:
        """Nodes that may stand before the region: they need each other and what is outside."""
        inside: set[Value] = set(region.inputs)
        symbols = _told(region).difference(known)
        found = []
        for node in region.nodes:
            if self.may_move(node) and node.results and inside.isdisjoint(self.reads(node)) \
                    and symbols.isdisjoint(self.symbols(node)):
                found.append(node)
            else:
                inside.update(node.results)
        return found

    def merge(self, graph: Graph, node: Node, known: Collection[str]) -> bool:
        """Nodes that both branches have stand once before them."""
        then, otherwise = node.regions
        by_key: dict[Hashable, Node] = {}
        for inner in self.candidates(then, known):
            by_key.setdefault(node_key(inner), inner)
        twins: dict[Node, Node] = {}        # of `then` -> of `otherwise`
        mapping: dict[Value, Value] = {}
        for inner in self.candidates(otherwise, known):
            twin = by_key.get(node_key(inner, mapping))
            if twin is not None and twin not in twins:
                twins[twin] = inner
                mapping.update(zip(inner.results, twin.results, strict=True))
        same = {yes.node for yes, no in zip(then.outputs, otherwise.outputs, strict=True) if mapping.get(no) is yes}
        moved = _worthwhile(list(twins), {twin for twin in twins if twin in same})
        moved.sort(key=then.nodes.index)
        _move(graph, node, then, moved)
        edit.erase(otherwise, [twins[inner] for inner in moved])
        merged = {old: new for inner in moved for old, new in zip(twins[inner].results, inner.results, strict=True)}
        otherwise.replace(merged)
        self.renamed.update(merged)
        return bool(moved)


def _told(graph: Graph) -> set[str]:
    """The symbols that a block tells."""
    return set().union(*(symbols_in(value.type) for value in graph.inputs), *edit.tellers(graph).values())


def _worthwhile(nodes: Sequence[Node], wanted: Iterable[Node]) -> list[Node]:
    """Of `nodes`, those that do real work or are `wanted`, and what these need; in order."""
    chosen = set(wanted)
    needed: set[Value] = set()
    for node in reversed(nodes):
        free = node.op.has(Trait.VIEW) or node.op.has(Trait.FACTORY)
        if node in chosen or not free or not needed.isdisjoint(node.results):
            chosen.add(node)
            needed.update(node.reads)
    return [node for node in nodes if node in chosen]


def _move(graph: Graph, before: Node, region: Graph, nodes: Sequence[Node]) -> None:
    edit.erase(region, nodes)
    edit.insert_before(graph, before, nodes)
