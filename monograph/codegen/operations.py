"""The code of every scalar operation of `loops.math.TABLE`.

    CODE[name](context, expression, *operands) -> Value        operands are scalars or vectors of one length

Elementary functions stand in `vecmath`, what only libm has in `LIBM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from monograph.codegen import casts, division
from monograph.codegen.intervals import ANY, Interval
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value
from monograph.codegen.types import constant, is_unsigned
from monograph.codegen.vecmath import FUNCTIONS
from monograph.errors import CompileError
from monograph.loops.nodes import Combine, Const, Expr, Op, Var

if TYPE_CHECKING:
    from monograph.codegen.function import Function, Lanes

__all__ = ["CODE", "apply", "fold", "identity", "needs"]

Code = Callable[..., Value]
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def needs(fn: Function, expr: Op) -> tuple[Expr, ...]:
    """The operands whose values the code of `expr` uses."""
    return () if _lane_comparison(fn, expr) is not None else expr.args


def apply(fn: Function, expr: Op) -> Lanes:
    lane_offset = _lane_comparison(fn, expr)
    if lane_offset is not None:
        return _compare_lanes(fn, expr, lane_offset)
    code = CODE.get(expr.name)
    if code is None:
        raise CompileError(f"no code for operation {expr.name!r}")
    if expr.name in division.UNSIGNED and division.is_plain(fn.facts.intervals, expr):
        code = division.UNSIGNED[expr.name]
    elif expr.name == "cast":
        code = partial(_cast, bounds=fn.facts.intervals.of(expr.args[0]))
    operands = [fn.value(a) for a in expr.args]
    if all(isinstance(o, Value) for o in operands):
        return code(Math(fn.text, fn.target), expr, *operands)
    keep_scalar = expr.name == "select" and isinstance(operands[0], Value)
    rows = [(o,) * fn.vector.jam if keep_scalar and o is operands[0] else fn.spread(o) for o in operands]  # type: ignore[union-attr]
    math = Math(fn.text, fn.target)
    columns = list(zip(*rows, strict=True))
    if expr.name in FUNCTIONS:
        return tuple(_in_pairs(math, partial(code, math, expr), columns))
    return tuple(code(math, expr, *column) for column in columns)


def _in_pairs(m: Math, code: Code, columns: list[tuple[Value, ...]]) -> Iterator[Value]:
    """Two vectors at a time as one of twice the lanes: LLVM splits each operation, and the halves share constants."""
    text = m.text
    for first, second in zip(columns[::2], columns[1::2], strict=False):
        lanes = first[0].lanes
        both = [text.shuffle(a, b, list(range(2 * lanes))) for a, b in zip(first, second, strict=True)]
        result = code(*both)
        yield text.shuffle(result, None, list(range(lanes)))
        yield text.shuffle(result, None, list(range(lanes, 2 * lanes)))
    if len(columns) % 2:
        yield code(*columns[-1])


# -- comparisons of index expressions: lanes against one number, in i32

def _lane_comparison(fn: Function, expr: Op) -> int | None:
    """The coefficient (1 or -1) of the vector variable where `expr` compares affine functions of loop variables."""
    if fn.vector is None or expr.name not in COMPARISONS or expr.args[0].dtype is not torch.int64:
        return None
    terms = _difference(fn, expr)
    coefficient = terms.get(fn.vector.loop.var, 0)
    if abs(coefficient) != 1 or not all(isinstance(atom, Var) for atom in terms):
        return None
    return coefficient


def _difference(fn: Function, expr: Op) -> dict[Expr, int]:
    terms = dict(fn.facts.linear(expr.args[0]).terms)
    for atom, coefficient in fn.facts.linear(expr.args[1]).terms.items():
        terms[atom] = terms.get(atom, 0) - coefficient
    return {atom: coefficient for atom, coefficient in terms.items() if coefficient}


def _compare_lanes(fn: Function, expr: Op, sign: int) -> Lanes:
    """sign * (base + lane) + rest <op> 0, as lane <op'> limit."""
    assert fn.vector is not None
    text, vector = fn.text, fn.vector
    total = Value(str(fn.facts.linear(expr.args[0]).constant - fn.facts.linear(expr.args[1]).constant), "i64")
    for atom, coefficient in _difference(fn, expr).items():
        assert isinstance(atom, Var)
        part = fn.scalar_variable(atom)
        if coefficient != 1:
            part = text.binary("mul", part, Value(str(coefficient), "i64"))
        total = text.binary("add", total, part)
    limit = text.binary("sub", Value("0", "i64"), total) if sign == 1 else total
    bound = 1 << 30
    limit = text.call("llvm.smax.i64", "i64", 0, limit, Value(str(-bound), "i64"), attributes="")
    limit = text.call("llvm.smin.i64", "i64", 0, limit, Value(str(bound), "i64"), attributes="")
    limits = text.splat(text.convert("trunc", limit, "i32"), vector.lanes)
    name = expr.name
    if sign == -1:
        name = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(name, name)
    predicate = name if name in ("eq", "ne") else "s" + name
    result = []
    for u in range(vector.jam):
        steps = ", ".join(f"i32 {u * vector.lanes + lane}" for lane in range(vector.lanes))
        result.append(text.compare(predicate, Value(f"<{steps}>", "i32", vector.lanes), limits))
    return tuple(result)


# -- arithmetic

def _arithmetic(name: str) -> Code:
    def code(m: Math, expr: Op, a: Value, b: Value) -> Value:
        return m.text.binary("f" + name if a.element in ("float", "double") else name, a, b)

    return code


def _intrinsic(name: str) -> Code:
    return lambda m, expr, *args: m.text.intrinsic(name, *args)


def _neg(m: Math, expr: Op, a: Value) -> Value:
    if expr.dtype.is_floating_point:
        return m.text.unary("fneg", a)
    return m.text.binary("sub", casts.literal("0", a.element, a.lanes), a)


def _abs(m: Math, expr: Op, a: Value) -> Value:
    if expr.dtype.is_floating_point:
        return m.text.intrinsic("fabs", a)
    return a if is_unsigned(expr.dtype) else m.text.intrinsic("abs", a, Value("false", "i1"))


def _extreme(which: str, nan_wins: bool = True) -> Code:
    def code(m: Math, expr: Op, a: Value, b: Value) -> Value:
        return extreme(m, which, expr.dtype, a, b, nan_wins=nan_wins)

    return code


def extreme(m: Math, which: str, dtype: torch.dtype, a: Value, b: Value, *, nan_wins: bool = True) -> Value:
    """max or min, `b` of equals. The select of an ordered comparison is what x86's maxps and minps compute."""
    text = m.text
    if not dtype.is_floating_point:
        if dtype is torch.bool:
            return text.binary("or" if which == "max" else "and", a, b)
        return text.intrinsic(("u" if is_unsigned(dtype) else "s") + which, a, b)
    predicate = "ogt" if which == "max" else "olt"
    if nan_wins and not b.ref.startswith("%") and "7FF8" not in b.ref:      # a number: only `a` can be NaN
        if "0x0000000000000000" in b.ref or "0x8000000000000000" in b.ref:
            predicate = predicate.replace("t", "e")         # which zero, when `a` is the other
        return text.select(text.compare(predicate, b, a), b, a)
    picked = text.select(text.compare(predicate, a, b), a, b)     # b where unordered
    if nan_wins:
        return text.select(text.compare("uno", a, a), a, picked)
    return text.select(text.compare("uno", b, b), a, picked)


def _shift(name: str) -> Code:
    def code(m: Math, expr: Op, a: Value, b: Value) -> Value:
        text, dtype = m.text, expr.dtype
        bits = dtype.itemsize * 8
        arithmetic = name == "shr" and not is_unsigned(dtype)
        opcode = "shl" if name == "shl" else ("ashr" if arithmetic else "lshr")
        amount = expr.args[1]
        if isinstance(amount, Const) and 0 <= int(amount.value) < bits:
            return text.binary(opcode, a, b)
        inside = text.compare("ult", b, constant(bits, dtype, a.lanes))
        if arithmetic:
            return text.binary(opcode, a, text.select(inside, b, constant(bits - 1, dtype, a.lanes)))
        shifted = text.binary(opcode, a, text.select(inside, b, constant(0, dtype, a.lanes)))
        return text.select(inside, shifted, constant(0, dtype, a.lanes))

    return code


# -- comparisons, bits, choice

def _comparison(name: str) -> Code:
    def code(m: Math, expr: Op, a: Value, b: Value) -> Value:
        dtype = expr.args[0].dtype
        if dtype.is_floating_point:
            return m.text.compare("une" if name == "ne" else "o" + name, a, b)
        if name in ("eq", "ne"):
            return m.text.compare(name, a, b)
        return m.text.compare(("u" if is_unsigned(dtype) else "s") + name, a, b)

    return code


def _bits(opcode: str) -> Code:
    return lambda m, expr, a, b: m.text.binary(opcode, a, b)


def _not(m: Math, expr: Op, a: Value) -> Value:
    ones = constant(True, torch.bool, a.lanes) if expr.dtype is torch.bool else constant(-1, expr.dtype, a.lanes)
    return m.text.binary("xor", a, ones)


def _select(m: Math, expr: Op, condition: Value, a: Value, b: Value) -> Value:
    return m.text.select(condition, a, b)


def _cast(m: Math, expr: Op, a: Value, bounds: Interval = ANY) -> Value:
    return casts.cast(m, a, expr.args[0].dtype, expr.dtype, bounds)


def _bitcast(m: Math, expr: Op, a: Value) -> Value:
    return casts.bitcast(m.text, a, expr.args[0].dtype, expr.dtype)


def _isnan(m: Math, expr: Op, a: Value) -> Value:
    return m.text.compare("uno", a, a)


def _isinf(m: Math, expr: Op, a: Value) -> Value:
    return m.text.compare("oeq", m.text.intrinsic("fabs", a), m.constant(float("inf"), a))


def _signbit(m: Math, expr: Op, a: Value) -> Value:
    bits = m.bits(a)
    return m.text.compare("slt", bits, casts.literal("0", bits.element, a.lanes))


def _rsqrt(m: Math, expr: Op, a: Value) -> Value:
    return m.text.binary("fdiv", m.constant(1.0, a), m.text.intrinsic("sqrt", a))


def _function(name: str) -> Code:
    return lambda m, expr, *args: FUNCTIONS[name](m, *args)


CODE: dict[str, Code] = {
    "add": _arithmetic("add"), "sub": _arithmetic("sub"), "mul": _arithmetic("mul"), "div": _arithmetic("div"),
    "neg": _neg, "abs": _abs, "fma": _intrinsic("fma"), "copysign": _intrinsic("copysign"),
    "min": _extreme("min"), "max": _extreme("max"),
    "fmin": _extreme("min", nan_wins=False), "fmax": _extreme("max", nan_wins=False),
    **division.CODE,
    **{name: _comparison(name) for name in COMPARISONS},
    "and": _bits("and"), "or": _bits("or"), "xor": _bits("xor"), "not": _not,
    "shl": _shift("shl"), "shr": _shift("shr"),
    "select": _select, "cast": _cast, "bitcast": _bitcast,
    "isnan": _isnan, "isinf": _isinf, "signbit": _signbit,
    "floor": _intrinsic("floor"), "ceil": _intrinsic("ceil"), "round": _intrinsic("roundeven"),
    "trunc": _intrinsic("trunc"), "sqrt": _intrinsic("sqrt"), "rsqrt": _rsqrt,
    **{name: _function(name) for name in FUNCTIONS},
}


# -- reductions

def identity(combine: Combine, dtype: torch.dtype, lanes: int) -> Value:
    """The value that changes nothing."""
    if combine is Combine.SUM:
        return constant(-0.0 if dtype.is_floating_point else 0, dtype, lanes)
    if combine is Combine.PROD:
        return constant(1, dtype, lanes)
    if combine in (Combine.MAX, Combine.MIN):
        largest = combine is Combine.MIN
        if dtype is torch.bool:
            return constant(largest, dtype, lanes)
        if dtype.is_floating_point:
            return constant(float("inf") if largest else float("-inf"), dtype, lanes)
        limits = torch.iinfo(dtype)
        return constant(limits.max if largest else limits.min, dtype, lanes)
    if combine is Combine.AND:
        return constant(True, dtype, lanes) if dtype is torch.bool else constant(-1, dtype, lanes)
    return constant(0, dtype, lanes)


def fold(m: Math, combine: Combine, dtype: torch.dtype, old: Value, new: Value) -> Value:
    """`old` and `new` combined; NaN wins in MAX and MIN. Half precision is rounded after each step."""
    if combine in (Combine.MAX, Combine.MIN):
        return extreme(m, combine.value, dtype, new, old)
    if combine in (Combine.SUM, Combine.PROD) and dtype is not torch.bool:
        opcode = "add" if combine is Combine.SUM else "mul"
        if not dtype.is_floating_point:
            return m.text.binary(opcode, old, new)
        result = m.text.binary("f" + opcode, old, new)
        return casts.round_half(m.text, result, dtype) if dtype in casts.HALF else result
    opcode = {Combine.SUM: "or", Combine.PROD: "and"}.get(combine) or combine.value
    return m.text.binary(opcode, old, new)
