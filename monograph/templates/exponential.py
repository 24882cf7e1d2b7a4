"""2^y for y <= 0, as softmax needs it: cheaper than the exp of the math table, which handles all arguments.

    y = n + r, |r| <= 1/2:   2^y = 2^n p(r)        0 where y < -126; NaN stays NaN

p is the polynomial of Cephes' exp2f (relative error below 2e-7).
"""

from __future__ import annotations

import math

import torch

from monograph.loops.nodes import Expr, const, op

__all__ = ["LOG2_E", "has_fast_exp2", "nonpositive_exp2"]

LOG2_E = math.log2(math.e)
F32, I32 = torch.float32, torch.int32
MAGIC = 1.5 * 2.0 ** 23       # adding it rounds to an integer, which then stands in the low bits
COEFFICIENTS = (
    1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3, 5.550332471162809e-2, 2.402264791363012e-1,
    6.931472028550421e-1, 1.0,
)


def has_fast_exp2(dtype: torch.dtype) -> bool:
    return dtype is F32


def nonpositive_exp2(y: Expr) -> Expr:
    """2^y for f32 y <= 0."""
    clamped = _f32("max", y, _number(-126.0))
    shifted = _f32("add", clamped, _number(MAGIC))
    r = _f32("sub", clamped, _f32("sub", shifted, _number(MAGIC)))
    p: Expr = _number(COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        p = _f32("fma", p, r, _number(coefficient))
    power = op("shl", op("bitcast", shifted, dtype=I32), const(23, I32), dtype=I32)
    scaled: Expr = op("bitcast", op("add", op("bitcast", p, dtype=I32), power, dtype=I32), dtype=F32)
    scaled = _f32("fma", clamped, _number(0.0), scaled)       # NaN of any payload stays NaN
    return op("select", op("lt", y, _number(-126.0), dtype=torch.bool), _number(0.0), scaled, dtype=F32)


def _number(value: float) -> Expr:
    return const(value, F32)


def _f32(name: str, *args: Expr) -> Expr:
    return op(name, *args, dtype=F32)
