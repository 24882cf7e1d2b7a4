"""The scalar operations an `Op` expression may use.

    Scalar ::= name(arity) accepts result cost evaluate
    accepts ::= the kinds of operand: f (f32, f64)  i (all integers)  b (bool)  h (f16, bf16)
    result  ::= same (all operands and the result have one dtype) | bool | select | cast | bitcast

f16 and bf16 are storage types: they occur in loads, stores, constants, `select`, `bitcast` and
`cast` only; arithmetic on them is done in f32 and rounded back by a `cast`, as eager does.

What code generation must keep:

- Integer arithmetic wraps. `truncdiv`, `floordiv`, `rem` and `mod` never trap: by zero the value is
  unspecified (a `Check` stands before where the program can meet it), and MIN / -1 wraps to MIN.
  `floordiv` and `mod` round to minus infinity, `truncdiv` and `rem` to zero.
- `shl` and `shr` by an amount outside [0, bits): 0, or for `shr` of a negative number -1. `shr` of a
  signed number is arithmetic.
- `min` and `max`: a NaN operand wins. `fmin` and `fmax`: a NaN operand loses. Of equal operands, which may be zeros
  of different sign, all four give the second. A fold keeps what it met first.
- `round` is to even. `abs` of the smallest integer is itself.
- `cast` float -> int truncates; NaN and what does not fit give the smallest i32 or i64 (x86's conversion);
  narrower integers go through i32 and wrap. float -> bool is `x != 0` (NaN is true). int -> int wraps.
  f64 -> f16 and f64 -> bf16 round through f32, as torch does.
- Functions hold within a few ulp over their whole range, subnormals, infinities and NaN as in C99.
  `sqrt`, `div`, `fma`, `floor`, `ceil`, `trunc`, `round`, `fmod`, `nextafter` are exact.
- No operation is contracted or reassociated: `fma` is fused, `add(mul(a, b), c)` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

__all__ = ["HALF", "TABLE", "Scalar", "complaint", "evaluate", "kind"]

HALF = (torch.bfloat16, torch.float16)
FLOAT = (torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar operation. `cost` counts in units of one addition; `evaluate(dtype, *tensors)` is the reference."""

    arity: int
    accepts: str
    result: str
    cost: int
    evaluate: Callable[..., torch.Tensor]


def kind(dtype: torch.dtype) -> str:
    """The letter of `accepts` that stands for `dtype`."""
    if dtype is torch.bool:
        return "b"
    if dtype in HALF:
        return "h"
    if dtype in FLOAT:
        return "f"
    return "c" if dtype.is_complex else "i"


def complaint(name: str, operands: Sequence[torch.dtype], result: torch.dtype) -> str | None:
    """What is wrong with the dtypes of an operation; None when they are right."""
    scalar = TABLE.get(name)
    if scalar is None:
        return f"no operation {name!r}"
    if len(operands) != scalar.arity:
        return f"{name} takes {scalar.arity} operands, not {len(operands)}"
    if any(kind(dtype) not in scalar.accepts for dtype in operands):
        return f"{name} does not take {', '.join(map(str, operands))}"
    if scalar.result == "cast":
        return None
    if scalar.result == "bitcast":
        return None if operands[0].itemsize == result.itemsize else "bitcast between sizes"
    if scalar.result == "select":
        if operands[0] is not torch.bool:
            return "the condition of select is not bool"
        operands = operands[1:]
    if len(set(operands)) != 1:
        return f"{name} mixes {', '.join(map(str, operands))}"
    expected = torch.bool if scalar.result == "bool" else operands[0]
    return None if result is expected else f"{name} gives {expected}, not {result}"


def evaluate(name: str, dtype: torch.dtype, args: Sequence[torch.Tensor]) -> torch.Tensor:
    """The reference value of an operation on tensors of equal (or broadcastable) shape."""
    return TABLE[name].evaluate(dtype, *args).to(dtype)


def _plain(fn: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda dtype, *args: fn(*args)


def _extremum(fn: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda a, b: torch.where(a == b, b, fn(a, b))


def _integer_division(mode: str, remainder: bool) -> Callable[..., torch.Tensor]:
    def divide(dtype: torch.dtype, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        safe = torch.where((b == 0) | ((b == -1) if dtype.is_signed else (b == 0)), torch.ones_like(b), b)
        quotient = torch.div(a, safe, rounding_mode=mode)
        if dtype.is_signed:
            quotient = torch.where(b == -1, -a, quotient)
        return a - quotient * b if remainder else quotient

    return divide


def _shift(left: bool) -> Callable[..., torch.Tensor]:
    def shift(dtype: torch.dtype, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        bits = dtype.itemsize * 8
        inside = (b >= 0) & (b < bits)
        amount = torch.where(inside, b, torch.zeros_like(b))
        if left:
            return torch.where(inside, torch.bitwise_left_shift(a, amount), torch.zeros_like(a))
        beyond = torch.zeros_like(a)
        if dtype.is_signed:
            beyond = torch.where(a < 0, -torch.ones_like(a), beyond)
        return torch.where(inside, torch.bitwise_right_shift(a, amount), beyond)

    return shift


def _fma(dtype: torch.dtype, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    # In f64 the product of two f32 is exact and the sum is rounded twice, which is right but for rare ties.
    return (a.double() * b.double() + c.double()).to(dtype)


def _cast(dtype: torch.dtype, x: torch.Tensor) -> torch.Tensor:
    if dtype in HALF and x.dtype is torch.float64:
        x = x.float()
    if x.is_floating_point() and kind(dtype) == "i" and dtype.itemsize < 4:
        x = x.to(torch.int32)
    return x.to(dtype)


def _table() -> dict[str, Scalar]:
    table: dict[str, Scalar] = {}

    def add(result: str, accepts: str, cost: int, arity: int, **functions: Callable[..., torch.Tensor]) -> None:
        for name, fn in functions.items():
            table[name.rstrip("_")] = Scalar(arity, accepts, result, cost, _plain(fn))

    def add_raw(result: str, accepts: str, cost: int, arity: int, **functions: Callable[..., torch.Tensor]) -> None:
        for name, fn in functions.items():
            table[name] = Scalar(arity, accepts, result, cost, fn)

    # Arithmetic.
    add("same", "fi", 1, 2, add=torch.add, sub=torch.sub, mul=torch.mul, min=_extremum(torch.minimum),
        max=_extremum(torch.maximum))
    add("same", "fi", 1, 1, neg=torch.neg, abs=torch.abs)
    add("same", "f", 1, 2, fmin=_extremum(torch.fmin), fmax=_extremum(torch.fmax), copysign=torch.copysign)
    add("same", "f", 4, 2, div=torch.div)
    add_raw("same", "f", 1, 3, fma=_fma)
    add_raw("same", "i", 8, 2, truncdiv=_integer_division("trunc", False), floordiv=_integer_division("floor", False),
            rem=_integer_division("trunc", True), mod=_integer_division("floor", True))

    # Comparisons (false on NaN, but `ne`), bits, choice.
    add("bool", "fib", 1, 2, eq=torch.eq, ne=torch.ne, lt=torch.lt, le=torch.le, gt=torch.gt, ge=torch.ge)
    add("same", "ib", 1, 2, and_=torch.bitwise_and, or_=torch.bitwise_or, xor=torch.bitwise_xor)
    add("same", "ib", 1, 1, not_=torch.bitwise_not)
    add_raw("same", "i", 2, 2, shl=_shift(True), shr=_shift(False))
    add("select", "fihb", 1, 3, select=torch.where)
    add_raw("cast", "fihb", 1, 1, cast=_cast)
    add_raw("bitcast", "fih", 0, 1, bitcast=lambda dtype, x: x.view(dtype))
    add("bool", "f", 1, 1, isnan=torch.isnan, isinf=torch.isinf, signbit=torch.signbit)

    # Rounding and roots.
    add("same", "f", 1, 1, floor=torch.floor, ceil=torch.ceil, round=torch.round, trunc=torch.trunc)
    add("same", "f", 5, 1, sqrt=torch.sqrt)
    add("same", "f", 8, 1, rsqrt=torch.rsqrt)
    add("same", "f", 20, 2, fmod=torch.fmod, nextafter=torch.nextafter, hypot=torch.hypot)

    # Elementary functions.
    add("same", "f", 12, 1, exp=torch.exp, exp2=torch.exp2, expm1=torch.expm1, log=torch.log, log2=torch.log2,
        log10=torch.log10, log1p=torch.log1p, tanh=torch.tanh, sigmoid=torch.sigmoid, erf=torch.erf)
    add("same", "f", 20, 1, sin=torch.sin, cos=torch.cos, tan=torch.tan, asin=torch.asin, acos=torch.acos,
        atan=torch.atan, sinh=torch.sinh, cosh=torch.cosh, asinh=torch.asinh, acosh=torch.acosh, atanh=torch.atanh,
        erfc=torch.erfc, erfinv=torch.erfinv)
    add("same", "f", 40, 1, lgamma=torch.lgamma, digamma=torch.digamma)
    add("same", "f", 30, 2, pow=torch.pow, atan2=torch.atan2)
    return table


TABLE: dict[str, Scalar] = _table()
