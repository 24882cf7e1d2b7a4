"""Folding of weights-only subgraphs into the prologue.

What depends on weights alone is computed once, when the weights change, instead of at every call:

    %t = aten.mul.Tensor(%weight, %scale)             moves to the prologue
    %y = aten.mm.default(%x, %t)                      reads it as a `derived` input

Regions give theirs too. Views stay where they are, because they cost nothing; so does anything that would grow out of
proportion (see `LIMIT`). Inputs that the program itself writes to (running statistics in training)
change at every call and are no weights here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from monograph.ir.edit import symbols_read
from monograph.ir.graph import Graph, Node, Source, Value, map_operand
from monograph.ir.op import Trait
from monograph.ir.types import TensorType

__all__ = ["fold"]

LIMIT = 1 << 20   # bytes a folded value may always have; beyond, it may not exceed the weights it comes from


def fold(graph: Graph, *, written: Collection[int] = ()) -> bool:
    """Move weights-only subgraphs of `graph` to its prologue. `written`: numbers of inputs the caller's
    boundary writes back to."""
    constant = {
        value for position, (value, source) in enumerate(zip(graph.inputs, graph.sources, strict=True))
        if source.is_weight and position not in written
    }
    nodes = []
    for node in graph.walk():
        if all(value in constant for value in node.inputs) and _foldable(node):
            nodes.append(node)
            constant.update(node.results)
    frontier = _frontier(graph, set(nodes))
    if not frontier:
        return False
    _move(graph, frontier)
    return True


def _foldable(node: Node) -> bool:
    if not node.op.is_pure or node.regions or node.op.has(Trait.SYNC) or symbols_read(node):
        return False
    return all(isinstance(result.type, TensorType) and result.type.is_static for result in node.results)


def _frontier(graph: Graph, nodes: set[Node]) -> list[Value]:
    """Values worth keeping: made by folded nodes, read by others, views peeled off."""
    wanted: dict[Value, None] = {}
    for block in _blocks(graph):
        for node in block.nodes:
            if node not in nodes:
                for value in node.inputs:
                    _peel(value, nodes, wanted)
        for value in block.outputs:
            _peel(value, nodes, wanted)
    return list(wanted)


def _blocks(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.walk():
        yield from node.regions


def _peel(value: Value, nodes: set[Node], wanted: dict[Value, None]) -> None:
    """Collect what `value` needs from the folded nodes: through views and factories, which stay, to real work."""
    node = value.node
    if node is None or node not in nodes or value in wanted:
        return
    if node.op.has(Trait.VIEW) or node.op.has(Trait.FACTORY) or _bytes(value) > max(LIMIT, _weight_bytes(node)):
        for operand in node.inputs:
            _peel(operand, nodes, wanted)
    else:
        wanted[value] = None


def _bytes(value: Value) -> int:
    size = value.tensor.nbytes
    assert isinstance(size, int)
    return size


def _weight_bytes(node: Node) -> int:
    """Bytes of the graph inputs that `node` depends on."""
    total, stack, seen = 0, list(node.inputs), set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node is None:
            total += _bytes(value)
        else:
            stack.extend(value.node.inputs)
    return total


def _move(graph: Graph, frontier: list[Value]) -> None:
    prologue = graph.prologue or Graph(name=f"{graph.name}_prologue")
    known: dict[Value, Value] = {}      # value of the graph -> value of the prologue
    by_source = {source: value for source, value in zip(prologue.sources, prologue.inputs, strict=True)}
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        if source.kind == "derived":
            known[value] = prologue.outputs[int(source.path)]

    def enter(value: Value) -> Value:
        if value in known:
            return known[value]
        if value.node is None:
            source = graph.sources[value.index]
            entered = by_source.get(source) or prologue.add_input(value.type, value.name, source)
            by_source[source] = known[value] = entered
            return entered
        copy_into(value.node)
        return known[value]

    def copy_into(node: Node) -> None:
        operands = tuple(map_operand(operand, enter) for operand in node.operands)
        copied = Node(node.op, operands, node.attributes, [result.type for result in node.results], loc=node.loc)
        prologue.append(copied)
        known.update(zip(node.results, copied.results, strict=True))

    mapping = {}
    for value in frontier:
        result = enter(value)
        type_ = TensorType(value.tensor.dtype, value.tensor.shape, value.tensor.device, _contiguous(value.tensor))
        mapping[value] = graph.add_input(type_, value.name, Source("derived", str(len(prologue.outputs))))
        prologue.outputs.append(result)
    graph.prologue = prologue
    outputs = [value for value in graph.outputs]
    graph.replace(mapping)
    graph.outputs[:] = [
        old if old in mapping and old.type != new.type else new
        for old, new in zip(outputs, graph.outputs, strict=True)
    ]


def _contiguous(type_: TensorType) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(type_.shape):
        assert isinstance(size, int)
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
