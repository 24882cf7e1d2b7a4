"""Convolutions of the template against torch, on the interpreter."""

import random
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from monograph.codegen.target import host
from monograph.loops.nodes import Buffer, Store, const, load, op
from monograph.ops import panels
from monograph.templates import conv
from monograph.templates.arith import add, mul
from tests.templates.running import run

TARGET = host()
F32 = torch.float32


def convolve(x, w, bias, *, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, change=lambda cut: cut,
             interpreted=True):
    """relu(conv2d) through the template; the result is channels last."""
    n, c, h, width = x.shape
    o, _, kh, kw = w.shape
    expected = F.relu(F.conv2d(x, w, bias, stride, padding, dilation, groups))
    out = torch.full(expected.shape, float("nan"), dtype=x.dtype).to(memory_format=torch.channels_last)
    shape = conv.Shape(n, c, h, width, o, *expected.shape[2:], kh, kw, stride, padding, dilation, groups)
    panel = 16 if o // groups > 8 else 8
    cut = change(conv.plan(shape, x.stride(), x.dtype, TARGET, panel=None if shape.depthwise else panel))
    steps = panels.depthwise(c, kh, kw) if shape.depthwise else panels.conv(o, c, kh, kw, groups, panel)
    weight = panels.apply(w, steps)
    buffers = [Buffer(name, x.dtype, t.numel()) for name, t in (("x", x), ("w", weight), ("bias", bias), ("y", out))]
    spec = conv.Spec(shape, x.dtype, buffers[0], x.stride(), buffers[1], tuple(buffers), cut)

    def epilogue(acc, at):
        acc = op("add", acc, load(buffers[2], at[1]), dtype=x.dtype)
        acc = op("max", acc, const(0.0, x.dtype), dtype=x.dtype)
        return [Store(buffers[3], add(*(mul(i, s) for i, s in zip(at, out.stride(), strict=True))), acc)]

    kernel = conv.build("c", spec, epilogue, TARGET)
    run(kernel, [x, weight, bias], [out], interpreted=interpreted and x.numel() < 400)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


CASES = {
    "pointwise": ((1, 5, 4, 4), (9, 5, 1, 1), {}),
    "pointwise with stride": ((1, 3, 5, 7), (8, 3, 1, 1), {"stride": (2, 2)}),
    "3x3 with padding": ((1, 4, 6, 5), (10, 4, 3, 3), {"padding": (1, 1)}),
    "stem": ((1, 3, 10, 10), (8, 3, 7, 7), {"stride": (2, 2), "padding": (3, 3)}),
    "dilation": ((1, 2, 8, 8), (8, 2, 3, 3), {"padding": (2, 1), "dilation": (2, 2)}),
    "groups": ((1, 6, 5, 4), (8, 3, 3, 3), {"padding": (1, 1), "groups": 2}),
    "depthwise": ((1, 11, 5, 6), (11, 1, 3, 3), {"padding": (1, 1), "groups": 11}),
    "depthwise with stride": ((1, 20, 5, 6), (20, 1, 3, 3), {"stride": (2, 2), "padding": (1, 1), "groups": 20}),
    "one dimension": ((2, 3, 1, 17), (5, 3, 1, 5), {"stride": (1, 2), "padding": (0, 2)}),
    "batch": ((2, 3, 4, 4), (4, 3, 2, 2), {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("channels_last", [True, False])
def test_against_torch(case, channels_last):
    x_shape, w_shape, options = CASES[case]
    x = torch.randn(x_shape)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    convolve(x, torch.randn(w_shape), torch.randn(w_shape[0]), **options)


@pytest.mark.parametrize("seed", range(10))
def test_random_shapes(seed):
    pick = random.Random(seed).choice
    torch.manual_seed(seed)
    groups = pick([1, 1, 2, 3])
    depthwise = pick([True, False, False])
    c = groups * pick([1, 2, 5, 9])
    o = c if depthwise else groups * pick([1, 7, 8, 20])
    groups = c if depthwise else groups
    kernel = pick([(1, 1), (3, 3), (2, 5), (1, 7)])
    options = {name: (pick(values), pick(values)) for name, values in (("stride", [1, 2, 3]), ("dilation", [1, 2]))}
    options |= {"padding": (pick([0, 1, 3]), pick([0, 2]))}
    x = torch.randn(pick([1, 2]), c, pick([1, 9, 14]) + 2 * kernel[0], pick([1, 9, 21]) + 2 * kernel[1])
    x = pick([x, x.to(memory_format=torch.channels_last)])
    convolve(x, torch.randn(o, c // groups, *kernel), torch.randn(o), groups=groups, interpreted=False, **options)


def test_long_reductions_are_cut_into_blocks():
    x = torch.randn(1, 8, 3, 3).to(memory_format=torch.channels_last)
    convolve(x, torch.randn(8, 8, 3, 3), torch.randn(8), padding=(1, 1), change=lambda cut: replace(cut, block=12))


def test_double():
    x = torch.randn(1, 4, 6, 5).double()
    convolve(x, torch.randn(10, 4, 3, 3).double(), torch.randn(10).double(), padding=(1, 1))
