"""log and what is made of it: log2, log10, log1p, asinh, acosh, atanh, pow.

x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1)/(m + 1).
"""

from __future__ import annotations

from monograph.codegen import libm
from monograph.codegen import vecmath_tables as tables
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value
from monograph.codegen.vecmath_exp import LN2, MAGIC, clamp, exp_reduced, scale

__all__ = ["acosh", "asinh", "atanh", "log", "log10", "log1p", "log2", "pow_"]

SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF0000000000000
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2E_HIGH, LOG2E_LOW = 1.4426950408889634, 2.0355273740931033e-17
LOG10_2_HIGH, LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13
# The same for f32: the products of the first parts with small integers, or fractions, lose little.
LOG2E_PARTS32 = (1.44269502162933349609, 1.92596299112661746887e-08)
LOG10_2_PARTS32 = (0.301025390625, 4.60503898119521373889e-06)
LOG10E_PARTS32 = (0.434294492006301879883, -1.01030509807943668e-08)
SMALLEST_NORMAL = {"float": 1.1754943508222875e-38, "double": 2.2250738585072014e-308}
TWO52_BITS = 0x4330000000000000


def split(m: Math, x: Value, single: bool) -> tuple[Value, Value]:
    """(k, m) of a positive f64; subnormals are scaled up first, unless x comes from an f32."""
    extra = None
    if not single:
        tiny = m.compare("olt", x, SMALLEST_NORMAL["double"])
        x = m.select(tiny, m.mul(x, 2.0**54), x)
        extra = m.select(tiny, m.constant(-54.0, x), m.constant(0.0, x))
    shifted = m.whole("add", m.bits(x), ONE_BITS - SQRT_HALF_BITS)
    # The biased exponent as a float: put it in the low bits of 2^52.
    exponent = m.whole("or", m.whole("lshr", shifted, 52), TWO52_BITS)
    k = m.sub(m.from_bits(exponent), 2.0**52 + 1023.0)
    fraction = m.whole("add", m.whole("and", shifted, 0x000FFFFFFFFFFFFF), SQRT_HALF_BITS)
    return (m.add(k, extra) if extra is not None else k), m.from_bits(fraction)


def log_fraction(m: Math, fraction: Value, single: bool) -> Value:
    """log of a number in [sqrt(1/2), sqrt(2)): fdlibm's f - (f^2/2 - s (f^2/2 + R)), which is exact near 1."""
    f = m.sub(fraction, 1.0)
    s = m.div(f, m.add(f, 2.0))
    z = m.mul(s, s)
    tail = m.mul(m.mul(m.poly(z, tables.ATANH_SINGLE if single else tables.ATANH), z), 2.0)
    half = m.mul(m.mul(f, f), 0.5)
    return m.sub(f, m.sub(half, m.mul(s, m.add(half, tail))))


def _specials(m: Math, x: Value, result: Value) -> Value:
    """log's values at 0, negative numbers, infinity and NaN."""
    normal = m.both(m.compare("ogt", x, 0.0), m.compare("olt", x, float("inf")))
    nan = m.constant(float("nan"), x)
    other = m.select(m.compare("olt", x, 0.0), nan, m.add(x, x))      # inf and NaN stay
    other = m.select(m.compare("oeq", x, 0.0), m.constant(float("-inf"), x), other)
    return m.select(normal, result, other)


def log(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return _log32(m, x)
    k, fraction = split(m, x, single)
    result = m.fma(k, LN2_HIGH, m.fma(k, LN2_LOW, log_fraction(m, fraction, single)))
    return _specials(m, x, result)


def _log32(m: Math, x: Value) -> Value:
    k, r = _split32(m, x)
    return _specials(m, x, m.fma(k, 0.693147182, r))


def _split32(m: Math, x: Value) -> tuple[Value, Value]:
    """(k, log of the fraction): N. Juffa's logf, below 0.9 ulp, with subnormals."""
    tiny = m.compare("olt", x, SMALLEST_NORMAL["float"])
    y = m.select(tiny, m.mul(x, 8388608.0), x)
    bits = m.bits(y)
    exponent = m.whole("and", m.whole("sub", bits, 0x3F2AAAAB), -8388608)
    f = m.sub(m.from_bits(m.whole("sub", bits, exponent)), 1.0)
    bias = m.select(tiny, m.constant(-23.0, x), m.constant(0.0, x))
    k = m.fma(m.text.convert("sitofp", exponent, "float"), 1.1920928955078125e-07, bias)
    square = m.mul(f, f)
    even = m.fma(tables.LOG32_EVEN[0], f, tables.LOG32_EVEN[1])
    odd = m.fma(tables.LOG32_ODD[0], f, tables.LOG32_ODD[1])
    r = m.fma(even, square, odd)
    for coefficient in tables.LOG32:
        r = m.fma(r, f, coefficient)
    return k, m.fma(r, square, f)


def _logarithm(m: Math, x: Value, single: bool, high: float, low: float, unit: tuple[float, float]) -> Value:
    """k * (high + low) + log(m) * unit."""
    if x.element == "float":
        k, part = _split32(m, x)
    else:
        k, fraction = split(m, x, single)
        part = log_fraction(m, fraction, single)
    result = m.fma(k, high, m.fma(k, low, m.fma(part, unit[0], m.mul(part, unit[1]))))
    return _specials(m, x, result)


def log2(m: Math, x: Value, single: bool = False) -> Value:
    unit = LOG2E_PARTS32 if x.element == "float" else (LOG2E_HIGH, LOG2E_LOW)
    return _logarithm(m, x, single, 1.0, 0.0, unit)


def log10(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return _logarithm(m, x, single, *LOG10_2_PARTS32, LOG10E_PARTS32)
    return _logarithm(m, x, single, LOG10_2_HIGH, LOG10_2_LOW, (0.4342944819032518, 1.098319650216765e-17))


def log1p(m: Math, x: Value, single: bool = False) -> Value:
    u = m.add(x, 1.0)
    lost = m.sub(x, m.sub(u, 1.0))
    main = log(m, u, single)
    plain = m.both(m.compare("ogt", u, 0.0), m.compare("olt", u, float("inf")))
    result = m.select(plain, m.add(main, m.div(lost, u)), main)
    return m.select(m.compare("oeq", x, 0.0), x, result)


def asinh(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: asinh(m, y, True), x)
    a = m.abs(x)
    z = m.mul(a, a)
    moderate = log1p(m, m.add(a, m.div(z, m.add(m.sqrt(m.add(z, 1.0)), 1.0))), single)
    if not single:              # there a^2 may overflow
        large = m.add(log(m, a), LN2)
        moderate = m.select(m.compare("ogt", a, 2.0**28), large, moderate)
    result = m.select(m.compare("oeq", a, float("inf")), a, moderate)
    return m.copysign(result, x)


def acosh(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: acosh(m, y, True), x)
    t = m.sub(x, 1.0)
    moderate = log1p(m, m.add(t, m.sqrt(m.fma(t, t, m.add(t, t)))), single)
    if not single:
        large = m.add(log(m, x), LN2)
        moderate = m.select(m.compare("ogt", x, 2.0**28), large, moderate)
    return m.select(m.compare("olt", x, 1.0), m.constant(float("nan"), x), moderate)


def atanh(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: atanh(m, y, True), x)
    a = m.abs(x)
    return m.copysign(m.mul(log1p(m, m.div(m.add(a, a), m.sub(1.0, a)), single), 0.5), x)


# -- pow

def _log2_double(m: Math, x: Value) -> tuple[Value, Value]:
    """log2 of a positive normal f64 as a sum of two, good to about 60 bits."""
    k, fraction = split(m, x, single=True)
    f, d = m.sub(fraction, 1.0), m.add(fraction, 1.0)
    d_low = m.sub(fraction, m.sub(d, 1.0))
    s = m.div(f, d)
    s_low = m.div(m.sub(m.exact_fma(m.neg(s), d, f), m.mul(s, d_low)), d)
    z = m.mul(s, s)
    tail = m.fma(m.mul(m.poly(z, tables.ATANH), z), s, s_low)          # log(m)/2 = s + tail
    high = m.mul(s, 2 * LOG2E_HIGH)
    low = m.fma(s, 2 * LOG2E_LOW, m.exact_fma(s, m.constant(2 * LOG2E_HIGH, s), m.neg(high)))
    low = m.fma(tail, 2 * LOG2E_HIGH, low)
    total = m.add(k, high)                                             # |k| >= 1 > |high|, or k = 0
    low = m.add(m.add(m.sub(k, total), high), low)
    result = m.add(total, low)
    return result, m.add(m.sub(total, result), low)


def _log2_single(m: Math, x: Value) -> Value:
    k, fraction = split(m, x, single=True)
    s = m.div(m.sub(fraction, 1.0), m.add(fraction, 1.0))
    z = m.mul(s, s)
    return m.fma(m.fma(m.mul(m.poly(z, tables.ATANH_SINGLE), z), s, s), 2 * LOG2E_HIGH, k)


def pow_(m: Math, x: Value, y: Value) -> Value:
    """C99's pow. Infinities, NaN, subnormal and huge operands go to libm."""
    single = x.element == "float"
    a = m.abs(x)
    low = 0.0 if single else SMALLEST_NORMAL["double"]
    zero = m.compare("oeq", x, 0.0)
    fine = m.both(m.compare("olt", a, float("inf")), m.compare("olt", m.abs(y), 2.0**60))
    if not single:
        fine = m.both(fine, m.either(zero, m.compare("oge", a, low)))
    odd_case = m.text.binary("xor", fine, m.all_true(fine))
    if single:
        fast = m.widened(lambda p, q: _pow_positive_single(m, p, q), a, y)
    else:
        fast = _pow_positive(m, a, y)
    return m.rarely(odd_case, _pow_signs(m, x, y, zero, fast), lambda: libm.call(m, "pow", x, y))


def _pow_positive(m: Math, x: Value, y: Value) -> Value:
    high, low = _log2_double(m, x)
    p = m.mul(y, high)
    p_low = m.fma(y, low, m.exact_fma(y, high, m.neg(p)))
    p = clamp(m, p, -1100.0, 1100.0)
    t = m.add(p, MAGIC["double"])
    n = m.sub(t, MAGIC["double"])
    r = m.add(m.sub(p, n), clamp(m, p_low, -1.0, 1.0))
    return scale(m, exp_reduced(m, m.mul(r, LN2)), t, n)


def _pow_positive_single(m: Math, x: Value, y: Value) -> Value:
    p = clamp(m, m.mul(y, _log2_single(m, x)), -1000.0, 1000.0)
    t = m.add(p, MAGIC["double"])
    n = m.sub(t, MAGIC["double"])
    return scale(m, exp_reduced(m, m.mul(m.sub(p, n), LN2), True), t, n)


def _pow_signs(m: Math, x: Value, y: Value, zero: Value, result: Value) -> Value:
    """What zero and negative bases give, from |x|^y."""
    infinity, nothing = m.constant(float("inf"), x), m.constant(0.0, x)
    at_zero = m.select(m.compare("ogt", y, 0.0), nothing, m.select(m.compare("olt", y, 0.0), infinity, 1.0))
    result = m.select(zero, at_zero, result)
    whole = m.compare("oeq", m.text.intrinsic("trunc", y), y)
    half = m.mul(y, 0.5)
    odd = m.both(whole, m.compare("une", m.text.intrinsic("trunc", half), half))
    result = m.select(odd, m.copysign(result, x), result)
    invalid = m.both(m.compare("olt", x, 0.0), m.text.binary("xor", whole, m.all_true(whole)))
    return m.select(invalid, m.constant(float("nan"), x), result)
