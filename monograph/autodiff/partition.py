"""Split a joint graph into forward and backward.

    joint     inputs + tangents  ->  forward outputs + gradients
    forward   inputs             ->  forward outputs + saved
    backward  saved + tangents   ->  gradients

Whatever the forward outputs need runs forward, and so does every random draw. Whatever depends on
a tangent runs backward. The rest (recorded by derivative formulas that look at forward values only)
runs backward too, from the same saved values. A saved value that is a view is not saved itself: its
base is, and the view is taken again, which costs nothing.

A node with regions goes to one side whole. Numbers that name sizes are saved as tensors (`mono.scalar`) and read
again (`mono.number`), unless a saved value or a tangent tells them by its shape.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from monograph.capture.captured import Captured
from monograph.errors import UnsupportedError
from monograph.ir.edit import copy_node, symbols_in, symbols_read, symbols_told, tellers
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.op import Trait
from monograph.ir.symbolic import Dim, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.ops.build import Builder

__all__ = ["BackwardInput", "Partition", "split"]


@dataclass(frozen=True, slots=True)
class BackwardInput:
    """Where input number k of the backward graph comes from.

    kind    input      input `position` of the forward graph, as it was at the forward call
            output     output `position` of the forward graph
            tangent    gradient of result `position` of the boundary
    """

    kind: Literal["input", "output", "tangent"]
    position: int


@dataclass
class Partition:
    """`gradients[k]` is the number of the forward input that output k of the backward graph is the gradient of.

    After those come the gradients of new leaves, in the order of the results, then flags: `absent[k]` is the output
    that says whether there is no gradient k in this call."""

    forward: Graph
    backward: Graph
    backward_inputs: list[BackwardInput] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    absent: dict[int, int] = field(default_factory=dict)


def split(captured: Captured) -> Partition:
    """Partition the joint graph of a capture. Its forward inputs keep their order and numbers, tangents dropped."""
    joint = captured.joint
    assert joint is not None, "not a joint capture"
    graph = captured.graph
    flow = _Flow(graph)
    results = graph.outputs[:joint.forward_outputs]
    tangents = {graph.inputs[position] for position in joint.tangents.values()}
    ahead = flow.behind(results)
    for node in graph.nodes:
        if node.op.has(Trait.RANDOM) or (not node.is_pure and not flow.reads(node, tangents)):
            ahead |= flow.needs(node) | {node}
    gradients = {position: graph.outputs[output] for position, output in sorted(joint.gradients.items())}
    leaves = [graph.outputs[joint.leaf_gradients[result]] for kind in joint.keeping() for result in kind]
    outputs = [joint.gradients[position] for position in gradients]
    flags = {k: graph.outputs[joint.absent[output]] for k, output in enumerate(outputs) if output in joint.absent}
    acts = [node for node in graph.nodes if node not in ahead and not node.is_pure and not node.results]
    read = [value for node in acts for value in node.reads]
    saved = _saved([*gradients.values(), *leaves, *flags.values(), *read], ahead, graph, tangents)
    return _build(captured, flow, ahead, results, gradients, leaves, flags, saved, acts)


def _maker(value: Value) -> Node:
    assert value.node is not None
    return value.node


class _Flow:
    """What the nodes of a graph need: values, and symbols that other nodes tell."""

    def __init__(self, graph: Graph) -> None:
        self.tellers = {symbol: _maker(value) for value, symbols in tellers(graph, joint=True).items()
                        for symbol in symbols}
        self.symbols = set(self.tellers).union(*(symbols_in(value.type) for value in graph.inputs))

    def before(self, node: Node) -> Iterator[Node]:
        """The nodes that `node` needs itself."""
        yield from (value.node for value in node.reads if value.node is not None)
        for symbol in symbols_read(node):
            teller = self.tellers.get(symbol)
            if teller is not None and teller is not node:
                yield teller

    def behind(self, values: Iterable[Value]) -> set[Node]:
        """The nodes that `values` depend on."""
        found: set[Node] = set()
        stack = [value.node for value in values if value.node is not None]
        stack += [self.tellers[s] for value in values for s in symbols_in(value.type) if s in self.tellers]
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.before(node))
        return found

    def needs(self, node: Node) -> set[Node]:
        """The nodes that `node` depends on."""
        made = list(self.before(node))
        return self.behind(result for other in made for result in other.results).union(made)

    def between(self, known: Container[Value], ahead: set[Node], values: Iterable[Value]) -> set[Node]:
        """The nodes that lead from known values to `values`; symbols that nodes of `ahead` tell are known too."""
        found: set[Node] = set()
        stack = [value for value in values if value not in known]
        while stack:
            node = stack.pop().node
            assert node is not None, "a gradient depends on an input that is neither saved nor a tangent"
            if node in found:
                continue
            found.add(node)
            stack.extend(value for value in node.reads if value not in known)
            tells = [self.tellers[s] for s in symbols_read(node) if s in self.tellers]
            stack.extend(teller.results[0] for teller in tells if teller not in ahead and teller is not node)
        return found

    def reads(self, node: Node, values: set[Value]) -> bool:
        """Whether some of `values` has a part in what `node` does."""
        return any(not values.isdisjoint(inner.reads) for inner in (node, *self.behind(node.reads)))


def _saved(gradients: Iterable[Value], ahead: set[Node], graph: Graph, tangents: set[Value]) -> list[Value]:
    """Forward values the backward reads, views replaced by what they are views of; in program order."""
    wanted: set[Value] = set()
    seen: set[Value] = set()
    stack = list(gradients)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.node
        if node is None:
            if value not in tangents:
                wanted.add(value)
        elif node in ahead and not node.op.has(Trait.VIEW):
            wanted.add(value)
        else:
            stack.extend(node.reads)
    order = {value: number for number, value in enumerate(_definitions(graph))}
    return sorted(wanted, key=order.__getitem__)


def _definitions(graph: Graph) -> Iterable[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.results


def _build(
    captured: Captured, flow: _Flow, ahead: set[Node], results: list[Value], gradients: dict[int, Value],
    leaves: list[Value], flags: dict[int, Value], saved: list[Value], acts: list[Node],
) -> Partition:
    """`acts`: nodes of the backward without results, which check or tell."""
    graph, joint = captured.graph, captured.joint
    assert joint is not None
    tangents = {position: result for result, position in joint.tangents.items()}
    forward = Graph(name=f"{graph.name}_forward", symbols=dict(graph.symbols))
    backward = Graph(name=f"{graph.name}_backward", symbols=dict(graph.symbols))
    known: dict[Value, Value] = {}
    number: dict[Value, int] = {}
    for position, (value, source) in enumerate(zip(graph.inputs, graph.sources, strict=True)):
        if position not in tangents:
            number[value] = len(forward.inputs)
            known[value] = forward.add_input(value.type, value.name, source)
    _copy(graph, forward, known, ahead)
    forward.outputs = [known[value] for value in results]

    partition = Partition(forward, backward)
    replayed: dict[Value, Value] = {}

    def replay(value: Value, origin: BackwardInput, type: Type) -> None:
        partition.backward_inputs.append(origin)
        replayed[value] = backward.add_input(type, value.name, Source("saved", str(len(replayed))))

    for value in saved:
        if not isinstance(value.type, TensorType):
            continue        # a number: its symbol is saved
        if value.node is None:
            replay(value, BackwardInput("input", number[value]), value.type)
        elif value in results:
            position = results.index(value)
            replay(value, BackwardInput("output", position), forward.outputs[position].type)
        else:
            known[value].type = _with_strides(value.tensor)
            replay(value, BackwardInput("output", len(forward.outputs)), known[value].type)
            forward.outputs.append(known[value])
    wanted = [*gradients.values(), *leaves, *flags.values()]
    partition.absent = {k: len(gradients) + len(leaves) + i for i, k in enumerate(flags)}
    given = {*replayed, *(value for value in saved if not isinstance(value.type, TensorType))}
    read = [value for node in acts for value in node.reads]
    later = flow.between(given | {graph.inputs[position] for position in tangents}, ahead, [*wanted, *read]) | {*acts}
    given_types = [*(value.type for value in backward.inputs), *(graph.inputs[position].type for position in tangents)]
    needed = flow.symbols & set().union(*map(symbols_read, later), *map(symbols_in, given_types))
    shown = set().union(*map(symbols_told, given_types))
    for value in backward.inputs:
        value.type = _loose(value.type, shown, backward)
    tellers = {node for node in flow.tellers.values() if node in later}
    told = shown.union(*(symbols_told(value.type) for node in tellers for value in node.results))
    numbers = {value.type.symbol: value for value in saved if isinstance(value.type, ScalarType)}
    _save_symbols(graph, partition, replayed, numbers, needed - told)
    for position, result in tangents.items():
        value = graph.inputs[position]
        partition.backward_inputs.append(BackwardInput("tangent", result))
        replayed[value] = backward.add_input(_loose(value.type, shown, backward), value.name,
                                             Source("tangent", str(result)))
    _copy(graph, backward, replayed, later)
    backward.outputs = [replayed[value] for value in wanted]
    partition.gradients = [number[graph.inputs[position]] for position in gradients]
    return partition


def _save_symbols(
    graph: Graph, partition: Partition, replayed: dict[Value, Value], numbers: dict[str | None, Value],
    missing: set[str],
) -> None:
    """Save the numbers that the backward reads, and those behind the symbols that nothing it is given tells."""
    forward, backward = partition.forward, partition.backward
    if None in numbers:
        raise UnsupportedError("the gradient reads a number computed at run time", loc=_maker(numbers[None]).loc,
                               why="only tensors are saved for the backward", hint="keep the number in a tensor")
    for symbol in sorted(missing.union(name for name in numbers if name is not None)):
        kept = Builder(forward).call("mono.scalar", graph.symbols[symbol])
        kept.type = replace(kept.type, strides=())
        partition.backward_inputs.append(BackwardInput("output", len(forward.outputs)))
        forward.outputs.append(kept)
        given = backward.add_input(kept.type, symbol, Source("saved", str(len(backward.inputs))))
        told_again = Builder(backward).call("mono.number", given, symbol=symbol)
        if symbol in numbers:
            replayed[numbers[symbol]] = told_again


def _copy(source: Graph, target: Graph, known: dict[Value, Value], wanted: Container[Node]) -> None:
    """Copy the wanted nodes, in order; `known` maps values of `source` to values of `target` and grows."""
    for node in source.nodes:
        if node in wanted:
            target.append(copy_node(node, known))


def _loose(type: Type, shown: Collection[str], graph: Graph) -> Type:
    """The type of an input, with symbols of its own for sizes of which not all symbols are shown by inputs."""
    if not isinstance(type, TensorType) or symbols_in(type) <= set(shown):
        return type
    shape: list[Dim] = []
    for dim in type.shape:
        if symbols_in(dim) <= set(shown):
            shape.append(dim)
        else:
            symbol = Symbol(f"given{len(graph.symbols)}")
            graph.symbols[symbol.name] = symbol
            shape.append(symbol)
    return TensorType(type.dtype, tuple(shape), type.device)


def _with_strides(type_: TensorType) -> TensorType:
    """The type with row-major strides, where it has none."""
    if type_.strides is not None:
        return type_
    strides, step = [], 1
    for size in reversed(type_.shape):
        strides.append(step)
        step = step * max(size, 1) if isinstance(size, int) else step * size   # type: ignore[assignment]
    return TensorType(type_.dtype, type_.shape, type_.device, tuple(reversed(strides)))
