"""Derivatives of regions against autograd of the evaluated program, which takes its branches and unrolls its loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from monograph import compat
from monograph.autodiff.regions import pullback
from monograph.autodiff.vjp import traced
from monograph.capture import driver
from monograph.errors import UnsupportedError
from monograph.ir.graph import Graph, Source
from monograph.ir.types import TensorType
from monograph.ir.verifier import verify
from monograph.ops.build import Builder
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse
from monograph.transform.pipeline import pipeline
from monograph.transform.runner import run
from tests import regions as sized
from tests.region_graphs import inputs_for, regions


def floats(values: list[Any]) -> list[Any]:
    return [v for v in values if isinstance(v.type, TensorType) and v.type.dtype.is_floating_point]


def is_real(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def eager(graph: Graph, inputs: list[torch.Tensor], tangents: list[torch.Tensor]) -> list[Any]:
    given = [x.clone().requires_grad_() if is_real(x) else x for x in inputs]
    outputs = evaluate(graph, [x * 1 if is_real(x) else x for x in given], grad=True)
    pairs = [(x, t) for x, t in zip(filter(is_real, outputs), tangents, strict=True) if x.requires_grad]
    wrt = list(filter(is_real, given))
    if not pairs:
        return [torch.zeros_like(x) for x in wrt]
    found = torch.autograd.grad([x for x, _ in pairs], wrt, [t for _, t in pairs], allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wrt, found, strict=True)]


def differentiated(graph: Graph) -> Graph:
    """`graph` with a tangent input per float output; returns its outputs, then the gradients of its float inputs."""
    wrt, outputs = floats(graph.inputs), floats(graph.outputs)
    cotangents: dict[Any, Any] = {}
    for number, value in enumerate(outputs):
        tangent = graph.add_input(TensorType(value.tensor.dtype, value.tensor.shape), f"t{number}",
                                  Source("tangent", str(number)))
        if value in cotangents:
            tangent = Builder(graph).call("aten.add.Tensor", cotangents[value], tangent)
        cotangents[value] = tangent
    found = pullback(graph, cotangents, wrt, traced)
    builder = Builder(graph)
    graph.outputs += [
        found[v] if v in found else builder.call("aten.full.default", v.tensor.shape, 0, dtype=v.tensor.dtype)
        for v in wrt
    ]
    return graph


def check(graph: Graph, samples: list[list[torch.Tensor]]) -> Graph:
    count = len(graph.outputs)
    expected = []
    for inputs in samples:
        tangents = [torch.randn(x.shape, dtype=x.dtype) for x in filter(is_real, evaluate(graph, inputs))]
        expected.append((inputs, tangents, evaluate(graph, inputs), eager(graph, inputs, tangents)))
    differentiated(graph)
    verify(graph)
    agrees(graph, count, expected)
    run(graph, pipeline())
    agrees(graph, count, expected)
    return graph


def agrees(graph: Graph, count: int, expected: list[Any]) -> None:
    for inputs, tangents, outputs, gradients in expected:
        actual = evaluate(graph, [*inputs, *tangents], check=True)
        torch.testing.assert_close(actual[:count], outputs, equal_nan=True)
        torch.testing.assert_close(actual[count:], gradients, equal_nan=True, rtol=1e-4, atol=1e-5)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=regions(size=5))
def test_random_regions(graph: Graph):
    torch.manual_seed(0)
    check(graph, [inputs_for(graph, seed) for seed in range(3)])


def test_a_loop_carries_gradients_through_and_collects_those_of_outer_values():
    graph = parse("""graph {
        input %x: f32[3]
        input %w: f32[3, 3]
        input %n: i64[]
        %zero = aten.full.default([], 0, dtype=i64)
        %y, %i = mono.while([%x, %zero]) {
            condition {
                input %c: f32[3]
                input %k: i64[]
                %go = aten.lt.Tensor(%k, %n)
                return %go
            }
            body {
                input %c: f32[3]
                input %k: i64[]
                %m = aten.mv.default(%w, %c)
                %d = aten.sin.default(%m)
                %e = aten.add.Tensor(%d, %c, alpha=0.5)
                %l = aten.add.Tensor(%k, 1)
                return %e, %l
            }
        }
        return %y
    }""")
    x, w = torch.randn(3), torch.randn(3, 3)
    check(graph, [[x, w, torch.tensor(n)] for n in (0, 1, 4)])
    forward, backward = [node for node in graph.nodes if node.op.name == "mono.while"]
    assert forward.attributes["history"] == (0,), "the counter is not needed backwards"


def test_integer_carries_decide_and_have_no_gradient():
    graph = parse("""graph {
        input %x: f32[2]
        input %n: i64[]
        %y, %i = mono.while([%x, %n]) {
            condition {
                input %c: f32[2]
                input %k: i64[]
                %go = aten.gt.Scalar(%k, 0)
                return %go
            }
            body {
                input %c: f32[2]
                input %k: i64[]
                %r = aten.remainder.Scalar(%k, 2)
                %odd = aten.eq.Scalar(%r, 1)
                %d = mono.cond(%odd) {
                    then {
                        %s = aten.mul.Tensor(%c, %c)
                        return %s
                    }
                    otherwise {
                        %s = aten.mul.Tensor(%x, 3)
                        %t = aten.add.Tensor(%s, %c)
                        return %t
                    }
                }
                %l = aten.sub.Tensor(%k, 1)
                return %d, %l
            }
        }
        return %y, %i
    }""")
    x = torch.tensor([0.5, -1.5])
    check(graph, [[x, torch.tensor(n)] for n in (0, 1, 2, 5)])


def test_a_history_that_the_program_uses_passes_gradients_on():
    graph = parse("""graph {
        symbol t: 0..
        input %x: f32[2]
        %zero = aten.full.default([], 0, dtype=i64)
        %y, %i, %t, %ys = mono.while([%x, %zero], history=[0], trips="t") {
            condition {
                input %c: f32[2]
                input %k: i64[]
                %s = aten.sum.default(%c)
                %go = aten.lt.Scalar(%s, 20.0)
                return %go
            }
            body {
                input %c: f32[2]
                input %k: i64[]
                %d = aten.mul.Tensor(%c, %c)
                %l = aten.add.Tensor(%k, 1)
                return %d, %l
            }
        }
        %z = aten.sum.dim_IntList(%ys, [0])
        return %y, %z
    }""")
    check(graph, [[torch.tensor([1.5, 1.1])], [torch.tensor([30.0, 1.0])]])


def test_a_branch_may_give_another_size():
    graph = parse("""graph {
        symbol k: 0..
        input %x: f32[3]
        input %p: bool[]
        %y: f32[k] = mono.cond(%p) {
            then {
                %s = aten.slice.Tensor(%x, 0, 1)
                %q = aten.mul.Tensor(%s, %s)
                return %q
            }
            otherwise {
                return %x
            }
        }
        %z = aten.sum.default(%y)
        return %z
    }""")
    graph.outputs = [graph.nodes[0].results[0]]
    tangent = graph.add_input(TensorType(torch.float32, graph.outputs[0].tensor.shape), "t", Source("tangent", "0"))
    found = pullback(graph, {graph.outputs[0]: tangent}, [graph.inputs[0]], traced)
    graph.outputs = [found[graph.inputs[0]]]
    graph.nodes[:] = [node for node in graph.nodes if node.op.name != "aten.sum.default"]
    x = torch.tensor([1.0, 2.0, 3.0])
    assert evaluate(graph, [x, torch.tensor(True), torch.ones(2)])[0].tolist() == [0.0, 4.0, 6.0]
    assert evaluate(graph, [x, torch.tensor(False), torch.ones(3)])[0].tolist() == [1.0, 1.0, 1.0]


def test_detached_values_stop_gradients():
    graph = parse("""graph {
        input %x: f32[2]
        input %p: bool[]
        %y = mono.cond(%p) {
            then {
                %d = aten.detach.default(%x)
                %q = aten.mul.Tensor(%x, %d)
                return %q
            }
            otherwise {
                %d = aten.detach.default(%x)
                return %d
            }
        }
        return %y
    }""")
    check(graph, [[torch.tensor([2.0, 3.0]), torch.tensor(p)] for p in (True, False)])


DRAWS = """graph {
    input %x: f32[3]
    input %n: i64[]
    input %p: bool[]
    %zero = aten.full.default([], 0, dtype=i64)
    %y, %i = mono.while([%x, %zero]) {
        condition {
            input %c: f32[3]
            input %k: i64[]
            %go = aten.lt.Tensor(%k, %n)
            return %go
        }
        body {
            input %c: f32[3]
            input %k: i64[]
            %u = aten.rand.default([3])
            %m = aten.mul.Tensor(%c, %u)
            %d = mono.cond(%p) {
                then {
                    %v = aten.bernoulli.p(%zeros, 0.5)
                    %q = aten.mul.Tensor(%m, %v)
                    %r = aten.add.Tensor(%q, %c)
                    return %r
                }
                otherwise {
                    return %m
                }
            }
            %l = aten.add.Tensor(%k, 1)
            return %d, %l
        }
    }
    %z = mono.cond(%p) {
        then {
            %w = aten.rand.default([3])
            %s = aten.mul.Tensor(%y, %w)
            return %s
        }
        otherwise {
            return %y
        }
    }
    return %z
}""".replace("%zero = aten", "%zeros = aten.full.default([3], 0.0)\n %zero = aten", 1)


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_draws_are_kept_for_the_way_back(trips: int, p: bool):
    graph = parse(DRAWS)
    inputs, tangent = [torch.randn(3), torch.tensor(trips), torch.tensor(p)], torch.randn(3)
    torch.manual_seed(5)
    expected = eager(graph, inputs, [tangent])
    torch.manual_seed(5)
    result = evaluate(graph, inputs)
    state = torch.get_rng_state()
    differentiated(graph)
    verify(graph)
    for passes in ([], pipeline()):
        run(graph, passes)
        torch.manual_seed(5)
        actual = evaluate(graph, [*inputs, tangent], check=True)
        assert torch.equal(torch.get_rng_state(), state), "the way back draws nothing"
        torch.testing.assert_close(actual, [*result, *expected])


def test_draws_of_a_loop_inside_of_a_loop_are_refused():
    graph = parse("""graph {
        input %x: f32[2]
        %a = mono.while([%x]) {
            condition {
                input %c: f32[2]
                %s = aten.sum.default(%c)
                %go = aten.lt.Scalar(%s, 9)
                return %go
            }
            body {
                input %c: f32[2]
                %b = mono.while([%c]) {
                    condition {
                        input %d: f32[2]
                        %s = aten.sum.default(%d)
                        %go = aten.lt.Scalar(%s, 5)
                        return %go
                    }
                    body {
                        input %d: f32[2]
                        %r = aten.rand.default([2])
                        %e = aten.mul.Tensor(%d, %r)
                        return %e
                    }
                }
                return %b
            }
        }
        return %a
    }""")
    with pytest.raises(UnsupportedError, match="aten.rand"):
        differentiated(graph)


def test_a_derivative_may_be_taken_while_a_trace_is_under_way():
    block = parse("""graph {
        input %x: f32[2]
        input %y: f32[2]
        %z = aten.mul.Tensor(%x, %y)
        %w = aten.tanh.default(%z)
        return %w
    }""")
    alone = str(traced(block, block.inputs))

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        with compat.plain_torch():
            assert str(traced(block, block.inputs)) == alone
        return y + 1

    captured = driver.trace(program, [torch.ones(2, requires_grad=True)], {}, grad=True)
    assert [node.op.name for node in captured.graph.nodes] == ["aten.mul.Tensor", "aten.add.Tensor", "aten.mul.Tensor"]


@pytest.mark.parametrize("seed", range(24))
def test_random_regions_of_unknown_sizes(seed: int):
    graph = sized.random_regions(seed, 8, dynamic=True)
    torch.manual_seed(seed)
    try:
        check(graph, [sized.inputs_for(graph, seed + k) for k in range(2)])
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("line", [
    "%s: f32[u] = aten.masked_select.default(%y, %m)",
    "%r: f32[u, 2] = aten.index.Tensor(%y, [%m])\n %s = aten.select.int(%r, 1, 0)",
    "%r: f32[2, u] = aten.index.Tensor(%y, [None, %m])\n %s = aten.select.int(%r, 0, 1)",
])
def test_choosing_elements_by_their_values(line: str):
    mask, index = ("%y", "%m") if "masked" in line else ("%v", "%m")
    graph = parse(f"""graph {{
        symbol u: 0..
        input %x: f32[2, 2]
        input %p: bool[]
        %a = mono.cond(%p) {{
            then {{
                %y = aten.sin.default(%x)
                %v = aten.select.int(%y, 0, 0)
                {index} = aten.gt.Scalar({mask}, 0.1)
                {line}
                %q = aten.mul.Tensor(%s, %s)
                %t = aten.sum.default(%q)
                return %t
            }}
            otherwise {{
                %t = aten.sum.default(%x)
                return %t
            }}
        }}
        return %a
    }}""")
    samples = [torch.tensor([[1.0, -1.0], [2.0, 0.5]]), -torch.ones(2, 2), torch.ones(2, 2)]
    check(graph, [[x, torch.tensor(p)] for x in samples for p in (True, False)])
