"""Splitting a joint graph: forward and backward together compute what the joint graph does."""

from __future__ import annotations

import torch

from monograph.autodiff.partition import Partition, split
from monograph.capture.captured import Binding, Captured, JointInfo
from monograph.ir.boundary import Boundary
from monograph.ir.graph import Graph
from monograph.ir.verifier import verify
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse


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
