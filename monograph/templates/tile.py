"""The register tile all templates share: rows of accumulators, one vector of columns at a time.

    acc[m] += a[m](k) * b(k)        for k in a nest of serial loops, m < MR written out

Inside a vector loop with `unroll` = NV this is MR x NV registers of accumulators; each k loads NV vectors
of b and broadcasts MR elements of a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from monograph.ir.sized import known_less
from monograph.loops.nodes import Buffer, Carried, Expr, For, Stmt, carry, fresh_var, index, op
from monograph.templates import arith

__all__ = [
    "AHEAD", "AHEAD_ROWS", "Epilogue", "K_UNROLL", "LINE_BYTES", "MOST_ROWS", "Machine", "Reduction", "Tile",
    "choose", "contract", "serial",
]

K_UNROLL = 4
MOST_ROWS = 14               # of a tile
AHEAD_ROWS = 64              # up to this many rows per task packed panels are prefetched, AHEAD steps of k early
AHEAD = 32
LINE_BYTES = 64

Epilogue = Callable[[Expr, tuple[Expr, ...]], list[Stmt]]
"""epilogue(accumulated, logical coordinates of the result) -> the statements that finish and store it."""


class Machine(Protocol):
    """What templates ask of a `codegen.target.Target`."""

    @property
    def registers(self) -> int: ...

    @property
    def vector_bits(self) -> int: ...

    def lanes(self, dtype: torch.dtype) -> int: ...


@dataclass(frozen=True, slots=True)
class Reduction:
    """One loop of the contraction: `for var in range(lo, hi)`."""

    hint: str
    lo: Expr
    hi: Expr
    unroll: int = 1


@dataclass(frozen=True, slots=True)
class Tile:
    """`mr` rows by `nv` vectors."""

    mr: int
    nv: int


def choose(m: int, n: int, dtype: torch.dtype, target: Machine, *, panel: int | None = None) -> Tile:
    """The tile with the least work for an m x n result, padding counted; `panel` fixes its columns."""
    lanes = target.lanes(dtype)
    embedded_broadcast = target.vector_bits == 512

    def cost(mr: int, nv: int) -> tuple[float, int]:
        # Two FMAs and two loads per cycle, four cycles from one FMA to the next of the same accumulator, and the
        # columns come from the second-level cache at two thirds of a vector per cycle.
        cycles = max(mr * nv / 2, (mr + nv) / 2, 4.0, nv * 1.5)
        steps = arith.ceil_div(m, mr) * arith.ceil_div(n, nv * lanes)
        return steps * (cycles + 0.5), -mr

    best: tuple[tuple[float, int], Tile] | None = None
    for nv in range(1, 5) if panel is None else (arith.ceil_div(panel, lanes),):
        for mr in range(1, min(m, MOST_ROWS) + 1):
            if mr * nv + (nv if mr > 1 else 0) + (0 if embedded_broadcast else 1) > target.registers:
                continue
            candidate = (cost(mr, nv), Tile(mr, nv))
            if best is None or candidate[0] < best[0]:
                best = candidate
    assert best is not None
    return best[1]


def serial(hint: str, lo: arith.Term, hi: arith.Term, body: Callable[[Expr], list[Stmt]]) -> list[Stmt]:
    """`for hint in range(lo, hi): body`; a single known iteration needs no loop."""
    low, high = arith.value(lo), arith.value(hi)
    if low is not None and high is not None and known_less(high - low, 2):
        return body(index(low)) if high > low else []
    loop = For(fresh_var(hint), arith.expr(lo), arith.expr(hi))
    loop.body = body(loop.var)
    return [loop]


def contract(
    reductions: Sequence[Reduction],
    rows: Sequence[Callable[[tuple[Expr, ...]], Expr]],
    columns: Callable[[tuple[Expr, ...]], Expr],
    init: Sequence[Expr],
    ahead: Callable[[tuple[Expr, ...]], list[tuple[Buffer, Expr]]] = lambda at: [],
) -> tuple[list[Stmt], list[Expr]]:
    """The loop nest over `reductions` and the final accumulators, one per row.

    `rows[m]` and `columns` give the factors at the loops' variables, `ahead` what the innermost loop prefetches.
    """
    dtype = init[0].dtype

    def nest(level: int, at: tuple[Expr, ...], start: Sequence[Expr]) -> tuple[list[Stmt], list[Expr]]:
        if level == len(reductions):
            factor = columns(at)
            return [], [op("fma", row(at), factor, acc, dtype=dtype) for row, acc in zip(rows, start, strict=True)]
        reduction = reductions[level]
        if arith.value(reduction.lo) == 0 and arith.value(reduction.hi) == 1:
            return nest(level + 1, (*at, index(0)), start)
        loop = For(fresh_var(reduction.hint), reduction.lo, reduction.hi, unroll=reduction.unroll)
        loop.carried = [Carried(f"acc{m}", dtype, value) for m, value in enumerate(start)]
        values = [carry(loop, m) for m in range(len(start))]
        if level + 1 == len(reductions):
            loop.ahead = ahead((*at, loop.var))
        loop.body, loop.yields = nest(level + 1, (*at, loop.var), values)
        return [loop], [carry(loop, m) for m in range(len(start))]

    return nest(0, (), init)
