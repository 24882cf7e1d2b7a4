"""Kernels take sizes when they run.

`take(kernel) -> sizes` turns the `Sized` numbers of a kernel, the constants of its expressions, into loads from a table
of i64 words, and returns what these words must hold, in their order. The table comes after all arguments but the error
record. A number is one word whatever it is computed from: nothing is computed from sizes in a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from monograph.ir.sized import Sized, example, is_sized
from monograph.ir.symbolic import Expr as Dim
from monograph.loops.nodes import INDEX, Buffer, Check, Const, Expr, For, Kernel, Load, Op, Store, index, load, op

__all__ = ["take"]


def take(kernel: Kernel) -> tuple[Dim, ...]:
    """Rewrite `kernel` in place. No argument is added where it has no such number."""
    taken = _Taken(Buffer("sizes", INDEX, 0, "sizes"))
    for statement in kernel.statements():
        if isinstance(statement, For):
            taken.loop(statement)
        elif isinstance(statement, Store):
            statement.index, statement.value = taken(statement.index), taken(statement.value)
            statement.mask = None if statement.mask is None else taken(statement.mask)
        else:
            assert isinstance(statement, Check)
            statement.condition = taken(statement.condition)
            statement.values = [taken(value) for value in statement.values]
    for buffer in kernel.arguments:
        buffer.size = example(buffer.size)
    assert not is_sized([buffer.size for buffer in kernel.scratch]), kernel.name
    if taken.words:
        taken.table.size = len(taken.words)
        last = len(kernel.arguments) - any(buffer.kind == "error" for buffer in kernel.arguments[-1:])
        kernel.arguments.insert(last, taken.table)
    return tuple(taken.words)


class _Taken:
    """Expressions with loads for `Sized` constants."""

    def __init__(self, table: Buffer) -> None:
        self.table = table
        self.words: dict[Dim, int] = {}
        self.known: dict[Expr, Expr] = {}

    def loop(self, loop: For) -> None:
        loop.lo, loop.hi = self(loop.lo), self(loop.hi)
        for entry in loop.carried:
            entry.init = self(entry.init)
        loop.yields = [self(expr) for expr in loop.yields]
        loop.ahead = [(buffer, self(place)) for buffer, place in loop.ahead]

    def __call__(self, expr: Expr) -> Expr:
        stack = [expr]
        while stack:
            top = stack[-1]
            waiting = [arg for arg in top.args if arg not in self.known]
            if waiting:
                stack.extend(waiting)
                continue
            self.known.setdefault(top, self.made(top, [self.known[arg] for arg in top.args]))
            stack.pop()
        return self.known[expr]

    def made(self, expr: Expr, args: Sequence[Expr]) -> Expr:
        if isinstance(expr, Const) and isinstance(expr.value, Sized):
            return load(self.table, index(self.words.setdefault(expr.value.expr, len(self.words))))
        if all(new is old for new, old in zip(args, expr.args, strict=True)):
            return expr
        if isinstance(expr, Load):
            return load(expr.buffer, *args, loc=expr.loc)
        assert isinstance(expr, Op), expr
        return op(expr.name, *args, dtype=expr.dtype, loc=expr.loc)
