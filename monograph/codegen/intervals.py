"""Which values an integer expression can have: from loop bounds, clamps and narrow dtypes.

An interval is (lowest, highest), infinite where nothing is known. Integer arithmetic wraps, so what may leave its
dtype's range has that whole range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from monograph.loops.nodes import Const, Expr, For, Kernel, Op, Var

__all__ = ["ANY", "Interval", "Intervals"]

Interval: TypeAlias = tuple[float, float]       # integers, or infinities
ANY: Interval = (-math.inf, math.inf)
DEPTH = 40                                      # deeper expressions are not looked into


class Intervals:
    """Memoised intervals of the expressions of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._known: dict[Expr, Interval] = {}
        self._loops: dict[Var, list[For]] = {}
        for statement in kernel.statements():
            if isinstance(statement, For):
                self._loops.setdefault(statement.var, []).append(statement)

    def of(self, expr: Expr, depth: int = DEPTH) -> Interval:
        found = self._known.get(expr)
        if found is None:
            found = self._compute(expr, depth) if depth else ANY
            whole = _range(expr.dtype)
            if found[0] < whole[0] or found[1] > whole[1]:
                found = whole if expr.dtype is not torch.int64 else ANY
            if depth == DEPTH:
                self._known[expr] = found
        return found

    def _compute(self, expr: Expr, depth: int) -> Interval:
        if isinstance(expr, Const):
            return (expr.value, expr.value) if not expr.dtype.is_floating_point else ANY
        if isinstance(expr, Var):
            return self._variable(expr, depth)
        if not isinstance(expr, Op) or expr.dtype.is_floating_point:
            return _range(expr.dtype)
        if expr.name == "select":
            a, b = (self.of(e, depth - 1) for e in expr.args[1:])
            return min(a[0], b[0]), max(a[1], b[1])
        if expr.name == "cast" and expr.args[0].dtype.is_floating_point:
            return _range(expr.dtype)
        rule = RULES.get(expr.name)
        return rule([self.of(e, depth - 1) for e in expr.args]) if rule is not None else _range(expr.dtype)

    def _variable(self, variable: Var, depth: int) -> Interval:
        loops = self._loops.get(variable, [])
        if not loops:
            return ANY
        lows = [self.of(loop.lo, depth - 1)[0] for loop in loops]
        highs = [self.of(loop.hi, depth - 1)[1] - 1 for loop in loops]
        return min(lows), max(highs)


def _range(dtype: torch.dtype) -> Interval:
    if dtype is torch.bool:
        return 0, 1
    if dtype.is_floating_point or dtype is torch.int64 or dtype is torch.uint64:
        return ANY
    limits = torch.iinfo(dtype)
    return limits.min, limits.max


def _product(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _mul(args: Sequence[Interval]) -> Interval:
    corners = [_product(a, b) for a in args[0] for b in args[1]]
    return min(corners), max(corners)


def _floor(a: float, b: float) -> float:
    return a if math.isinf(a) else a // b


def _floordiv(args: Sequence[Interval]) -> Interval:
    low, high = args[1]
    return (_floor(args[0][0], low), _floor(args[0][1], low)) if low == high and low > 0 else ANY


def _mod(args: Sequence[Interval]) -> Interval:
    low, high = args[1]
    return (0, high - 1) if low > 0 else ANY


def _and(args: Sequence[Interval]) -> Interval:
    """With a number that is not negative: between 0 and that number."""
    highest = [high for low, high in args if low >= 0]
    return (0, min(highest)) if highest else ANY


RULES: dict[str, Callable[[Sequence[Interval]], Interval]] = {
    "add": lambda a: (a[0][0] + a[1][0], a[0][1] + a[1][1]),
    "sub": lambda a: (a[0][0] - a[1][1], a[0][1] - a[1][0]),
    "neg": lambda a: (-a[0][1], -a[0][0]),
    "mul": _mul, "floordiv": _floordiv, "mod": _mod, "and": _and,
    "min": lambda a: (min(a[0][0], a[1][0]), min(a[0][1], a[1][1])),
    "max": lambda a: (max(a[0][0], a[1][0]), max(a[0][1], a[1][1])),
    "cast": lambda a: a[0],
}
