"""The derivative of a straight-line block, by torch's own autograd: the block is evaluated under a trace.

`traced` is the `vjp` that `autodiff.regions` asks for, `derivative` what a capture calls in a backward pass. The traced
forward is dropped but for what the gradients need. A block of symbolic sizes is traced with several values of its
symbols; the traces must be alike, node by node, and the numbers in which they differ are fitted by what the symbols
can make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from monograph.autodiff.regions import gradients
from monograph.capture import driver
from monograph.capture.captured import Captured
from monograph.errors import UnsupportedError
from monograph.ir import symbolic
from monograph.ir.edit import clone, copy_node, substitute
from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.op import Trait
from monograph.ir.symbolic import Dim, Expr, Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import infer
from monograph.ops.build import Builder
from monograph.ops.evaluate import evaluate

__all__ = ["derivative", "traced"]

SAME = "one formula must hold for all sizes"


def derivative(
    node: Node, cotangents: Mapping[Value, Value], wrt: Collection[Value], graph: Graph, root: Graph
) -> dict[Value, Value]:
    """Gradients of the values in `wrt` that a node with regions reads, recorded at the end of `graph`, a block of
    `root`; see `autodiff.regions.gradients`. A trace may be under way."""
    return gradients(node, cotangents, wrt, traced, Builder(graph, loc=node.loc), root)


def traced(block: Graph, wrt: Sequence[Value]) -> Graph:
    """See `autodiff.regions` for what is asked and given back."""
    positions = [value.index for value in wrt]
    dims = dict.fromkeys(_dims(block))
    symbols: dict[str, Symbol] = {}
    for dim in dims:
        symbols.update(symbolic.symbols_of(dim))
    if not symbols:
        return _traced(block, positions, {})
    environments = infer.environments(symbols, dims)
    versions = []
    for env in environments:
        concrete = clone(block)
        substitute(concrete, env)
        _retype(concrete.inputs, env)
        versions.append(_traced(concrete, positions, env))
    pool = infer.pool(dims)
    result = _Merge(lambda sizes: infer.fit("a derivative", sizes, pool, symbols, environments)).graph(versions)
    result.symbols = dict(block.symbols)
    for value, given in zip(result.inputs, [*block.inputs, *block.outputs], strict=True):
        value.type = given.type
    return result


def _dims(block: Graph) -> Iterator[Expr]:
    """Every symbolic size in a block."""
    pending: list[Any] = [value.type for value in block.inputs]
    for node in block.nodes:
        pending += [*node.operands, *node.attributes.values(), *(value.type for value in node.results)]
    while pending:
        entry = pending.pop()
        if isinstance(entry, TensorType):
            pending += entry.shape
        elif isinstance(entry, tuple):
            pending += entry
        elif isinstance(entry, Expr):
            yield entry
        elif isinstance(entry, ScalarType) and entry.symbol is not None:
            yield Symbol(entry.symbol)


def _retype(values: Iterable[Value], env: Mapping[str, Dim]) -> None:
    for value in values:
        if isinstance(value.type, TensorType):
            value.type = replace(value.type, shape=tuple(symbolic.substitute(dim, env) for dim in value.type.shape))


# --- one trace ----------------------------------------------------------------------------------

def _traced(block: Graph, wrt: Sequence[int], numbers: Mapping[str, int]) -> Graph:
    """The derivative of a block of static sizes by the inputs at `wrt`."""
    examples = [_example(value, position in wrt, numbers) for position, value in enumerate(block.inputs)]

    def run(*inputs: Any) -> Any:
        # Aliases and clones: whatever the block does, its results are new tensors, none an input or a view of another.
        given = [torch.ops.aten.alias.default(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        return tuple(x.clone() for x in evaluate(block, given, grad=True))

    with torch.enable_grad():
        captured = driver.trace(run, examples, {}, grad=True)
    return _backward(block, wrt, captured)


def _example(value: Value, differentiable: bool, numbers: Mapping[str, int]) -> Any:
    if isinstance(value.type, ScalarType):
        if value.type.symbol is None or value.type.symbol not in numbers:
            raise UnsupportedError(f"the gradient of a region that computes with a number, {value.type}",
                                   why="the number is known only when it runs", hint="keep the number in a tensor")
        return numbers[value.type.symbol]
    shape = tuple(int(size) for size in value.type.shape)  # type: ignore[arg-type]
    return torch.empty(shape, dtype=value.type.dtype, device=value.type.device).requires_grad_(differentiable)


def _backward(block: Graph, wrt: Sequence[int], captured: Captured) -> Graph:
    """The traced graph without its forward results, inputs in the order promised."""
    joint = captured.joint
    result = Graph(f"{block.name}_backward")
    for value in block.inputs:
        result.add_input(value.type, value.name)
    seeds = [result.add_input(value.type, "cotangent") for value in block.outputs]
    tangents = {position: number for number, position in joint.tangents.items()} if joint is not None else {}
    mapping: dict[Value, Value] = {}
    positions: dict[int, int] = {}        # input of the block -> input of the captured graph
    for position, (value, binding) in enumerate(zip(captured.graph.inputs, captured.bindings, strict=True)):
        if position in tangents:
            mapping[value] = seeds[tangents[position]]
        elif binding.kind == "argument":
            mapping[value] = result.inputs[binding.leaf]
            positions[binding.leaf] = position
        else:
            raise UnsupportedError("a region's derivative reads a tensor of its own",
                                   why="a branch or loop takes what it needs from the program around it")
    for node in captured.graph.nodes:
        if node.op.has(Trait.SYNC) or not node.results:     # read from the example, which has no values
            raise UnsupportedError("the gradient of a region where a value decides a size",
                                   why="its derivative is found on examples, which have no values")
        result.append(copy_node(node, mapping))
    gradients = joint.gradients if joint is not None else {}
    for index in wrt:
        output = gradients.get(positions.get(index, -1))
        if output is None:
            type = block.inputs[index].tensor
            result.outputs.append(Builder(result).call("aten.full.default", type.shape, 0, dtype=type.dtype))
        else:
            gradient = captured.graph.outputs[output]
            result.outputs.append(mapping.get(gradient, gradient))
    _strip(result)
    return result


def _strip(graph: Graph) -> None:
    """Drop what the outputs do not need; strides, for these values are interior ones; and lines, which are not the
    user's."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.results):
            continue
        needed.update(node.reads)
        kept.append(node)
        node.loc = None
        for value in node.results:
            if isinstance(value.type, TensorType):
                value.type = replace(value.type, strides=None)
    graph.nodes[:] = reversed(kept)


# --- several traces as one ----------------------------------------------------------------------

class _Merge:
    """Graphs that are alike but for numbers, as one; `fit` finds the Dim behind one number of each."""

    def __init__(self, fit: Any) -> None:
        self.fit = fit
        self.known: list[dict[Value, Value]] = []       # per version: its values -> those of the result

    def graph(self, versions: Sequence[Graph]) -> Graph:
        result = Graph(versions[0].name)
        self.known = [{} for _ in versions]
        for inputs in zip(*(version.inputs for version in versions), strict=True):
            made = result.add_input(inputs[0].type, inputs[0].name)
            self.note(inputs, made)
        if len({len(version.nodes) for version in versions}) != 1:
            raise UnsupportedError("the derivative of a region differs with its sizes", why=SAME)
        for nodes in zip(*(version.nodes for version in versions), strict=True):
            result.append(self.node(nodes))
        result.outputs = [self.entry(outputs) for outputs in zip(*(v.outputs for v in versions), strict=True)]
        return result

    def note(self, values: Sequence[Value], made: Value) -> None:
        for table, value in zip(self.known, values, strict=True):
            table[value] = made

    def node(self, nodes: Sequence[Node]) -> Node:
        first = nodes[0]
        if any(node.op is not first.op for node in nodes):
            raise UnsupportedError("the derivative of a region differs with its sizes", loc=first.loc, why=SAME)
        operands: list[Operand] = [self.entry(slots) for slots in zip(*(node.operands for node in nodes), strict=True)]
        attributes = {name: self.entry([node.attributes[name] for node in nodes]) for name in first.attributes}
        types = []
        for results in zip(*(node.results for node in nodes), strict=True):
            shape = self.entry([value.tensor.shape for value in results])
            types.append(replace(results[0].tensor, shape=shape))
        made = Node(first.op, operands, attributes, types, loc=first.loc)
        for position, value in enumerate(made.results):
            self.note([node.results[position] for node in nodes], value)
        return made

    def entry(self, versions: Sequence[Any]) -> Any:
        """One operand slot or attribute from those of all versions."""
        first = versions[0]
        if isinstance(first, Value):
            (made,) = {table[value] for table, value in zip(self.known, versions, strict=True)}
            return made
        if isinstance(first, tuple):
            return tuple(self.entry(entries) for entries in zip(*versions, strict=True))
        if isinstance(first, int) and not isinstance(first, bool):
            return self.fit(list(versions))
        if any(repr(version) != repr(first) for version in versions):
            raise UnsupportedError("the derivative of a region differs with its sizes", why=SAME)
        return first
