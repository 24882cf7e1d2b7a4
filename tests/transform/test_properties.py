"""For every pass and random graphs: evaluate(before) == evaluate(after)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings

from monograph.ir.graph import Graph
from monograph.ir.verifier import verify
from monograph.ops.decompose import expand
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse
from monograph.source import SourceLoc
from monograph.transform.conv_bn import fold_conv_bn
from monograph.transform.cse import cse
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from monograph.transform.pipeline import pipeline
from monograph.transform.runner import run
from monograph.transform.simplify import simplify
from tests.graphs import graphs, tensors


def arguments(graph: Graph) -> list[torch.Tensor]:
    """Inputs of the graph as it is now: of its derived inputs the evaluator takes care itself."""
    return tensors(graph)[: sum(source.kind != "derived" for source in graph.sources)]


def check(graph: Graph, transform: Callable[[Graph], object], *, exact: bool = True) -> None:
    before = evaluate(graph, arguments(graph))
    transform(graph)
    verify(graph)
    after = evaluate(graph, arguments(graph))
    for got, want in zip(after, before, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        tolerance = {} if not exact else {"rtol": 0.0, "atol": 0.0}
        torch.testing.assert_close(got, want, equal_nan=True, **tolerance)
        if exact and want.dtype.is_floating_point:
            assert torch.equal(torch.signbit(got), torch.signbit(want))


@pytest.mark.parametrize("transform", [dce, cse, simplify, fold], ids=lambda f: f.__name__)
@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_exact_passes_change_no_bit(transform: Callable[[Graph], bool], graph: Graph):
    check(graph, transform)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_expand_keeps_values(graph: Graph):
    check(graph, expand, exact=False)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_the_whole_pipeline_keeps_values(graph: Graph):
    check(graph, lambda graph: run(graph, pipeline()), exact=False)


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_every_node_keeps_a_line(graph: Graph):
    for number, node in enumerate(graph.nodes):
        node.loc = SourceLoc("model.py", number + 1, "forward")
    run(graph, pipeline())
    inner = graph.prologue.nodes if graph.prologue is not None else []
    assert all(node.loc is not None and node.loc.file == "model.py" for node in [*graph.nodes, *inner])


@pytest.mark.parametrize("bias", ["%z", "None"])
def test_conv_bn_keeps_values(bias: str):
    graph = parse(f"""graph {{
        input %x: f32[2, 3, 8, 8]
        input %w: f32[4, 3, 3, 3] = parameter "conv.weight"
        input %z: f32[4] = parameter "conv.bias"
        input %g: f32[4] = parameter "bn.weight"
        input %b: f32[4] = parameter "bn.bias"
        input %m: f32[4] = buffer "bn.running_mean"
        input %v: f32[4] = buffer "bn.running_var"
        %c = aten.convolution.default(%x, %w, {bias}, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        %n, %q, %r = aten.native_batch_norm.default(%c, %g, %b, %m, %v, False, 0.1, 1e-05)
        %y = aten.relu.default(%n)
        return %y
    }}""")
    inputs = tensors(graph)
    inputs[-1] = inputs[-1].abs() + 0.5
    before = evaluate(graph, inputs)
    assert fold_conv_bn(graph)
    verify(graph)
    torch.testing.assert_close(evaluate(graph, inputs), before)
