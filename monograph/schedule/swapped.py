"""Transpositions moved behind what does not mind them, so that rows stay rows.

    f(transpose(x, i, j), y)  ->  transpose(f(x, y'), i, j)

for tensors with a size known only at run time, where f is pointwise, or folds, cuts or joins along other dims. y' is y
transposed, which must cost nothing: y is a transposition too, or does not have both dims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ir.op import Trait
from monograph.ir.symbolic import Dim
from monograph.ir.types import TensorType
from monograph.ops import families, table
from monograph.schedule import roles
from monograph.schedule.kernel import is_held

__all__ = ["sink"]

Swap: TypeAlias = tuple[int, int]       # two dims, counted from the end: ascending
Shape: TypeAlias = tuple[Dim, ...]


def sink(graph: Graph) -> bool:
    """Move transpositions of held tensors down; those that nobody reads any more go."""
    sinking = _Sinking(graph)
    for node in list(graph.nodes):
        node.operands = tuple(map_operand(operand, sinking.current) for operand in node.operands)
        sinking.visit(node)
    if not sinking.moved:
        return False
    graph.nodes[:] = sinking.nodes
    graph.replace(sinking.moved)
    _drop_unread(graph, sinking.passed)
    return True


class _Sinking:
    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.moved: dict[Value, Value] = {}
        self.passed: set[Node] = set()          # transpositions that something was moved past
        self.turned: dict[tuple[Value, Swap], Value] = {}

    def current(self, value: Value) -> Value:
        return self.moved.get(value, value)

    def visit(self, node: Node) -> None:
        """Append `node`, or what takes its place."""
        swap = next((found for value in node.inputs if (found := _swap(value.node)) and is_held(value)), None)
        if swap is None or not self.take(node, swap):
            self.nodes.append(node)

    def take(self, node: Node, swap: Swap) -> bool:
        if _swap(node) == swap:         # back again
            self.pass_by(node.inputs[0])
            self.moved[node.result] = node.inputs[0].node.inputs[0]     # type: ignore[union-attr]
            return True
        if not _is_indifferent(node, swap):
            return False
        others = {value: self.other(value, swap) for value in node.inputs}
        if None in others.values():
            return False
        for value in node.inputs:
            self.pass_by(value)

        def turned(value: Value) -> Value:
            return others[value]() if value in others else value        # type: ignore[misc]

        operands = tuple(map_operand(operand, turned) for operand in node.operands)
        shape = _swapped(node.result.tensor.shape, swap)
        inner = Node(node.op, operands, node.attributes, [TensorType(node.result.tensor.dtype, shape)], loc=node.loc)
        inner.result.name = node.result.name
        self.nodes.append(inner)
        self.moved[node.result] = self.transpose(inner.result, swap, node)
        return True

    def pass_by(self, value: Value) -> None:
        if value.node is not None and _swap(value.node) is not None:
            self.passed.add(value.node)

    def other(self, value: Value, swap: Swap) -> Callable[[], Value] | None:
        """What makes `value` transposed; None where that is no mere view."""
        if _swap(value.node) == swap:
            return lambda: value.node.inputs[0]         # type: ignore[union-attr]
        shape = value.tensor.shape
        sizes = [shape[d] if -d <= len(shape) else 1 for d in swap]
        if sizes == [1, 1]:
            return lambda: value
        return (lambda: self.thin(value, swap)) if 1 in sizes else None

    def thin(self, value: Value, swap: Swap) -> Value:
        """`value`, which has one of the dims, with the other in its place."""
        key = value, swap
        if key not in self.turned:
            wide = value
            while wide.tensor.rank < -swap[0]:
                wide = self.view("aten.unsqueeze.default", wide, {"dim": 0}, (1, *wide.tensor.shape))
            self.turned[key] = self.transpose(wide, swap, value.node)
        return self.turned[key]

    def transpose(self, value: Value, swap: Swap, at: Node | None) -> Value:
        first, second = (d + value.tensor.rank for d in swap)
        shape = _swapped(value.tensor.shape, swap)
        return self.view("aten.transpose.int", value, {"dim0": first, "dim1": second}, shape, at)

    def view(self, name: str, value: Value, attributes: dict[str, int], shape: Shape,
             at: Node | None = None) -> Value:
        kind = TensorType(value.tensor.dtype, shape)
        node = Node(table.lookup(name), (value,), attributes, [kind], loc=at.loc if at is not None else None)
        self.nodes.append(node)
        return node.result


def _swap(node: Node | None) -> Swap | None:
    """The two dims that `node` exchanges, if that is all it does."""
    if node is None or not node.op.has(Trait.VIEW):
        return None
    attributes, rank = node.attributes, node.inputs[0].tensor.rank
    if "dim0" in attributes:
        first, second = sorted(attributes[name] % rank for name in ("dim0", "dim1"))
        return (first - rank, second - rank) if first != second else None
    dims = attributes.get("dims")
    if not isinstance(dims, tuple) or len(dims) != rank:
        return None
    dims = tuple(d % rank for d in dims)
    moved = [d for d in range(rank) if dims[d] != d]
    return (moved[0] - rank, moved[1] - rank) if len(moved) == 2 else None


def _swapped(shape: Shape, swap: Swap) -> Shape:
    dims = list(shape)
    dims[swap[0]], dims[swap[1]] = dims[swap[1]], dims[swap[0]]
    return tuple(dims)


def _is_indifferent(node: Node, swap: Swap) -> bool:
    """Does `node` treat the two dims alike, and leave all dims where they are?"""
    if node.regions or not node.is_pure or len(node.results) != 1 or not isinstance(node.result.type, TensorType):
        return False
    if any(not isinstance(value.type, TensorType) or value.type.device != "cpu" for value in node.inputs):
        return False
    rank, family, attributes = node.result.tensor.rank, families.family_of(node.op.name), node.attributes
    if family == "pointwise":
        return -swap[0] <= rank and not any(map(edit.symbols_in, node.operands))
    if any(value.tensor.rank != rank for value in node.inputs):
        return False
    if family == "map":
        dims = roles.moved_dims(node)
    elif family == "reduction" and attributes.get("keepdim") is True:
        dims = roles.reduced_dims(node)
    elif family == "view" and isinstance(attributes.get("dim"), int):
        dims = (attributes["dim"],)
    else:
        return False
    return dims is not None and not {d % rank - rank for d in dims} & set(swap)


def _drop_unread(graph: Graph, nodes: set[Node]) -> None:
    """Remove those of `nodes` that nobody reads, last first: they may read one another."""
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.reads)
    unread = set()
    for node in reversed(graph.nodes):
        if node in nodes and not uses[node.result]:
            unread.add(node)
            uses.subtract(node.reads)
    edit.erase(graph, unread)
