"""Programs made of schedules: they run natively and say what their graphs say."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.codegen import assemble, target
from monograph.ops.evaluate import evaluate
from monograph.runtime.execute import Executable
from monograph.runtime.program import Library, Native
from monograph.schedule import plan
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from tests.schedule.build import Maker
from tests.schedule.graphs import inputs_for, random_graph


def run(graph, inputs):
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    return program, Executable(program).run(inputs)


def check(graph):
    inputs = inputs_for(graph)
    expected = evaluate(graph, inputs)
    program, outputs = run(graph, inputs)
    for got, wanted in zip(outputs, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)
    return program


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 25))
def test_random_graphs(seed, steps):
    graph = random_graph(seed, steps)
    dce(graph)
    check(graph)


def test_equal_items_share_a_kernel():
    m = Maker()
    x = m.input(16, 32)
    for _ in range(4):
        x = m.softmax(m.op("tanh.default", m.op("linear.default", x, m.weight(32, 32), m.weight(32))))
    program = check(m.outputs(x))
    symbols = [step.symbol for step in program.steps if isinstance(step, Native)]
    assert len(symbols) == 8 and len(set(symbols[:-1])) == 2


def test_a_library_call_reads_a_slice_where_it_lies():
    m = Maker()
    y = m.op("linear.default", m.input(6, 8), m.weight(12, 8))
    values, _ = m.op("sort.default", m.op("slice.Tensor", y, 1, 4, 8), 1)
    program = check(m.outputs(m.op("neg.default", values)))
    assert [type(step) for step in program.steps] == [Native, Library, Native]


def test_what_the_prologue_folds_is_packed_at_once():
    m = Maker()
    x, w, scale = m.input(4, 8), m.weight(16, 8), m.weight(16, 1)
    graph = m.outputs(m.op("linear.default", x, m.op("mul.Tensor", w, scale)))
    inputs = inputs_for(graph)
    expected = evaluate(graph, inputs)
    assert fold(graph)
    kept = [v for v, source in zip(graph.inputs, graph.sources, strict=True) if source.kind != "derived"]
    assert len(kept) == 3
    program, outputs = run(graph, inputs)
    torch.testing.assert_close(outputs[0], expected[0])
    assert len(program.derived) == 1 and program.derived[0].sources == (1, 2)


def test_a_changed_weight_is_packed_again():
    m = Maker()
    graph = m.outputs(m.op("linear.default", m.input(4, 8), m.weight(16, 8)))
    inputs = inputs_for(graph)
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    executable = Executable(program)
    executable.run(inputs)
    inputs[1].mul_(2)
    torch.testing.assert_close(executable.run(inputs)[0], evaluate(graph, inputs)[0])


def test_an_index_out_of_range_raises_as_eager_does():
    m = Maker()
    table, index = m.input(9, 4), m.input(6, dtype=torch.int64)
    graph = m.outputs(m.op("neg.default", m.op("index_select.default", table, 0, index)))
    program, _ = run(graph, [torch.randn(9, 4), torch.arange(6)])
    with pytest.raises(IndexError):
        Executable(program).run([torch.randn(9, 4), torch.full((6,), 9)])


def test_constants_views_and_repeats_can_be_returned():
    m = Maker()
    x = m.input(4, 8)
    total = m.op("sum.dim_IntList", x, (1,), True)
    check(m.outputs(
        m.op("full.default", (3,), 2.0, dtype=torch.float32), x, m.op("t.default", x), total, total,
        m.op("expand.default", total, (4, 5)),
    ))


def test_empty_tensors_run_nothing():
    m = Maker()
    x = m.input(0, 8)
    program = check(m.outputs(m.op("neg.default", x)))
    assert program.steps == []
