"""exp and what is made of it: exp2, expm1, sigmoid, tanh, sinh, cosh.

e^x = 2^n e^r with n = round(x / ln2). n is read off the low bits of x/ln2 + MAGIC, so no conversion is needed.
"""

from __future__ import annotations

from monograph.codegen import vecmath_tables as tables
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value

__all__ = ["cosh", "exp", "exp2", "exp_reduced", "exp_rough", "expm1", "power_of_two", "sigmoid", "sinh", "tanh"]

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
# 1.5 * 2^23 and 1.5 * 2^52: adding rounds to an integer, which the low bits then hold.
MAGIC = {"float": 12582912.0, "double": 6755399441055744.0}
SHIFT = {"float": 23, "double": 52}
ONE_BITS = {"float": 0x3F800000, "double": 0x3FF0000000000000}
# ln2 in two parts; n times the first is exact.
LN2_PARTS = {"float": (0.693359375, -2.12194440e-4), "double": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
# Beyond these the result is infinity, and 0.
RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}


def clamp(m: Math, x: Value, low: float, high: float) -> Value:
    """x within [low, high]; NaN stays."""
    return m.max(low, m.min(high, x))


def _coefficients(x: Value, single: bool) -> tuple[float, ...]:
    if x.element == "float":
        return tables.EXP32
    return tables.EXP_SINGLE if single else tables.EXP


def expm1_poly(m: Math, r: Value, single: bool = False) -> Value:
    """e^r - 1 for |r| <= ln2/2."""
    return m.fma(m.mul(r, r), m.poly(r, _coefficients(r, single)), r)


def exp_reduced(m: Math, r: Value, single: bool = False) -> Value:
    """e^r for |r| <= ln2/2."""
    if r.element == "float":
        return m.poly(r, (*tables.EXP32, 1.0, 1.0))
    return m.add(expm1_poly(m, r, single), 1.0)


def reduce(m: Math, x: Value) -> tuple[Value, Value, Value]:
    """(t, n, r): x = n ln2 + r, and t = n + MAGIC."""
    t = m.fma(x, LOG2E, MAGIC[x.element])
    n = m.sub(t, MAGIC[x.element])
    high, low = LN2_PARTS[x.element]
    return t, n, m.fma(n, -low, m.fma(n, -high, x))


def times_power(m: Math, p: Value, t: Value) -> Value:
    """p * 2^n, n held by t, where neither p nor the result is subnormal or overflows."""
    return m.from_bits(m.whole("add", m.bits(p), m.whole("shl", m.bits(t), SHIFT[p.element])))


def power_of_two(m: Math, t: Value) -> Value:
    """2^n for a normal result."""
    element = t.element
    return m.from_bits(m.whole("add", m.whole("shl", m.bits(t), SHIFT[element]), ONE_BITS[element]))


def scale(m: Math, p: Value, t: Value, n: Value) -> Value:
    """p * 2^n with overflow and gradual underflow: in two steps, of which the second rounds."""
    half = m.fma(n, 0.5, MAGIC[p.element])
    first = times_power(m, p, half)
    rest = m.whole("shl", m.whole("sub", m.bits(t), m.bits(half)), SHIFT[p.element])
    return m.mul(first, m.from_bits(m.whole("add", rest, ONE_BITS[p.element])))


def exp(m: Math, x: Value, single: bool = False) -> Value:
    t, n, r = reduce(m, clamp(m, x, *RANGE[x.element]))
    return scale(m, exp_reduced(m, r, single), t, n)


def exp_moderate(m: Math, x: Value, single: bool = False) -> Value:
    """e^x where that is a normal number."""
    t, _, r = reduce(m, x)
    return times_power(m, exp_reduced(m, r, single), t)


def exp_rough(m: Math, x: Value) -> Value:
    """e^x in f32 for x <= 0 where that is a normal number, to about 1e-7: what 1 - e^x needs."""
    t = m.fma(x, LOG2E, MAGIC["float"])
    r = m.fma(m.sub(t, MAGIC["float"]), -LN2, x)
    return times_power(m, m.poly(r, (*tables.EXP32_ROUGH, 1.0, 1.0)), t)


def exp2(m: Math, x: Value, single: bool = False) -> Value:
    low, high = RANGE[x.element]
    x = clamp(m, x, low * LOG2E, high * LOG2E)
    t = m.add(x, MAGIC[x.element])
    n = m.sub(t, MAGIC[x.element])
    return scale(m, exp_reduced(m, m.mul(m.sub(x, n), LN2), single), t, n)


def expm1(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: expm1(m, y, True), x)
    t, n, r = reduce(m, clamp(m, x, -40.0, 710.0))
    # 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): 2^(n-1) is finite where the result is.
    a = power_of_two(m, m.add(m.sub(n, 1.0), MAGIC["double"]))
    half = m.fma(a, expm1_poly(m, r, single), m.sub(a, 0.5))
    return m.select(m.compare("oeq", x, 0.0), x, m.mul(half, 2.0))


def sigmoid(m: Math, x: Value) -> Value:
    return m.div(1.0, m.add(1.0, exp(m, m.neg(x))))


def tanh(m: Math, x: Value, single: bool = False) -> Value:
    a = m.abs(x)
    if x.element == "double":
        e = expm1(m, m.min(44.0, m.add(a, a)), single)
        return m.copysign(m.div(e, m.add(e, 2.0)), x)
    z = m.mul(x, x)
    small = m.fma(m.mul(m.poly(z, tables.TANH32), z), x, x)
    e = exp_moderate(m, m.min(20.0, m.add(a, a)))
    large = m.sub(1.0, m.div(2.0, m.add(e, 1.0)))
    return m.copysign(m.select(m.compare("olt", a, 0.625), small, large), x)


def _large(m: Math, a: Value) -> Value:
    """e^a / 2 where e^a may overflow but its half does not."""
    h = exp(m, m.mul(a, 0.5))
    return m.mul(m.mul(h, 0.5), h)


def sinh(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: sinh(m, y, True), x)
    a = m.abs(x)
    if single:
        a = m.min(200.0, a)         # infinity as an f32
    e = expm1(m, a, single)
    result = m.mul(0.5, m.add(e, m.div(e, m.add(e, 1.0))))
    if not single:
        result = m.select(m.compare("ogt", a, 700.0), _large(m, a), result)
    return m.copysign(result, x)


def cosh(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: cosh(m, y, True), x)
    a = m.abs(x)
    e = exp(m, a, single)
    result = m.add(m.mul(0.5, e), m.div(0.5, e))
    return result if single else m.select(m.compare("ogt", a, 700.0), _large(m, a), result)
