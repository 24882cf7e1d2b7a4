"""Checks that a kernel keeps the grammar of `loops.nodes`; a fault prints the lines around it.

    scope      a variable is used inside its loop, a carried value inside or after its loop in an enclosing block
    dtypes     every `Op` as `loops.math` says; indices and loop bounds i64; masks and conditions bool
    loops      parallel ones are outermost and carry nothing; vector ones do not nest, have step 1 and only
               combined carries; the bounds of any loop are uniform
    combine    sums, products and extrema of f32, f64 and integers; `and`, `or`, `xor` of integers and bool
    buffers    every buffer is declared, once; names differ; nothing reads or writes the error record
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from monograph.errors import VerificationError
from monograph.loops import math, printer
from monograph.loops.interpret import postorder
from monograph.loops.nodes import (
    INDEX,
    Buffer,
    Carry,
    Check,
    Combine,
    Expr,
    For,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    carry,
)

__all__ = ["verify"]

ORDERED = (Combine.SUM, Combine.PROD, Combine.MAX, Combine.MIN)


def verify(kernel: Kernel) -> None:
    """VerificationError when `kernel` breaks the grammar."""
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.buffers: set[Buffer] = set()
        self.vars: set[Var] = set()
        self.loops: set[For] = set()            # whose carried values may be used
        self.lanes: set[Expr] = set()           # variables and carried values with lanes
        self.inside: list[For] = []

    def run(self) -> None:
        declared = [*self.kernel.arguments, *self.kernel.scratch]
        if len({buffer.name for buffer in declared}) != len(declared):
            self.fail("two buffers share a name", None)
        for buffer in declared:
            if buffer.size < 0:
                self.fail(f"{buffer!r} has a negative size", None)
        if any(buffer.kind != "scratch" for buffer in self.kernel.scratch):
            self.fail("a scratch buffer of another kind", None)
        self.buffers = {buffer for buffer in declared if buffer.kind != "error"}
        self.has_error = any(buffer.kind == "error" for buffer in self.kernel.arguments)
        self.block(self.kernel.body)

    def fail(self, what: str, statement: Stmt | None) -> None:
        message = f"kernel {self.kernel.name}: {what}"
        if statement is not None:
            loc = statement.loc if not isinstance(statement, For) else None
            raise VerificationError(message, loc=loc, hint=self.around(statement))
        raise VerificationError(message)

    def around(self, statement: Stmt) -> str:
        """The printed kernel near `statement`."""
        mark = Kernel(self.kernel.name, [], body=[statement])
        wanted = printer.text(mark).splitlines()[1:3]
        lines = printer.text(self.kernel).splitlines()
        near = [i for i, line in enumerate(lines) if line.strip() == wanted[0].strip()]
        if not near:
            return "\n".join(wanted)
        return "\n".join(lines[max(0, near[0] - 3):near[0] + 4])

    def block(self, body: Sequence[Stmt]) -> None:
        for statement in body:
            if isinstance(statement, For):
                self.loop(statement)
            elif isinstance(statement, Store):
                self.store(statement)
            else:
                self.check(statement)

    def loop(self, loop: For) -> None:
        self.index(loop, loop.lo, loop.hi)
        self.expressions(loop, [entry.init for entry in loop.carried])
        if any(self.has_lanes(bound) for bound in (loop.lo, loop.hi)):
            self.fail("the bounds of a loop have lanes", loop)
        self.loop_kind(loop)
        self.carried(loop)
        if loop.var in self.vars:
            self.fail(f"the variable {loop.var.name} is already bound", loop)
        loops, lanes = set(self.loops), set(self.lanes)
        self.vars.add(loop.var)
        self.inside.append(loop)
        self.loops.add(loop)
        if loop.kind == "vector":
            self.lanes.add(loop.var)
        self.lanes.update(self.carries_with_lanes(loop, [entry.init for entry in loop.carried]))
        self.block(loop.body)
        self.expressions(loop, loop.yields)
        after = self.carries_with_lanes(loop, loop.yields)
        self.loops = loops | {loop}
        self.lanes = lanes.union(after)
        self.inside.pop()
        self.vars.remove(loop.var)

    def carries_with_lanes(self, loop: For, sources: Sequence[Expr]) -> list[Carry]:
        """Of a vector loop the carried values are uniform; of a serial one inside it they are as their sources."""
        if loop.kind == "vector":
            return []
        return [carry(loop, i) for i, source in enumerate(sources) if self.has_lanes(source)]

    def loop_kind(self, loop: For) -> None:
        if loop.step < 1 or loop.unroll < 1:
            self.fail("step and unroll are at least 1", loop)
        if loop.kind == "parallel":
            if self.inside:
                self.fail("a parallel loop is not outermost", loop)
            if loop.carried:
                self.fail("a parallel loop carries a value", loop)
        if loop.kind == "vector":
            if any(outer.kind == "vector" for outer in self.inside):
                self.fail("vector loops nest", loop)
            if loop.step != 1:
                self.fail("a vector loop has a step", loop)
            if any(entry.combine is None for entry in loop.carried):
                self.fail("a vector loop carries a value without combine", loop)

    def carried(self, loop: For) -> None:
        if len(loop.carried) != len(loop.yields):
            self.fail(f"{len(loop.carried)} carried values, {len(loop.yields)} yields", loop)
        for entry, value in zip(loop.carried, loop.yields):
            if not entry.dtype is entry.init.dtype is value.dtype:
                self.fail(f"{entry.name} is {entry.dtype}, starts as {entry.init.dtype}, yields {value.dtype}", loop)
            allowed = "fi" if entry.combine in ORDERED else "ib"
            if entry.combine is not None and math.kind(entry.dtype) not in allowed:
                self.fail(f"{entry.combine.value} does not combine {entry.dtype}", loop)

    def store(self, store: Store) -> None:
        self.index(store, store.index)
        self.expressions(store, [store.value] + ([store.mask] if store.mask is not None else []))
        if store.buffer not in self.buffers:
            self.fail(f"{store.buffer!r} is not a buffer of the kernel", store)
        if store.value.dtype is not store.buffer.dtype:
            self.fail(f"{store.buffer!r} holds {store.buffer.dtype}, not {store.value.dtype}", store)
        if store.mask is not None and store.mask.dtype is not torch.bool:
            self.fail("the mask of a store is not bool", store)

    def check(self, check: Check) -> None:
        self.expressions(check, [check.condition])
        self.index(check, *check.values)
        if check.condition.dtype is not torch.bool:
            self.fail("the condition of a check is not bool", check)
        if not self.has_error:
            self.fail("a check in a kernel without an error record", check)

    def index(self, statement: Stmt, *exprs: Expr) -> None:
        self.expressions(statement, exprs)
        for expr in exprs:
            if expr.dtype is not INDEX:
                self.fail(f"{printer.expression(expr)} is {expr.dtype}, not i64", statement)

    def has_lanes(self, expr: Expr) -> bool:
        return any(each in self.lanes for each in postorder([expr]))

    def expressions(self, statement: Stmt, roots: Iterable[Expr]) -> None:
        for expr in postorder(roots):
            if isinstance(expr, Var) and expr not in self.vars:
                self.fail(f"the variable {expr.name} is used outside of its loop", statement)
            if isinstance(expr, Carry) and expr.loop not in self.loops:
                self.fail(f"the carried value {expr.loop.carried[expr.position].name} is used before its loop "
                          "or outside of its block", statement)
            if isinstance(expr, Op):
                wrong = math.complaint(expr.name, [arg.dtype for arg in expr.args], expr.dtype)
                if wrong:
                    self.fail(wrong, statement)
            if isinstance(expr, Load):
                self.load(statement, expr)

    def load(self, statement: Stmt, load: Load) -> None:
        if load.buffer not in self.buffers:
            self.fail(f"{load.buffer!r} is not a buffer of the kernel", statement)
        if load.index.dtype is not INDEX:
            self.fail(f"an index of {load.buffer!r} is {load.index.dtype}, not i64", statement)
        if load.mask is not None and load.mask.dtype is not torch.bool:
            self.fail("the mask of a load is not bool", statement)
        if load.other is not None and load.other.dtype is not load.dtype:
            self.fail(f"`other` of a load of {load.buffer!r} is {load.other.dtype}", statement)
