"""Splitting a joint graph: forward and backward together compute what the joint graph does."""

from __future__ import annotations

import torch
from hypothesis import HealthCheck, given, settings

from monograph.autodiff.partition import Partition, split
from monograph.capture.captured import Binding, Captured, JointInfo
from monograph.ir.boundary import Boundary
from monograph.ir.graph import Graph
from monograph.ir.verifier import verify
from monograph.ops import infer
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse
from tests.autodiff.test_regions import differentiated
from tests.region_graphs import inputs_for, regions


def captured(text: str, forward_outputs: int, tangents: dict[int, int], gradients: dict[int, int]) -> Captured:
    graph = parse(text)
    bindings = [Binding("argument", position) for position in range(len(graph.inputs))]
    return Captured(graph, Boundary(), bindings, JointInfo(forward_outputs, tangents, gradients))


TANH = """graph {
    input %x: f32[4, strides=[1]]
    input %t: f32[4, strides=[1]] = tangent 0
    %y = aten.tanh.default(%x)
    %v = aten.view.default(%y, [2, 2])
    %s = aten.mul.Tensor(%v, %v)
    %o: f32[4, strides=[1]] = aten.view.default(%s, [4])
    %g = aten.mul.Tensor(%t, 2)
    %w = aten.view.default(%v, [4])
    %h = aten.mul.Tensor(%g, %w)
    %q = aten.mul.Tensor(%w, %w)
    %r = aten.rsub.Scalar(%q, 1)
    %d: f32[4, strides=[1]] = aten.mul.Tensor(%h, %r)
    return %o, %d
}"""


def replay(partition: Partition, inputs: list[torch.Tensor], tangents: list[torch.Tensor]) -> list[torch.Tensor]:
    outputs = evaluate(partition.forward, inputs)
    pools = {"input": inputs, "output": outputs, "tangent": tangents}
    return evaluate(partition.backward, [pools[item.kind][item.position] for item in partition.backward_inputs])


def test_forward_and_backward_compute_what_the_joint_graph_does():
    joint = captured(TANH, 1, {0: 1}, {0: 1})
    x, t = torch.randn(4), torch.randn(4)
    expected = evaluate(joint.graph, [x, t])
    partition = split(joint)
    verify(partition.forward)
    verify(partition.backward)
    torch.testing.assert_close(evaluate(partition.forward, [x])[0], expected[0])
    torch.testing.assert_close(replay(partition, [x], [t])[0], expected[1])
    assert partition.gradients == [0]


def test_a_view_is_not_saved_its_base_is():
    partition = split(captured(TANH, 1, {0: 1}, {0: 1}))
    saved = partition.forward.outputs[1:]
    assert [value.node.op.name for value in saved] == ["aten.tanh.default"]


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_draws_run_forward():
    partition = split(captured("""graph {
        input %x: f32[4, strides=[1]]
        input %t: f32[4, strides=[1]] = tangent 0
        %m = aten.bernoulli.p(%x, 0.5)
        %o: f32[4, strides=[1]] = aten.mul.Tensor(%x, %m)
        %d: f32[4, strides=[1]] = aten.mul.Tensor(%t, %m)
        return %o, %d
    }""", 1, {0: 1}, {0: 1}))
    assert ops(partition.forward) == ["aten.bernoulli.p", "aten.mul.Tensor"]
    assert ops(partition.backward) == ["aten.mul.Tensor"]


def test_an_input_needed_backward_is_not_copied():
    partition = split(captured("""graph {
        input %x: f32[4, strides=[1]]
        input %w: f32[4, strides=[1]] = parameter "w"
        input %t: f32[4, strides=[1]] = tangent 0
        %o: f32[4, strides=[1]] = aten.mul.Tensor(%x, %w)
        %dx: f32[4, strides=[1]] = aten.mul.Tensor(%t, %w)
        %dw: f32[4, strides=[1]] = aten.mul.Tensor(%t, %x)
        return %o, %dx, %dw
    }""", 1, {0: 2}, {0: 1, 1: 2}))
    assert len(partition.forward.outputs) == 1
    assert [(item.kind, item.position) for item in partition.backward_inputs] == [
        ("input", 0), ("input", 1), ("tangent", 0)]
    assert partition.gradients == [0, 1]


# --- regions ------------------------------------------------------------------------------------

def joint_of(graph: Graph) -> Captured:
    """Forward and backward of `graph` by all its float inputs, in one."""
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    differentiated(graph)
    tangents = {number: graph.inputs.index(value) for number, value in zip(
        [k for k, out in enumerate(outputs) if out.tensor.dtype.is_floating_point], graph.inputs[len(inputs):],
        strict=True)}
    floats = [k for k, value in enumerate(inputs) if value.tensor.dtype.is_floating_point]
    gradients = {position: len(outputs) + number for number, position in enumerate(floats)}
    bindings = [Binding("argument", position) for position in range(len(graph.inputs))]
    return Captured(graph, Boundary(), bindings, JointInfo(len(outputs), tangents, gradients))


def check_split(joint: Captured, samples: list[list[torch.Tensor]]) -> Partition:
    partition = split(joint)
    for half in (partition.forward, partition.backward):
        verify(half, infer.result_types)
    count = joint.joint.forward_outputs
    for inputs in samples:
        results = evaluate(partition.forward, inputs, check=True)
        tangents = [torch.randn(results[number].shape) for number in joint.joint.tangents]
        expected = evaluate(joint.graph, [*inputs, *tangents])
        torch.testing.assert_close(results[:count], expected[:count], equal_nan=True)
        pools = {"input": inputs, "output": results, "tangent": dict(zip(joint.joint.tangents, tangents, strict=True))}
        given = [pools[item.kind][item.position] for item in partition.backward_inputs]
        found = dict(zip(partition.gradients, evaluate(partition.backward, given, check=True), strict=True))
        wanted = {position: expected[output] for position, output in joint.joint.gradients.items()}
        torch.testing.assert_close(found, wanted, equal_nan=True)
    return partition


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=regions(size=5))
def test_random_regions_split(graph: Graph):
    torch.manual_seed(0)
    samples = [inputs_for(graph, seed) for seed in range(3)]
    check_split(joint_of(graph), samples)


def test_a_loop_runs_forward_and_its_reverse_backward():
    graph = parse("""graph {
        input %x: f32[3]
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
                %d = aten.sin.default(%c)
                %l = aten.add.Tensor(%k, 1)
                return %d, %l
            }
        }
        return %y
    }""")
    partition = check_split(joint_of(graph), [[torch.randn(3), torch.tensor(n)] for n in (0, 1, 3)])
    assert ops(partition.forward) == ["aten.full.default", "mono.while", "mono.scalar"]
    assert [str(value.type) for value in partition.backward.inputs][:2] == [
        "f32[trips0, 3, strides=[3, 1]]", "i64[strides=[]]"]
    assert "mono.while" in ops(partition.backward)


def test_a_size_that_the_backward_needs_is_saved_as_a_number():
    joint = captured("""graph {
        symbol n: 0..
        input %x: f32[1, strides=[1]]
        input %k: i64[]
        input %t: f32[strides=[]] = tangent 0
        %n = mono.number(%k, symbol="n")
        %e = aten.expand.default(%x, [n])
        %o: f32[strides=[]] = aten.sum.default(%e)
        %s = aten.mul.Tensor(%t, n)
        %d: f32[1, strides=[1]] = aten.view.default(%s, [1])
        return %o, %d
    }""", 1, {0: 2}, {0: 1})
    partition = check_split(joint, [[torch.randn(1), torch.tensor(n)] for n in (0, 3)])
    assert ops(partition.backward) == ["mono.number", "aten.mul.Tensor", "aten.view.default"]
