"""A small vocabulary for writing rules: scalar expressions of one compute dtype.

Arithmetic on f16 and bf16 is done in f32 and rounded once per op, as eager does; bool counts as a ring with
`or` for plus and `and` for times, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from monograph.ir.sized import Sized
from monograph.loops import math
from monograph.loops.affine import Affine
from monograph.loops.nodes import Expr, const
from monograph.source import SourceLoc

__all__ = ["Number", "Scalars", "opmath", "number"]

Number: TypeAlias = "Expr | int | float | bool"
BOOL = torch.bool
ON_BOOL = {"add": "or", "mul": "and", "max": "or", "min": "and", "fmax": "or", "fmin": "and"}


def opmath(dtype: torch.dtype) -> torch.dtype:
    """The dtype eager computes in: f32 for the two half formats."""
    return torch.float32 if dtype in math.HALF else dtype


def number(value: int | float | bool, dtype: torch.dtype) -> Expr:
    """A constant of `dtype`, converted as torch does (integers wrap)."""
    if isinstance(value, Sized):
        return const(value, dtype)
    if dtype is torch.bool:
        return const(bool(value), dtype)
    if dtype.is_floating_point:
        return const(torch.tensor(float(value), dtype=torch.float64).to(dtype).item(), dtype)
    if isinstance(value, float):
        return const(torch.tensor(value, dtype=torch.float64).to(dtype).item(), dtype)
    bits = dtype.itemsize * 8
    wrapped = int(value) & ((1 << bits) - 1)
    return const(wrapped - (1 << bits) if dtype.is_signed and wrapped >> (bits - 1) else wrapped, dtype)


class Scalars:
    """Builds expressions; plain numbers become constants of `dtype`."""

    def __init__(
        self, affine: Affine, dtype: torch.dtype, loc: SourceLoc | None = None,
        require: Callable[[Expr, str, str], None] | None = None, result: torch.dtype | None = None,
        count: int = 1 << 30,
    ) -> None:
        self.affine = affine
        self.dtype = dtype
        self.loc = loc
        self.result = result or dtype       # what the op gives in the end
        self.count = count                  # elements of the result
        self._require = require

    def require(self, condition: Expr, exception: str, message: str) -> None:
        """The program raises `exception` where the condition is false."""
        assert self._require is not None
        self._require(condition, exception, message)

    def lift(self, x: Number, dtype: torch.dtype | None = None) -> Expr:
        return x if isinstance(x, Expr) else number(x, dtype or self.dtype)

    def __call__(self, name: str, *args: Number) -> Expr:
        """Operation `name`; the dtype of the result follows from the table."""
        like = next((arg.dtype for arg in args if isinstance(arg, Expr)), self.dtype)
        exprs = [self.lift(arg, like) for arg in args]
        if like is BOOL and name in ON_BOOL:
            name = ON_BOOL[name]
        dtype = BOOL if math.TABLE[name].result == "bool" else like
        return self.affine.op(name, *exprs, dtype=dtype, loc=self.loc)

    def cast(self, x: Expr, dtype: torch.dtype) -> Expr:
        return self.affine.op("cast", x, dtype=dtype, loc=self.loc)

    def rounded(self, x: Expr) -> Expr:
        """x as it would be after a store and a load of the result's dtype."""
        return self.cast(self.cast(x, self.result), x.dtype)

    def bits(self, x: Expr, dtype: torch.dtype) -> Expr:
        return self.affine.op("bitcast", x, dtype=dtype, loc=self.loc)

    def select(self, condition: Expr, x: Number, y: Number) -> Expr:
        like = next((arg.dtype for arg in (x, y) if isinstance(arg, Expr)), self.dtype)
        return self.affine.op("select", condition, self.lift(x, like), self.lift(y, like), dtype=like, loc=self.loc)

    def truth(self, x: Expr) -> Expr:
        """x != 0, also for bool and half floats."""
        return x if x.dtype is BOOL else self.cast(x, BOOL)

    def all(self, *conditions: Expr) -> Expr:
        result: Expr = const(True, BOOL)
        for condition in conditions:
            result = self("and", result, condition)
        return result

    # Often used.

    def add(self, x: Number, y: Number) -> Expr:
        return self("add", x, y)

    def sub(self, x: Number, y: Number) -> Expr:
        return self("sub", x, y)

    def mul(self, x: Number, y: Number) -> Expr:
        return self("mul", x, y)

    def div(self, x: Number, y: Number) -> Expr:
        return self("div", x, y)

    def lt(self, x: Number, y: Number) -> Expr:
        return self("lt", x, y)

    def gt(self, x: Number, y: Number) -> Expr:
        return self("gt", x, y)

    def le(self, x: Number, y: Number) -> Expr:
        return self("le", x, y)

    def ge(self, x: Number, y: Number) -> Expr:
        return self("ge", x, y)

    def eq(self, x: Number, y: Number) -> Expr:
        return self("eq", x, y)

    def polynomial(self, x: Expr, coefficients: tuple[float, ...]) -> Expr:
        """Horner's rule, highest power first."""
        result = self.lift(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self("fma", result, x, coefficient)
        return result
