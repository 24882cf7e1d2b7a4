"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Collection

from monograph.ir.edit import symbols_in, symbols_named, tellers
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ops.effects import is_pure
from monograph.transform.prune import prune

__all__ = ["dce"]


def dce(graph: Graph) -> bool:
    """Remove nodes whose results nobody uses and that have no effect, in regions too; of nodes with regions, the
    results and carries that nobody uses.

    Inputs stay, except derived ones: an unused one goes together with what the prologue did for it.
    """
    changed = _clean(graph)
    if graph.prologue is not None:
        changed |= _drop_unused_derived(graph)
    if graph.prologue is not None:
        changed |= _clean(graph.prologue)
    return changed


def _clean(graph: Graph) -> bool:
    """Sweep until nothing is left to remove: what dies in a region may free what the blocks around it make."""
    changed = False
    while _Sweep(graph).changed:
        changed = True
        if not any(node.regions for node in graph.nodes):
            break
    return changed


class _Sweep:
    """Backwards over a graph, regions in the place of their node."""

    def __init__(self, graph: Graph) -> None:
        self.changed = False
        self.names = graph.symbols          # where there are none, nothing is looked for
        self.symbols: set[str] = set()      # used after the place of the sweep, or inside it
        self.pure: dict[Node, bool] = {}
        self.block(graph, ())

    def block(self, graph: Graph, known: Collection[str]) -> set[Value]:
        """The values that the block reads from outside. `known`: symbols told outside."""
        live = set(graph.outputs)
        tells: dict[Value, set[str]] = {}
        inside = set(known)
        if self.names:
            self.symbols.update(*(symbols_in(value.type) for value in (*graph.inputs, *graph.outputs)))
            tells = tellers(graph, known)
            inside.update(*(symbols_in(value.type) for value in graph.inputs), *tells.values())     # at the end

        def is_live(result: Value) -> bool:
            return result in live or not self.symbols.isdisjoint(tells.get(result, ()))

        kept = []
        for node in reversed(graph.nodes):
            if self.names:
                inside = inside.difference(*(tells.get(result, ()) for result in node.results))
            if is_pure(node, self.pure) and not any(map(is_live, node.results)):
                self.changed = True
                continue
            self.changed |= prune(node, is_live)
            for region in node.regions:
                live |= self.block(region, inside)
            live.update(node.inputs)
            if self.names:
                self.symbols |= symbols_named(node)
            kept.append(node)
        if len(kept) < len(graph.nodes):
            graph.nodes[:] = reversed(kept)
        return live.difference(graph.inputs, *(node.results for node in kept))


def _drop_unused_derived(graph: Graph) -> bool:
    prologue = graph.prologue
    assert prologue is not None
    used = set(graph.users()) | set(graph.outputs)
    keep = [
        position for position, source in enumerate(graph.sources)
        if source.kind != "derived" or graph.inputs[position] in used
    ]
    if len(keep) == len(graph.inputs):
        return False
    results: list[Value] = []
    inputs: list[Value] = []
    sources: list[Source] = []
    for position in keep:
        value, source = graph.inputs[position], graph.sources[position]
        if source.kind == "derived":
            results.append(prologue.outputs[int(source.path)])
            source = Source("derived", str(len(results) - 1))
        value.index = len(inputs)
        inputs.append(value)
        sources.append(source)
    graph.inputs[:], graph.sources[:] = inputs, sources
    prologue.outputs[:] = results
    if not results:
        graph.prologue = None
    return True
