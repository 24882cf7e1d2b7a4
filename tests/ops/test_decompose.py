"""Opening composites: the graph ends in covered ops, and its values are eager's."""

import pytest
import torch

from monograph.ir.verifier import verify
from monograph.ops import evaluate, families, text
from monograph.ops.decompose import RULES, expand

BF16 = torch.bfloat16


def opened(graph):
    """`graph` expanded; fails when it did not change or something uncovered remains."""
    assert expand(graph)
    verify(graph)
    left = [n.op.name for n in graph.walk() if n.op.name not in families.KERNELS | {n: "" for n in families.TEMPLATE}]
    assert left == []
    return graph


def one(call, *types):
    """A graph of one call on operands %0, %1, ... of `types`."""
    inputs = "".join(f"    input %x{i}: {type}\n" for i, type in enumerate(types))
    graph = text.parse("graph {\n" + inputs + f"    {call}\n    return\n}}")
    graph.outputs = [v for v in graph.nodes[0].results]
    return graph


def compare(call, *types, rtol=1e-5, atol=1e-6):
    graph = one(call, *types)
    torch.manual_seed(0)
    given = []
    for value in graph.inputs:
        type = value.tensor
        if type.dtype.is_floating_point:
            given.append((torch.rand(type.shape) * 2 + 0.1).to(type.dtype))
        else:
            given.append(torch.randint(0, 3, type.shape).to(type.dtype))
    wanted = evaluate.evaluate(graph, given)
    got = evaluate.evaluate(opened(graph), given, check=True)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("call", [
    "aten._softmax.default(%x0, 1, False)",
    "aten._log_softmax.default(%x0, -1, False)",
    "aten._softmax_backward_data.default(%x0, %x1, 1, f32)",
    "aten._log_softmax_backward_data.default(%x0, %x1, 1, f32)",
    "aten.native_layer_norm.default(%x0, [4], None, None, 1e-5)",
    "aten.native_layer_norm.default(%x0, [3, 4], %x2, None, 1e-5)",
    "aten._fused_rms_norm.default(%x0, [4], None, 1e-6)",
    "aten.var.correction(%x0, [1], correction=0, keepdim=True)",
    "aten.var_mean.correction(%x0)",
    "aten.std_mean.correction(%x0, [0, 2], correction=2)",
    "aten.mean.dim(%x0, [-1])",
    "aten.sigmoid_backward.default(%x0, %x1)", "aten.silu_backward.default(%x0, %x1)",
    "aten.mish_backward.default(%x0, %x1)",
    "aten.repeat.default(%x0, [2, 1, 3, 1])", "aten.stack.default([%x0, %x1], -2)",
    "aten.diagonal_scatter.default(%x0, %x5, 1, 2, 1)", "aten.diagonal_scatter.default(%x0, %x6, -1, 0, 2)",
    "aten.addbmm.default(%x7, %x0, %x8, beta=0.5, alpha=2)", "aten._cdist_forward.default(%x0, %x3, 2.0, None)",
    "aten._cdist_forward.default(%x0, %x3, 0.0, None)", "aten._cdist_forward.default(%x0, %x3, 1.5, None)",
    "aten._cdist_forward.default(%x0, %x3, inf, None)",
    "aten.mv.default(%x2, %x9)", "aten.dot.default(%x9, %x9)", "aten.linalg_vector_norm.default(%x0, 2, [1], True)",
    "aten.polygamma.default(0, %x0)", "aten.polygamma.default(1, %x0)",
    "aten.diagonal_backward.default(%x5, [2, 3, 4], 1, 2, 1)",
    "aten.logsumexp.default(%x0, [1])", "aten.linalg_vector_norm.default(%x0)", "aten.tril.default(%x0, -1)",
    "aten.slice_scatter.default(%x0, %x3, 1, 1, 3)", "aten.select_scatter.default(%x0, %x4, 1, -2)",
    "aten.zeros_like.default(%x0)", "aten.full_like.default(%x0, 2.5)", "aten.copy.default(%x0, %x2)",
    "aten.mse_loss.default(%x0, %x1)", "aten.smooth_l1_loss.default(%x0, %x1)",
])
def test_values_of_float_ops(call):
    compare(call, "f32[2, 3, 4]", "f32[2, 3, 4]", "f32[3, 4]", "f32[2, 2, 4]", "f32[2, 4]", "f32[2, 2]",
            "f32[3, 1]", "f32[3, 5]", "f32[2, 4, 5]", "f32[4]")


@pytest.mark.parametrize("call", [
    "aten.index_copy.default(%x0, 1, %i1, %x2)", "aten.index_copy.default(%x0, -1, %i0, %x3)",
    "aten.index_put.default(%x0, [%i0], %x4)", "aten.index_put.default(%x0, [None, %i1], %x4)",
    "aten.index_put.default(%x0, [%i0, None, %i1], %x6)", "aten.index_put.default(%x0, [None, %i1, %n0], %x5)",
    "aten.index_put.default(%x0, [%n0, %n0, %i1], %x5)", "aten.index_put.default(%x0, [%i2, %i1], %x4)",
])
def test_writes_at_one_place_are_chosen(call):
    types = {"x0": "f32[2, 3, 4]", "x2": "f32[2, 1, 4]", "x3": "f32[2, 3, 1]", "x4": "f32[4]", "x5": "f32[]",
             "x6": "f32[3]", "i0": "i64[]", "i1": "i64[1]", "n0": "i64[]", "i2": "i32[1, 1]"}
    inputs = "".join(f"    input %{name}: {type}\n" for name, type in types.items())
    graph = text.parse("graph {\n" + inputs + f"    %y = {call}\n    return %y\n}}")
    numbers = [torch.tensor(1), torch.tensor([1]), torch.tensor(-1), torch.tensor([[1]], dtype=torch.int32)]
    floats = [torch.randn(value.tensor.shape) for value in graph.inputs[:6]]
    wanted = evaluate.evaluate(graph, [*floats, *numbers])
    for got, want in zip(evaluate.evaluate(opened(graph), [*floats, *numbers], check=True), wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("place", [3, -1, -4])
def test_writes_at_no_place_raise(place):
    graph = opened(one("aten.index_copy.default(%x0, 0, %x1, %x2)", "f32[3]", "i64[1]", "f32[1]"))
    with pytest.raises(IndexError):
        evaluate.evaluate(graph, [torch.zeros(3), torch.tensor([place]), torch.ones(1)])


@pytest.mark.parametrize("call", [
    "aten.native_group_norm.default(%x0, %x1, %x1, 2, 6, 20, 3, 1e-5)",
    "aten._native_batch_norm_legit_no_training.default(%x0, %x1, %x1, %x1, %x1, 0.1, 1e-5)",
    "aten._native_batch_norm_legit_functional.default(%x0, %x1, %x1, %x1, %x1, True, 0.1, 1e-5)",
    "aten._native_batch_norm_legit.no_stats(%x0, %x1, None, True, 0.1, 1e-5)",
    "aten._adaptive_avg_pool2d.default(%x0, [2, 2])", "aten._adaptive_avg_pool3d.default(%x0, [3, 2, 1])",
    "aten.upsample_nearest2d.default(%x0, [8, 10])",
    "aten.upsample_bilinear2d.default(%x0, [8, 7], False)",
    "aten.upsample_nearest2d.default(%x0, [12, 7], scales_h=3.05, scales_w=1.525)",
    "aten.pixel_shuffle.default(%x2, 2)",
])
def test_values_of_image_ops(call):
    compare(call, "f32[2, 6, 4, 5]", "f32[6]", "f32[1, 4, 3, 2]", rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [
    "aten._softmax.default(%x0, 1, False)", "aten._log_softmax.default(%x0, 1, False)",
    "aten.silu_backward.default(%x0, %x0)", "aten.mean.dim(%x0, [1])", "aten.mean.default(%x0)",
    "aten.var.correction(%x0, [1])", "aten.sigmoid_backward.default(%x0, %x0)",
    "aten.native_layer_norm.default(%x0, [64], %x1, %x1, 1e-5)",
])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_floats_are_rounded_where_eager_rounds(call, dtype):
    step = 2**-8 if dtype == "bf16" else 2**-11
    compare(call, f"{dtype}[16, 64]", f"{dtype}[64]", rtol=2 * step, atol=1e-6)


@pytest.mark.parametrize("call", [
    "aten.mean.dim(%x0, [1], dtype=f32)", "aten.take.default(%x0, %x0)", "aten.ones_like.default(%x0)",
    "aten.stack.default([%x0, %x0])", "aten.triu.default(%x0)", "aten.arange.default(7)",
])
def test_values_of_integer_ops(call):
    compare(call, "i64[3, 4]")


def test_a_reduction_over_nothing_is_nan():
    compare("aten.var.correction(%x0, [1])", "f32[2, 0]")
    compare("aten.mean.dim(%x0, [1])", "f32[2, 0]")


def test_a_fold_over_nothing_is_a_constant():
    graph = opened(one("aten.sum.dim_IntList(%x0, [1])", "f32[2, 0]"))
    assert [n.op.name for n in graph.nodes] == ["aten.full.default"]
    compare("aten.prod.dim_int(%x0, 1)", "f32[2, 0]")
    compare("aten.all.dim(%x0, 1)", "f32[2, 0]")


def test_named_ops_stay_whole():
    graph = one("aten._softmax.default(%x0, 1, False)", "f32[2, 3]")
    assert not expand(graph, keep={"aten._softmax.default"})


def test_an_op_without_a_way_into_covered_ops_stays_whole():
    graph = one("aten.sort.default(%x0)", "f32[4]")
    assert not expand(graph)
    assert [n.op.name for n in graph.nodes] == ["aten.sort.default"]


@pytest.mark.parametrize("call", [
    "aten.upsample_nearest2d.default(%x0, [8, 10], scales_h=2.025, scales_w=2.0)",
    "aten.upsample_bilinear2d.default(%x0, [4, 5], False, scales_h=1.0, scales_w=1.05)",
])
def test_a_scale_that_eager_rounds_stays_whole(call):
    assert not expand(one(call, "f32[2, 6, 4, 5]"))


def test_new_nodes_have_the_line_of_the_old():
    graph = text.parse("""
        graph {
            input %x: f32[2, 3]
            %y = aten._softmax.default(%x, 1, False)    # model.py:7 in forward
            %z = aten.tril.default(%y)                  # model.py:8 in forward
            return %z
        }""")
    expand(graph)
    assert {n.loc.line for n in graph.nodes} == {7, 8}


def test_symbolic_sizes():
    graph = text.parse("""
        graph {
            symbol n: 1..
            input %x: f32[n, 8]
            %y = aten._softmax.default(%x, 1, False)
            %z, %m, %r = aten.native_layer_norm.default(%y, [8], None, None, 1e-5)
            return %z
        }""")
    given = torch.randn(5, 8)
    wanted = torch.nn.functional.layer_norm(given.softmax(1), (8,))
    torch.testing.assert_close(evaluate.evaluate(opened(graph), [given], check=True)[0], wanted)


def test_regions_are_opened_too():
    graph = text.parse("""
        graph {
            input %x: f32[2, 3]
            %p = aten.sum.default(%x)
            %c = mono.cond(%p) {
                then {
                    %a = aten.silu_backward.default(%x, %x)
                    return %a
                }
                otherwise {
                    return %x
                }
            }
            return %c
        }""")
    assert expand(graph)
    verify(graph)
    assert "aten.sigmoid.default" in [n.op.name for n in graph.nodes[1].regions[0].nodes]


def test_outputs_keep_their_strides():
    graph = text.parse("""
        graph {
            input %x: f32[2, 3, strides=[3, 1]]
            %y: f32[2, 3, strides=[1, 2]] = aten.silu_backward.default(%x, %x)
            %z: f32[2, 3, strides=[1, 2]] = aten.copy.default(%x, %x)
            return %y, %z
        }""")
    expand(graph)
    verify(graph)
    got = evaluate.evaluate(graph, [torch.randn(2, 3)])
    assert [t.stride() for t in got] == [(1, 2), (1, 2)]
    assert graph.inputs[0].tensor.strides == (3, 1)


def test_rules_name_ops_of_torch():
    for name in RULES:
        text.table.lookup(name)
