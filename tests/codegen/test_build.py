"""Objects, other targets, and the quality of the inner loops."""

from __future__ import annotations

import re

import pytest
import torch

from monograph.codegen import build, target
from monograph.codegen.llvm import emit
from monograph.errors import CompileError
from monograph.loops.math import TABLE
from monograph.loops.nodes import Buffer, Carried, For, Kernel, Store, carry, const, fresh_var, index, load, op
from tests.codegen.agree import add, kernel, mul, pointwise, vector

F32 = torch.float32


def tile(rows: int, vectors: int, unroll: int, lanes: int) -> Kernel:
    """The inner kernel of a matrix product: rows x vectors accumulators."""
    depth, width = 384, vectors * lanes
    a, b, c = Buffer("a", F32, rows * depth), Buffer("b", F32, depth * width), Buffer("c", F32, rows * width)
    k = fresh_var("k")
    loop = For(k, index(0), index(depth), unroll=unroll,
               carried=[Carried(f"c{m}", F32, const(0.0, F32)) for m in range(rows)])

    def body(j):
        value = load(b, add(mul(k, index(width)), j))
        left = [load(a, add(index(m * depth), k)) for m in range(rows)]
        loop.yields = [op("fma", left[m], value, carry(loop, m), dtype=F32) for m in range(rows)]
        return [loop, *(Store(c, add(index(m * width), j), carry(loop, m)) for m in range(rows))]

    return kernel([a, b, c], [vector(width, body, unroll=vectors)])


@pytest.mark.parametrize(("rows", "vectors"), [(4, 2), (4, 3), (6, 2), (1, 4)])
@pytest.mark.parametrize("unroll", (1, 2, 4))
def test_register_tiles_do_not_spill(rows, vectors, unroll):
    machine = target.generic(256)
    text = build.assembly(tile(rows, vectors, unroll, 8), machine)
    assert not re.search(r"%ymm\d+, -?\d*\(%r[sb]p\)", text)
    assert text.count("vfmadd231ps") == rows * vectors * unroll


def test_wide_tile_fits_32_registers():
    text = build.assembly(tile(8, 3, 2, 16), target.generic(512))
    assert not re.search(r"%zmm\d+, -?\d*\(%rsp\)", text)


@pytest.mark.parametrize("bits", (128, 256, 512))
@pytest.mark.parametrize("fma", (True, False))
def test_every_operation_compiles_for_other_machines(bits, fma):
    machine = target.generic(bits, fma=fma)
    kernels = []
    for name, scalar in TABLE.items():
        if scalar.result == "same" and "f" in scalar.accepts:
            kernels.append(pointwise(
                lambda *a, name=name: op(name, *a, dtype=F32), [F32] * scalar.arity, F32, 37, unroll=1))
    for half in (torch.bfloat16, torch.float16):
        kernels.append(pointwise(lambda x, half=half: op("cast", x, dtype=half), [F32], half, 37))
    objects = build.compile_kernels(kernels, machine, jobs=2)
    assert all(data.startswith(b"\x7fELF") for data in objects)


def test_objects_do_not_depend_on_the_number_of_jobs():
    kernels = [pointwise(lambda x: op("exp", x, dtype=F32), [F32], F32, 8 * n) for n in range(1, 6)]
    names = {k.name.encode() for k in kernels}
    for jobs in (1, 2, 3):
        data = b"".join(build.compile_kernels(kernels, target.host(), jobs))
        assert all(name in data for name in names)
    assert build.compile_kernels(kernels, target.host(), 2) == build.compile_kernels(kernels, target.host(), 2)
    assert build.compile_kernels([], target.host()) == []


def test_with_and_without_the_lock_of_llvmlite_the_code_is_the_same():
    text = emit(pointwise(lambda x: op("tanh", x, dtype=F32), [F32], F32, 100), target.host())
    assert build.compile_text(text, target.host()) == build._compile_locked(text, target.host(), False)


def test_refused_text_is_a_compile_error():
    with pytest.raises(CompileError, match="refuses"):
        build.compile_text("define nonsense", target.host())


def test_lanes_follow_the_target():
    assert target.generic(512).lanes(F32) == 16
    assert target.generic(256).lanes(torch.bfloat16) == 8
    assert target.generic(512).narrowed(128).lanes(torch.float64) == 2
    assert target.host().lanes(torch.uint8) >= 16
