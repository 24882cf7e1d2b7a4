"""Local rewrites of one operation, applied when it is built; every rule is exact, NaN and signed zeros included.

A rule returns the replacement, or None for "no change". Index arithmetic with known ranges stands in `loops.affine`.
"""

from __future__ import annotations

import math as pymath
import operator
from collections.abc import Callable

import torch

from monograph.ir.sized import Sized
from monograph.loops import math
from monograph.loops.nodes import Const, Expr, Op, const, op

__all__ = ["fold"]

Rule = Callable[[tuple[Expr, ...], torch.dtype], Expr | None]


def fold(name: str, args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    """A simpler expression equal to `name(args)`, bit for bit, or None."""
    if all(isinstance(arg, Const) for arg in args):
        return _constant(name, args, dtype)
    rule = _RULES.get(name)
    return rule(args, dtype) if rule is not None else None


def _constant(name: str, args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    if name == "bitcast":       # NaN payloads do not survive a Python float
        return None
    quick = _QUICK.get(name)
    if any(isinstance(arg.value, Sized) for arg in args) and name not in _ARITHMETIC:  # type: ignore[attr-defined]
        return None
    if quick is not None and all(arg.dtype in (torch.int64, torch.bool) for arg in args):
        value = quick(*(arg.value for arg in args))                         # type: ignore[attr-defined]
        if dtype is torch.bool:
            return const(bool(value), dtype)
        if isinstance(value, Sized) or -(1 << 63) <= value < 1 << 63:
            return const(value, dtype)
    values = [torch.tensor(arg.value, dtype=arg.dtype) for arg in args]     # type: ignore[attr-defined]
    return const(math.evaluate(name, dtype, values).item(), dtype)


_QUICK: dict[str, Callable[..., int | bool]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "and": operator.and_,
    "or": operator.or_, "min": min, "max": max,
}


_ARITHMETIC = frozenset({"add", "sub", "mul"})


def _is(expr: Expr, value: float) -> bool:
    return isinstance(expr, Const) and expr.value == value and (value != 0 or not str(expr.value).startswith("-"))


def _cast(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    x, = args
    if x.dtype is dtype:                                            # cast(x, its own dtype) -> x
        return x
    if isinstance(x, Op) and x.name == "cast" and _widens(x.args[0].dtype, x.dtype):
        if x.args[0].dtype is dtype:                                # narrow(widen(x)) -> x
            return x.args[0]
        if _widens(x.args[0].dtype, dtype):                         # widen(widen(x)) -> widen(x)
            return op("cast", x.args[0], dtype=dtype, loc=x.loc)
    return None


def _widens(source: torch.dtype, target: torch.dtype) -> bool:
    """Every value of `source` is one of `target`."""
    if source is torch.bool:
        return target is not torch.bool
    if source.is_floating_point:
        return source in math.HALF and target in (torch.float32, torch.float64) or (
            source is torch.float32 and target is torch.float64)
    if target.is_floating_point or target is torch.bool:
        return False
    if source.is_signed == target.is_signed:
        return source.itemsize <= target.itemsize
    return target.is_signed and source.itemsize < target.itemsize


def _add(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    if dtype.is_floating_point:                                     # x + -0.0 -> x   (x + 0.0 is not x at -0.0)
        return next((x for x, y in (args, args[::-1]) if isinstance(y, Const) and str(y.value) == "-0.0"), None)
    return next((x for x, y in (args, args[::-1]) if _is(y, 0)), None)      # x + 0 -> x


def _sub(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    return args[0] if _is(args[1], 0) else None                     # x - 0 -> x


def _mul(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    return next((x for x, y in (args, args[::-1]) if _is(y, 1)), None)      # x * 1 -> x


def _div(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    x, y = args
    if _is(y, 1):                                                   # x / 1 -> x
        return x
    if isinstance(y, Const) and y.value and pymath.isfinite(y.value):
        mantissa, exponent = pymath.frexp(abs(y.value))
        if mantissa == 0.5 and abs(exponent) < 100:                 # x / 2**n -> x * 2**-n
            return op("mul", x, const(1.0 / y.value, dtype), dtype=dtype)
    return None


def _and(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    if args[0] is args[1]:
        return args[0]
    for x, y in (args, args[::-1]):
        if dtype is torch.bool and isinstance(y, Const):
            return x if y.value else y                              # x & true -> x;  x & false -> false
    return None


def _or(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    if args[0] is args[1]:
        return args[0]
    for x, y in (args, args[::-1]):
        if dtype is torch.bool and isinstance(y, Const):
            return y if y.value else x                              # x | true -> true;  x | false -> x
    return None


def _not(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    x = args[0]
    if isinstance(x, Op) and x.name == "not":                       # not not x -> x
        return x.args[0]
    if isinstance(x, Op) and x.name in _OPPOSITE and math.kind(x.args[0].dtype) in "ib":
        return op(_OPPOSITE[x.name], *x.args, dtype=torch.bool)     # not (a < b) -> a >= b   (no NaN among integers)
    return None


_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


def _select(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    condition, x, y = args
    if x is y:
        return x
    if isinstance(condition, Const):
        return x if condition.value else y
    if dtype is torch.bool and isinstance(x, Const) and isinstance(y, Const):
        return condition if x.value else op("not", condition, dtype=torch.bool)
    return None


def _same(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
    return args[0] if args[0] is args[1] else None                  # min(x, x) -> x


def _extremum(largest: bool) -> Rule:
    def rule(args: tuple[Expr, ...], dtype: torch.dtype) -> Expr | None:
        if dtype.is_floating_point:
            neutral: float = -pymath.inf if largest else pymath.inf
        else:
            neutral = torch.iinfo(dtype).min if largest else torch.iinfo(dtype).max
        for x, y in (args, args[::-1]):
            if isinstance(y, Const) and y.value == neutral:         # max(x, -inf) -> x, NaN too
                return x
        return _same(args, dtype)

    return rule


_RULES: dict[str, Rule] = {
    "cast": _cast, "add": _add, "sub": _sub, "mul": _mul, "div": _div, "and": _and, "or": _or, "not": _not,
    "select": _select, "min": _extremum(False), "max": _extremum(True), "fmin": _same, "fmax": _same,
}
