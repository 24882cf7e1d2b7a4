"""The reference evaluator: symbols, regions, prologue, layout of outputs, freeing."""

import weakref

import pytest
import torch

from monograph.errors import VerificationError
from monograph.ir.graph import Graph, Source
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import evaluate, text
from monograph.ops.build import Builder

F32 = torch.float32


def test_broadcasting_and_numbers_follow_torch():
    graph = Graph()
    x = graph.add_input(TensorType(torch.int64, (3, 1)), "x")
    b = Builder(graph)
    graph.outputs = [b.call("aten.div.Tensor", x, b.call("aten.add.Tensor", x, 1.5))]
    given = torch.arange(1, 4).reshape(3, 1)
    (got,) = evaluate.evaluate(graph, [given], check=True)
    torch.testing.assert_close(got, given / (given + 1.5), rtol=0, atol=0)


def test_symbols_are_bound_by_inputs():
    rows = Symbol("rows", 1)
    graph = Graph(symbols={"rows": rows})
    x = graph.add_input(TensorType(F32, (rows, 4)), "x")
    b = Builder(graph)
    graph.outputs = [b.call("aten.view.default", x, (2 * rows, 2))]
    (got,) = evaluate.evaluate(graph, [torch.ones(3, 4)], check=True)
    assert got.shape == (6, 2)


def test_outputs_own_their_memory_and_take_the_strides_of_their_type():
    graph = Graph()
    x = graph.add_input(TensorType(F32, (2, 3), strides=(3, 1)), "x")
    y = Builder(graph).call("aten.neg.default", x)
    y.type = TensorType(F32, (2, 3), strides=(1, 2))
    graph.outputs = [x, y, y]
    given = torch.randn(2, 3)
    first, second, third = evaluate.evaluate(graph, [given])
    assert second.stride() == (1, 2)
    assert len({t.data_ptr() for t in (given, first, second, third)}) == 4


def test_cond_and_while_run_their_regions():
    graph = Graph()
    x = graph.add_input(TensorType(F32, (2,)), "x")
    limit = graph.add_input(TensorType(F32, ()), "limit")

    condition = Graph("condition")
    c = condition.add_input(TensorType(F32, (2,)), "c")
    b = Builder(condition)
    condition.outputs = [b.call("aten.lt.Tensor", b.call("aten.sum.default", c), limit)]
    body = Graph("body")
    c = body.add_input(TensorType(F32, (2,)), "c")
    body.outputs = [Builder(body).call("aten.mul.Tensor", c, 2)]
    b = Builder(graph)
    (grown,) = b.region("mono.while", (x,), regions=(condition, body))

    then, otherwise = Graph("then"), Graph("otherwise")
    then.outputs = [Builder(then).call("aten.neg.default", grown)]
    otherwise.outputs = [grown]
    graph.outputs = list(b.region("mono.cond", b.call("aten.gt.Scalar", limit, 5.0), regions=(then, otherwise)))
    def run(limit):
        return evaluate.evaluate(graph, [torch.tensor([1.0, 2.0]), torch.tensor(limit)], check=True)[0]

    assert run(4.0).tolist() == [2.0, 4.0]
    assert run(10.0).tolist() == [-4.0, -8.0]


def test_prologue_computes_derived_inputs():
    prologue = Graph("prologue")
    w = prologue.add_input(TensorType(F32, (2,)), "w", Source("parameter", "w"))
    prologue.outputs = [Builder(prologue).call("aten.mul.Tensor", w, 2)]
    graph = Graph(prologue=prologue)
    x = graph.add_input(TensorType(F32, (2,)), "x")
    graph.add_input(TensorType(F32, (2,)), "w", Source("parameter", "w"))
    d = graph.add_input(TensorType(F32, (2,)), "d", Source("derived", "0"))
    graph.outputs = [Builder(graph).call("aten.add.Tensor", x, d)]
    assert evaluate.evaluate(graph, [torch.ones(2), torch.ones(2)])[0].tolist() == [3.0, 3.0]


def test_a_number_read_from_a_tensor_binds_its_symbol():
    count = Symbol("count")
    graph = Graph(symbols={"count": count})
    x = graph.add_input(TensorType(torch.int64, ()), "x")
    b = Builder(graph)
    number = b.call("aten._local_scalar_dense.default", x)
    number.type = ScalarType("int", "count")
    graph.outputs = [b.call("aten.add.Tensor", x, number), number]
    assert [int(v) for v in evaluate.evaluate(graph, [torch.tensor(3)])] == [6, 3]


def test_values_are_freed_at_their_last_use(monkeypatch):
    graph = Graph()
    x = graph.add_input(TensorType(F32, (2,)), "x")
    b = Builder(graph)
    first = b.call("aten.neg.default", x)
    b.call("aten.neg.default", b.call("aten.abs.default", first))
    graph.outputs = [b.call("aten.exp.default", x)]
    alive, inner = [], evaluate.run_node

    def watch(node, *args):
        alive.append(sum(ref() is not None for ref in refs))
        results = inner(node, *args)
        refs.extend(weakref.ref(r) for r in results)
        return results

    refs = []
    monkeypatch.setattr(evaluate, "run_node", watch)
    evaluate.evaluate(graph, [torch.ones(2)])
    assert alive == [0, 1, 1, 0]


def test_check_names_the_node_with_the_wrong_type():
    graph = Graph()
    x = graph.add_input(TensorType(F32, (2,)), "x")
    y = Builder(graph).call("aten.neg.default", x)
    y.type = TensorType(F32, (3,))
    graph.outputs = [y]
    with pytest.raises(VerificationError, match="aten.neg.default"):
        evaluate.evaluate(graph, [torch.ones(2)], check=True)


def test_grad_mode_records():
    graph = Graph()
    x = graph.add_input(TensorType(F32, (2,)), "x")
    graph.outputs = [Builder(graph).call("aten.mul.Tensor", x, x)]
    given = torch.ones(2, requires_grad=True)
    evaluate.evaluate(graph, [given], grad=True)[0].sum().backward()
    assert given.grad.tolist() == [2.0, 2.0]


def test_ambient_autocast_and_default_device_change_nothing():
    graph = text.parse("""
        graph {
            input %x: f32[2, 2]
            %y = aten.mm.default(%x, %x)
            %z = aten.full.default([2], 1.0)
            return %y, %z
        }""")
    with torch.autocast("cpu"), torch.device("meta"):
        y, z = evaluate.evaluate(graph, [torch.ones(2, 2, device="cpu")])
    assert y.dtype is F32 and z.device.type == "cpu"
