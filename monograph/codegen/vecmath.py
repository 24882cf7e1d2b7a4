"""The elementary functions, by name: `FUNCTIONS[name](math, *operands) -> Value`.

Ours work on scalars and vectors of f32 and f64 alike; what is rare, or needs many bits, is libm's.
"""

from __future__ import annotations

from collections.abc import Callable

from monograph.codegen import libm, vecmath_error, vecmath_exp, vecmath_log, vecmath_trig
from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value

__all__ = ["FUNCTIONS"]


def _libm(name: str) -> Callable[..., Value]:
    return lambda m, *args: libm.call(m, name, *args)


def _hypot(m: Math, x: Value, y: Value) -> Value:
    """In f32 by f64, where no square overflows; an infinity wins over NaN."""
    if x.element == "double":
        return libm.call(m, "hypot", x, y)
    plain = m.widened(lambda a, b: m.sqrt(m.fma(a, a, m.mul(b, b))), x, y)
    infinite = m.either(m.compare("oeq", m.abs(x), float("inf")), m.compare("oeq", m.abs(y), float("inf")))
    return m.select(infinite, m.constant(float("inf"), x), plain)


def _fmod(m: Math, x: Value, y: Value) -> Value:
    """x - trunc(x/y) y, exact where the quotient is an exact integer; the rounded quotient may be one off."""
    quotient = m.text.intrinsic("trunc", m.div(x, y))
    limit = 2.0**22 if x.element == "float" else 2.0**51
    plain = m.both(m.compare("olt", m.abs(quotient), limit), m.compare("olt", m.abs(y), float("inf")))
    r = m.exact_fma(m.neg(quotient), y, x)
    step = m.copysign(m.abs(y), x)
    wrong_side = m.compare("olt", m.mul(r, m.copysign(m.constant(1.0, x), x)), 0.0)
    r = m.select(wrong_side, m.add(r, step), r)
    r = m.select(m.compare("oge", m.abs(r), m.abs(y)), m.sub(r, step), r)
    unusual = m.text.binary("xor", plain, m.all_true(plain))
    return m.rarely(unusual, m.copysign(r, x), lambda: libm.call(m, "fmod", x, y))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: getattr(vecmath_exp, name) for name in ("exp", "exp2", "expm1", "sigmoid", "tanh", "sinh", "cosh")},
    **{name: getattr(vecmath_log, name) for name in ("log", "log2", "log10", "log1p", "asinh", "acosh", "atanh")},
    **{name: getattr(vecmath_trig, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: getattr(vecmath_error, name) for name in ("erf", "erfc", "erfinv", "digamma")},
    "pow": vecmath_log.pow_,
    "hypot": _hypot,
    "fmod": _fmod,
    **{name: _libm(name) for name in ("lgamma", "nextafter")},
}
