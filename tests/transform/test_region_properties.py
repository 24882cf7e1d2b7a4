"""For every pass and random graphs with regions: evaluate(before) == evaluate(after), and the graph stays valid."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from monograph.ir.graph import Graph
from monograph.ir.verifier import verify
from monograph.ops import infer
from monograph.ops.evaluate import evaluate
from monograph.transform.bypass import bypass
from monograph.transform.cse import cse
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from monograph.transform.hoist import hoist
from monograph.transform.literals import literals
from monograph.transform.pipeline import pipeline
from monograph.transform.propagate import propagate
from monograph.transform.runner import run
from monograph.transform.select import select
from monograph.transform.simplify import simplify
from monograph.transform.sink import sink
from monograph.transform.unroll import unroll
from tests import regions as sized
from tests.region_graphs import inputs_for, regions

SEEDS = range(4)


def outcome(graph: Graph, seed: int) -> list[torch.Tensor] | str:
    """The outputs, or the exception the program raises."""
    try:
        return evaluate(graph, inputs_for(graph, seed), check=True)
    except (ValueError, KeyError) as error:
        return repr(error)


def check(graph: Graph, transform: Callable[[Graph], object], *, exact: bool = True) -> None:
    before = [outcome(graph, seed) for seed in SEEDS]
    transform(graph)
    verify(graph, infer.result_types)
    for seed, expected in zip(SEEDS, before, strict=True):
        actual = outcome(graph, seed)
        if isinstance(expected, str) or isinstance(actual, str):
            assert actual == expected
            continue
        tolerance = {"rtol": 0.0, "atol": 0.0} if exact else {}
        torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
        if exact:
            assert all(torch.equal(a.signbit(), b.signbit()) for a, b in zip(actual, expected, strict=True))


PASSES = [dce, cse, simplify, fold, propagate, bypass, hoist, select, unroll, sink, literals]
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("transform", PASSES, ids=lambda f: f.__name__)
@quick
@given(graph=regions(checks=True))
def test_a_pass_changes_no_bit(transform: Callable[[Graph], bool], graph: Graph):
    check(graph, transform)


@quick
@given(graph=regions(checks=True))
def test_the_whole_pipeline_keeps_values(graph: Graph):
    check(graph, lambda graph: run(graph, pipeline()), exact=False)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("transform", PASSES, ids=lambda f: f.__name__)
def test_a_pass_keeps_sizes_known_at_run_time(transform: Callable[[Graph], bool], seed: int):
    graph = sized.random_regions(seed, 10, dynamic=True)
    inputs = [sized.inputs_for(graph, seed + k) for k in range(3)]
    before = [evaluate(graph, given) for given in inputs]
    transform(graph)
    verify(graph)
    after = [evaluate(graph, given, check=True) for given in inputs]
    torch.testing.assert_close(after, before, equal_nan=True, rtol=0.0, atol=0.0)
