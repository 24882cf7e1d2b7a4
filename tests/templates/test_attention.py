"""Attention of the template against torch, on the interpreter."""

import pytest
import torch
import torch.nn.functional as F

from monograph.codegen.target import host
from monograph.loops.nodes import Buffer, Store
from monograph.templates import attention
from monograph.templates.arith import add, mul
from monograph.templates.gemm import Operand
from tests.templates.running import run

TARGET = host()
F32 = torch.float32


def attend(q, k, v, mask=None, *, causal=False, scale=None):
    """(result, logsumexp) through the template."""
    b, h, s, d = q.shape
    t, e = v.shape[2:]
    shape = attention.Shape(b, h, s, t, d, e, causal)
    out, lse = torch.full((b, h, s, e), float("nan"), dtype=q.dtype), torch.full((b, h, s), float("nan"), dtype=q.dtype)
    inputs = {"q": q, "k": k, "v": v} | ({"mask": mask} if mask is not None else {})
    tensors = inputs | {"out": out, "lse": lse}
    buffers = {name: Buffer(name, x.dtype, x.untyped_storage().size() // x.itemsize) for name, x in tensors.items()}
    operand = {name: Operand(buffers[name], x.expand(b, h, s, t).stride() if name == "mask" else x.stride())
               for name, x in tensors.items()}
    spec = attention.Spec(shape, q.dtype, operand["q"], operand["k"], operand["v"], operand.get("mask"),
                          scale if scale is not None else d ** -0.5, tuple(buffers.values()),
                          attention.plan(shape, q.dtype, TARGET))

    def store(name):
        return lambda x, at: [Store(buffers[name], add(*map(mul, at, tensors[name].stride())), x)]

    kernel = attention.build("a", spec, store("out"), TARGET, logsumexp=store("lse"))
    run(kernel, list(inputs.values()), [out, lse], interpreted=q.numel() < 200)
    return out, lse


@pytest.mark.parametrize("s, t, d, e", [(7, 5, 4, 4), (9, 19, 8, 20), (2, 33, 12, 12)])
@pytest.mark.parametrize("causal", [False, True])
def test_sizes(s, t, d, e, causal):
    q, k, v = torch.randn(1, 2, s, d), torch.randn(1, 2, t, d), torch.randn(1, 2, t, e)
    out, lse = attend(q, k, v, causal=causal)
    scores = q @ k.mT * d ** -0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(s, t, dtype=torch.bool).tril(), -torch.inf)
    torch.testing.assert_close(out, scores.softmax(-1) @ v, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse, scores.logsumexp(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_keys(causal, monkeypatch):
    monkeypatch.setattr(attention, "KEY_BLOCK", 16)
    q, k, v = torch.randn(1, 1, 40, 4), torch.randn(1, 1, 40, 4), torch.randn(1, 1, 40, 6)
    out, _ = attend(q, k, v, causal=causal)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, is_causal=causal), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 6, 10), (2, 1, 1, 10), (6, 10)])
@pytest.mark.parametrize("dtype", [torch.bool, F32])
def test_masks_broadcast_and_a_fully_masked_row_gives_zeros(shape, dtype):
    q, k, v = torch.randn(2, 2, 6, 8), torch.randn(2, 2, 10, 8), torch.randn(2, 2, 10, 8)
    mask = torch.rand(shape) > 0.4
    mask[..., 0, :] = False
    if dtype is not torch.bool:
        mask = torch.zeros(shape).masked_fill(~mask, -torch.inf)
    out, lse = attend(q, k, v, mask)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, mask), rtol=1e-5, atol=1e-5)
    assert (lse[..., 0] == 0).all()      # as torch's backward wants it


def test_heads_side_by_side_and_a_scale():
    q, k, v = (torch.randn(2, 5, 3 * 4).view(2, 5, 3, 4).transpose(1, 2) for _ in range(3))
    out, _ = attend(q, k, v, scale=0.3)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, scale=0.3), rtol=1e-5, atol=1e-5)


def test_nan_and_far_scores():
    q, k, v = torch.randn(1, 1, 6, 8), torch.randn(1, 1, 20, 8), torch.randn(1, 1, 20, 8)
    q[..., 2, 3] = torch.nan
    q[..., 4, :] *= 200.0
    out, _ = attend(q, k, v)
    expected = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_double():
    q, k, v = torch.randn(1, 2, 7, 8).double(), torch.randn(1, 2, 19, 8).double(), torch.randn(1, 2, 19, 8).double()
    torch.testing.assert_close(attend(q, k, v)[0], F.scaled_dot_product_attention(q, k, v))
