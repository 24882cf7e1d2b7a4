"""A schedule computes what its graph says, from the places and strides it chose alone."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.ops.evaluate import evaluate
from monograph.schedule import plan
from monograph.transform.dce import dce
from tests.schedule.graphs import inputs_for, random_graph
from tests.schedule.simulate import Lanes, overlaps, simulate


def check(graph):
    schedule = plan(graph, target=Lanes())
    assert overlaps(schedule) == []
    inputs = inputs_for(graph)
    expected = evaluate(graph, inputs)
    for got, wanted in zip(simulate(schedule, inputs), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)
        assert got.stride() == wanted.stride() or any(v.tensor.strides is None for v in graph.outputs)
    return schedule


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 40))
def test_a_schedule_computes_what_its_graph_says(seed, steps):
    graph = random_graph(seed, steps)
    dce(graph)
    check(graph)
