"""Weights a program derives once: what the prologue folds, and the packed copies that templates read.

The order is that of `Place("derived", k)`: outputs of the prologue that items read, then packs. A folded weight that
is only read in packed form is never kept unpacked: its part of the prologue and the packing steps are one recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.op import Trait
from monograph.ir.printer import print_graph
from monograph.ir.types import TensorType
from monograph.ops import evaluate
from monograph.ops.panels import Step
from monograph.runtime import recipe
from monograph.runtime.program import Derived
from monograph.schedule.kernel import Pack, Schedule
from monograph.schedule.views import row_major

__all__ = ["derived_weights", "evaluator"]


def derived_weights(schedule: Schedule) -> list[Derived]:
    """The derived weights of a schedule, in the order of their places."""
    graph = schedule.graph
    numbers: dict[tuple[str, str], int] = {}
    folded: dict[Value, int] = {}                    # derived input -> output of the prologue
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        if source.kind == "derived":
            folded[value] = int(source.path)
        else:
            numbers[source.kind, source.path] = len(numbers)
    read = [value for value in folded if value in schedule.places]
    made = [_folded(graph, numbers, folded[value], (), value.tensor) for value in read]
    position = {value: k for k, value in enumerate(read)}
    given = {v: n for n, v in enumerate(v for v in graph.inputs if v not in folded)}
    for pack in schedule.packs:
        type = replace(pack.packed.tensor, strides=row_major(pack.packed.tensor.shape))    # type: ignore[arg-type]
        if pack.source not in folded:
            made.append(_packed((given[pack.source],), pack, type))
        elif pack.source in position:
            made.append(_packed((("derived", position[pack.source]),), pack, type))
        else:
            made.append(_folded(graph, numbers, folded[pack.source], pack.steps, type))
    return made


def _packed(sources: tuple[Any, ...], pack: Pack, type: TensorType) -> Derived:
    data = {"steps": [[name, list(numbers)] for name, numbers in pack.steps]}
    return Derived(sources, data, recipe.computation(data), type)


def _folded(
    graph: Graph, numbers: dict[tuple[str, str], int], output: int, steps: Sequence[Step], type: TensorType
) -> Derived:
    """Output `output` of the prologue, with `steps` done to it."""
    assert graph.prologue is not None
    part, sources = _slice(graph.prologue, graph.prologue.outputs[output])
    data = {"graph": print_graph(part), "steps": [[name, list(numbers)] for name, numbers in steps]}
    given = tuple(numbers[source.kind, source.path] for source in sources)
    if type.strides is None:
        type = replace(type, strides=row_major(type.shape))     # type: ignore[arg-type]
    return Derived(given, data, recipe.computation(data, lambda _: _function(part)), type)


def _slice(prologue: Graph, wanted: Value) -> tuple[Graph, list[Source]]:
    """The part of `prologue` that computes one of its values, and where its inputs come from.

    Values are shared with it: those of the part's inputs keep their old `index`.
    """
    nodes: dict[Node, None] = {}
    inputs: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(wanted, False)]
    while stack:
        value, done = stack.pop()
        node = value.node
        if node is None:
            inputs.add(value)
        elif done:
            nodes[node] = None
        elif node not in nodes:
            stack.append((value, True))
            stack.extend((operand, False) for operand in node.inputs)
    given = sorted(inputs, key=lambda value: value.index)
    sources = [prologue.sources[value.index] for value in given]
    part = Graph("derived", given, list(nodes), [wanted], list(sources), dict(prologue.symbols))
    return part, sources


def _function(part: Graph) -> recipe.First:
    """Function of the inputs of `part`; an op at its end that writes anywhere is left to the caller."""
    last = part.outputs[0].node
    write = None if last is None else _writer(last)
    if last is None or write is None:
        return lambda *sources: evaluate.evaluate(part, sources)[0]
    made = [value for value in last.operands if value.node is not None]
    rest = Graph("operands", part.inputs, [node for node in part.nodes if node is not last], made, part.sources,
                 dict(part.symbols))

    def compute(*sources: torch.Tensor) -> recipe.Pointwise:
        values = dict(zip(part.inputs, sources, strict=True)) | dict(zip(made, evaluate.evaluate(rest, sources)))
        operands = (values[value].expand(part.outputs[0].tensor.shape) for value in last.operands)
        return recipe.Pointwise(write, tuple(operands))

    return compute


def _writer(node: Node) -> Callable[..., Any] | None:
    """The pointwise op of `node` as a function that takes `out`; None for ops that are not as simple as that."""
    packet = getattr(torch.ops.aten, node.op.name.split(".")[1], None)
    simple = (
        node.op.has(Trait.POINTWISE) and not node.attributes and len(node.results) == 1 and packet is not None
        and node.op.name.startswith("aten.") and "out" in packet.overloads()
        and all(isinstance(operand, Value) and isinstance(operand.type, TensorType)
                and operand.tensor.dtype == node.results[0].tensor.dtype for operand in node.operands)
    )
    return packet if simple else None


def evaluator(parse: Callable[[str], Graph]) -> recipe.Evaluate:
    """What a loaded program needs to compute recipes that are graphs."""
    return lambda text: _function(parse(text))