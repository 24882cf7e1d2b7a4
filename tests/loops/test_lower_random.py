"""Random graphs, scheduled: every fused item, lowered and interpreted, gives what torch gives."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch

from monograph.codegen.target import host
from monograph.ir.graph import Node, Value, map_operand
from monograph.loops import interpret, verifier
from monograph.loops.lower import lower
from monograph.ops import evaluate
from monograph.schedule.kernel import Fused, Schedule
from monograph.schedule.plan import plan
from tests.schedule.graphs import inputs_for, random_graph


def compute(node: Node, known: dict[Value, torch.Tensor]) -> None:
    if node.results and node.results[0] not in known:
        operands = [map_operand(operand, known.__getitem__) for operand in node.operands]
        known.update(zip(node.results, evaluate.run_node(node, operands)))


def buffer(value: Value, schedule: Schedule, content: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory for a value, and the value laid over it."""
    layout = schedule.layouts.get(value)
    strides = value.tensor.strides if layout is None else layout.strides
    extent = 1 + sum((n - 1) * stride for n, stride in zip(value.tensor.shape, strides))
    memory = torch.zeros(max(extent, 1), dtype=value.tensor.dtype)
    view = memory.as_strided(value.tensor.shape, strides)
    if content is not None:
        view.copy_(content)
    return memory, view


def run(item: Fused, schedule: Schedule, known: Mapping[Value, torch.Tensor]) -> None:
    kernel = lower(item, schedule, "kernel")
    verifier.verify(kernel)
    inputs = [buffer(value, schedule, known[value])[0] for value in item.inputs]
    outputs = [buffer(value, schedule, None) for value in item.outputs]
    assert interpret.run(kernel, [*inputs, *(memory for memory, _ in outputs)]) is None
    for value, (_, view) in zip(item.outputs, outputs):
        torch.testing.assert_close(view, known[value], rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_items_of_random_graphs(seed):
    graph = random_graph(seed, 14)
    schedule = plan(graph, target=host())
    known = dict(zip(graph.inputs, inputs_for(graph, seed)))
    for node in [*schedule.graph.nodes, *(node for item in schedule.items for node in item.nodes)]:
        compute(node, known)
    for item in schedule.items:
        if isinstance(item, Fused):
            run(item, schedule, known)
