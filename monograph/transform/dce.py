"""Dead code elimination."""

from __future__ import annotations

from monograph.ir.edit import symbols_in
from monograph.ir.graph import Graph, Source, Value

__all__ = ["dce"]


def dce(graph: Graph) -> bool:
    """Remove nodes whose results nobody uses and that have no effect, in regions too.

    Inputs stay, except derived ones: an unused one goes together with what the prologue did for it.
    """
    changed = _sweep(graph, set(graph.outputs), set())
    if graph.prologue is not None:
        changed |= _drop_unused_derived(graph)
    if graph.prologue is not None:
        changed |= _sweep(graph.prologue, set(graph.prologue.outputs), set())
    return changed


def _sweep(graph: Graph, live: set[Value], symbols: set[str]) -> bool:
    """Backwards over the block; `live` and `symbols` are what is used after it, and grow to what it uses."""
    kept = []
    changed = False
    for value in graph.outputs:
        symbols |= symbols_in(value.type)
    for node in reversed(graph.nodes):
        binds = {symbol for result in node.results for symbol in symbols_in(result.type)}
        if node.is_pure and not live.intersection(node.results) and not binds & symbols:
            changed = True
            continue
        for region in node.regions:
            inner = set(region.outputs)
            changed |= _sweep(region, inner, symbols)
            live |= region.free_values() | inner
        live.update(node.inputs)
        symbols |= binds | symbols_in(node.operands) | symbols_in(tuple(node.attributes.values()))
        kept.append(node)
    if changed:
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
