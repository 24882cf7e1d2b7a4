"""A vector loop that stands alone is a function of its own and computes the same."""

import torch

from monograph.codegen import jit, llvm
from monograph.codegen.target import host
from monograph.loops.nodes import Buffer, For, Kernel, Store, const, fresh_var, index, load, op


def kernel(alone: bool) -> tuple[Kernel, str]:
    """y[r, i] = x[r, i] * s[r] + 1, with the inner loop perhaps on its own."""
    f32 = torch.float32
    x, s, y = (Buffer(name, f32, size) for name, size in (("x", 60), ("s", 3), ("y", 60)))
    rows = For(fresh_var("r"), index(0), index(3))
    lane = For(fresh_var("i"), index(0), index(20), "vector", alone=alone)
    at = op("add", op("mul", rows.var, index(20), dtype=torch.int64), lane.var, dtype=torch.int64)
    value = op("fma", load(x, at), load(s, rows.var), const(1.0, f32), dtype=f32)
    lane.body = [Store(y, at, value)]
    rows.body = [lane]
    return Kernel("k", [x, s, y], [], [rows]), "@k.tile0("


def test_same_values() -> None:
    x, s = torch.randn(3, 20), torch.randn(3)
    for alone in (False, True):
        y = torch.empty(3, 20)
        jit.load([kernel(alone)[0]])["k"]([x, s, y])
        torch.testing.assert_close(y, x * s[:, None] + 1)


def test_defined_once_and_called() -> None:
    made, name = kernel(True)
    text = llvm.emit(made, host())
    assert text.count(f"define internal void {name}") == 1
    assert f"call void {name}" in text


def test_equal_kernels_have_equal_text() -> None:
    assert llvm.emit(kernel(True)[0], host()) == llvm.emit(kernel(True)[0], host())
