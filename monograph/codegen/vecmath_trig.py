"""sin, cos, tan and their inverses.

x = n pi/2 + r with |r| <= pi/4, pi/2 in three parts; beyond the range where that is accurate libm is called.
"""

from __future__ import annotations

from monograph.codegen import libm
from monograph.codegen import vecmath_tables as tables
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value
from monograph.codegen.vecmath_exp import MAGIC

__all__ = ["acos", "asin", "atan", "atan2", "cos", "sin", "tan"]

TWO_OVER_PI = 0.6366197723675814
PI, HALF_PI, HALF_PI_LOW = 3.141592653589793, 1.5707963267948966, 6.123233995736766e-17
TAN_PI_8 = 0.41421356237309503
# With a fused multiply-add the parts may be full numbers; without, their products with n must be exact (fdlibm).
PARTS_FUSED = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
PARTS_PLAIN = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
PARTS32 = (1.57079601e0, 3.13916473e-7, 5.39030253e-15)
LIMIT32, LIMIT_FUSED, LIMIT_PLAIN = 71476.0, 2.0**28, 2.0**20


def _reduced(m: Math, x: Value, parts: tuple[float, float, float]) -> tuple[Value, Value]:
    """(bits whose low two are n mod 4, r)."""
    t = m.fma(x, TWO_OVER_PI, MAGIC[x.element])
    n = m.sub(t, MAGIC[x.element])
    r = x
    for part in parts:
        r = m.fma(n, -part, r)
    return m.bits(t), r


def _sin_cos_poly(m: Math, r: Value, single: bool) -> tuple[Value, Value]:
    z = m.mul(r, r)
    if r.element == "float":
        s = m.fma(m.mul(m.poly(z, tables.SIN32), z), r, r)
        return s, m.poly(z, tables.COS32)
    s = m.fma(m.mul(m.poly(z, tables.SIN_SINGLE if single else tables.SIN), z), r, r)
    c = m.fma(m.mul(z, z), m.poly(z, tables.COS_SINGLE if single else tables.COS), m.fma(z, -0.5, 1.0))
    return s, c


def _is_odd(m: Math, quadrant: Value) -> Value:
    bits = m.whole("and", quadrant, 1)
    return m.whole_compare("ne", bits, 0)


def _signed(m: Math, value: Value, quadrant: Value) -> Value:
    """`value`, negated where bit 1 of `quadrant` is set."""
    width = {"float": 32, "double": 64}[value.element]
    sign = m.whole("shl", m.whole("and", quadrant, 2), width - 2)
    return m.from_bits(m.whole("xor", m.bits(value), sign))


def _fast(m: Math, which: str, x: Value, parts: tuple[float, float, float], single: bool) -> Value:
    quadrant, r = _reduced(m, x, parts)
    s, c = _sin_cos_poly(m, r, single)
    odd = _is_odd(m, quadrant)
    if which == "tan":
        return m.select(odd, m.neg(m.div(c, s)), m.div(s, c))
    if which == "cos":
        # cos(x) = sin(x + pi/2)
        return _signed(m, m.select(odd, s, c), m.whole("add", quadrant, 1))
    return _signed(m, m.select(odd, c, s), quadrant)


def _trig(m: Math, which: str, x: Value) -> Value:
    single = x.element == "float"
    fused = m.target.has_fma
    if single and fused and which != "tan":
        fast, limit = _fast(m, which, x, PARTS32, single), LIMIT32
    else:
        parts, limit = (PARTS_FUSED, LIMIT_FUSED) if fused else (PARTS_PLAIN, LIMIT_PLAIN)
        if single:
            fast = m.widened(lambda y: _fast(m, which, y, parts, True), x)
        else:
            fast = _fast(m, which, x, parts, False)
    if which != "cos":
        fast = m.select(m.compare("oeq", x, 0.0), x, fast)      # keeps -0
    huge = m.compare("ogt", m.abs(x), limit)
    return m.rarely(huge, fast, lambda: libm.call(m, which, x))


def sin(m: Math, x: Value) -> Value:
    return _trig(m, "sin", x)


def cos(m: Math, x: Value) -> Value:
    return _trig(m, "cos", x)


def tan(m: Math, x: Value) -> Value:
    return _trig(m, "tan", x)


# -- inverses

def _atan_unit(m: Math, t: Value, single: bool) -> Value:
    """atan for 0 <= t <= 1: above tan(pi/8), pi/4 + atan((t - 1)/(t + 1))."""
    above = m.compare("ogt", t, TAN_PI_8)
    u = m.select(above, m.div(m.sub(t, 1.0), m.add(t, 1.0)), t)
    z = m.mul(u, u)
    r = m.fma(m.mul(m.poly(z, tables.ATAN_SINGLE if single else tables.ATAN), z), u, u)
    shifted = m.add(m.add(r, HALF_PI_LOW / 2), HALF_PI / 2)
    return m.select(above, shifted, r)


def atan(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: atan(m, y, True), x)
    a = m.abs(x)
    beyond = m.compare("ogt", a, 1.0)
    r = _atan_unit(m, m.select(beyond, m.div(1.0, a), a), single)
    r = m.select(beyond, m.add(m.sub(HALF_PI, r), HALF_PI_LOW), r)
    return m.copysign(r, x)


def atan2(m: Math, y: Value, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda p, q: atan2(m, p, q, True), y, x)
    a, b = m.abs(y), m.abs(x)
    steep = m.compare("ogt", a, b)
    small, large = m.select(steep, b, a), m.select(steep, a, b)
    t = m.div(small, large)
    t = m.select(m.compare("oeq", large, 0.0), m.constant(0.0, x), t)
    t = m.select(m.compare("oeq", small, float("inf")), m.constant(1.0, x), t)
    r = _atan_unit(m, t, single)
    r = m.select(steep, m.add(m.sub(HALF_PI, r), HALF_PI_LOW), r)
    left = m.whole_compare("slt", m.bits(x), 0)
    r = m.select(left, m.add(m.sub(PI, r), 2 * HALF_PI_LOW), r)
    r = m.select(m.either(m.is_nan(x), m.is_nan(y)), m.add(x, y), r)
    return m.copysign(r, y)


def _asin_parts(m: Math, a: Value, single: bool) -> tuple[Value, Value]:
    """(above, p): for |x| = a <= 1/2, p = asin(a); above, p = asin(sqrt((1 - a)/2))."""
    above = m.compare("ogt", a, 0.5)
    z = m.select(above, m.mul(m.sub(1.0, a), 0.5), m.mul(a, a))
    s = m.select(above, m.sqrt(z), a)
    return above, m.fma(m.mul(m.poly(z, tables.ASIN_SINGLE if single else tables.ASIN), z), s, s)


def asin(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: asin(m, y, True), x)
    above, p = _asin_parts(m, m.abs(x), single)
    return m.copysign(m.select(above, m.sub(HALF_PI, m.fma(p, 2.0, -HALF_PI_LOW)), p), x)


def acos(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: acos(m, y, True), x)
    above, p = _asin_parts(m, m.abs(x), single)
    negative = m.compare("olt", x, 0.0)
    far = m.add(p, p)
    far = m.select(negative, m.sub(PI, m.sub(far, 2 * HALF_PI_LOW)), far)
    near = m.sub(HALF_PI, m.sub(m.copysign(p, x), HALF_PI_LOW))
    return m.select(above, far, near)
