"""Sizes and numbers that only a call knows, in native programs: held as torch has them, native parts around them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.codegen import assemble, target
from monograph.errors import InputError
from monograph.ir.verifier import verify
from monograph.ops.evaluate import evaluate, special
from monograph.ops.text import parse
from monograph.runtime import serialise
from monograph.runtime.early import python_steps
from monograph.runtime.execute import Executable
from monograph.runtime.program import Library
from monograph.schedule import plan
from monograph.transform.dce import dce
from tests.compare import lines_of
from tests.regions import inputs_for, random_regions


def compiled(graph):
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    return serialise.loads(serialise.dumps(program))


def agree(got, want):
    for a, b in zip(got, want, strict=True):
        if not isinstance(b, torch.Tensor):
            assert type(a) is type(b) and a == b
            continue
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def check(text, *calls):
    graph = parse(text)
    verify(graph)
    program = compiled(graph)
    executable = Executable(program, resolve=special)
    for inputs in calls:
        wanted = evaluate(graph, inputs)
        agree(executable.run(inputs), wanted)
        agree(executable.run_timed(inputs)[0], wanted)
    return program


def test_parts_of_known_size_stay_native():
    program = check("""
graph {
    symbol s0: 0..
    input %x: f32[8, strides=[1]]
    %m: bool[8] = aten.gt.Scalar(%x, 0)
    %z: i64[s0, 1] = aten.nonzero.default(%m)
    %k: i64[] = aten.sum.default(%z)
    %f: f32[] = aten._to_copy.default(%k, dtype=f32)
    %y: f32[8] = aten.mul.Tensor(%x, %f)
    %w: f32[8] = aten.mul.Scalar(%y, s0)
    return %w, %z
}
""", *([torch.randn(8)] for _ in range(3)), [torch.zeros(8)])
    assert [step.label for step in program.steps if isinstance(step, Library) and not step.symbol] == []
    assert python_steps(program) == []


def test_an_input_of_any_length():
    text = """
graph {
    symbol s0: 1..
    input %x: f32[s0, 3, strides=[3, 1]]
    input %w: f32[3, 3, strides=[3, 1]] = parameter w
    input %y: f32[s0 + 1, strides=[1]]
    %h: f32[s0, 3] = aten.mm.default(%x, %w)
    %u: f32[3, 3] = aten.mm.default(%w, %w)
    %z: f32[s0, 3] = aten.mm.default(%h, %u)
    return %z, %u, %y
}
"""
    torch.manual_seed(0)
    program = check(text, *([torch.randn(n, 3), torch.randn(3, 3), torch.randn(n + 1)] for n in (1, 2, 7)))
    executable = Executable(program, resolve=special)
    for wrong in (
        [torch.randn(2, 4), torch.randn(3)], [torch.randn(2, 3), torch.randn(4)], [torch.randn(0, 3), torch.randn(1)],
        [torch.randn(2, 3).double(), torch.randn(3)], [3, torch.randn(3)],
    ):
        with pytest.raises(InputError):
            executable.run([wrong[0], torch.randn(3, 3), wrong[1]])


def test_a_view_of_memory_that_is_written_again_is_copied():
    check("""
graph {
    symbol s0: 0..
    input %x: f32[4, strides=[1]]
    input %n: int(s0)
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %y: f32[4] = aten.neg.default(%x)
    %part: f32[s0] = aten.slice.Tensor(%y, 0, 0, s0)
    %i: i64[], %a: f32[4] = mono.while([%zero, %y]) {
        condition {
            input %i0: i64[]
            input %a0: f32[4]
            %p: bool[] = aten.lt.Scalar(%i0, 3)
            return %p
        }
        body {
            input %i1: i64[]
            input %a1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %a2: f32[4] = aten.exp.default(%a1)
            return %i2, %a2
        }
    }
    return %part, %a, %part, %n
}
""".replace("aten.slice.Tensor(%y, 0, 0, s0)", "aten.slice.Tensor(%y, dim=0, start=0, end=s0)"),
          *([torch.randn(4), n] for n in (0, 2, 4)))


def test_carried_vectors_grow_and_numbers_count():
    check("""
graph {
    symbol s0: 0..
    symbol s1: 0..
    symbol s2: 0..
    symbol s3: 0..
    symbol s4: 0..
    symbol s5: 0..
    symbol s9: 0..
    input %x: f32[4, strides=[1]]
    input %n: int(s5)
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %start: int(s0) = mono.number(%zero, symbol="s0")
    %i: int(s2), %a: f32[s4] = mono.while([%start, %x]) {
        condition {
            input %i0: int(s1)
            input %a0: f32[s3]
            %size: i64[] = mono.scalar(s1)
            %p: bool[] = aten.lt.Scalar(%size, s5)
            return %p
        }
        body {
            input %i1: int(s2)
            input %a1: f32[s4]
            %more: i64[] = mono.scalar(s2 + 1)
            %i2: int(s9) = mono.number(%more, symbol="s9")
            %a2: f32[s4 + 4] = aten.cat.default([%a1, %x])
            return %i2, %a2
        }
    }
    %long: f32[s4] = aten.full.default([s4], 1.0, dtype=f32)
    %sum: f32[s4] = aten.add.Tensor(%long, %a)
    return %sum, %i
}
""", *([torch.randn(4), n] for n in (0, 1, 5)))


def test_a_loop_remembers_its_rounds():
    program = check("""
graph {
    symbol s0: 0..
    input %x: f32[2, 3, strides=[1, 2]]
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %a: f32[2, 3], %t: int(s0), %s: f32[s0, 2, 3], %k: i64[s0] = LOOP {
        condition {
            input %i0: i64[]
            input %a0: f32[2, 3]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %a1: f32[2, 3]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %a2: f32[2, 3] = aten.sin.default(%a1)
            return %i2, %a2
        }
    }
    return %a, %t, %s, %k
}
""".replace("LOOP", 'mono.while([%zero, %x], history=[1, 0], trips="s0")'),
          *([torch.randn(3, 2).t(), torch.tensor(n)] for n in (0, 1, 4, 16, 17, 40)))
    assert [step.action for step in python_steps(program)] == ["start", "finish"]


def test_branches_that_give_different_sizes():
    check("""
graph {
    symbol s0: 0..
    symbol s1: 0..
    input %x: f32[4, strides=[1]]
    input %p: bool[strides=[]]
    %y: f32[s0] = mono.cond(%p) {
        then {
            %a: f32[4] = aten.neg.default(%x)
            return %a
        }
        otherwise {
            %m: bool[4] = aten.gt.Scalar(%x, 0)
            %b: f32[s1] = aten.masked_select.default(%x, %m)
            return %b
        }
    }
    %z: f32[s0] = aten.mul.Scalar(%y, s0)
    return %z
}
""", *([torch.randn(4), torch.tensor(p)] for p in (True, False)))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 12))
def test_random_regions_with_sizes_from_values(seed, steps):
    graph = random_regions(seed, steps, dynamic=True)
    dce(graph)
    verify(graph)
    executable = Executable(compiled(graph), resolve=special)
    for call in range(3):
        inputs = inputs_for(graph, call)
        for got, wanted in zip(executable.run(inputs), evaluate(graph, inputs), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)


BACKWARDS = """
graph {
    symbol s0: 0..
    input %x: f32[s0, 2, 3, strides=[6, 3, 1]]
    input %n: i64[strides=[]]
    input %c: f32[2, 3, strides=[3, 1]]
    %i: i64[], %a: f32[2, 3], %l: f32[2, 3] = mono.while([%n, %c, %c]) {
        condition {
            input %i0: i64[]
            input %a0: f32[2, 3]
            input %l0: f32[2, 3]
            %p: bool[] = aten.gt.Scalar(%i0, 0)
            return %p
        }
        body {
            input %i1: i64[]
            input %a1: f32[2, 3]
            input %l1: f32[2, 3]
            %i2: i64[] = aten.sub.Scalar(%i1, 1)
            %row: f32[2, 3] = aten.index.Tensor(%x, [%i2])        # model.py:4 in forward
            %b: f32[2, 3] = aten.mul.Tensor(%a1, %row)
            %a2: f32[2, 3] = aten.add.Tensor(%b, %l1)
            return %i2, %a2, %row
        }
    }
    %last: i64[] = aten.sub.Scalar(%i, 1)
    %end: f32[2, 3] = aten.index.Tensor(%x, [%last])
    return %a, %l, %end
}
"""


def test_rows_of_a_stack_are_read_where_they_lie():
    def call(n):
        return [torch.randn(n, 2, 3), torch.tensor(n), torch.randn(2, 3)]

    turned = [torch.randn(3, 2, 5).permute(2, 1, 0), torch.tensor(5), torch.randn(2, 3)]
    program = check(BACKWARDS, call(1), call(4), call(30), turned)
    assert not python_steps(program)
    executable = Executable(program, resolve=special)
    for inputs in ([torch.randn(3, 2, 3), torch.tensor(4), torch.randn(2, 3)], call(0)):
        with pytest.raises(IndexError, match="out of bounds") as caught:
            executable.run(inputs)
        assert inputs[1] == 0 or 4 in lines_of(caught.value)
