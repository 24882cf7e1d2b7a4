"""Matrix products of the template against torch, on the interpreter: ragged sizes, strides, batches, epilogues."""

import pytest
import torch

from monograph.codegen.target import generic, host
from monograph.loops.nodes import Buffer, Store, load, op
from monograph.ops import panels
from monograph.templates import gemm
from monograph.templates.arith import add, mul
from tests.templates.running import run

TARGET = host()
F32 = torch.float32


def extent(t):
    return 1 + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))


def product(a, b, *, panel=None, bias=None, interpreted=True, target=TARGET):
    """a (.., m, k) @ b (.., k, n) through the template; with `panel` b is packed."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    batch = tuple(batch)
    cut = gemm.plan(batch, m, n, k, a.dtype, target, panel=panel)
    out = torch.full((*batch, m, n), float("nan"), dtype=a.dtype)
    data = b if panel is None else panels.apply(b, panels.gemm(k, n, panel))
    tensors = {"a": a, "b": data, "bias": a if bias is None else bias, "c": out}
    buffers = [Buffer(name, a.dtype, extent(t)) for name, t in tensors.items()]
    strides = b.stride() if panel is None else (0, 0)
    arguments = tuple(buffers if bias is not None else [buffers[0], buffers[1], buffers[3]])
    spec = gemm.Spec(batch, m, n, k, a.dtype, gemm.Operand(buffers[0], a.stride()), gemm.Operand(buffers[1], strides),
                     panel is not None, arguments, cut)

    def epilogue(acc, at):
        if bias is not None:
            acc = op("add", acc, load(buffers[2], at[-1]), dtype=a.dtype)
        return [Store(buffers[3], add(*(mul(x, s) for x, s in zip(at, out.stride(), strict=True))), acc)]

    kernel = gemm.build("g", spec, epilogue, target)
    run(kernel, [a, data, *([bias] if bias is not None else [])], [out], interpreted=interpreted)
    return out


@pytest.mark.parametrize("m, n, k, panel", [(1, 9, 5, 8), (7, 16, 10, 16), (13, 30, 9, 24), (6, 20, 400, 16)])
def test_packed_weight_with_bias(m, n, k, panel):
    a, b, bias = torch.randn(m, k), torch.randn(k, n), torch.randn(n)
    out = product(a, b, panel=panel, bias=bias)
    torch.testing.assert_close(out, a @ b + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m, n, k", [(5, 3, 4), (9, 21, 6), (2, 17, 400), (1, 70, 9), (3, 1, 5)])
def test_activation_operand_is_read_in_place_or_packed_by_the_kernel(m, n, k, transposed):
    a = torch.randn(2, m, k)
    b = torch.randn(2, n, k).mT if transposed else torch.randn(2, k, n)
    out = product(a, b)
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)


def test_strided_rows_and_transposed_a():
    a, b = torch.randn(11, 14).t()[:, 2:9], torch.randn(7, 10)
    a = a.contiguous().t().contiguous().t()          # k is the strided dim
    out = product(a, b, panel=16)
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [128, 512])
def test_plans_for_other_machines_compute_the_same(bits):
    a, b = torch.randn(19, 12), torch.randn(12, 53)
    target = generic(bits)
    torch.testing.assert_close(product(a, b, panel=target.lanes(F32) * 2, target=target), a @ b, rtol=1e-4, atol=1e-4)


def test_double():
    a, b, bias = torch.randn(9, 13).double(), torch.randn(13, 21).double(), torch.randn(21).double()
    torch.testing.assert_close(product(a, b, panel=12, bias=bias), a @ b + bias)


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_and_columns_far_apart_are_copied_together(transposed):
    m, n, k = 403, 250, 40
    a = torch.randn(k, 512).t()[:m] if transposed else torch.randn(m, 1024)[:, :k]
    b = torch.randn(k, n)
    torch.testing.assert_close(product(a, b, interpreted=False), a @ b, rtol=1e-4, atol=1e-4)


def test_large_products_are_parallel_and_small_ones_are_not():
    for size, kind in ((256, "parallel"), (16, "serial")):
        cut = gemm.plan((), size, size, size, F32, TARGET)
        operand = gemm.Operand(Buffer("a", F32, size * size), (size, 1))
        spec = gemm.Spec((), size, size, size, F32, operand, operand, False, (operand.buffer,), cut)
        assert gemm.build("g", spec, lambda acc, at: [], TARGET).body[0].kind == kind
