"""Gradients of pooling, upsampling and losses: eager's values without a library call."""

import itertools

import pytest
import torch

from monograph.ir.verifier import verify
from monograph.ops import evaluate, families, text
from monograph.ops.decompose import expand


def compare(call, *given, results=1):
    """The first results, expanded against eager, on the tensors `given`; operands are %x0, %x1, ..."""
    names = {torch.float32: "f32", torch.int64: "i64"}
    inputs = "".join(f"    input %x{i}: {names[x.dtype]}{list(x.shape)}\n" for i, x in enumerate(given))
    graph = text.parse("graph {\n" + inputs + f"    {call}\n    return\n}}")
    graph.outputs = list(graph.nodes[0].results[:results])
    wanted = evaluate.evaluate(graph, given)
    assert expand(graph)
    verify(graph)
    assert all(node.op.name in families.KERNELS for node in graph.nodes)
    got = evaluate.evaluate(graph, given, check=True)
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kernel", "stride", "padding", "divisor"), [
    ((2, 2), (2, 2), (0, 0), None), ((3, 3), (2, 2), (1, 1), None), ((3, 2), (1, 3), (1, 0), None),
    ((3, 3), (1, 1), (1, 1), 4), ((2, 3), (), (0, 1), None),
])
@pytest.mark.parametrize("size", [(8, 9), (7, 11)])
def test_avg_pool2d(kernel, stride, padding, divisor, size):
    x = torch.randn(2, 3, *size)
    y = torch.ops.aten.avg_pool2d(x, kernel, stride, padding, False, True, divisor)
    call = (f"aten.avg_pool2d_backward.default(%x0, %x1, {list(kernel)}, {list(stride)}, {list(padding)}, False, True, "
            f"{divisor})")
    compare(call, torch.randn_like(y), x)


def test_avg_pool3d():
    x = torch.randn(2, 3, 6, 5, 7)
    y = torch.ops.aten.avg_pool3d(x, (2, 3, 2), (2, 1, 2), (1, 1, 0), False, True)
    compare("aten.avg_pool3d_backward.default(%x0, %x1, [2, 3, 2], [2, 1, 2], [1, 1, 0], False, True, None)",
            torch.randn_like(y), x)


def test_adaptive_pooling_and_upsampling_by_whole_factors():
    compare("aten._adaptive_avg_pool2d_backward.default(%x0, %x1)", torch.randn(2, 3, 2, 3), torch.randn(2, 3, 6, 3))
    compare("aten.upsample_nearest2d_backward.default(%x0, [6, 9], [2, 3, 3, 3])", torch.randn(2, 3, 6, 9))
    compare("aten.upsample_nearest1d_backward.default(%x0, [6], [2, 3, 3], 2.0)", torch.randn(2, 3, 6))


def test_other_factors_stay_whole():
    graph = text.parse("""
        graph {
            input %g: f32[1, 1, 5, 5]
            %y = aten.upsample_nearest2d_backward.default(%g, [5, 5], [1, 1, 3, 3])
            return %y
        }""")
    assert not expand(graph)


@pytest.mark.parametrize(("shape", "weighted", "reduction"), [
    *itertools.product([(4, 5), (5,), (2, 5, 3, 2)], [False, True], [0, 1, 2]),
])
def test_nll_loss(shape, weighted, reduction):
    batch = (*shape[:1], *shape[2:]) if len(shape) > 1 else ()
    target = torch.randint(0, 5, batch)
    if batch:
        target.view(-1)[0] = 2
        target.view(-1)[-1] = 1           # the ignored class
    else:
        target.fill_(3)
    weight = torch.rand(5) if weighted else None
    op = "nll_loss2d" if len(shape) == 4 else "nll_loss"
    x = torch.randn(shape)
    out, total = getattr(torch.ops.aten, f"{op}_forward")(x, target, weight, reduction, 1)
    call = f"aten.{op}_backward.default(%x0, %x1, %x2, {'%x4' if weighted else None}, {reduction}, 1, %x3)"
    compare(call, torch.randn_like(out), x, target, total, *([weight] if weighted else []))
    compare(f"aten.{op}_forward.default(%x0, %x1, {'%x2' if weighted else None}, {reduction}, 1)",
            x, target, *([weight] if weighted else []),
            results=1 if reduction == 0 else 2)      # without reduction torch leaves the total weight undefined


@pytest.mark.parametrize("wrong", [5, -1])
def test_a_target_that_is_no_class_raises_index_error(wrong):
    graph = text.parse("""
        graph {
            input %x: f32[2, 5]
            input %t: i64[2]
            %y, %w = aten.nll_loss_forward.default(%x, %t, None, 1, -100)
            return %y
        }""")
    assert expand(graph)
    with pytest.raises(IndexError):
        evaluate.evaluate(graph, [torch.randn(2, 5), torch.tensor([1, wrong])])
