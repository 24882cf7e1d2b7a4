"""Where a compiled graph first goes wrong.

    first_difference(graph, inputs, options) -> Fault | None

A prefix of the graph is compiled by itself, with whatever nobody in it reads as outputs, and compared with the
reference evaluator. Bisection over its last node takes a dozen compilations for a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from monograph.backend import compile_graph
from monograph.config import Options
from monograph.ir.edit import clone
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops.evaluate import evaluate
from monograph.tools.compare import values_differ

__all__ = ["Fault", "first_difference"]


@dataclass(frozen=True)
class Fault:
    """`node` is the first whose result differs from the reference; `what` says how."""

    node: Node
    what: str


def first_difference(
    graph: Graph, inputs: Sequence[Any], options: Options, *, rtol: float | None = None, atol: float | None = None,
) -> Fault | None:
    """The first node of a captured graph (before passes) whose compiled result is not the reference's."""
    candidates = [i for i, node in enumerate(graph.nodes) if _results(node)]

    def fault(position: int) -> str | None:
        return _differs(graph, candidates[position], inputs, options, rtol, atol)

    low, high = 0, len(candidates) - 1
    last = fault(high) if candidates else None
    if last is None:
        return None
    while low < high:
        middle = (low + high) // 2
        found = fault(middle)
        if found is None:
            low = middle + 1
        else:
            high, last = middle, found
    return Fault(graph.nodes[candidates[high]], last)


def _results(node: Node) -> list[Value]:
    return [value for value in node.results if isinstance(value.type, TensorType)]


def _differs(
    graph: Graph, position: int, inputs: Sequence[Any], options: Options, rtol: float | None, atol: float | None,
) -> str | None:
    """How the compiled prefix that ends in the node at `position` differs, in whatever nobody in it reads."""
    mapping: dict[Value, Value] = {}
    nodes = graph.nodes[:position + 1]
    kept = {id(node) for node in nodes}
    prefix = clone(graph, mapping, keep=lambda node: id(node) in kept)
    read = {value for node in prefix.nodes for value in
            [*node.inputs, *(value for region in node.regions for value in region.free_values())]}
    ends = [value for node in nodes for value in _results(node) if mapping[value] not in read]
    last = _results(nodes[-1])
    prefix.outputs = [mapping[value] for value in dict.fromkeys([*last, *ends])]
    state = torch.get_rng_state()
    want = evaluate(prefix, inputs)
    torch.set_rng_state(state)
    got = compile_graph(prefix, options).run(inputs)
    torch.set_rng_state(state)
    return next((what for mine, theirs in zip(got, want) if (what := values_differ(mine, theirs, rtol, atol))), None)
