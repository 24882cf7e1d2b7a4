"""Work that does not belong in a region: what is the same in every iteration, and what both branches do.

Moved are nodes without effects that read nothing a region makes: out of loops, however often they run (a loop that
never starts then costs them once), and out of a cond where both branches have an equal one. Views and constants cost
nothing where they are: they move only with what needs them. Loops, and what tells sizes, stay.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

from monograph.ir import edit
from monograph.ir.edit import symbols_in, symbols_read
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ops.effects import is_pure
from monograph.transform.cse import node_key

__all__ = ["hoist"]


def hoist(graph: Graph) -> bool:
    """Move invariant work out of loops and common work out of branches, innermost regions first."""
    return any(node.regions for node in graph.nodes) and _block(graph, set())


def _block(graph: Graph, outer: Collection[str]) -> bool:
    known = set(outer).union(*(symbols_in(value.type) for value in graph.inputs))
    changed = False
    for node in list(graph.nodes):
        for region in node.regions:
            changed |= _block(region, known)
        if "body" in node.op.regions:
            for region in node.regions:
                moved = _worthwhile(_candidates(region, known), ())
                _move(graph, node, region, moved)
                changed |= bool(moved)
        elif len(node.regions) == 2:
            changed |= _merge(graph, node, known)
        known.update(*(symbols_in(value.type) for value in node.results))
    return changed


def _told(graph: Graph) -> set[str]:
    """The symbols that a block tells."""
    return set().union(*(symbols_in(value.type) for value in graph.inputs), *edit.tellers(graph).values())


def _candidates(region: Graph, known: Collection[str]) -> list[Node]:
    """Nodes that may stand before the region: they need each other and what is outside."""
    inside: set[Value] = set(region.inputs)
    symbols = _told(region).difference(known)
    found = []
    for node in region.nodes:
        if _is_movable(node) and inside.isdisjoint(node.reads) and symbols.isdisjoint(symbols_read(node)):
            found.append(node)
        else:
            inside.update(node.results)
    return found


def _is_movable(node: Node) -> bool:
    if not is_pure(node) or not node.results:
        return False
    nodes = [node, *(inner for region in node.regions for inner in region.walk())]
    return not any(inner.op.has(Trait.SYNC) or "body" in inner.op.regions for inner in nodes)


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


def _merge(graph: Graph, node: Node, known: Collection[str]) -> bool:
    """Nodes that both branches have stand once before them."""
    then, otherwise = node.regions
    by_key: dict[Hashable, Node] = {}
    for inner in _candidates(then, known):
        by_key.setdefault(node_key(inner), inner)
    twins: dict[Node, Node] = {}        # of `then` -> of `otherwise`
    mapping: dict[Value, Value] = {}
    for inner in _candidates(otherwise, known):
        twin = by_key.get(node_key(inner, mapping))
        if twin is not None and twin not in twins:
            twins[twin] = inner
            mapping.update(zip(inner.results, twin.results, strict=True))
    same = {yes.node for yes, no in zip(then.outputs, otherwise.outputs, strict=True) if mapping.get(no) is yes}
    moved = _worthwhile(list(twins), {twin for twin in twins if twin in same})
    moved.sort(key=then.nodes.index)
    _move(graph, node, then, moved)
    edit.erase(otherwise, [twins[inner] for inner in moved])
    otherwise.replace({old: new for inner in moved for old, new in
                       zip(twins[inner].results, inner.results, strict=True)})
    return bool(moved)
