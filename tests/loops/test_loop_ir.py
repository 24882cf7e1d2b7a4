"""The interpreter, printer and verifier of loop IR, on kernels written by hand."""

import pytest
import torch

from monograph.errors import VerificationError
from monograph.loops import interpret, math, printer, verifier
from monograph.loops.nodes import (
    Buffer,
    Carried,
    Check,
    Combine,
    For,
    Kernel,
    Store,
    carry,
    const,
    index,
    load,
    op,
    var,
)

F32 = torch.float32


def add(a, b):
    return op("add", a, b, dtype=a.dtype)


def mul(a, b):
    return op("mul", a, b, dtype=a.dtype)


def softmax_kernel(rows: int, columns: int) -> Kernel:
    x, y = Buffer("x", F32, rows * columns), Buffer("y", F32, rows * columns)
    r, c = var("r"), var("c")
    at = add(mul(r, index(columns)), c)
    value = load(x, at)
    largest = For(c, index(0), index(columns), "vector", unroll=4)
    largest.carried.append(Carried("m", F32, const(float("-inf"), F32), Combine.MAX))
    largest.yields.append(value)
    exp = op("exp", op("sub", value, carry(largest, 0), dtype=F32), dtype=F32)
    total = For(c, index(0), index(columns), "vector", unroll=4)
    total.carried.append(Carried("s", F32, const(0.0, F32), Combine.SUM))
    total.yields.append(exp)
    write = For(c, index(0), index(columns), "vector")
    write.body.append(Store(y, at, op("div", exp, carry(total, 0), dtype=F32)))
    row = For(r, index(0), index(rows), "parallel", body=[largest, total, write])
    return Kernel("softmax", [x, y], body=[row])


def test_softmax_runs():
    kernel = softmax_kernel(3, 10)
    verifier.verify(kernel)
    x, y = torch.randn(3, 10), torch.empty(3, 10)
    assert interpret.run(kernel, [x, y]) is None
    torch.testing.assert_close(y, x.softmax(-1))


def test_softmax_prints():
    assert printer.text(softmax_kernel(3, 10)).splitlines()[:4] == [
        "kernel softmax(%x: f32[30], %y: f32[30])",
        "  parallel r in 0..3",
        "    vector x4 c in 0..10 carry (m: f32 max = -inf)",
        "      yield %x[(r * 10) + c]",
    ]


def test_serial_carries_are_exact_inside_a_vector_loop():
    """A column scan: lanes over columns, the running sum carried over rows."""
    x, y = Buffer("x", F32, 12), Buffer("y", F32, 12)
    r, c = var("r"), var("c")
    rows = For(r, index(0), index(3))
    rows.carried.append(Carried("s", F32, const(0.0, F32)))
    at = add(mul(r, index(4)), c)
    total = add(carry(rows, 0), load(x, at))
    rows.body.append(Store(y, at, total))
    rows.yields.append(total)
    kernel = Kernel("scan", [x, y], body=[For(c, index(0), index(4), "vector", body=[rows])])
    verifier.verify(kernel)
    data, result = torch.arange(12.0).reshape(3, 4), torch.empty(3, 4)
    interpret.run(kernel, [data, result])
    assert torch.equal(result, data.cumsum(0))


def test_a_failed_check_reports_its_values():
    x, y = Buffer("x", torch.int64, 4), Buffer("y", torch.int64, 4)
    i = var("i")
    value = load(x, i)
    check = Check(op("lt", value, index(10), dtype=torch.bool), 1, [value, i], exception="IndexError", message="{0}")
    loop = For(i, index(0), index(4), "vector", body=[check, Store(y, i, value)])
    kernel = Kernel("checked", [x, y, Buffer("error", torch.int64, 8, "error")], body=[loop])
    verifier.verify(kernel)
    fault = interpret.run(kernel, [torch.tensor([1, 2, 30, 4]), torch.zeros(4, dtype=torch.int64)])
    assert fault is not None and fault.values == (30, 2)


def test_masked_accesses_touch_nothing():
    x, y = Buffer("x", F32, 2), Buffer("y", F32, 4)
    i = var("i")
    inside = op("lt", i, index(2), dtype=torch.bool)
    body = [Store(y, i, load(x, i, inside, const(7.0, F32)), mask=op("ne", i, index(0), dtype=torch.bool))]
    kernel = Kernel("masked", [x, y], body=[For(i, index(0), index(4), "vector", body=body)])
    verifier.verify(kernel)
    result = torch.zeros(4)
    interpret.run(kernel, [torch.tensor([1.0, 2.0]), result])
    assert result.tolist() == [0.0, 2.0, 7.0, 7.0]


def broken(body, scratch=()):
    return Kernel("bad", [Buffer("x", F32, 4)], list(scratch), body)


def test_the_verifier_names_the_fault():
    i, j = var("i"), var("j")
    x = Buffer("x", F32, 4)
    inner = For(j, index(0), index(4), "vector")
    nested = Kernel("k", [x], body=[For(i, index(0), index(4), "vector", body=[inner])])
    with pytest.raises(VerificationError, match="vector loops nest"):
        verifier.verify(nested)
    late = Kernel("k", [x], body=[For(i, index(0), index(4)), Store(x, i, const(0.0, F32))])
    with pytest.raises(VerificationError, match="outside of its loop"):
        verifier.verify(late)
    wrong = Kernel("k", [x], body=[Store(x, index(0), const(0, torch.int32))])
    with pytest.raises(VerificationError, match="holds torch.float32"):
        verifier.verify(wrong)
    mixed = op("add", load(x, index(0)), const(1, torch.int64), dtype=F32)
    with pytest.raises(VerificationError, match="add mixes"):
        verifier.verify(Kernel("k", [x], body=[Store(x, index(0), mixed)]))


def test_every_scalar_operation_evaluates():
    for name, scalar in math.TABLE.items():
        letter = scalar.accepts[0]
        dtype = {"f": F32, "i": torch.int32, "b": torch.bool}[letter]
        args = [torch.ones(3, dtype=dtype)] * scalar.arity
        if scalar.result == "select":
            args = [torch.ones(3, dtype=torch.bool), *args[1:]]
        result = torch.bool if scalar.result == "bool" else dtype
        assert math.complaint(name, [arg.dtype for arg in args], result) is None, name
        assert math.evaluate(name, result, args).dtype is result, name


def test_integer_division_never_traps():
    smallest = torch.tensor([-(2**31)], dtype=torch.int32)
    for name in ("truncdiv", "floordiv", "rem", "mod"):
        math.evaluate(name, torch.int32, [smallest, torch.zeros_like(smallest)])
        got = math.evaluate(name, torch.int32, [smallest, -torch.ones_like(smallest)])
        assert got.item() == (0 if name in ("rem", "mod") else -(2**31))
