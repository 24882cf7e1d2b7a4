"""Pointwise functions that are more than one scalar operation: activations, their gradients, divisions, entropy.

Each is `fn(m, *arguments) -> Expr` as in `lower_pointwise`, computed in the op-math dtype of the result, with the
formula (and the behaviour at kinks, infinities and NaN) of torch's CPU kernels; where their vector path and their
tail disagree on NaN, of the vector path.
"""

from __future__ import annotations

import functools
import math as pymath
from collections.abc import Callable
from typing import Any

import torch

from monograph.loops.lower_scalar import Scalars, number
from monograph.loops.math import HALF
from monograph.loops.nodes import Const, Expr

__all__ = ["FUNCTIONS", "integer_pow"]

SQRT_HALF = 0.7071067811865476
GELU_BETA = pymath.sqrt(2) * (2 / pymath.sqrt(pymath.pi)) * 0.5
GELU_KAPPA = 0.044715
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


# Division.

def div(m: Scalars, a: Any, b: Any, rounding_mode: str | None = None) -> Expr:
    a, b = m.lift(a), m.lift(b)
    if rounding_mode is None:
        return m.div(a, b)
    if not a.dtype.is_floating_point:
        _nonzero(m, b)
        return m("truncdiv" if rounding_mode == "trunc" else "floordiv", a, b)
    return m("trunc", m.rounded(m.div(a, b))) if rounding_mode == "trunc" else _float_floordiv(m, a, b)


def _nonzero(m: Scalars, b: Expr) -> None:
    if not (isinstance(b, Const) and b.value):
        m.require(m("ne", b, 0), "RuntimeError", "ZeroDivisionError")


def _float_floordiv(m: Scalars, a: Expr, b: Expr) -> Expr:
    """Python's float floor division, as torch's div_floor_floating: halves are rounded after every step."""
    rest = m("fmod", a, b)
    quotient = m.rounded(m.div(m.rounded(m.sub(a, rest)), b))
    wrong = m("and", m("ne", rest, 0), m("xor", m.lt(b, 0), m.lt(rest, 0)))
    quotient = m.select(wrong, m.rounded(m.sub(quotient, 1)), quotient)
    down = m("floor", quotient)
    down = m.select(m.gt(m.rounded(m.sub(quotient, down)), 0.5), m.rounded(m.add(down, 1)), down)
    down = m.select(m.eq(quotient, 0), m("copysign", 0.0, m.div(a, b)), down)
    return m.select(m.eq(b, 0), m.div(a, b), down)


def floor_divide(m: Scalars, a: Any, b: Any) -> Expr:
    return div(m, a, b, "floor")


def fmod(m: Scalars, a: Any, b: Any) -> Expr:
    a, b = m.lift(a), m.lift(b)
    if a.dtype.is_floating_point:
        return m("fmod", a, b)
    _nonzero(m, b)
    return m("rem", a, b)


def remainder(m: Scalars, a: Any, b: Any) -> Expr:
    a, b = m.lift(a), m.lift(b)
    if not a.dtype.is_floating_point:
        _nonzero(m, b)
        return m("mod", a, b)
    rest = m("fmod", a, b)
    wrong = m("and", m("ne", rest, 0), m("xor", m.lt(b, 0), m.lt(rest, 0)))
    return m.select(wrong, m.add(rest, b), rest)


def integer_pow(m: Scalars, base: Expr, exponent: Expr) -> Expr:
    """Wrapping powers by squaring; a negative exponent leaves only 1 and -1."""
    bits = base.dtype.itemsize * 8
    result, square, rest = m.lift(1), base, exponent
    for bit in range(bits - 1):
        odd = m("ne", m("and", rest, 1), 0)
        result = m.select(odd, m.mul(result, square), result)
        if bit < bits - 2:
            square, rest = m.mul(square, square), m("shr", rest, 1)
    if not base.dtype.is_signed:
        return result
    odd = m("ne", m("and", exponent, 1), 0)
    inverse = m.select(m.eq(base, 1), 1, m.select(m.eq(base, -1), m.select(odd, m.lift(-1), m.lift(1)), m.lift(0)))
    return m.select(m.lt(exponent, 0), inverse, result)


def nextafter(m: Scalars, x: Expr, y: Expr) -> Expr:
    """The next number of x's own dtype; the halves step through their bits, which are ordered like the numbers."""
    if x.dtype not in HALF:
        return m("nextafter", x, y)
    a, b = m.cast(x, torch.float32), m.cast(y, torch.float32)
    bits = m.bits(x, torch.int16)
    away = m("xor", m.gt(b, a), m.lt(a, 0.0))
    step = m.add(bits, m.select(away, number(1, torch.int16), number(-1, torch.int16)))
    least = m.select(m.gt(b, 0.0), number(1, torch.int16), number(-(2**15) + 1, torch.int16))
    moved = m.bits(m.select(m.eq(a, 0.0), least, step), x.dtype)
    same = m.select(m.eq(a, b), y, moved)
    return m.select(m("isnan", a), x, m.select(m("isnan", b), y, same))


# Activations and their gradients.

def gelu(m: Scalars, x: Expr, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        cube = m.mul(m.mul(x, x), x)
        inner = m.mul(m.add(x, m.mul(cube, GELU_KAPPA)), GELU_BETA)
        return m.mul(m.mul(x, 0.5), m.add(m("tanh", inner), 1.0))
    result = m.mul(m.mul(x, 0.5), m.add(m("erf", m.mul(x, SQRT_HALF)), 1.0))
    return m.add(result, 0.0) if m.result is torch.float32 and _gelu_loses_zero() else result


@functools.cache
def _gelu_loses_zero() -> bool:
    """Whether eager makes 0.0 of -0.0: in f32 it asks oneDNN, whose AVX2 code does and whose AVX-512 code does not."""
    return not torch.nn.functional.gelu(torch.tensor([-0.0])).signbit().item()


def gelu_backward(m: Scalars, grad: Expr, x: Expr, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        square = m.mul(x, x)
        inner = m.mul(m.add(x, m.mul(m.mul(square, x), GELU_KAPPA)), GELU_BETA)
        tanh = m("tanh", inner)
        left = m.mul(m.add(tanh, 1.0), 0.5)
        slope = m.mul(m.add(m.mul(square, 3 * GELU_KAPPA), 1.0), GELU_BETA)
        right = m.mul(m.mul(m.mul(x, 0.5), m.sub(1.0, m.mul(tanh, tanh))), slope)
        return m.mul(grad, m.add(left, right))
    cdf = m.mul(m.add(m("erf", m.mul(x, SQRT_HALF)), 1.0), 0.5)
    pdf = m.mul(m("exp", m.mul(m.mul(x, x), -0.5)), 2 / pymath.sqrt(pymath.pi) * SQRT_HALF * 0.5)
    return m.mul(grad, m.add(cdf, m.mul(x, pdf)))


def silu(m: Scalars, x: Expr) -> Expr:
    return m.mul(x, m("sigmoid", x))


def silu_backward(m: Scalars, grad: Expr, x: Expr) -> Expr:
    s = m("sigmoid", x)
    return m.mul(m.mul(grad, s), m.add(m.mul(x, m.sub(1.0, s)), 1.0))


def softplus(m: Scalars, x: Expr, beta: float = 1, threshold: float = 20) -> Expr:
    scaled = m.mul(x, beta)
    return m.select(m.gt(scaled, threshold), x, m.div(m("log1p", m("exp", scaled)), beta))


def softplus_backward(m: Scalars, grad: Expr, x: Expr, beta: float, threshold: float) -> Expr:
    scaled = m.mul(x, beta)
    z = m("exp", scaled)
    return m.select(m.gt(scaled, threshold), grad, m.div(m.mul(grad, z), m.add(z, 1.0)))


def elu(m: Scalars, x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expr:
    below = m.mul(m("expm1", m.mul(x, input_scale)), alpha * scale)
    return m.select(m.lt(x, 0), below, m.mul(x, scale))


def elu_backward(
    m: Scalars, grad: Expr, alpha: float, scale: float, input_scale: float, is_result: bool, x: Expr
) -> Expr:
    if is_result:
        below = m.mul(m.mul(grad, input_scale), m.add(x, alpha * scale))
    else:
        below = m.mul(m.mul(grad, input_scale * alpha * scale), m("exp", m.mul(x, input_scale)))
    return m.select(m.gt(x, 0), m.mul(grad, scale), below)


def _softplus1(m: Scalars, x: Expr) -> Expr:
    """log(1 + exp(x)) that does not overflow."""
    return m.add(m("max", x, 0.0), m("log1p", m("exp", m("neg", m("abs", x)))))


def mish(m: Scalars, x: Expr) -> Expr:
    return m.mul(x, m("tanh", _softplus1(m, x)))


def mish_backward(m: Scalars, grad: Expr, x: Expr) -> Expr:
    tanh = m("tanh", _softplus1(m, x))
    return m.mul(grad, m.add(tanh, m.mul(m.mul(x, m("sigmoid", x)), m.sub(1.0, m.mul(tanh, tanh)))))


def _six(m: Scalars, x: Expr) -> Expr:
    shifted = m.add(x, 3.0)
    return m.select(m.lt(shifted, 0), 0.0, m.select(m.gt(shifted, 6), 6.0, shifted))


def hardsigmoid(m: Scalars, x: Expr) -> Expr:
    return m.div(_six(m, x), 6.0)


def hardsigmoid_backward(m: Scalars, grad: Expr, x: Expr) -> Expr:
    sixth = torch.tensor(1 / 6, dtype=torch.float32).item()     # also for f64
    return m.select(m("and", m.gt(x, -3), m.lt(x, 3)), m.mul(grad, sixth), 0.0)


def hardswish(m: Scalars, x: Expr) -> Expr:
    return m.div(m.mul(x, _six(m, x)), 6.0)


def hardswish_backward(m: Scalars, grad: Expr, x: Expr) -> Expr:
    middle = m.mul(grad, m.add(m.div(x, 3.0), 0.5))
    return m.select(m.ge(x, 3), grad, m.select(m.le(x, -3), 0.0, middle))


def _within(m: Scalars, x: Expr, bound: float) -> Expr:
    return m("and", m.ge(x, -bound), m.le(x, bound))


def hardshrink(m: Scalars, x: Expr, lambd: float = 0.5) -> Expr:
    return m.select(_within(m, x, lambd), 0.0, x)


def softshrink(m: Scalars, x: Expr, lambd: float = 0.5) -> Expr:
    """x * 0 between the bounds keeps a NaN."""
    return m.select(m.gt(x, lambd), m.sub(x, lambd), m.select(m.lt(x, -lambd), m.add(x, lambd), m.mul(x, 0.0)))


def shrink_backward(m: Scalars, grad: Expr, x: Expr, lambd: float) -> Expr:
    return m.select(m("or", m.lt(x, -lambd), m.gt(x, lambd)), grad, 0.0)


def leaky_relu(m: Scalars, x: Expr, slope: float = 0.01) -> Expr:
    return m.select(m.gt(x, 0), x, m.mul(x, slope))


def leaky_relu_backward(m: Scalars, grad: Expr, x: Expr, slope: float, is_result: bool) -> Expr:
    return m.select(m.gt(x, 0), grad, m.mul(grad, slope))


def hardtanh_backward(m: Scalars, grad: Expr, x: Expr, lo: float, hi: float) -> Expr:
    return m.select(m("and", m.gt(x, lo), m.lt(x, hi)), grad, 0.0)


def threshold_backward(m: Scalars, grad: Expr, x: Expr, threshold: float) -> Expr:
    return m.select(m.le(x, threshold), 0.0, grad) if x.dtype.is_floating_point else m.select(
        m.le(x, threshold), 0, grad)


def prelu(m: Scalars, x: Expr, weight: Expr) -> Expr:
    return m.select(m.gt(x, 0), x, m.mul(weight, x))


def log_sigmoid_backward(m: Scalars, grad: Expr, x: Expr, buffer: Expr) -> Expr:
    z = m("exp", m("neg", m("abs", x)))
    share = m.div(z, m.add(z, 1.0))
    return m.mul(grad, m.select(m.lt(x, 0), m.sub(1.0, share), share))


# Logarithms and friends.

def logit(m: Scalars, x: Expr, eps: float | None = None) -> Expr:
    if eps is not None:
        x = m.select(m.lt(x, eps), eps, m.select(m.gt(x, 1 - eps), 1 - eps, x))
    return m("log", m.div(x, m.sub(1.0, x)))


def logit_backward(m: Scalars, grad: Expr, x: Expr, eps: float | None = None) -> Expr:
    lo, hi, outside = (0.0, 1.0, pymath.nan) if eps is None else (eps, 1 - eps, 0.0)
    inner = m.div(grad, m.mul(x, m.sub(1.0, x)))
    return m.select(m("or", m.lt(x, lo), m.gt(x, hi)), outside, inner)


def logaddexp(m: Scalars, a: Expr, b: Expr) -> Expr:
    return _logaddexp(m, a, b, "exp", 1.0)


def logaddexp2(m: Scalars, a: Expr, b: Expr) -> Expr:
    return _logaddexp(m, a, b, "exp2", 1 / pymath.log(2))


def _logaddexp(m: Scalars, a: Expr, b: Expr, exp: str, unit: float) -> Expr:
    tail = m("log1p", m(exp, m("neg", m("abs", m.sub(a, b)))))
    result = m("fma", tail, unit, m("max", a, b))
    return m.select(m("and", m("isinf", a), m.eq(a, b)), a, result)


def _xlog(log: str) -> Callable[..., Expr]:
    def fn(m: Scalars, x: Any, y: Any) -> Expr:
        x, y = m.lift(x), m.lift(y)
        value = m.select(m.eq(x, 0), 0.0, m.mul(x, m(log, y)))
        return m.select(m("isnan", y), y, value)

    return fn


def entr(m: Scalars, x: Expr) -> Expr:
    inner = m("neg", m.mul(x, m("log", x)))
    return m.select(m("or", m.gt(x, 0), m("isnan", x)), inner, m.select(m.eq(x, 0), 0.0, m.lift(-pymath.inf)))


def sinc(m: Scalars, x: Expr) -> Expr:
    scaled = m.mul(x, pymath.pi)
    return m.select(m.eq(x, 0), 1.0, m.div(m("sin", scaled), scaled))


def angle(m: Scalars, x: Expr) -> Expr:
    return m.select(m("isnan", x), x, m.select(m.lt(x, 0), m.lift(pymath.pi), m.lift(0.0)))


def mvlgamma(m: Scalars, x: Expr, p: int) -> Expr:
    result = m.lift(p * (p - 1) / 4 * pymath.log(pymath.pi))
    for j in range(p):
        result = m.add(result, m("lgamma", m.sub(x, j / 2)))
    return result


def ndtr(m: Scalars, x: Expr) -> Expr:
    """Accurate in both tails."""
    scaled = m.mul(x, SQRT_HALF)
    tail = m.mul(m("erfc", m("abs", scaled)), 0.5)
    middle = m.add(m.mul(m("erf", scaled), 0.5), 0.5)
    return m.select(m.lt(m("abs", scaled), SQRT_HALF), middle, m.select(m.gt(scaled, 0), m.sub(1.0, tail), tail))


def dropout_backward(m: Scalars, grad: Expr, mask: Expr, scale: float) -> Expr:
    return m.mul(m.mul(grad, mask), scale)


FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "div": div, "true_divide": div, "divide": div, "floor_divide": floor_divide, "fmod": fmod, "remainder": remainder,
    "gelu": gelu, "gelu_backward": gelu_backward, "silu": silu, "silu_backward": silu_backward,
    "sigmoid_backward": lambda m, grad, y: m.mul(m.mul(grad, m.sub(1.0, y)), y),
    "tanh_backward": lambda m, grad, y: m.mul(grad, m.sub(1.0, m.mul(y, y))),
    "softplus": softplus, "softplus_backward": softplus_backward,
    "elu": elu, "elu_backward": elu_backward,
    "celu": lambda m, x, alpha=1.0: elu(m, x, alpha, 1.0, 1.0 / alpha),
    "selu": lambda m, x: elu(m, x, SELU_ALPHA, SELU_SCALE, 1.0),
    "mish": mish, "mish_backward": mish_backward,
    "hardsigmoid": hardsigmoid, "hardsigmoid_backward": hardsigmoid_backward,
    "hardswish": hardswish, "hardswish_backward": hardswish_backward,
    "hardshrink": hardshrink, "softshrink": softshrink,
    "hardshrink_backward": shrink_backward, "softshrink_backward": shrink_backward,
    "leaky_relu": leaky_relu, "leaky_relu_backward": leaky_relu_backward, "hardtanh_backward": hardtanh_backward,
    "threshold_backward": threshold_backward, "_prelu_kernel": prelu, "log_sigmoid_backward": log_sigmoid_backward,
    "logit": logit, "logit_backward": logit_backward, "logaddexp": logaddexp, "logaddexp2": logaddexp2,
    "xlogy": _xlog("log"), "special_xlog1py": _xlog("log1p"), "special_entr": entr, "sinc": sinc, "angle": angle,
    "mvlgamma": mvlgamma, "special_ndtr": ndtr, "native_dropout_backward": dropout_backward,
}
