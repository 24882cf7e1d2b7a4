"""Control flow in native programs: cond and while, nested, run as the evaluator says, without Python in between."""

import ctypes
import signal
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.codegen import assemble, target
from monograph.errors import WrongPath
from monograph.ir import dtypes
from monograph.ir.graph import Graph, Node
from monograph.ir.types import TensorType
from monograph.ir.verifier import verify
from monograph.ops import table
from monograph.ops.build import Builder
from monograph.ops.evaluate import evaluate, special
from monograph.ops.text import parse
from monograph.runtime import serialise
from monograph.runtime.early import python_steps
from monograph.runtime.execute import Executable
from monograph.runtime.program import Branch, Jump, Library, Native
from monograph.schedule import plan
from monograph.transform.dce import dce
from tests.compare import lines_of
from tests.regions import inputs_for, random_regions


def compiled(graph):
    return assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)


def check(text, *calls):
    """Compile, compare with the evaluator on each call, give back the program."""
    graph = parse(text)
    verify(graph)
    program = compiled(graph)
    executables = [Executable(program), Executable(serialise.loads(serialise.dumps(program)))]
    for inputs in calls:
        before = [x.clone() for x in inputs]
        wanted = evaluate(graph, inputs)
        for executable in executables:
            for outputs in (executable.run(inputs), executable.run_timed(inputs)[0]):
                for got, want in zip(outputs, wanted, strict=True):
                    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
        for x, old in zip(inputs, before, strict=True):
            torch.testing.assert_close(x, old, rtol=0, atol=0, equal_nan=True)
    return program


def native(program):
    return all(isinstance(step, (Native, Branch, Jump)) for step in program.steps)


COND = """
graph {{
    input %p: {predicate}
    input %x: f32[4, strides=[1]]
    %y: f32[4] = mono.cond(%p) {{
        then {{
            %a: f32[4] = aten.add.Scalar(%x, 1)
            return %a
        }}
        otherwise {{
            %b: f32[4] = aten.neg.default(%x)
            return %b
        }}
    }}
    return %y
}}
"""
NAN = float("nan")


@pytest.mark.parametrize("dtype, values", [
    ("bool", (True, False)), ("u8", (0, 2, 128)), ("i8", (0, -1)), ("i16", (0, -1, 256)), ("i32", (0, 1 << 31)),
    ("i64", (0, 1 << 40, -1)), ("f16", (0.0, -0.0, 1.0, NAN)), ("bf16", (-0.0, -1.0, NAN)),
    ("f32", (0.0, -0.0, 1e-45, NAN, -NAN)), ("f64", (0.0, -0.0, 5e-324, NAN)), ("c64", (0j, -0.0 + 0j, 1j, 1 + 0j)),
    ("c128", (0j, complex(-0.0, -0.0), 1j)),
])
def test_a_predicate_of_any_dtype_is_read_as_bool_reads_it(dtype, values):
    x = torch.randn(4)
    kind = dtypes.BY_NAME[dtype]
    made = [torch.tensor(value, dtype=torch.int64).to(kind) if isinstance(value, int) else torch.tensor(value).to(kind)
            for value in values]
    program = check(COND.format(predicate=f"{dtype}[strides=[]]"), *([p, x] for p in made))
    assert native(program) or dtype == "c128"
    check(COND.format(predicate=f"{dtype}[1, 1, strides=[1, 1]]"), *([p.reshape(1, 1), x] for p in made))


def test_a_predicate_in_the_middle_of_a_tensor():
    program = check("""
graph {
    input %p: bool[3, strides=[1]]
    input %x: f32[4, strides=[1]]
    %q: bool[] = aten.select.int(%p, 0, 1)
    %y: f32[4] = mono.cond(%q) {
        then {
            return %x
        }
        otherwise {
            %b: f32[4] = aten.neg.default(%x)
            return %b
        }
    }
    return %y, %y
}
""", [torch.tensor([True, False, True]), torch.randn(4)], [torch.tensor([False, True, False]), torch.randn(4)])
    assert native(program)


def test_a_constant_predicate():
    check("""
graph {
    input %x: f32[4, strides=[1]]
    %p: bool[] = aten.full.default([], True, dtype=bool)
    %y: f32[4] = mono.cond(%p) {
        then {
            return %x
        }
        otherwise {
            %b: f32[4] = aten.neg.default(%x)
            return %b
        }
    }
    return %y
}
""", [torch.randn(4)])


FIBONACCI = """
graph {
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %one: i64[] = aten.full.default([], 1, dtype=i64)
    %i: i64[], %a: i64[], %b: i64[] = mono.while([%zero, %zero, %one]) {
        condition {
            input %i0: i64[]
            input %a0: i64[]
            input %b0: i64[]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %a1: i64[]
            input %b1: i64[]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %s: i64[] = aten.add.Tensor(%a1, %b1)
            return %i2, %b1, %s
        }
    }
    return %a, %b
}
"""


def test_fibonacci_and_loops_without_a_trip():
    program = check(FIBONACCI, *([torch.tensor(n)] for n in (0, 1, 2, 10, 60, -3)))
    assert native(program)


SWAP = """
graph {
    input %x: f32[3, 5, strides=[5, 1]]
    input %y: f32[3, 5, strides=[1, 3]]
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %a: f32[3, 5], %b: f32[3, 5], %c: f32[3, 5] = mono.while([%zero, %x, %y, %x]) {
        condition {
            input %i0: i64[]
            input %a0: f32[3, 5]
            input %b0: f32[3, 5]
            input %c0: f32[3, 5]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %a1: f32[3, 5]
            input %b1: f32[3, 5]
            input %c1: f32[3, 5]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %d: f32[3, 5] = aten.add.Tensor(%b1, %c1)
            return %i2, %b1, %a1, %d
        }
    }
    return %a, %b, %c, %a
}
"""


def test_swapped_carries_start_from_inputs_they_leave_alone():
    x, y = torch.randn(3, 5), torch.randn(5, 3).t()
    assert native(check(SWAP, *([x, y, torch.tensor(n)] for n in range(5))))


def test_a_loop_that_changes_nothing_and_one_that_returns_outer_values():
    check("""
graph {
    input %x: f32[4, strides=[1]]
    input %k: f32[4, strides=[1]]
    input %p: bool[strides=[]]
    %y: f32[4], %q: bool[], %z: f32[4] = mono.while([%x, %p, %x]) {
        condition {
            input %a: f32[4]
            input %b: bool[]
            input %c: f32[4]
            return %b
        }
        body {
            input %d: f32[4]
            input %e: bool[]
            input %f: f32[4]
            %g: bool[] = aten.logical_not.default(%e)
            return %k, %g, %f
        }
    }
    return %y, %q, %z
}
""", *([torch.randn(4), torch.randn(4), torch.tensor(p)] for p in (True, False)))


NESTED = """
graph {
    input %x: f32[6, 8, strides=[8, 1]]
    input %w: f32[8, 8, strides=[8, 1]] = parameter w
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %scale: f32[6, 8] = aten.sigmoid.default(%x)
    %turned: f32[8, 6] = aten.t.default(%scale)
    %i: i64[], %h: f32[6, 8] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %h0: f32[6, 8]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %h1: f32[6, 8]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %u: f32[6, 8] = aten.linear.default(%h1, %w)
            %s: f32[] = aten.sum.default(%u)
            %q: bool[] = aten.gt.Scalar(%s, 0)
            %v: f32[6, 8] = mono.cond(%q) {
                then {
                    %a: f32[6, 8] = aten.t.default(%turned)
                    %b: f32[6, 8] = aten.mul.Tensor(%u, %a)
                    return %b
                }
                otherwise {
                    %j: i64[], %c: f32[6, 8] = mono.while([%i1, %u]) {
                        condition {
                            input %j0: i64[]
                            input %c0: f32[6, 8]
                            %r: bool[] = aten.lt.Tensor(%j0, %n)
                            return %r
                        }
                        body {
                            input %j1: i64[]
                            input %c1: f32[6, 8]
                            %j2: i64[] = aten.add.Scalar(%j1, 1)
                            %m: f32[6, 6] = aten.mm.default(%c1, %turned)
                            %d: f32[6, 8] = aten.mm.default(%m, %h1)
                            %e: f32[6, 8] = aten.tanh.default(%d)
                            return %j2, %e
                        }
                    }
                    return %c
                }
            }
            %z: f32[6, 8] = aten.tanh.default(%v)
            return %i2, %z
        }
    }
    %t: f32[8, 6] = aten.t.default(%h)
    return %h, %t, %scale
}
"""


def test_loops_in_branches_in_loops_with_packed_weights():
    torch.manual_seed(0)
    calls = [[torch.randn(6, 8), torch.randn(8, 8) * 0.3, torch.tensor(n)] for n in (0, 1, 2, 5)]
    program = check(NESTED, *calls)
    assert native(program) and len(program.derived) == 1


def test_types_change_inside_and_return():
    check("""
graph {
    input %x: f64[5, strides=[1]]
    input %k: i32[5, strides=[1]]
    %p: bool[] = aten.any.default(%k)
    %y: bool[5], %z: f64[5], %i: i16[5] = mono.cond(%p) {
        then {
            %a: bool[5] = aten.gt.Scalar(%x, 0)
            %b: f64[5] = aten.mul.Tensor(%x, %k)
            %c: i16[5] = aten._to_copy.default(%k, dtype=i16)
            return %a, %b, %c
        }
        otherwise {
            %d: bool[5] = aten.isnan.default(%x)
            %e: i16[5] = aten.full.default([5], 7, dtype=i16)
            return %d, %x, %e
        }
    }
    return %y, %z, %i
}
""", [torch.randn(5, dtype=torch.float64), torch.arange(5, dtype=torch.int32)],
        [torch.randn(5, dtype=torch.float64), torch.zeros(5, dtype=torch.int32)])


def test_only_the_library_call_in_a_region_runs_from_python():
    program = check("""
graph {
    input %x: f32[4, strides=[1]]
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[4] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %y0: f32[4]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %s: f32[4], %k: i64[4] = aten.sort.default(%y1)
            %t: f32[4] = aten.sin.default(%s)
            return %i2, %t
        }
    }
    return %y, %i
}
""", *([torch.randn(4), torch.tensor(n)] for n in (0, 1, 3)))
    assert sum(isinstance(step, Library) for step in program.steps) == 1


def test_draws_in_a_loop_come_in_the_order_of_the_program():
    graph = parse("""
graph {
    input %x: f32[4, strides=[1]]
    input %n: i64[strides=[]]
    %first: f32[4] = aten.rand_like.default(%x)
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[4] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %y0: f32[4]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %r: f32[4] = aten.rand_like.default(%y1)
            %t: f32[4] = aten.add.Tensor(%r, %y1)
            return %i2, %t
        }
    }
    %last: f32[4] = aten.rand_like.default(%x)
    return %y, %first, %last
}
""")
    executable = Executable(compiled(graph))
    inputs = [torch.randn(4), torch.tensor(3)]
    torch.manual_seed(3)
    wanted = evaluate(graph, inputs)
    torch.manual_seed(3)
    for got, want in zip(executable.run(inputs), wanted, strict=True):
        assert torch.equal(got, want)


def test_a_failed_check_in_a_region_names_the_users_line():
    graph = parse("""
graph {
    input %x: f32[4, strides=[1]]
    input %k: i64[1, strides=[1]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[1] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %y0: f32[4]
            %p: bool[] = aten.lt.Scalar(%i0, 3)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %j: i64[1] = aten.add.Tensor(%k, %i1)
            %g: f32[1] = aten.index_select.default(%y1, 0, %j)         # model.py:7 in forward
            %t: f32[4] = aten.add.Tensor(%g, %y1)
            return %i2, %t
        }
    }
    return %y
}
""".replace("%y: f32[1] = mono", "%y: f32[4] = mono"))
    executable = Executable(compiled(graph))
    executable.run([torch.randn(4), torch.tensor([1])])
    with pytest.raises(IndexError) as caught:
        executable.run([torch.randn(4), torch.tensor([2])])
    assert 7 in lines_of(caught.value)
    executable.run([torch.randn(4), torch.tensor([0])])


ENDLESS = """
graph {
    input %x: f32[4, strides=[1]]
    input %p: bool[strides=[]]
    %y: f32[4] = mono.while([%x]) {
        condition {
            input %a: f32[4]
            return %p
        }
        body {
            input %b: f32[4]
            %c: f32[4] = aten.sin.default(%b)
            return %c
        }
    }
    return %y
}
"""


def test_an_endless_loop_can_be_interrupted():
    executable = Executable(compiled(parse(ENDLESS)))
    go_on = torch.tensor(True)

    def interrupt():
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        executable.run([torch.randn(4), go_on])
        time.sleep(5)
    assert time.perf_counter() - start < 2
    stop = torch.tensor(False)
    x = torch.randn(4)
    assert torch.equal(executable.run([x, stop])[0], x)


def test_other_threads_run_while_a_loop_does():
    """The loop ends when another thread changes the predicate, which it can only if it gets to run."""
    executable = Executable(compiled(parse(ENDLESS)))
    go_on = torch.tensor(True)
    results = []
    loops = [threading.Thread(target=lambda: results.append(executable.run([torch.ones(4), go_on]))) for _ in range(2)]
    for thread in loops:
        thread.start()
    time.sleep(0.15)
    ctypes.memset(go_on.data_ptr(), 0, 1)
    for thread in loops:
        thread.join(20)
    assert len(results) == 2


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 16))
def test_random_regions(seed, steps):
    graph = random_regions(seed, steps)
    dce(graph)
    verify(graph)
    executable = Executable(compiled(graph))
    for call in range(2):
        inputs = inputs_for(graph, call)
        for got, wanted in zip(executable.run(inputs), evaluate(graph, inputs), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("x, numbers", [
    (torch.tensor([3, -1]), (3, -1)), (torch.tensor(True), (True,)),
    (torch.tensor([1.5, NAN, 0.0, -0.0]), (1.5, NAN, 0.0, -0.0)),
])
def test_expected_values_are_compared_natively(x, numbers):
    graph = Graph()
    value = graph.add_input(TensorType(x.dtype, tuple(x.shape), strides=x.stride()), "x")
    op = table.lookup("mono.expect")
    operands, attributes = table.bind(op, (value,), {"value": numbers, "number": 4})
    graph.nodes.append(Node(op, operands, attributes, ()))
    graph.outputs = [Builder(graph).call("aten.clone.default", value)]
    program = compiled(graph)
    assert not python_steps(program)
    executable = Executable(serialise.loads(serialise.dumps(program)), resolve=special)
    executable.run([x])
    for wrong in (x + x if x.dtype is not torch.bool else ~x, -x if x.dtype is not torch.bool else ~x):
        with pytest.raises(WrongPath) as caught:
            executable.run([wrong])
        assert caught.value.number == 4 and repr(list(caught.value.actual)) == repr(wrong.reshape(-1).tolist())
    executable.run([x])


def test_a_check_in_a_loop_costs_no_python_until_it_fails():
    graph = parse("""
graph {
    input %x: f32[4, strides=[1]]
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[4] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %y0: f32[4]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %ok: bool[] = aten.lt.Scalar(%i1, 5)
            mono.check(%ok, error="ValueError", message="too many rounds")        # model.py:9 in forward
            %t: f32[4] = aten.sin.default(%y1)
            return %i2, %t
        }
    }
    return %y
}
""")
    program = compiled(graph)
    assert not python_steps(program)
    executable = Executable(program, resolve=special)
    x = torch.randn(4)
    torch.testing.assert_close(executable.run([x, torch.tensor(5)])[0], evaluate(graph, [x, torch.tensor(5)])[0])
    with pytest.raises(ValueError, match="too many rounds") as caught:
        executable.run([x, torch.tensor(6)])
    assert 9 in lines_of(caught.value)
    executable.run([x, torch.tensor(1)])
