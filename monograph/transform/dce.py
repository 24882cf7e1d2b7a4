"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Collection

from monograph.ir.edit import symbols_in, symbols_read, tellers
from monograph.ir.graph import Graph, Source, Value
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
    while _sweep(graph, set(), (), graph.symbols):
        changed = True
        if not any(node.regions for node in graph.nodes):
            break
    return changed


def _sweep(graph: Graph, symbols: set[str], known: Collection[str], names: Collection[str]) -> bool:
    """Backwards over the block. `symbols` are what is used after it and grow to what it uses; `known`, told outside.
    `names`: all symbols of the graph."""
    live = set(graph.outputs)
    tells: dict[Value, set[str]] = {}
    inside = set(known)
    if names:
        symbols |= set().union(*(symbols_in(value.type) for value in graph.outputs))
        tells = tellers(graph, known)
        inside.update(*(symbols_in(value.type) for value in graph.inputs), *tells.values())     # at the end

    def is_live(result: Value) -> bool:
        return result in live or not symbols.isdisjoint(tells.get(result, ()))

    kept = []
    changed = False
    for node in reversed(graph.nodes):
        if names:
            inside = inside.difference(*(tells.get(result, ()) for result in node.results))
        if is_pure(node) and not any(map(is_live, node.results)):
            changed = True
            continue
        changed |= prune(node, is_live)
        for region in node.regions:
            changed |= _sweep(region, symbols, inside, names)
        live.update(node.reads)
        if names:
            symbols |= symbols_read(node)
        kept.append(node)
    if len(kept) < len(graph.nodes):
        graph.nodes[:] = reversed(kept)
    return changed


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
