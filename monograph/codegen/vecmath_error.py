"""erf, erfc, erfinv, digamma."""

from __future__ import annotations

from monograph.codegen import vecmath_tables as tables
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value
from monograph.codegen.vecmath_exp import exp, exp_rough
from monograph.codegen.vecmath_log import log
from monograph.codegen.vecmath_trig import tan

__all__ = ["digamma", "erf", "erfc", "erfinv"]

PI = 3.141592653589793
TWO_OVER_SQRT_PI = 1.1283791670955126
LARGEST_ERFC = 28.0             # erfc is 0 in f64 beyond
LARGEST_ERFC_SINGLE = 12.0      # and in f32


def erf(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return _erf32(m, x)
    small = m.mul(x, m.poly(m.mul(x, x), tables.ERF_SINGLE if single else tables.ERF))
    large = m.copysign(m.sub(1.0, _erfc_tail(m, m.abs(x), single)), x)
    return m.select(m.compare("olt", m.abs(x), 1.0), small, large)


def _erf32(m: Math, x: Value) -> Value:
    """N. Juffa's erff, about 1 ulp."""
    t = m.min(4.0, m.abs(x))
    z = m.mul(t, t)
    r = m.fma(-1.72853470e-5, t, 3.83197126e-4)
    u = m.fma(-3.88396438e-3, t, 2.42546219e-2)
    r = m.fma(r, z, u)
    for coefficient in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = m.fma(r, t, coefficient)
    r = m.fma(r, t, m.neg(t))
    large = m.sub(1.0, exp_rough(m, r))
    small = m.fma(m.poly(z, tables.ERF32_SMALL), t, t)
    return m.copysign(m.select(m.compare("ogt", t, 0.927734375), large, small), x)


def _erfc_tail(m: Math, a: Value, single: bool) -> Value:
    """erfc of a >= 1: exp(-a^2) times a polynomial over 1 + 2a."""
    a = m.min(LARGEST_ERFC_SINGLE if single else LARGEST_ERFC, a)
    u = m.div(m.sub(a, 3.0), m.add(a, 3.0))
    scaled = m.poly(u, tables.ERFCX_SINGLE if single else tables.ERFCX)
    square = m.mul(a, a)
    e = exp(m, m.neg(square), single)
    if not single:
        e = m.fma(e, m.neg(m.exact_fma(a, a, m.neg(square))), e)      # what a^2 lost to rounding
    return m.div(m.mul(e, scaled), m.fma(a, 2.0, 1.0))


def erfc(m: Math, x: Value, single: bool = False) -> Value:
    if x.element == "float":
        return m.widened(lambda y: erfc(m, y, True), x)
    small = m.sub(1.0, m.mul(x, m.poly(m.mul(x, x), tables.ERF_SINGLE if single else tables.ERF)))
    tail = _erfc_tail(m, m.abs(x), single)
    tail = m.select(m.compare("olt", x, 0.0), m.sub(2.0, tail), tail)
    return m.select(m.compare("olt", m.abs(x), 1.0), small, tail)


def erfinv(m: Math, y: Value, single: bool = False) -> Value:
    """A rational start and two steps of Newton, as torch."""
    if y.element == "float":
        return m.widened(lambda v: erfinv(m, v, True), y)
    a = m.abs(y)
    z = m.mul(y, y)
    central = m.div(m.mul(y, m.poly(z, tables.ERFINV_A)), m.poly(z, tables.ERFINV_B))
    w = m.sqrt(m.neg(log(m, m.mul(m.sub(1.0, a), 0.5), single)))
    tail = m.copysign(m.div(m.poly(w, tables.ERFINV_C), m.poly(w, tables.ERFINV_D)), y)
    x = m.select(m.compare("ole", a, 0.7), central, tail)
    for _ in range(2):
        slope = m.mul(exp(m, m.neg(m.mul(x, x)), single), TWO_OVER_SQRT_PI)
        x = m.sub(x, m.div(m.sub(erf(m, x, single), y), slope))
    x = m.select(m.compare("oeq", a, 1.0), m.copysign(m.constant(float("inf"), y), y), x)
    return m.select(m.compare("ogt", a, 1.0), m.constant(float("nan"), y), x)


def digamma(m: Math, x: Value) -> Value:
    """Reflection for x < 0, recurrence up to 10, then the asymptotic series."""
    if x.element == "float":
        return m.widened(lambda y: digamma(m, y), x)
    negative = m.compare("olt", x, 0.0)
    fraction = m.sub(x, m.text.intrinsic("trunc", x))
    reflected = m.neg(m.div(m.constant(PI, x), tan(m, m.mul(fraction, PI))))
    z = m.select(negative, m.sub(1.0, x), x)
    total = m.constant(0.0, x)
    for _ in range(10):
        low = m.compare("olt", z, 10.0)
        total = m.select(low, m.sub(total, m.div(1.0, z)), total)
        z = m.select(low, m.add(z, 1.0), z)
    w = m.div(1.0, m.mul(z, z))
    series = m.mul(w, m.poly(w, tables.DIGAMMA))
    series = m.select(m.compare("olt", z, 1.0e17), series, m.constant(0.0, x))
    result = m.sub(m.add(total, m.sub(log(m, z), m.div(0.5, z))), series)
    result = m.select(negative, m.add(result, reflected), result)
    pole = m.both(negative, m.compare("oeq", fraction, 0.0))
    result = m.select(pole, m.constant(float("nan"), x), result)
    return m.select(m.compare("oeq", x, 0.0), m.copysign(m.constant(float("inf"), x), m.neg(x)), result)
