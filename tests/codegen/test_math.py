"""Every scalar operation against torch: accuracy over the whole range, special values, integers of every dtype."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from monograph.codegen import jit
from monograph.codegen.operations import CODE
from monograph.loops.math import TABLE, evaluate
from monograph.loops.nodes import const, op
from tests.codegen.agree import pointwise

F32, F64, BOOL = torch.float32, torch.float64, torch.bool
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
UNARY = [n for n, s in TABLE.items() if s.arity == 1 and s.accepts == "f" and s.result == "same"]
BINARY = [n for n, s in TABLE.items() if s.arity == 2 and "f" in s.accepts]
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 8.0, 1e-40, -1e-40, 1e-5, 709.0, 88.7, -88.7, -104.0, -745.0,
    1e30, -1e30, math.inf, -math.inf, math.nan, 2.5, -2.5, 0.7, 10.0, 1e5, -1e5, 1.5,
]
ULPS = {"digamma": 64, "erfinv": 16, "lgamma": 64}


def apply(name, dtype, *args):
    return op(name, *args, dtype=dtype)


def run(fn, dtypes, result, *arrays):
    size = arrays[0].numel()
    entry = pointwise(fn, dtypes, result, size)
    out = torch.zeros(size, dtype=result)
    assert jit.load([entry])[entry.name]([*arrays, out]) is None
    return out


def arguments(dtype, size=4000, seed=0):
    """Every magnitude, plus everyday numbers, plus the special ones."""
    generator = torch.Generator().manual_seed(seed)
    exponents = (torch.rand(size, generator=generator, dtype=F64) * 2 - 1) * (45 if dtype is F32 else 308)
    sign = torch.randint(0, 2, (size,), generator=generator) * 2 - 1
    wide = 10.0 ** exponents * sign
    scale = torch.tensor([0.3, 1.0, 5.0, 40.0], dtype=F64).repeat(size // 4)
    near = torch.randn(size, generator=generator, dtype=F64) * scale
    return torch.cat([wide, near, torch.tensor(SPECIAL, dtype=F64)]).to(dtype)


def ulps(mine, exact, dtype):
    """The distance in units of the last place of `exact` rounded to dtype; 0 where both are the same special value."""
    same = (mine.double() == exact) | (mine.isnan() & exact.isnan()) | (mine == exact.to(dtype))
    info = torch.finfo(dtype)
    exponent = torch.frexp(exact.abs().clamp(min=info.smallest_normal)).exponent
    unit = torch.ldexp(torch.full_like(exact, info.eps), exponent - 1)
    distance = ((mine.double() - exact) / unit).abs()
    return torch.where(same, torch.zeros_like(distance), torch.where(distance.isnan(), math.inf, distance))


def test_every_operation_has_code():
    assert set(TABLE) <= set(CODE)


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_f32(name):
    x = arguments(F32)
    mine = run(lambda a: op(name, a, dtype=F32), [F32], F32, x)
    exact = evaluate(name, F64, [x.double()])
    theirs = evaluate(name, F32, [x])
    error = ulps(mine, exact, F32)
    # Where eager itself is far off, being as near to it is right too.
    error = torch.minimum(error, ulps(mine, theirs.double(), F32))
    worst = int(error.argmax())
    assert error[worst] <= ULPS.get(name, 2.6), (name, x[worst], mine[worst], exact[worst], float(error[worst]))


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_f64(name):
    x = arguments(F64)
    mine = run(lambda a: op(name, a, dtype=F64), [F64], F64, x)
    exact = evaluate(name, F64, [x])
    error = ulps(mine, exact, F64)
    if name == "digamma":       # relative to 1 around its roots
        error = torch.where((mine - exact).abs() < 1e-14, torch.zeros_like(error), error)
    worst = int(error.argmax())
    assert error[worst] <= max(ULPS.get(name, 0), 5), (name, x[worst], mine[worst], exact[worst], float(error[worst]))


@pytest.mark.parametrize("dtype", (F32, F64))
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name, dtype):
    x, y = arguments(dtype), arguments(dtype, seed=3)
    pairs = torch.tensor([[a, b] for a in SPECIAL for b in SPECIAL], dtype=F64).to(dtype)
    x, y = torch.cat([x, x, pairs[:, 0]]), torch.cat([y, y.roll(17) * 0.01, pairs[:, 1]])
    result = BOOL if TABLE[name].result == "bool" else dtype
    mine = run(lambda a, b: op(name, a, b, dtype=result), [dtype, dtype], result, x, y)
    theirs = evaluate(name, dtype, [x, y])
    if result is BOOL:
        assert torch.equal(mine, evaluate(name, BOOL, [x, y]))
        return
    if dtype is F32 and name in ("pow", "atan2", "hypot"):
        theirs = evaluate(name, F64, [x.double(), y.double()])
    error = ulps(mine, theirs.double(), dtype)
    if name == "fmod":      # eager's is NaN where the quotient overflows
        error = torch.where(theirs.isnan() & ~mine.isnan(), torch.zeros_like(error), error)
    worst = int(error.argmax())
    limit = 5 if name in ("pow", "atan2", "hypot") else 0
    assert error[worst] <= limit, (name, x[worst], y[worst], mine[worst], theirs[worst], float(error[worst]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operations(dtype):
    info = torch.iinfo(dtype)
    values = (0, 1, 2, 3, 5, 7, 8, 63, 64, 100, -1, -2, -7, -100, info.max, info.min, info.min + 1)
    values = [v for v in values if info.min <= v <= info.max]
    x = torch.tensor([a for a in values for _ in values], dtype=dtype)
    y = torch.tensor([b for _ in values for b in values], dtype=dtype)
    for name, scalar in TABLE.items():
        if "i" not in scalar.accepts or scalar.result not in ("same", "bool") or scalar.arity > 2:
            continue
        operands = [x, y][: scalar.arity]
        result = BOOL if scalar.result == "bool" else dtype
        mine = run(partial(apply, name, result), [dtype] * scalar.arity, result, *operands)
        theirs = evaluate(name, result, operands)
        if name in ("truncdiv", "floordiv", "rem", "mod"):
            mine, theirs = mine[y != 0], theirs[y != 0]
        assert torch.equal(mine, theirs), name


def test_bool_operations():
    x, y = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    for name, scalar in TABLE.items():
        if "b" in scalar.accepts and scalar.result in ("same", "bool"):
            operands = [x, y][: scalar.arity]
            mine = run(partial(apply, name, BOOL), [BOOL] * scalar.arity, BOOL, *operands)
            assert torch.equal(mine, evaluate(name, BOOL, operands)), name


@pytest.mark.parametrize("name", ("isnan", "isinf", "signbit"))
def test_float_predicates(name):
    for dtype in (F32, F64):
        x = arguments(dtype)
        assert torch.equal(run(lambda a: op(name, a, dtype=BOOL), [dtype], BOOL, x), evaluate(name, BOOL, [x]))


def test_casts_of_special_values():
    dtypes = (F64, F32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.uint8, BOOL)
    for source in (F64, F32):
        x = arguments(source)
        for target in dtypes:
            mine = run(partial(apply, "cast", target), [source], target, x)
            theirs = evaluate("cast", target, [x])
            assert torch.equal(torch.nan_to_num(mine), torch.nan_to_num(theirs)), (source, target)


def test_half_precision_round_trips_and_bitcasts():
    for half in (torch.bfloat16, torch.float16):
        bits = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
        x = bits.view(half)
        mine = run(lambda a: op("cast", a, dtype=F32), [half], F32, x)
        assert torch.equal(mine.nan_to_num(), x.float().nan_to_num())
        number = ~x.isnan()
        back = run(partial(apply, "bitcast", torch.int16), [half], torch.int16, x)
        assert torch.equal(back[number], bits[number])
    x = arguments(F32)
    assert torch.equal(run(lambda a: op("bitcast", a, dtype=torch.int32), [F32], torch.int32, x), x.view(torch.int32))


def test_fma_is_fused():
    x = torch.rand(999, dtype=F64)
    mine = run(lambda a: op("fma", a, a, op("neg", op("mul", a, a, dtype=F64), dtype=F64), dtype=F64), [F64], F64, x)
    assert (mine != 0).any()


def test_casts_of_large_integers():
    edges = [0, 1, -1, 2**24 + 1, 2**31, -(2**31) - 1, 2**51 - 1, 2**51, -(2**51), 2**53 + 1, 2**62 + 12345, -(2**63)]
    x = torch.tensor(edges * 3, dtype=torch.int64)
    for target in (F32, F64, torch.bfloat16, torch.int32, torch.uint8, BOOL):
        assert torch.equal(run(partial(apply, "cast", target), [torch.int64], target, x), evaluate("cast", target, [x]))


def test_divisions_whose_operands_are_known():
    x = torch.arange(-9, 9)
    for name in ("floordiv", "mod", "truncdiv", "rem"):
        for divisor in (1, 3, 4, 7, -3):
            def divided(a, name=name, divisor=divisor):
                signed = apply(name, torch.int64, a, const(divisor, torch.int64))
                clamped = apply("max", torch.int64, a, const(0, torch.int64))
                return apply("add", torch.int64, signed, apply(name, torch.int64, clamped, const(divisor, torch.int64)))

            mine = run(divided, [torch.int64], torch.int64, x)
            by = torch.full_like(x, divisor)
            theirs = evaluate(name, torch.int64, [x, by]) + evaluate(name, torch.int64, [x.clamp(min=0), by])
            assert torch.equal(mine, theirs), (name, divisor)
