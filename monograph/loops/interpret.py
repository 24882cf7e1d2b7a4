"""Runs a kernel slowly in Python: the oracle of code generation and templates.

Every expression is evaluated at its statement, in program order, on torch tensors: 0-d where it is
uniform, 1-d with one element per iteration inside a vector loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from monograph.loops import math
from monograph.loops.nodes import (
    Buffer,
    Carry,
    Check,
    Combine,
    Const,
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

__all__ = ["Fault", "postorder", "run"]


@dataclass(slots=True)
class Fault:
    """A check that failed, with its values."""

    check: Check
    values: tuple[int, ...]


def run(kernel: Kernel, arrays: Sequence[torch.Tensor]) -> Fault | None:
    """Execute `kernel` on `arrays`, one per argument that is not the error record, in order; stores write into them.

    Each array's memory from its first element on is the buffer. Out-of-range accesses raise IndexError.
    """
    return _Machine(kernel, arrays).run()


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """Every expression under `roots` once, arguments first."""
    seen: set[Expr] = set()
    result: list[Expr] = []
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if ready:
                result.append(expr)
            elif expr not in seen:
                seen.add(expr)
                stack.append((expr, True))
                stack.extend((arg, False) for arg in reversed(expr.args) if arg not in seen)
    return result


_FOLD: dict[Combine, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    Combine.SUM: torch.add,
    Combine.PROD: torch.mul,
    Combine.MAX: lambda so_far, new: torch.where(new == so_far, so_far, torch.maximum(so_far, new)),
    Combine.MIN: lambda so_far, new: torch.where(new == so_far, so_far, torch.minimum(so_far, new)),
    Combine.AND: torch.bitwise_and,
    Combine.OR: torch.bitwise_or,
    Combine.XOR: torch.bitwise_xor,
}


class _Machine:
    def __init__(self, kernel: Kernel, arrays: Sequence[torch.Tensor]) -> None:
        self.kernel = kernel
        self.memory: dict[Buffer, torch.Tensor] = {}
        self.values: dict[Expr, torch.Tensor] = {}      # of Var and Carry
        self.orders: dict[object, list[Expr]] = {}
        passed = [buffer for buffer in kernel.arguments if buffer.kind != "error"]
        for buffer, array in zip(passed, arrays, strict=True):
            if array.dtype is not buffer.dtype:
                raise TypeError(f"{buffer!r} is {buffer.dtype}, not {array.dtype}")
            self.memory[buffer] = array.detach().as_strided((buffer.size,), (1,))
        self._poison()

    def _poison(self) -> None:
        """Scratch memory holds no promise; make reading it visible."""
        for buffer in self.kernel.scratch:
            if buffer.dtype.is_floating_point:
                fill: float | bool = float("nan")
            else:
                fill = True if buffer.dtype is torch.bool else torch.iinfo(buffer.dtype).max
            self.memory[buffer] = torch.full((buffer.size,), fill, dtype=buffer.dtype)

    def run(self) -> Fault | None:
        with torch.no_grad():
            return self.block(self.kernel.body)

    def block(self, body: Sequence[Stmt]) -> Fault | None:
        for statement in body:
            fault = self.statement(statement)
            if fault is not None:
                return fault
        return None

    def statement(self, statement: Stmt) -> Fault | None:
        if isinstance(statement, Store):
            self.store(statement)
            return None
        if isinstance(statement, Check):
            return self.check(statement)
        return self.vector(statement) if statement.kind == "vector" else self.serial(statement)

    def evaluate(self, owner: object, roots: Sequence[Expr]) -> list[torch.Tensor]:
        order = self.orders.get(owner)
        if order is None:
            order = self.orders[owner] = postorder(roots)
        results: dict[Expr, torch.Tensor] = {}
        for expr in order:
            results[expr] = self.compute(expr, [results[arg] for arg in expr.args])
        return [results[root] for root in roots]

    def compute(self, expr: Expr, args: list[torch.Tensor]) -> torch.Tensor:
        if isinstance(expr, Const):
            return torch.tensor(expr.value, dtype=expr.dtype)
        if isinstance(expr, Op):
            return math.evaluate(expr.name, expr.dtype, args)
        if isinstance(expr, Load):
            return self.load(expr, args)
        assert isinstance(expr, (Var, Carry)), expr
        return self.values[expr]

    def load(self, expr: Load, args: list[torch.Tensor]) -> torch.Tensor:
        memory = self.memory[expr.buffer]
        if len(args) == 1:
            return memory[self.inside(expr.buffer, args[0])]
        index, mask, other = torch.broadcast_tensors(*args)
        if not bool(mask.any()):
            return other
        safe = torch.where(mask, index, index[mask].reshape(-1)[0] if index.dim() else index)
        return torch.where(mask, memory[self.inside(expr.buffer, safe)], other)

    def inside(self, buffer: Buffer, index: torch.Tensor) -> torch.Tensor:
        if index.numel() and (int(index.min()) < 0 or int(index.max()) >= buffer.size):
            raise IndexError(f"{self.kernel.name}: {buffer!r}[{index.tolist()}] outside of [0, {buffer.size})")
        return index

    def store(self, store: Store) -> None:
        roots = [store.index, store.value] + ([store.mask] if store.mask is not None else [])
        index, value, *rest = torch.broadcast_tensors(*self.evaluate(store, roots))
        if rest:
            keep = rest[0].reshape(-1)
            index, value = index.reshape(-1)[keep], value.reshape(-1)[keep]
        self.memory[store.buffer][self.inside(store.buffer, index)] = value

    def check(self, check: Check) -> Fault | None:
        condition, *values = torch.broadcast_tensors(*self.evaluate(check, [check.condition, *check.values]))
        if bool(condition.all()):
            return None
        first = int((~condition.reshape(-1)).nonzero()[0])
        return Fault(check, tuple(int(value.reshape(-1)[first]) for value in values))

    def begin(self, loop: For) -> tuple[int, int, list[torch.Tensor]]:
        lo, hi, *carried = self.evaluate((loop, "head"), [loop.lo, loop.hi, *(c.init for c in loop.carried)])
        return int(lo), int(hi), carried

    def finish(self, loop: For, carried: Sequence[torch.Tensor]) -> None:
        for position, value in enumerate(carried):
            self.values[carry(loop, position)] = value

    def serial(self, loop: For) -> Fault | None:
        lo, hi, carried = self.begin(loop)
        for i in range(lo, hi, loop.step):
            if loop.kind == "parallel":
                self._poison()
            self.values[loop.var] = torch.tensor(i)
            self.finish(loop, carried)
            fault = self.block(loop.body)
            if fault is not None:
                return fault
            yielded = self.evaluate((loop, "yield"), loop.yields)
            carried = [
                value if entry.combine is None else _FOLD[entry.combine](old, value)
                for entry, old, value in zip(loop.carried, carried, yielded, strict=True)
            ]
        self.finish(loop, carried)
        return None

    def vector(self, loop: For) -> Fault | None:
        lo, hi, carried = self.begin(loop)
        if hi > lo:
            self.values[loop.var] = torch.arange(lo, hi)
            fault = self.block(loop.body)
            if fault is not None:
                return fault
            yielded = self.evaluate((loop, "yield"), loop.yields)
            carried = [
                _across(entry.combine, old, value.expand(hi - lo))
                for entry, old, value in zip(loop.carried, carried, yielded, strict=True)
            ]
        self.finish(loop, carried)
        return None


def _across(combine: Combine | None, old: torch.Tensor, lanes: torch.Tensor) -> torch.Tensor:
    assert combine is not None
    if combine is Combine.SUM:
        return old + lanes.sum(dtype=lanes.dtype)
    if combine is Combine.PROD:
        return old * lanes.prod(dtype=lanes.dtype)
    for lane in lanes:
        old = _FOLD[combine](old, lane)
    return old

