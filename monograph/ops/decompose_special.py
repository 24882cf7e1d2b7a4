"""Special functions as Chebyshev series.

The series are fitted, once per process, to torch's own float64 kernels: a smooth part of the function over one
interval of a transformed argument t in [-1, 1]. They are as long as the dtype needs, and summed by Clenshaw's
recurrence b[k] = 2 t b[k+1] - b[k+2] + c[k].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import special

from monograph import compat
from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import to_dtype, wide

__all__ = ["RULES"]

Smooth: TypeAlias = Callable[[torch.Tensor], torch.Tensor]     # of t
NODES = 64
PI = math.pi


@functools.cache
def _coefficients(smooth: Smooth, tolerance: float) -> tuple[float, ...]:
    """Chebyshev coefficients of `smooth` on [-1, 1] down to `tolerance` of the largest."""
    with compat.plain_torch():
        angle = (torch.arange(NODES, dtype=torch.float64) + 0.5) * (PI / NODES)
        values = smooth(torch.cos(angle))
        orders = torch.arange(NODES, dtype=torch.float64)
        found = (2 / NODES) * (torch.cos(orders[:, None] * angle) @ values)
        size = found.abs()
        last = int((size > tolerance * size.max()).nonzero().max())
        return tuple(found[:last + 1].tolist())


class _Real:
    """Arithmetic on values through a builder, in the dtype of the argument."""

    def __init__(self, b: Builder, dtype: torch.dtype) -> None:
        self.builder = b
        self.call = b.call
        self.tolerance = 3e-15 if dtype is torch.float64 else 2e-9

    def add(self, x: Value, y: Value | float) -> Value:
        return self.call("aten.add.Tensor", x, y)

    def sub(self, x: Value, y: Value | float) -> Value:
        return self.call("aten.sub.Tensor", x, y)

    def mul(self, x: Value, y: Value | float) -> Value:
        return self.call("aten.mul.Tensor", x, y)

    def div(self, x: Value | float, y: Value | float) -> Value:
        if not isinstance(x, Value):
            return self.mul(self.of("reciprocal", y), x)
        return self.call("aten.div.Tensor", x, y)

    def of(self, name: str, x: Value | float) -> Value:
        return self.call(f"aten.{name}.default", x)

    def where(self, condition: Value, x: Value | float, y: Value) -> Value:
        name = "self" if isinstance(x, Value) else "ScalarSelf"
        return to_dtype(self.builder, self.call(f"aten.where.{name}", condition, x, y), y.tensor.dtype)

    def below(self, x: Value, bound: float) -> Value:
        return self.call("aten.le.Scalar", x, bound)

    def series(self, smooth: Smooth, t: Value) -> Value:
        """The value of `smooth` at t."""
        first, *rest = _coefficients(smooth, self.tolerance)
        twice = self.mul(t, 2.0)
        high: Value | None = None
        higher: Value | None = None
        for coefficient in reversed(rest):
            if high is None:
                term = self.add(self.mul(t, 0.0), coefficient)
            else:
                term = self.add(self.mul(twice, high), coefficient)
                term = term if higher is None else self.sub(term, higher)
            high, higher = term, high
        assert high is not None
        total = self.add(self.mul(t, high), first / 2)
        return total if higher is None else self.sub(total, higher)


Formula: TypeAlias = Callable[[_Real, Value], Value]


def _rule(formula: Formula) -> Callable[[Builder, Node], Value | None]:
    """A rule that evaluates `formula(m, x)` in the wide dtype of the result."""
    def rule(b: Builder, node: Node) -> Value | None:
        x, dtype = node.operands[0], node.results[0].tensor.dtype
        if not isinstance(x, Value) or not dtype.is_floating_point:
            return None
        x = to_dtype(b, x, wide(dtype))
        return to_dtype(b, formula(_Real(b, x.tensor.dtype), x), dtype)

    return rule


# --- modified Bessel functions --------------------------------------------------------------------
# i(x) exp(-x) on [0, 8] as it is, beyond as sqrt(x) i(x) exp(-x) in 16 / x

def _near(t: torch.Tensor) -> torch.Tensor:
    return 4 * (t + 1)


def _far(t: torch.Tensor) -> torch.Tensor:
    return 16 / (t + 1)


def _i0e_near(t: torch.Tensor) -> torch.Tensor:
    return special.i0e(_near(t))


def _i0e_far(t: torch.Tensor) -> torch.Tensor:
    return special.i0e(_far(t)) * _far(t).sqrt()


def _i1e_near(t: torch.Tensor) -> torch.Tensor:
    return special.i1e(_near(t)) / _near(t)


def _i1e_far(t: torch.Tensor) -> torch.Tensor:
    return special.i1e(_far(t)) * _far(t).sqrt()


def _two_sided(m: _Real, a: Value, near: Smooth, far: Smooth) -> tuple[Value, Value]:
    """The two series at a >= 0; the second divided by sqrt(a)."""
    inner = m.series(near, m.sub(m.mul(a, 0.25), 1.0))
    outer = m.series(far, m.sub(m.div(16.0, a), 1.0))
    return inner, m.div(outer, m.of("sqrt", a))


def _i0e(m: _Real, x: Value) -> Value:
    a = m.of("abs", x)
    near, far = _two_sided(m, a, _i0e_near, _i0e_far)
    return m.where(m.below(a, 8.0), near, far)


def _i1e(m: _Real, x: Value) -> Value:
    a = m.of("abs", x)
    near, far = _two_sided(m, a, _i1e_near, _i1e_far)
    return _odd(m, x, m.where(m.below(a, 8.0), m.mul(near, a), far))


def _odd(m: _Real, x: Value, positive: Value) -> Value:
    """-positive where x < 0"""
    return m.where(m.call("aten.lt.Scalar", x, 0.0), m.of("neg", positive), positive)


def _grown(scaled: Formula) -> Formula:
    return lambda m, x: m.mul(m.of("exp", m.of("abs", x)), scaled(m, x))


def _small(t: torch.Tensor) -> torch.Tensor:
    return (2 * (t + 1)).sqrt()        # [0, 2], smooth in its square


def _i0_small(t: torch.Tensor) -> torch.Tensor:
    return special.i0(_small(t))


def _i1_small(t: torch.Tensor) -> torch.Tensor:
    return special.i1(_small(t)) / _small(t)


def _k0_small(t: torch.Tensor) -> torch.Tensor:
    x = _small(t)
    return special.modified_bessel_k0(x) + (x / 2).log() * special.i0(x)


def _k1_small(t: torch.Tensor) -> torch.Tensor:
    x = _small(t)
    return (special.modified_bessel_k1(x) - (x / 2).log() * special.i1(x)) * x


def _k0_large(t: torch.Tensor) -> torch.Tensor:
    x = 4 / (t + 1)
    return special.scaled_modified_bessel_k0(x) * x.sqrt()


def _k1_large(t: torch.Tensor) -> torch.Tensor:
    x = 4 / (t + 1)
    return special.scaled_modified_bessel_k1(x) * x.sqrt()


def _k(order: int, scaled: bool) -> Formula:
    """k0 = s(x^2) - log(x/2) i0(x);  k1 = s(x^2) / x + log(x/2) i1(x);  beyond 2 sqrt(x) exp(x) k(x) in 4 / x"""
    def formula(m: _Real, x: Value) -> Value:
        t = m.sub(m.mul(m.mul(x, x), 0.5), 1.0)
        log = m.of("log", m.mul(x, 0.5))
        if order == 0:
            small = m.sub(m.series(_k0_small, t), m.mul(log, m.series(_i0_small, t)))
        else:
            small = m.add(m.div(m.series(_k1_small, t), x), m.mul(log, m.mul(m.series(_i1_small, t), x)))
        large = m.series(_k1_large if order else _k0_large, m.sub(m.div(4.0, x), 1.0))
        large = m.div(large, m.of("sqrt", x))
        if scaled:
            small = m.mul(small, m.of("exp", x))
        else:
            large = m.mul(large, m.of("exp", m.of("neg", x)))
        result = m.where(m.below(x, 2.0), small, large)
        return m.where(m.call("aten.eq.Scalar", x, 0.0), math.inf, result)

    return formula


# --- Bessel functions -----------------------------------------------------------------------------
# On [0, 5] in x^2 (where torch's kernels change their formula, too). Beyond, with z = x - (2 n + 1) pi / 4,
# j = sqrt(2 / pi x) (p cos z - q sin z),  y = sqrt(2 / pi x) (p sin z + q cos z),  p and x q smooth in 1 / x^2

def _inside(t: torch.Tensor) -> torch.Tensor:
    return (12.5 * (t + 1)).sqrt()


def _outside(t: torch.Tensor) -> torch.Tensor:
    return 5 / ((t + 1) / 2).sqrt()


J: tuple[Smooth, Smooth] = (special.bessel_j0, special.bessel_j1)
Y: tuple[Smooth, Smooth] = (special.bessel_y0, special.bessel_y1)


@functools.cache
def _wave(order: int, part: str) -> Smooth:
    """p, or x times q, as a function of t"""
    def smooth(t: torch.Tensor) -> torch.Tensor:
        x = _outside(t)
        z = x - (2 * order + 1) * (PI / 4)
        j, y, size = J[order](x), Y[order](x), (PI * x / 2).sqrt()
        if part == "p":
            return size * (j * z.cos() + y * z.sin())
        return size * (y * z.cos() - j * z.sin()) * x

    return smooth


@functools.cache
def _core(order: int, second: bool) -> Smooth:
    """The part of j or y on [0, 5] that is smooth in x^2"""
    def smooth(t: torch.Tensor) -> torch.Tensor:
        x = _inside(t)
        value = J[order](x)
        if second:
            value = Y[order](x) - (2 / PI) * x.log() * value
            value = value + 2 / (PI * x) if order else value
        return value / x if order else value

    return smooth


def _bessel(order: int, second: bool) -> Formula:
    def formula(m: _Real, x: Value) -> Value:
        a = x if second else m.of("abs", x)
        square = m.mul(a, a)
        t = m.sub(m.mul(square, 1 / 12.5), 1.0)
        inside = m.series(_core(order, second), t)
        inside = m.mul(inside, a) if order else inside
        if second:
            first = m.series(_core(order, False), t)
            first = m.mul(first, a) if order else first
            inside = m.add(inside, m.mul(m.mul(m.of("log", a), first), 2 / PI))
            inside = m.sub(inside, m.div(2 / PI, a)) if order else inside
        far = m.sub(m.div(50.0, square), 1.0)
        p, q = m.series(_wave(order, "p"), far), m.div(m.series(_wave(order, "q"), far), a)
        z = m.sub(a, (2 * order + 1) * (PI / 4))
        cos, sin = m.of("cos", z), m.of("sin", z)
        outside = m.add(m.mul(p, sin), m.mul(q, cos)) if second else m.sub(m.mul(p, cos), m.mul(q, sin))
        outside = m.mul(outside, m.of("sqrt", m.div(2 / PI, a)))
        result = m.where(m.below(a, 5.0), inside, outside)
        if second:
            return m.where(m.call("aten.eq.Scalar", x, 0.0), -math.inf, result)
        return _odd(m, x, result) if order else result

    return formula


def _spherical_j0(m: _Real, x: Value) -> Value:
    """sin(x) / x; its power series near zero, 0 at infinity"""
    square = m.mul(x, x)
    near = m.add(m.mul(square, -1 / 156), 1.0)
    for k in (110, 72, 42, 20, 6):
        near = m.add(m.mul(m.mul(near, square), -1 / k), 1.0)
    result = m.where(m.below(m.of("abs", x), 0.5), near, m.div(m.of("sin", x), x))
    return m.where(m.of("isinf", x), 0.0, result)


# --- the normal distribution ----------------------------------------------------------------------

def _erfcx_smooth(t: torch.Tensor) -> torch.Tensor:
    x = 4 * (1 + t) / (1 - t)          # t = (x - 4) / (x + 4)
    return special.erfcx(x) * (1 + 2 * x)


def _erfcx(m: _Real, x: Value) -> Value:
    """exp(x^2) erfc(x) = s((x - 4) / (x + 4)) / (1 + 2 x) for x >= 0;  2 exp(x^2) - erfcx(-x) for x < 0"""
    a = m.of("abs", x)
    t = m.add(m.div(-8.0, m.add(a, 4.0)), 1.0)
    positive = m.div(m.series(_erfcx_smooth, t), m.add(m.mul(a, 2.0), 1.0))
    mirrored = m.sub(m.mul(m.of("exp", m.mul(x, x)), 2.0), positive)
    return m.where(m.call("aten.lt.Scalar", x, 0.0), mirrored, positive)


def _log_ndtr(m: _Real, x: Value) -> Value:
    """log(erfcx(-t) / 2) - t^2 for x < -1,  log1p(-erfc(t) / 2) elsewhere, with t = x / sqrt(2)"""
    t = m.mul(x, math.sqrt(0.5))
    tail = m.sub(m.of("log", m.mul(_erfcx(m, m.of("neg", t)), 0.5)), m.mul(t, t))
    body = m.of("log1p", m.mul(m.of("erfc", t), -0.5))
    return m.where(m.call("aten.lt.Scalar", x, -1.0), tail, body)


# --- derivatives of log gamma ---------------------------------------------------------------------

def _polygamma(b: Builder, node: Node) -> Value | None:
    """digamma for n = 0, trigamma for n = 1; the others stay whole"""
    order = node.attributes["n"]
    if order not in (0, 1):
        return None
    return _rule((lambda m, x: m.of("digamma", x)) if order == 0 else _trigamma)(b, node)


def _trigamma(m: _Real, x: Value) -> Value:
    """Six steps up by 1 / x^2, then the asymptotic series; reflected below 1/2: pi^2 / sin^2(pi x) - trigamma(1 - x)"""
    low = m.call("aten.lt.Scalar", x, 0.5)
    sine = m.of("sin", m.mul(x, PI))
    reflected = m.div(PI * PI, m.mul(sine, sine))
    y = m.where(low, m.add(m.of("neg", x), 1.0), x)
    total: Value | None = None
    for _ in range(6):
        step = m.div(1.0, m.mul(y, y))
        total = step if total is None else m.add(total, step)
        y = m.add(y, 1.0)
    inverse = m.div(1.0, m.mul(y, y))
    tail = m.add(m.mul(inverse, -1 / 42), 1 / 30)
    tail = m.add(m.mul(m.mul(inverse, tail), -1.0), 1 / 6)
    tail = m.add(m.add(m.mul(inverse, tail), 1.0), m.div(0.5, y))
    assert total is not None
    total = m.add(total, m.div(tail, y))
    return m.where(low, m.sub(reflected, total), total)


FORMULAS: dict[str, Formula] = {
    "i0": _grown(_i0e), "special_i0e": _i0e, "special_i1": _grown(_i1e), "special_i1e": _i1e,
    "special_modified_bessel_i0": _grown(_i0e), "special_modified_bessel_i1": _grown(_i1e),
    "special_modified_bessel_k0": _k(0, False), "special_modified_bessel_k1": _k(1, False),
    "special_scaled_modified_bessel_k0": _k(0, True), "special_scaled_modified_bessel_k1": _k(1, True),
    "special_bessel_j0": _bessel(0, False), "special_bessel_j1": _bessel(1, False),
    "special_bessel_y0": _bessel(0, True), "special_bessel_y1": _bessel(1, True),
    "special_spherical_bessel_j0": _spherical_j0,
    "special_erfcx": _erfcx, "special_log_ndtr": _log_ndtr,
}

RULES: dict[str, Callable[[Builder, Node], Value | None]] = {
    "aten.polygamma.default": _polygamma,
    **{f"aten.{name}.default": _rule(formula) for name, formula in FORMULAS.items()},
}
