"""Split a joint graph into forward and backward.

    joint     inputs + tangents  ->  forward outputs + gradients
    forward   inputs             ->  forward outputs + saved
    backward  saved + tangents   ->  gradients

Whatever the forward outputs need runs forward, and so does every random draw. Whatever depends on
a tangent runs backward. The rest (recorded by derivative formulas that look at forward values only)
runs backward too, from the same saved values. A saved value that is a view is not saved itself: its
base is, and the view is taken again, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from monograph.capture.captured import Captured
from monograph.ir.graph import Graph, Node, Source, Value, map_operand
from monograph.ir.op import Trait
from monograph.ir.types import TensorType

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

    After those come the gradients of new leaves, in the order of the results."""

    forward: Graph
    backward: Graph
    backward_inputs: list[BackwardInput] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)


def split(captured: Captured) -> Partition:
    """Partition the joint graph of a capture. Its forward inputs keep their order and numbers, tangents dropped."""
    joint = captured.joint
    assert joint is not None, "not a joint capture"
    graph = captured.graph
    results = graph.outputs[:joint.forward_outputs]
    ahead = _needed(results)
    for node in graph.nodes:
        if node.op.has(Trait.RANDOM) or (node.op.effects and not _depends(node, joint.tangents.values(), graph)):
            ahead |= _needed(node.inputs) | {node}
    gradients = {position: graph.outputs[output] for position, output in sorted(joint.gradients.items())}
    leaves = [graph.outputs[output] for _, output in sorted(joint.leaf_gradients.items())]
    saved = _saved([*gradients.values(), *leaves], ahead, graph, set(joint.tangents.values()))
    return _build(captured, ahead, results, gradients, leaves, saved)


def _needed(values: Iterable[Value]) -> set[Node]:
    """The nodes that `values` depend on."""
    found: set[Node] = set()
    stack = [value.node for value in values if value.node is not None]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        stack.extend(value.node for value in node.inputs if value.node is not None)
    return found


def _depends(node: Node, positions: Iterable[int], graph: Graph) -> bool:
    tangents = {graph.inputs[position] for position in positions}
    return any(value in tangents for inner in (node, *_needed(node.inputs)) for value in inner.inputs)


def _saved(gradients: Iterable[Value], ahead: set[Node], graph: Graph, tangents: set[int]) -> list[Value]:
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
            if value.index not in tangents:
                wanted.add(value)
        elif node in ahead and not node.op.has(Trait.VIEW):
            wanted.add(value)
        else:
            stack.extend(node.inputs)
    order = {value: number for number, value in enumerate(_definitions(graph))}
    return sorted(wanted, key=order.__getitem__)


def _definitions(graph: Graph) -> Iterable[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.results


def _build(
    captured: Captured, ahead: set[Node], results: list[Value], gradients: dict[int, Value],
    leaves: list[Value], saved: list[Value],
) -> Partition:
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
    _copy(graph, forward, known, lambda node: node in ahead)
    forward.outputs = [known[value] for value in results]

    partition = Partition(forward, backward)
    replayed: dict[Value, Value] = {}
    for value in saved:
        if value.node is None:
            origin = BackwardInput("input", number[value])
        elif value in results:
            origin = BackwardInput("output", results.index(value))
        else:
            origin = BackwardInput("output", len(forward.outputs))
            known[value].type = _with_strides(value.tensor)
            forward.outputs.append(known[value])
        partition.backward_inputs.append(origin)
        type_ = forward.outputs[origin.position].type if origin.kind == "output" else value.type
        replayed[value] = backward.add_input(type_, value.name, Source("saved", str(len(replayed))))
    for position, result in tangents.items():
        value = graph.inputs[position]
        partition.backward_inputs.append(BackwardInput("tangent", result))
        replayed[value] = backward.add_input(value.type, value.name, Source("tangent", str(result)))
    wanted = [*gradients.values(), *leaves]
    later = _needed_until(wanted, replayed)
    _copy(graph, backward, replayed, lambda node: node in later)
    backward.outputs = [replayed[value] for value in wanted]
    partition.gradients = [number[graph.inputs[position]] for position in gradients]
    return partition


def _needed_until(values: Iterable[Value], known: dict[Value, Value]) -> set[Node]:
    """The nodes that `values` depend on, not looking behind known values."""
    found: set[Node] = set()
    stack = [value for value in values if value not in known]
    while stack:
        node = stack.pop().node
        assert node is not None, "a gradient depends on an input that is neither saved nor a tangent"
        if node in found:
            continue
        found.add(node)
        stack.extend(value for value in node.inputs if value not in known)
    return found


def _copy(source: Graph, target: Graph, known: dict[Value, Value], wanted: Callable[[Node], bool]) -> None:
    """Copy the wanted nodes, in order; `known` maps values of `source` to values of `target` and grows."""
    for node in source.nodes:
        if not wanted(node):
            continue
        operands = tuple(map_operand(operand, known.__getitem__) for operand in node.operands)
        copied = Node(
            node.op, operands, node.attributes, [result.type for result in node.results],
            regions=node.regions, loc=node.loc,
        )
        for old, new in zip(node.results, copied.results, strict=True):
            new.name = old.name
            known[old] = new
        target.append(copied)


def _with_strides(type_: TensorType) -> TensorType:
    """The type with row-major strides, where it has none."""
    if type_.strides is not None:
        return type_
    strides, step = [], 1
    for size in reversed(type_.shape):
        strides.append(step)
        step = step * max(size, 1) if isinstance(size, int) else step * size   # type: ignore[assignment]
    return TensorType(type_.dtype, type_.shape, type_.device, tuple(reversed(strides)))
