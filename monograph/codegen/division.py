"""Integer division: to zero (truncdiv, rem) and to minus infinity (floordiv, mod). It never traps.

By zero the result is unspecified, and the smallest number by -1 wraps: the divisor is made harmless first.
"""

from __future__ import annotations

from collections.abc import Callable

from monograph.codegen import casts
from monograph.codegen.intervals import Intervals
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value
from monograph.codegen.types import constant, is_unsigned
from monograph.loops.nodes import Const, Expr, Op

__all__ = ["CODE", "UNSIGNED", "is_plain"]

Code = Callable[..., Value]


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value not in (0, -1)


def divide(m: Math, expr: Op, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient to zero, and remainder."""
    text, dtype = m.text, expr.dtype
    one, zero = constant(1, dtype, a.lanes), constant(0, dtype, a.lanes)
    if _is_literal(expr.args[1]):
        opcode = "udiv" if is_unsigned(dtype) else "sdiv"
        quotient = _quotient(m, opcode, a, b)
        return quotient, text.binary("sub", a, text.binary("mul", quotient, b))
    safe = text.select(text.compare("eq", b, zero), one, b)
    if is_unsigned(dtype):
        quotient = _quotient(m, "udiv", a, safe)
    else:
        minus = text.compare("eq", b, constant(-1, dtype, a.lanes))
        quotient = _quotient(m, "sdiv", a, text.select(minus, one, safe))
        quotient = text.select(minus, text.binary("sub", zero, a), quotient)
    return quotient, text.binary("sub", a, text.binary("mul", quotient, safe))


def _quotient(m: Math, opcode: str, a: Value, b: Value) -> Value:
    """Vectors of up to 32 bits divide in f64, which is exact: x86 has no vector integer division."""
    bits = casts.WIDTH[a.element]
    if not a.lanes or bits > 32 or b.ref.startswith("splat"):
        return m.text.binary(opcode, a, b)
    to, back = ("uitofp", "fptoui") if opcode == "udiv" else ("sitofp", "fptosi")
    x, y = m.text.convert(to, a, "double"), m.text.convert(to, b, "double")
    quotient = m.text.binary("fdiv", x, y)
    if bits == 32 and opcode == "udiv":
        return m.text.convert(back, quotient, a.element)
    wide = m.text.convert("fptosi", quotient, "i32")
    return casts.resize(m.text, wide, a.element, unsigned=False)


def _truncdiv(m: Math, expr: Op, a: Value, b: Value) -> Value:
    return divide(m, expr, a, b)[0]


def _rem(m: Math, expr: Op, a: Value, b: Value) -> Value:
    return divide(m, expr, a, b)[1]


def _power_of_two(expr: Op) -> int | None:
    divisor = expr.args[1]
    if isinstance(divisor, Const) and int(divisor.value) > 0 and int(divisor.value) & (int(divisor.value) - 1) == 0:
        return int(divisor.value).bit_length() - 1
    return None


def _floordiv(m: Math, expr: Op, a: Value, b: Value) -> Value:
    shift = _power_of_two(expr)
    if shift is not None:
        return m.text.binary("lshr" if is_unsigned(expr.dtype) else "ashr", a, constant(shift, expr.dtype, a.lanes))
    quotient, remainder = divide(m, expr, a, b)
    if is_unsigned(expr.dtype):
        return quotient
    below = _opposite(m, expr, remainder, b)
    return m.text.binary("add", quotient, m.text.convert("sext", below, a.element))


def _mod(m: Math, expr: Op, a: Value, b: Value) -> Value:
    shift = _power_of_two(expr)
    if shift is not None:
        return m.text.binary("and", a, constant((1 << shift) - 1, expr.dtype, a.lanes))
    remainder = divide(m, expr, a, b)[1]
    if is_unsigned(expr.dtype):
        return remainder
    wrong = _opposite(m, expr, remainder, b)
    return m.text.select(wrong, m.text.binary("add", remainder, b), remainder)


def _opposite(m: Math, expr: Op, remainder: Value, b: Value) -> Value:
    """Where the remainder is not zero and has not the divisor's sign."""
    zero = constant(0, expr.dtype, b.lanes)
    signs = m.text.compare("slt", m.text.binary("xor", remainder, b), zero)
    return m.text.binary("and", signs, m.text.compare("ne", remainder, zero))


def is_plain(intervals: Intervals, expr: Op) -> bool:
    """No negative number divided by a positive literal: all four divisions are unsigned ones."""
    divisor = expr.args[1]
    plain = isinstance(divisor, Const) and divisor.value > 0 and _power_of_two(expr) is None
    return plain and intervals.of(expr.args[0])[0] >= 0


UNSIGNED: dict[str, Code] = {
    name: lambda m, expr, a, b, opcode=opcode: m.text.binary(opcode, a, b)
    for name, opcode in (("floordiv", "udiv"), ("truncdiv", "udiv"), ("mod", "urem"), ("rem", "urem"))
}

CODE: dict[str, Code] = {"truncdiv": _truncdiv, "floordiv": _floordiv, "rem": _rem, "mod": _mod}
