"""Loops of every kind against the interpreter, with sizes that leave remainders."""

from __future__ import annotations

import pytest
import torch

from monograph.codegen import jit
from monograph.loops.nodes import (
    Buffer,
    Carried,
    Check,
    Combine,
    For,
    Store,
    carry,
    const,
    fresh_var,
    index,
    load,
    op,
)
from tests.codegen.agree import add, assert_agree, kernel, mul, outcomes, pointwise, sample, vector

F32, I64, BOOL = torch.float32, torch.int64, torch.bool
SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100)
DTYPES = (
    torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool,
)


def test_pointwise_of_every_size():
    kernels = [pointwise(lambda x, y: add(mul(x, y), x), [F32, F32], F32, n, unroll=4) for n in SIZES]
    assert_agree(kernels, [[sample(F32, n), sample(F32, n, 1), torch.zeros(n)] for n in SIZES])


@pytest.mark.parametrize("size", (5, 64, 77))
def test_copies_of_every_dtype(size):
    kernels = [pointwise(lambda x: x, [d], d, size) for d in DTYPES]
    assert_agree(kernels, [[sample(d, size), torch.zeros(size, dtype=d)] for d in DTYPES])


def test_casts_between_all_dtypes():
    pairs = [(a, b) for a in DTYPES for b in DTYPES if a is not b]
    kernels = [pointwise(lambda x, b=b: op("cast", x, dtype=b), [a], b, 21) for a, b in pairs]
    assert_agree(kernels, [[sample(a, 21), torch.zeros(21, dtype=b)] for a, b in pairs])


@pytest.mark.parametrize("combine", list(Combine))
def test_reductions(combine):
    bits = combine in (Combine.AND, Combine.OR, Combine.XOR)
    cases = [(d, n) for d in ((torch.int32, torch.uint8, BOOL) if bits else (F32, torch.float64, I64)) for n in SIZES]
    kernels, inputs = [], []
    for dtype, n in cases:
        x, out = Buffer("x", dtype, n), Buffer("out", dtype, 1)
        init = const(2 if not bits else True, dtype)
        loop = vector(n, lambda i: [], carried=[Carried("s", dtype, init, combine)], yields=[lambda i, x=x: load(x, i)])
        kernels.append(kernel([x, out], [loop, Store(out, index(0), carry(loop, 0))]))
        inputs.append([sample(dtype, n), torch.zeros(1, dtype=dtype)])
    assert_agree(kernels, inputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", (0, 5, 17, 32))
def test_nan_wins_in_max_and_min(where):
    x, out = Buffer("x", F32, 33), Buffer("out", F32, 2)
    lowest = const(float("-inf"), F32)
    carried = [Carried("a", F32, lowest, Combine.MAX), Carried("b", F32, const(9.0, F32), Combine.MIN)]
    loop = vector(33, lambda i: [], carried=carried, yields=[lambda i: load(x, i)] * 2)
    entry = kernel([x, out], [loop, Store(out, index(0), carry(loop, 0)), Store(out, index(1), carry(loop, 1))])
    values = sample(F32, 33)
    values[where] = float("nan")
    assert_agree([entry], [[values, torch.zeros(2)]])


def test_softmax_rows_in_parallel():
    rows, columns = 9, 37
    x, out = Buffer("x", F32, rows * columns), Buffer("out", F32, rows * columns)
    scratch = Buffer("row", F32, columns, "scratch")
    r = fresh_var("r")
    base = mul(r, index(columns))
    top = vector(columns, lambda i: [], carried=[Carried("m", F32, const(float("-inf"), F32), Combine.MAX)],
                 yields=[lambda i: load(x, add(base, i))])
    exponent = lambda i: op("exp", op("sub", load(x, add(base, i)), carry(top, 0), dtype=F32), dtype=F32)  # noqa: E731
    total = vector(columns, lambda i: [Store(scratch, i, exponent(i))], unroll=1,
                   carried=[Carried("s", F32, const(0.0, F32), Combine.SUM)], yields=[exponent])
    divide = vector(columns, lambda i: [
        Store(out, add(base, i), op("div", load(scratch, i), carry(total, 0), dtype=F32))])
    entry = kernel([x, out], [For(r, index(0), index(rows), "parallel", body=[top, total, divide])], [scratch])
    assert_agree([entry], [[sample(F32, rows * columns), torch.zeros(rows * columns)]], rtol=1e-6, atol=1e-7)


def test_large_parallel_loop_uses_threads():
    rows, columns = 3001, 100
    x, out = Buffer("x", F32, rows * columns), Buffer("out", F32, rows * columns)
    r = fresh_var("r")
    body = vector(columns, lambda i: [
        Store(out, add(mul(r, index(columns)), i), op("sin", load(x, add(mul(r, index(columns)), i)), dtype=F32))])
    entry = kernel([x, out], [For(r, index(0), index(rows), "parallel", body=[body])])
    values = sample(F32, rows * columns)
    (native, result, _, _), = _native_only([entry], [[values, torch.zeros(rows * columns)]])
    assert result is None
    torch.testing.assert_close(native[1], values.sin())


def _native_only(kernels, inputs):
    loaded = jit.load(kernels)
    return [(arrays, loaded[k.name](arrays), None, None) for k, arrays in zip(kernels, inputs, strict=True)]


def test_values_of_earlier_loops_reach_parallel_loops():
    n = 50
    x, out = Buffer("x", F32, n), Buffer("out", F32, n)
    carried = [Carried("s", F32, const(0.0, F32), Combine.SUM)]
    total = vector(n, lambda i: [], carried=carried, yields=[lambda i: load(x, i)])
    r = fresh_var("r")
    spread = For(r, index(0), index(n), "parallel", body=[Store(out, r, add(load(x, r), carry(total, 0)))])
    assert_agree([kernel([x, out], [total, spread])], [[sample(F32, n), torch.zeros(n)]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("unroll", (1, 3, 4, 16))
def test_scan_keeps_the_order(unroll):
    n = 11
    x, out = Buffer("x", F32, n), Buffer("out", F32, n)
    i = fresh_var()
    loop = For(i, index(0), index(n), unroll=unroll, carried=[Carried("s", F32, const(0.0, F32))])
    loop.yields = [add(carry(loop, 0), load(x, i))]
    loop.body = [Store(out, i, loop.yields[0])]
    assert_agree([kernel([x, out], [loop, Store(out, index(0), carry(loop, 0))])], [[sample(F32, n), torch.zeros(n)]])


@pytest.mark.parametrize(("n", "depth", "unroll"), [(48, 16, 1), (50, 13, 4), (7, 5, 2), (100, 4, 4)])
def test_register_tile(n, depth, unroll):
    """C[m, n] = A[m, k] @ B[k, n]: exact carries with lanes in a serial loop in a vector loop."""
    rows = 4
    a, b, c = Buffer("a", F32, rows * depth), Buffer("b", F32, depth * n), Buffer("c", F32, rows * n)
    k = fresh_var("k")

    def tile(j):
        loop = For(k, index(0), index(depth), unroll=unroll,
                   carried=[Carried(f"c{m}", F32, const(0.0, F32)) for m in range(rows)])
        value = load(b, add(mul(k, index(n)), j))
        left = [load(a, add(index(m * depth), k)) for m in range(rows)]
        loop.yields = [op("fma", left[m], value, carry(loop, m), dtype=F32) for m in range(rows)]
        return [loop, *(Store(c, add(index(m * n), j), carry(loop, m)) for m in range(rows))]

    entry = kernel([a, b, c], [vector(n, tile, unroll=3)])
    arrays = [sample(F32, rows * depth), sample(F32, depth * n), torch.zeros(rows * n)]
    assert_agree([entry], [arrays], rtol=1e-5, atol=1e-5)


def test_accesses_backwards_strided_and_indirect():
    n = 37
    for dtype in (F32, torch.float64, torch.bfloat16, torch.uint8, BOOL, I64):
        x, table, out = Buffer("x", dtype, 3 * n), Buffer("t", I64, n), Buffer("out", dtype, 5 * n)

        def body(i, x=x, table=table, out=out):
            back = op("sub", index(n - 1), i, dtype=I64)
            return [
                Store(out, i, load(x, back)),
                Store(out, add(back, index(n)), load(x, i)),
                Store(out, add(index(2 * n), i), load(x, mul(i, index(2)))),
                Store(out, add(index(3 * n), mul(i, index(2))), load(x, mul(i, index(3)))),
                Store(out, add(index(3 * n + 1), mul(load(table, i), index(2))), load(x, load(table, i))),
            ]

        entry = kernel([x, table, out], [vector(n, body)])
        order = torch.randperm(n, generator=torch.Generator().manual_seed(1))
        assert_agree([entry], [[sample(dtype, 3 * n), order, torch.zeros(5 * n, dtype=dtype)]])


def test_masked_accesses_touch_nothing_else():
    n = 37
    for dtype in (F32, torch.float16, torch.int8, I64):
        x, out = Buffer("x", dtype, n), Buffer("out", dtype, 4 * n)

        def body(i, x=x, out=out, dtype=dtype):
            shifted = op("sub", i, index(5), dtype=I64)
            inside = op("ge", shifted, index(0), dtype=BOOL)
            far = add(i, index(1 << 40))
            return [
                Store(out, i, load(x, shifted, inside, const(7, dtype))),
                Store(out, add(i, index(n)), load(x, far, op("lt", i, index(0), dtype=BOOL))),
                Store(out, add(i, index(2 * n)), load(x, mul(shifted, index(3)), op(
                    "and", inside, op("lt", mul(shifted, index(3)), index(n), dtype=BOOL), dtype=BOOL))),
                Store(out, add(far, index(0)), const(1, dtype), op("gt", i, index(n), dtype=BOOL)),
                Store(out, add(i, index(3 * n)), const(1, dtype), op("ne", i, index(3), dtype=BOOL)),
            ]

        assert_agree([kernel([x, out], [vector(n, body)])], [[sample(dtype, n), torch.zeros(4 * n, dtype=dtype)]])


def test_uniform_masks_choose_an_address():
    n = 19
    x, out = Buffer("x", F32, n), Buffer("out", F32, 3 * n)
    r = fresh_var("r")
    inside = op("gt", r, index(0), dtype=BOOL)
    where = add(op("sub", r, index(1), dtype=I64), index(0))
    row = vector(n, lambda i: [Store(out, add(mul(r, index(n)), i), add(
        load(x, add(mul(where, index(1 << 40)), i), op("eq", r, index(1), dtype=BOOL), const(2.0, F32)),
        load(x, where, inside, const(3.0, F32))))])
    loop = For(r, index(0), index(3), body=[row])
    assert_agree([kernel([x, out], [loop])], [[sample(F32, n), torch.zeros(3 * n)]])


def test_dynamic_bounds():
    """Row r has r elements; a loop that does not run leaves its carried value alone and reads nothing."""
    n = 41
    x, out = Buffer("x", F32, n), Buffer("out", F32, n)
    r = fresh_var("r")
    total = vector(r, lambda i: [], carried=[Carried("s", F32, const(1.0, F32), Combine.SUM)],
                   yields=[lambda i: mul(load(x, i), load(x, index(0)))])
    loop = For(r, index(0), index(n), body=[total, Store(out, r, carry(total, 0))])
    assert_agree([kernel([x, out], [loop])], [[sample(F32, n), torch.zeros(n)]], rtol=1e-5, atol=1e-5)


def test_a_condition_as_a_loop():
    x, out = Buffer("x", F32, 4), Buffer("out", F32, 4)
    r, once = fresh_var("r"), fresh_var("c")
    taken = op("select", op("lt", r, index(2), dtype=BOOL), index(1), index(0), dtype=I64)
    inner = For(once, index(0), taken, body=[Store(out, r, load(x, mul(r, index(3))))])
    loop = For(r, index(0), index(4), body=[inner])
    assert_agree([kernel([x, out], [loop])], [[sample(F32, 4), torch.zeros(4)]])


def test_loads_stay_behind_stores():
    n = 20
    x, out = Buffer("x", F32, n), Buffer("out", F32, n)
    first = vector(n, lambda i: [Store(x, i, add(load(x, i), load(x, i)))])
    i = fresh_var()
    previous = load(x, op("sub", i, index(1), dtype=I64))
    running = For(i, index(1), index(n), body=[Store(x, i, add(previous, load(x, i)))])
    last = vector(n, lambda i: [Store(out, i, load(x, i)), Store(x, i, const(0.0, F32)), ])
    assert_agree([kernel([x, out], [first, running, last])], [[sample(F32, n), torch.zeros(n)]])


def test_checks_stop_with_their_values():
    n = 40
    table, out, error = Buffer("t", I64, n), Buffer("out", I64, n), Buffer("e", I64, 8, "error")

    def body(i):
        value = load(table, i)
        return [Check(op("lt", value, index(90), dtype=BOOL), 3, [value, i, index(90)]), Store(out, i, value)]

    entry = kernel([table, out, error], [vector(n, body)])
    r = fresh_var("r")
    value = load(table, r)
    par = kernel([table, out, error], [For(r, index(0), index(n), "parallel", body=[
        Check(op("lt", value, index(90), dtype=BOOL), 3, [value, r, index(90)]), Store(out, r, value)])])
    good, bad = torch.arange(n), torch.arange(n)
    bad[27] = 95
    for k in (entry, par):
        (_, result, _, fault), = outcomes([k], [[good, torch.zeros(n, dtype=I64)]])
        assert result is None and fault is None
        (_, result, _, fault), = outcomes([k], [[bad, torch.zeros(n, dtype=I64)]])
        assert result is not None and result[0] == 3
        assert result[2:5] == [95, 27, 90] == list(fault.values)


def test_choices_of_every_dtype_by_uniform_and_varying_conditions():
    for dtype in DTYPES:
        x, y, flag, out = Buffer("x", dtype, 23), Buffer("y", dtype, 23), Buffer("f", BOOL, 23), Buffer("o", dtype, 46)

        def body(i, x=x, y=y, flag=flag, out=out, dtype=dtype):
            a, b = load(x, i), load(y, i)
            return [
                Store(out, i, op("select", load(flag, i), a, b, dtype=dtype)),
                Store(out, add(i, index(23)), op("select", load(flag, index(2)), a, const(1, dtype), dtype=dtype)),
            ]

        inputs = [sample(dtype, 23), sample(dtype, 23, 1), sample(BOOL, 23, 2), torch.zeros(46, dtype=dtype)]
        assert_agree([kernel([x, y, flag, out], [vector(23, body)])], [inputs])


def test_index_values_as_data():
    for dtype in (I64, F32, torch.int32, torch.uint8):
        out = Buffer("o", dtype, 50)
        r = fresh_var("r")
        loop = vector(10, lambda i, out=out, dtype=dtype, r=r: [
            Store(out, add(mul(r, index(10)), i), op("cast", add(mul(i, index(3)), r), dtype=dtype))])
        assert_agree([kernel([out], [For(r, index(0), index(5), body=[loop])])], [[torch.zeros(50, dtype=dtype)]])


def test_large_scratch_comes_from_the_heap():
    n = 1 << 17
    x, out = Buffer("x", F32, n), Buffer("o", F32, n)
    scratch = Buffer("s", F32, n, "scratch")
    first = vector(n, lambda i: [Store(scratch, i, mul(load(x, i), const(2.0, F32)))])
    second = vector(n, lambda i: [Store(out, i, load(scratch, op("sub", index(n - 1), i, dtype=I64)))])
    assert_agree([kernel([x, out], [first, second], [scratch])], [[sample(F32, n), torch.zeros(n)]])


@pytest.mark.parametrize("kind", ("serial", "parallel"))
@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (16, 24), (37, 19), (64, 9), (130, 70), (300, 520)])
def test_transposes_in_blocks(rows, columns, kind):
    kernels, inputs = [], []
    for dtype in (F32, torch.float64, torch.bfloat16, I64, torch.uint8):
        x, y, out = Buffer("x", dtype, rows * columns), Buffer("y", dtype, rows), Buffer("o", dtype, rows * columns)
        r = fresh_var("r")

        def body(j, x=x, y=y, out=out, r=r, dtype=dtype):
            turned = op("max", load(x, add(mul(j, index(rows)), r)), load(y, r), dtype=dtype) \
                if dtype is not torch.bfloat16 else load(x, add(mul(j, index(rows)), r))
            return [Store(out, add(mul(r, index(columns)), j), turned)]

        kernels.append(kernel([x, y, out], [For(r, index(0), index(rows), kind, body=[vector(columns, body)])]))
        inputs.append([sample(dtype, rows * columns), sample(dtype, rows, 1), torch.zeros(rows * columns, dtype=dtype)])
    assert_agree(kernels, inputs)
