"""Small surgery on graphs that passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from monograph.ir import symbolic
from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ir.symbolic import Dim, Expr, Sum, Symbol, free_symbols
from monograph.ir.types import ScalarType, TensorType, Type

__all__ = [
    "clone", "copy_node", "erase", "insert_before", "is_sorted", "move_before", "position", "sort", "substitute",
    "symbols_in", "symbols_named", "symbols_read", "symbols_told", "tellers",
]


def symbols_in(entry: object) -> set[str]:
    """Names of the symbols in an attribute, operand slot, Dim or type (values stand for nothing here)."""
    found: set[str] = set()
    _collect(entry, found)
    return found


def _collect(entry: object, found: set[str]) -> None:
    if isinstance(entry, tuple):
        for part in entry:
            if type(part) is not int:
                _collect(part, found)
    elif isinstance(entry, Expr):
        found.update(free_symbols(entry))
    elif isinstance(entry, TensorType):
        _collect(entry.shape, found)
        _collect(entry.strides, found)
    elif isinstance(entry, ScalarType) and entry.symbol is not None:
        found.add(entry.symbol)


def symbols_told(type: Type) -> set[str]:
    """Names of the symbols that a value of this type tells: sizes s and k * s + c, and a number's own."""
    if isinstance(type, ScalarType):
        return {type.symbol} if type.symbol is not None else set()
    sizes = [*type.shape, *(type.strides or ())]
    alone = [free_symbols(dim) for dim in sizes if isinstance(dim, (Symbol, Sum))]
    return set().union(*(names for names in alone if len(names) == 1))


def symbols_named(node: Node) -> set[str]:
    """Names of the symbols in a node's operands, attributes and the types of its results; regions aside."""
    found: set[str] = set()
    _collect(node.operands, found)
    for attribute in node.attributes.values():
        _collect(attribute, found)
    for value in node.results:
        _collect(value.type, found)
    return found


def symbols_read(node: Node) -> set[str]:
    """Names of the symbols that running `node` needs: its own, those of its regions and of what these take."""
    found = symbols_named(node)
    for region in node.regions:
        found.update(*(symbols_in(value.type) for value in region.inputs), *map(symbols_read, region.nodes))
    return found


def tellers(graph: Graph, known: Iterable[str] = (), *, joint: bool = False) -> dict[Value, set[str]]:
    """The results in this block that tell symbols, with the symbols: those of their types that nothing before has
    told. `known` are those of the blocks around; in a `joint` graph tangents come after everything of the forward."""
    given = [value for position, value in enumerate(graph.inputs)
             if not (joint and graph.sources[position].kind == "tangent")]
    seen = set(known).union(*(symbols_in(value.type) for value in given))
    found: dict[Value, set[str]] = {}
    for node in graph.nodes:
        for value in node.results:
            new = symbols_in(value.type) - seen
            if new:
                found[value] = new
                seen |= new
    return found


def substitute(graph: Graph, env: Mapping[str, Dim]) -> None:
    """Write `env[s]` for every symbol `s`, in this block and its regions: in operands, attributes and types."""
    if not env:
        return

    def within(entry: Any) -> Any:
        if isinstance(entry, Expr):
            return symbolic.substitute(entry, env)
        return tuple(map(within, entry)) if isinstance(entry, tuple) else entry

    def retype(values: Iterable[Value]) -> None:
        for value in values:
            if isinstance(value.type, TensorType):
                value.type = replace(value.type, shape=within(value.type.shape), strides=within(value.type.strides))

    for node in graph.walk():
        node.operands = within(node.operands)
        node.attributes = {name: within(attribute) for name, attribute in node.attributes.items()}
        retype(node.results)
        for region in node.regions:
            retype(region.inputs)


def position(graph: Graph, node: Node) -> int:
    """The place of `node` among the nodes of `graph`; ValueError when it is not there."""
    for place, other in enumerate(graph.nodes):
        if other is node:
            return place
    raise ValueError(f"{node} is not in graph {graph.name}")


def insert_before(graph: Graph, anchor: Node, nodes: Iterable[Node]) -> None:
    """Put `nodes`, in their order, right before `anchor`."""
    place = position(graph, anchor)
    graph.nodes[place:place] = list(nodes)


def move_before(graph: Graph, node: Node, anchor: Node) -> None:
    """Take `node` out and put it right before `anchor`."""
    del graph.nodes[position(graph, node)]
    insert_before(graph, anchor, [node])


def erase(graph: Graph, nodes: Iterable[Node]) -> None:
    """Take nodes out of this block; nobody may use their results any more."""
    gone = {id(node) for node in nodes}
    graph.nodes[:] = [node for node in graph.nodes if id(node) not in gone]


def is_sorted(graph: Graph) -> bool:
    """Whether every value made by a node of this block is made before it is used."""
    mine = {value for node in graph.nodes for value in node.results}
    seen: set[Value] = set()
    for node in graph.nodes:
        if any(value in mine and value not in seen for value in _uses(node)):
            return False
        seen.update(node.results)
    return True


def sort(graph: Graph) -> None:
    """Order the nodes so that definitions come before uses, otherwise keeping their order.

    Raises ValueError when nodes depend on each other in a circle.
    """
    maker = {value: node for node in graph.nodes for value in node.results}
    ordered: list[Node] = []
    done: set[int] = set()
    for root in graph.nodes:
        stack = [(root, iter(_uses(root)))]
        open_nodes = {id(root)}
        while stack:
            node, uses = stack[-1]
            needed = next((maker[v] for v in uses if v in maker and id(maker[v]) not in done), None)
            if id(node) in done or needed is None:
                stack.pop()
                open_nodes.discard(id(node))
                if id(node) not in done:
                    done.add(id(node))
                    ordered.append(node)
            elif id(needed) in open_nodes:
                raise ValueError(f"{needed} depends on itself")
            else:
                open_nodes.add(id(needed))
                stack.append((needed, iter(_uses(needed))))
    graph.nodes[:] = ordered


def _uses(node: Node) -> list[Value]:
    return [*node.inputs, *(value for region in node.regions for value in region.free_values())]


def copy_node(node: Node, mapping: dict[Value, Value]) -> Node:
    """A copy of `node` on mapped operands, regions copied too; `mapping` learns the new results."""
    def mapped(value: Value) -> Value:
        return mapping.get(value, value)

    operands: list[Operand] = [map_operand(operand, mapped) for operand in node.operands]
    regions = [clone(region, mapping) for region in node.regions]
    copied = Node(node.op, operands, node.attributes, [v.type for v in node.results], regions=regions, loc=node.loc)
    for old, new in zip(node.results, copied.results):
        new.name = old.name
        mapping[old] = new
    return copied


def clone(
    graph: Graph, mapping: dict[Value, Value] | None = None, *, keep: Callable[[Node], bool] = lambda node: True
) -> Graph:
    """A copy of `graph` with values of its own, those of `keep` only; outer values stay unless `mapping` has them.

    `mapping` (old value -> new) is filled in.
    """
    mapping = {} if mapping is None else mapping
    copied = Graph(graph.name, symbols=dict(graph.symbols))
    for position, value in enumerate(graph.inputs):
        source = graph.sources[position] if position < len(graph.sources) else None
        mapping[value] = copied.add_input(value.type, value.name, source)
    for node in graph.nodes:
        if keep(node):
            copied.nodes.append(copy_node(node, mapping))
    copied.outputs = _mapped(graph.outputs, mapping)
    if graph.prologue is not None:
        copied.prologue = clone(graph.prologue)
    return copied


def _mapped(values: Iterable[Value], mapping: Mapping[Value, Value]) -> list[Value]:
    return [mapping.get(value, value) for value in values]
