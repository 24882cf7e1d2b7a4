"""Dead code elimination."""

from __future__ import annotations

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.symbolic import Expr, free_symbols
from monograph.ir.types import ScalarType, TensorType

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
        symbols |= _type_symbols(value)
    for node in reversed(graph.nodes):
        binds = {symbol for result in node.results for symbol in _type_symbols(result)}
        if node.op.is_removable and not live.intersection(node.results) and not binds & symbols:
            changed = True
            continue
        for region in node.regions:
            inner = set(region.outputs)
            changed |= _sweep(region, inner, symbols)
            live |= inner | region.free_values()
        live.update(node.inputs)
        symbols |= binds | _attribute_symbols(node.operands) | _attribute_symbols(tuple(node.attributes.values()))
        kept.append(node)
    if changed:
        graph.nodes[:] = reversed(kept)
    return changed


def _type_symbols(value: Value) -> set[str]:
    if isinstance(value.type, TensorType):
        return _attribute_symbols(value.type.shape)
    if isinstance(value.type, ScalarType) and value.type.symbol is not None:
        return {value.type.symbol}
    return set()


def _attribute_symbols(attribute: object) -> set[str]:
    if isinstance(attribute, Expr):
        return set(free_symbols(attribute))
    if isinstance(attribute, tuple):
        return set().union(*(_attribute_symbols(entry) for entry in attribute))
    return set()


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
