"""Kernels for a number of rows that is known only when they run.

    count(kernel, Rows(scheduled, buffer)) -> None     the kernel of `scheduled` rows becomes one of `buffer[0]` rows

`scheduled` is a prime that divides no other number of what the kernel was made of (see `schedule.rowwise`), and rows
lie one after the other in memory. So a bound that is c times the prime is c times the number of rows, and no index has
a multiple of the prime in it: whatever was simplified because a variable stays below a bound holds for lower ones too.
`Uncountable` says that a kernel does have one elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monograph.errors import CompileError
from monograph.loops.interpret import postorder
from monograph.loops.lower_domain import expressions
from monograph.loops.nodes import INDEX, Buffer, Const, Expr, For, Kernel, Op, index, load, op

__all__ = ["Rows", "Uncountable", "count"]


class Uncountable(CompileError):
    """A kernel knows its number of rows elsewhere than in the bounds of its loops."""


@dataclass(frozen=True)
class Rows:
    """Kernels are made for `scheduled` rows; `buffer` holds how many there are."""

    scheduled: int
    buffer: Buffer

    def times(self, number: int) -> Expr:
        """The number of rows that `number`, a multiple of `scheduled`, stands for."""
        factor, rest = divmod(number, self.scheduled)
        assert not rest, (number, self.scheduled)
        there = load(self.buffer, index(0))
        return there if factor == 1 else op("mul", there, index(factor), dtype=INDEX)

    def counts(self, expr: Expr) -> bool:
        """Is it a constant that stands for rows?"""
        return isinstance(expr, Const) and expr.dtype is INDEX and bool(expr.value) and not expr.value % self.scheduled


def count(kernel: Kernel, rows: Rows) -> None:
    """Make `kernel` stop at the last row there is. The buffer comes after all arguments but the error record."""
    last = len(kernel.arguments)
    if kernel.arguments and kernel.arguments[-1].kind == "error":
        last -= 1
    if rows.buffer not in kernel.arguments:
        kernel.arguments.insert(last, rows.buffer)
    for statement in kernel.statements():
        if isinstance(statement, For):
            _blocks(statement, rows)
            statement.hi = _bound(statement.hi, rows)
            _check(kernel, [statement.lo, statement.hi, *statement.yields, *(c.init for c in statement.carried)], rows)
        else:
            _check(kernel, expressions(statement), rows)


def _bound(hi: Expr, rows: Rows) -> Expr:
    """c * scheduled -> c * rows;  min(x, c * scheduled) -> min(x, c * rows)"""
    if rows.counts(hi):
        return rows.times(int(hi.value))     # type: ignore[attr-defined]
    if isinstance(hi, Op) and hi.name == "min":
        return op("min", *(_bound(arg, rows) for arg in hi.args), dtype=INDEX)
    return hi


def _blocks(loop: For, rows: Rows) -> None:
    """for p in 0..blocks: for v in p*size .. min(p*size + size, rows)  has as many blocks as there are rows for."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    if loop.kind != "parallel" or not isinstance(inner, For) or not isinstance(inner.lo, Op):
        return
    lo, hi = inner.lo, inner.hi
    if lo.name == "mul" and lo.args[0] is loop.var and isinstance(lo.args[1], Const) and isinstance(hi, Op):
        size = int(lo.args[1].value)
        totals = [arg for arg in hi.args if rows.counts(arg)]
        if hi.name == "min" and totals:
            total = op("add", rows.times(int(totals[0].value)), index(size - 1), dtype=INDEX)   # type: ignore[attr-defined]
            loop.hi = op("floordiv", total, index(size), dtype=INDEX)


def _check(kernel: Kernel, exprs: Iterable[Expr], rows: Rows) -> None:
    for expr in postorder(exprs):
        if rows.counts(expr):
            raise Uncountable(f"kernel {kernel.name} computes with its number of rows")
