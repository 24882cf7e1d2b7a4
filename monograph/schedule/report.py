"""Figures about a schedule: fusion rate, memory against eager, what each item holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monograph.ir import dtypes
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ir.types import TensorType
from monograph.schedule.flow import size
from monograph.schedule.kernel import Fused, Item, LibraryCall, Schedule, Template

__all__ = ["Line", "eager_peak", "fusion_rate", "lines", "working_nodes"]


@dataclass(frozen=True, slots=True)
class Line:
    """One item, for people: its kind, the ops in it, the user's lines behind them, bytes it writes."""

    kind: str
    ops: tuple[str, ...]
    sources: tuple[str, ...]
    bytes: int


def working_nodes(item: Item, graph: Graph | None = None) -> list[Node]:
    """The nodes of an item that compute: no views, no constants, and, given the graph, none that scheduling added."""
    own = set(graph.nodes) if graph is not None else None
    return [
        node for node in item.nodes
        if not node.op.has(Trait.VIEW) and not node.op.has(Trait.FACTORY) and (own is None or node in own)
    ]


def fusion_rate(schedule: Schedule, graph: Graph | None = None) -> float:
    """The share of non-view nodes that run in a kernel with others or in a template's epilogue.

    `graph` is what was scheduled: nodes it does not have (copies into outputs) are left out.
    A library call or a template without an epilogue counts as unfused.
    """
    together: set[Node] = set()
    every: set[Node] = set()
    for item in schedule.items:
        nodes = working_nodes(item, graph)
        every.update(nodes)
        if len(nodes) > 1:
            together.update(nodes)
    return len(together) / len(every) if every else 1.0


def lines(schedule: Schedule) -> list[Line]:
    """What each item holds, in the order they run."""
    return [_line(item) for item in schedule.items]


def _line(item: Item) -> Line:
    nodes = working_nodes(item) or item.nodes
    kind = {Fused: "kernel", LibraryCall: "library"}.get(type(item)) or (
        item.name if isinstance(item, Template) else "")
    sources = tuple(dict.fromkeys(node.loc.short for node in nodes if node.loc is not None))
    written = sum(_bytes(value) for value in item.outputs)
    return Line(kind, tuple(node.op.name for node in nodes), sources, written)


def _bytes(value: Value) -> int:
    if not isinstance(value.type, TensorType) or not value.type.is_static:
        return 0
    return size(value) * dtypes.itemsize(value.type.dtype)


def eager_peak(graph: Graph) -> int:
    """Bytes of intermediates alive at once, at most, when eager runs a captured graph op by op.

    Like Python's reference counts: a tensor dies after its last use, a storage with its last view. Inputs and outputs
    do not count, as they do not in the arena. For the graph before decomposition; what Python's frames keep alive
    beyond the last use is not known here, so eager really needs this or more.
    """
    storage: dict[Value, Value] = {}
    for node in graph.nodes:
        for result in node.results:
            storage[result] = storage.get(node.inputs[0], node.inputs[0]) if node.op.has(Trait.VIEW) else result
    last: dict[Value, int] = {}
    for at, node in enumerate(graph.nodes):
        for value in _touched(node):
            last[storage.get(value, value)] = at
    kept = {storage.get(value, value) for value in graph.outputs}
    dying: dict[int, list[Value]] = {}
    for value, at in last.items():
        if value not in kept:
            dying.setdefault(at, []).append(value)
    live = peak = 0
    for at, node in enumerate(graph.nodes):
        if not node.op.has(Trait.VIEW):
            live += sum(_bytes(result) for result in node.results if result not in kept)
        peak = max(peak, live)
        live -= sum(_bytes(value) for value in dying.get(at, ()) if value.node is not None)
    return peak


def _touched(node: Node) -> Iterable[Value]:
    yield from node.results
    yield from node.inputs
    for region in node.regions:
        yield from region.free_values()
