"""Compiled kernels against the interpreter of the loop IR."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from monograph.codegen import jit
from monograph.loops import interpret
from monograph.loops.nodes import Buffer, Expr, For, Kernel, Store, fresh_var, index, load, op

_names = itertools.count()


def kernel(arguments: list[Buffer], body: list, scratch: Sequence[Buffer] = ()) -> Kernel:
    return Kernel(f"k{next(_names)}", arguments, list(scratch), body)


def vector(extent: int | Expr, body, *, unroll: int = 2, carried=(), yields=(), lo: int | Expr = 0) -> For:
    """A vector loop; `body(i)` gives its statements."""
    i = fresh_var()
    lo, hi = (index(b) if isinstance(b, int) else b for b in (lo, extent))
    loop = For(i, lo, hi, "vector", unroll=unroll, carried=list(carried))
    loop.body = body(i)
    loop.yields = [y(i) if callable(y) else y for y in yields]
    return loop


def add(a: Expr, b: Expr) -> Expr:
    return op("add", a, b, dtype=a.dtype)


def mul(a: Expr, b: Expr) -> Expr:
    return op("mul", a, b, dtype=a.dtype)


def sample(dtype: torch.dtype, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(size, generator=generator) < 0.5
    if dtype.is_floating_point:
        return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
    low = 0 if dtype is torch.uint8 else -100
    return torch.randint(low, 100, (size,), generator=generator).to(dtype)


def outcomes(kernels: Sequence[Kernel], inputs: Sequence[list[torch.Tensor]]):
    """For each kernel: (arrays after native code, result, arrays after the interpreter, fault)."""
    loaded = jit.load(kernels)
    for entry, arrays in zip(kernels, inputs, strict=True):
        native, slow = ([a.clone() for a in arrays] for _ in range(2))
        result = loaded[entry.name](native)
        fault = interpret.run(entry, slow)
        yield native, result, slow, fault


def assert_agree(kernels: Sequence[Kernel], inputs: Sequence[list[torch.Tensor]], **tolerance) -> None:
    for number, (native, result, slow, fault) in enumerate(outcomes(kernels, inputs)):
        assert result is None and fault is None, kernels[number].name
        for mine, theirs in zip(native, slow, strict=True):
            torch.testing.assert_close(mine, theirs, equal_nan=True, **(tolerance or {"rtol": 0, "atol": 0}))


def pointwise(fn, dtypes: Sequence[torch.dtype], result: torch.dtype, size: int, unroll: int = 2) -> Kernel:
    """out[i] = fn(in0[i], in1[i], ...)"""
    buffers = [Buffer(f"a{n}", dtype, size) for n, dtype in enumerate(dtypes)]
    out = Buffer("out", result, size)
    loop = vector(size, lambda i: [Store(out, i, fn(*(load(b, i) for b in buffers)))], unroll=unroll)
    return kernel([*buffers, out], [loop])
