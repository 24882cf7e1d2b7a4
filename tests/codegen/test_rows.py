"""A symbolic number of rows in native programs: some rows at a time, all sizes of one program."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.codegen import assemble, target
from monograph.ir.verifier import verify
from monograph.ops.evaluate import evaluate, special
from monograph.ops.text import parse
from monograph.runtime import serialise
from monograph.runtime.early import python_steps
from monograph.runtime.execute import Executable
from monograph.runtime.program import Library, RowsStart
from monograph.schedule import plan
from monograph.transform.dce import dce
from monograph.transform.pipeline import pipeline
from monograph.transform.runner import run
from tests.compare import lines_of
from tests.rows import inputs_for, random_rows


def compiled(graph):
    program = assemble.program(plan(graph, target=target.host(), refused=None), target.host(), jobs=1)
    return serialise.loads(serialise.dumps(program))


def check(graph, *calls):
    verify(graph)
    program = compiled(graph)
    executable = Executable(program, resolve=special)
    for inputs in calls:
        wanted = evaluate(graph, inputs)
        for outputs in (executable.run(inputs), executable.run_timed(inputs)[0]):
            for got, want in zip(outputs, wanted, strict=True):
                torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)
    return program


BLOCK = """
graph {
    symbol s0: 0..
    input %x: f32[s0, 12, 16, strides=[192, 16, 1]]
    input %w: f32[16, 16, strides=[16, 1]] = parameter w
    input %b: f32[16, strides=[1]] = parameter b
    %h: f32[s0, 12, 16] = aten.linear.default(%x, %w, %b)
    %q: f32[s0, 12, 4, 4] = aten.view.default(%h, size=[s0, 12, 4, 4])
    %t: f32[s0, 4, 12, 4] = aten.transpose.int(%q, 1, 2)
    %o: f32[s0, 4, 12, 4] = aten.scaled_dot_product_attention.default(%t, %t, %t)
    %u: f32[s0, 12, 4, 4] = aten.transpose.int(%o, 1, 2)
    %v: f32[s0, 12, 16] = aten.reshape.default(%u, shape=[s0, 12, 16])
    %a: f32[s0, 12, 16] = aten.add.Tensor(%v, %x)
    %n, %m, %r = aten.native_layer_norm.default(%a, normalized_shape=[16], weight=%b, bias=%b, eps=1e-05)
    %f: f32[12*s0, 16] = aten.reshape.default(%n, shape=[12*s0, 16])
    %g: f32[12*s0, 16] = aten.mm.default(%f, %w)
    %e: f32[12*s0, 16] = aten.gelu.default(%g)
    return %e
}
"""


def test_an_encoder_block_with_any_batch_is_native():
    graph = parse(BLOCK)
    run(graph, pipeline())
    program = check(graph, *([torch.randn(n, 12, 16), torch.randn(16, 16), torch.randn(16)] for n in (0, 1, 5, 8, 70)))
    assert not python_steps(program) and any(isinstance(step, RowsStart) for step in program.steps)
    turned = [torch.randn(16, 12, 3).permute(2, 1, 0), torch.randn(16, 16), torch.randn(16)]
    evaluated = evaluate(graph, turned)
    torch.testing.assert_close(Executable(program, resolve=special).run(turned), evaluated, rtol=1e-3, atol=1e-3)


def test_what_mixes_rows_stands_between_two_sets():
    program = check(parse("""
graph {
    symbol s0: 1..
    input %x: f32[s0, 4, strides=[4, 1]]
    %a: f32[s0, 4] = aten.sin.default(%x)
    %b: f32[s0, 4] = aten.exp.default(%a)
    %m: f32[4] = aten.amax.default(%b, [0])
    %c: f32[s0, 4] = aten.sub.Tensor(%b, %m)
    %d: f32[s0, 4] = aten.mul.Tensor(%c, %a)
    %e: f32[s0, 4] = aten.mul.Scalar(%d, s0)
    return %e, %b
}
"""), *([torch.randn(n, 4)] for n in (1, 3, 100)))
    assert sum(isinstance(step, RowsStart) for step in program.steps) == 2
    assert [step.label for step in program.steps if isinstance(step, Library)] == ["amax", "mul"]


def test_rows_in_a_loop_read_what_it_carries():
    check(parse("""
graph {
    symbol s0: 0..
    symbol s1: 0..
    symbol s2: 0..
    input %x: f32[s0, 4, strides=[4, 1]]
    input %b: f32[4, strides=[1]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[s2, 4], %c: f32[4] = mono.while([%zero, %x, %b]) {
        condition {
            input %i0: i64[]
            input %y0: f32[s1, 4]
            input %c0: f32[4]
            %p: bool[] = aten.lt.Scalar(%i0, 3)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[s2, 4]
            input %c1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %s: f32[s2, 4] = aten.sin.default(%y1)
            %y2: f32[s2, 4] = aten.add.Tensor(%s, %c1)
            %c2: f32[4] = aten.cos.default(%c1)
            return %i2, %y2, %c2
        }
    }
    return %y, %c
}
"""), *([torch.randn(n, 4), torch.randn(4)] for n in (0, 1, 9)))


def test_an_index_out_of_range_names_the_users_line():
    graph = parse("""
graph {
    symbol s0: 0..
    input %i: i64[s0, strides=[1]]
    input %w: f32[5, 4, strides=[4, 1]] = parameter w
    %e: f32[s0, 4] = aten.embedding.default(%w, %i)        # model.py:3 in forward
    %y: f32[s0, 4] = aten.sin.default(%e)
    return %y
}
""")
    executable = Executable(compiled(graph), resolve=special)
    weight = torch.randn(5, 4)
    executable.run([torch.tensor([4, 0, 1]), weight])
    with pytest.raises(IndexError) as caught:
        executable.run([torch.tensor([0] * 20 + [5]), weight])
    assert 3 in lines_of(caught.value)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 14))
def test_random_rows(seed, steps):
    graph = random_rows(seed, steps)
    dce(graph)
    verify(graph)
    executable = Executable(compiled(graph), resolve=special)
    for size in (1, 2, 9, 67):
        inputs = inputs_for(graph, size)
        for got, wanted in zip(executable.run(inputs), evaluate(graph, inputs), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)


def test_batch_and_sequence_of_any_size():
    """All but the attention is native: rows of (batch, sequence) before it and after it."""
    graph = parse("""
graph {
    symbol b: 1..
    symbol s: 1..
    input %i: i64[b, s, strides=[s, 1]]
    input %e: f32[50, 16, strides=[16, 1]] = parameter e
    input %w: f32[16, 16, strides=[16, 1]] = parameter w
    input %n: f32[16, strides=[1]] = parameter n
    %x: f32[b, s, 16] = aten.embedding.default(%e, %i)
    %h: f32[b, s, 16] = aten.linear.default(%x, %w, %n)
    %q: f32[b, s, 4, 4] = aten.view.default(%h, size=[b, s, 4, 4])
    %t: f32[b, 4, s, 4] = aten.transpose.int(%q, 1, 2)
    %o: f32[b, 4, s, 4] = aten.scaled_dot_product_attention.default(%t, %t, %t, is_causal=True)
    %u: f32[b, s, 4, 4] = aten.transpose.int(%o, 1, 2)
    %v: f32[b, s, 16] = aten.reshape.default(%u, shape=[b, s, 16])
    %a: f32[b, s, 16] = aten.add.Tensor(%v, %x)
    %y, %m, %r = aten.native_layer_norm.default(%a, normalized_shape=[16], weight=%n, bias=%n, eps=1e-05)
    %z: f32[b, s, 16] = aten.linear.default(%y, %w, %n)
    %g: f32[b, s, 16] = aten.gelu.default(%z)
    return %g
}
""")
    run(graph, pipeline())
    weights = [torch.randn(50, 16), torch.randn(16, 16), torch.randn(16)]
    program = check(graph, *([torch.randint(0, 50, size), *weights] for size in ((1, 1), (2, 7), (3, 65))))
    assert [step.label for step in python_steps(program)] == [
        "transpose", "scaled_dot_product_attention", "transpose", "rows",
    ]


def test_any_number_of_rows_is_done_in_even_parts():
    """Fewer rows than a tile has, one part, and several with the last moved back."""
    graph = parse("""
graph {
    symbol s: 0..
    input %x: f32[s, 20, strides=[20, 1]]
    input %w: f32[20, 20, strides=[20, 1]] = parameter w
    input %t: f32[5000, 20, strides=[20, 1]] = parameter t
    %h: f32[s, 20] = aten.mm.default(%x, %w)
    %e: f32[s, 20] = aten.exp.default(%h)
    %z: f32[s, 1] = aten.sum.dim_IntList(%e, dim=[1], keepdim=True)
    %d: f32[s, 20] = aten.div.Tensor(%e, %z)
    %y: f32[s, 5000] = aten.linear.default(%d, %t)
    %u: f32[s, 5000] = aten.tanh.default(%y)
    %v: f32[s] = aten.amax.default(%u, dim=[1])
    return %v, %d
}
""")
    schedule = plan(graph, target=target.host())
    (most,) = {rows for rows, _ in schedule.counts.values()}
    weights = [torch.randn(20, 20), torch.randn(5000, 20)]
    sizes = (0, 1, 2, 3, 5, 13, 15, 16, 17, most - 1, most, most + 1, 2 * most, 2 * most + 1)
    check(graph, *([torch.randn(n, 20), *weights] for n in sizes))
    for n in (2, 3):    # the rows that are read but not there must not matter
        x = torch.full((16, 20), float("nan"))[:n].copy_(torch.randn(n, 20))
        check(graph, [x, *weights])


def test_the_number_of_rows_may_be_any_number_of_the_graph():
    """Whatever prime the kernels are made for, the graph has no multiple of it."""
    graph = parse("""
graph {
    symbol s: 1..
    input %x: f32[s, 1021, strides=[1021, 1]]
    input %i: i64[s, strides=[1]]
    %a: f32[s, 1021] = aten.sin.default(%x)
    %b: f32[s, 1021] = aten.exp.default(%a)
    %c: i64[s] = aten.mul.Scalar(%i, 1019)
    %d: bool[s] = aten.eq.Scalar(%c, 2038)
    return %b, %d
}
""")
    check(graph, *([torch.randn(n, 1021), torch.arange(n)] for n in (1, 2, 40)))


def test_rotated_heads_are_rows_of_the_batch_and_the_sequence():
    """Heads are turned after the rotation, and its angles, one row for all of the batch, are spread first."""
    program = check(parse("""
graph {
    symbol b: 0..
    symbol s: 0..
    input %x: f32[b, s, 24, strides=[24*s, 24, 1]]
    input %w: f32[24, 24, strides=[24, 1]] = parameter w
    input %c: f32[1, s, 8, strides=[8*s, 8, 1]]
    %h: f32[b, s, 24] = aten.linear.default(%x, %w)
    %q: f32[b, s, 3, 8] = aten.view.default(%h, size=[b, s, 3, 8])
    %t: f32[b, 3, s, 8] = aten.transpose.int(%q, dim0=1, dim1=2)
    %k: f32[1, s, 8] = aten.cos.default(%c)
    %u: f32[1, 1, s, 8] = aten.unsqueeze.default(%k, dim=1)
    %m: f32[b, 3, s, 8] = aten.mul.Tensor(%t, %u)
    %h1: f32[b, 3, s, 4] = aten.slice.Tensor(%t, dim=3, start=4, end=9223372036854775807)
    %n: f32[b, 3, s, 4] = aten.neg.default(%h1)
    %l: f32[b, 3, s, 4] = aten.slice.Tensor(%t, dim=3, start=0, end=4)
    %r: f32[b, 3, s, 8] = aten.cat.default([%n, %l], dim=-1)
    %y: f32[b, 3, s, 8] = aten.add.Tensor(%m, %r)
    return %y
}
"""), *([torch.randn(b, s, 24), torch.randn(24, 24), torch.randn(1, s, 8)]
        for b, s in ((0, 1), (1, 0), (1, 1), (2, 7), (3, 40))))
    labels = [step.label for step in python_steps(program)]
    assert labels == ["cos", "unsqueeze", "transpose", "expand_copy", "rows", "transpose"]


def test_two_threads_with_sizes_of_their_own():
    graph = parse(BLOCK)
    run(graph, pipeline())
    executable = Executable(compiled(graph), resolve=special)
    weights = [torch.randn(16, 16), torch.randn(16)]
    calls = [[torch.randn(n, 12, 16), *weights] for n in (1, 9, 70, 3)]
    wanted = [evaluate(graph, inputs)[0] for inputs in calls]
    wrong = []

    def work(inputs, want):
        for _ in range(20):
            got = executable.run(inputs)[0]
            if not torch.allclose(got, want, rtol=1e-3, atol=1e-3):
                wrong.append(inputs[0].shape)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(calls, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_of_known_size_in_front_of_a_sequence_of_any():
    program = check(parse("""
graph {
    symbol s: 1..
    input %x: f32[8, s, 12, strides=[12*s, 12, 1]]
    input %w: f32[12, 12, strides=[12, 1]] = parameter w
    %h: f32[8, s, 12] = aten.linear.default(%x, %w)
    %q: f32[8, s, 3, 4] = aten.view.default(%h, size=[8, s, 3, 4])
    %t: f32[8, 3, s, 4] = aten.transpose.int(%q, 1, 2)
    %e: f32[8, 3, s, 4] = aten.exp.default(%t)
    %m: f32[8, 3, s, 1] = aten.amax.default(%e, [-1], True)
    %d: f32[8, 3, s, 4] = aten.div.Tensor(%e, %m)
    return %d, %h
}
"""), *([torch.randn(8, n, 12), torch.randn(12, 12)] for n in (1, 5, 33)))
    labels = [step.label for step in python_steps(program)]
    assert labels == ["transpose"]
