"""A task's share of a blocked contraction: the loops between a parallel loop and the register tile.

    for kb in blocks of the reduction:
      what the block begins with
      for p in panels of NR columns:
        for t in tiles of MR rows:
          tile = 0 at the first block, the scratch tile after it
          tile += rows x columns over the block
          scratch tile = tile
          after the last block: finish, row by row, the elements no earlier tile has finished

Short reductions over panels that all fit in the second-level cache visit the panels inside the tiles: then
neighbouring results are stored one after the other.

The finishing code (an epilogue of any size) stands once, in a loop over the rows of a tile that still is in
the first-level cache: kernels stay small, and ragged last tiles need no code of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from monograph.ir.sized import is_sized
from monograph.loops.nodes import Buffer, Expr, For, Stmt, Store, const, fresh_var, index, load
from monograph.templates import arith, tile
from monograph.templates.arith import add, mul, sub

__all__ = ["Ahead", "Factor", "Work", "scratch", "statements"]

Factor = Callable[[tuple[Expr, ...]], Expr]
"""A factor of the contraction at the variables of the reduction loops."""

Ahead = Callable[[tuple[Expr, ...]], list[tuple[Buffer, Expr]]]
"""What to prefetch at the variables of the reduction loops."""


@dataclass(frozen=True)
class Work:
    """What one task computes. `t` and `p` below count the tiles and panels of the task from 0.

    rows(t) is (first, start): the tile computes rows start .. start + mr and is the first to compute those from
    `first` on. columns(p) is (width, shift): the panel's columns shift .. shift + width are to be finished.
    """

    dtype: torch.dtype
    mr: int
    nv: int
    nr: int
    tiles: Expr
    panels: Expr
    most_tiles: int
    most_panels: int
    blocks: int
    reductions: Callable[[Expr], Sequence[tile.Reduction]]
    rows: Callable[[Expr], tuple[Expr, Expr]]
    columns: Callable[[Expr], tuple[Expr, Expr]]
    row: Callable[[Expr, int, Expr, Expr, Expr], Factor]        # start, m, p, kb, lane
    column: Callable[[Expr, Expr, Expr], Factor]                # p, kb, lane
    finish: Callable[[Expr, Expr, Expr, Expr], list[Stmt]]      # accumulated, row, p, column from the shift on
    ahead: Callable[[Expr, Expr, Expr], Ahead] = lambda p, kb, lane: lambda ks: []
    last: Callable[[Expr], arith.Term] | None = None            # start -> how many rows of a tile are there
    before: Callable[[Expr], list[Stmt]] = lambda kb: []        # what a block of the reduction begins with
    panels_inside: bool = False                                 # visit all panels of a tile, then the next tile

    @property
    def is_cut(self) -> bool:
        """May there be several blocks?"""
        return is_sized(self.blocks) or self.blocks > 1


def scratch(work: Work) -> Buffer:
    """The scratch tiles `statements` needs: all of the task's when the reduction is cut, else one."""
    kept = work.most_tiles * work.most_panels if work.is_cut else 1
    return Buffer("partial", work.dtype, kept * work.mr * work.nr, "scratch")


def statements(work: Work, partial: Buffer) -> list[Stmt]:
    if work.panels_inside:
        return tile.serial("t", 0, work.tiles, lambda t: tile.serial(
            "p", 0, work.panels, lambda p: _tile(work, partial, t, p, index(0))))

    def block(kb: Expr) -> list[Stmt]:
        return work.before(kb) + tile.serial("p", 0, work.panels, lambda p: tile.serial(
            "t", 0, work.tiles, lambda t: _tile(work, partial, t, p, kb)))

    return tile.serial("kb", 0, work.blocks, block)


def _tile(work: Work, partial: Buffer, t: Expr, p: Expr, kb: Expr) -> list[Stmt]:
    first, start = work.rows(t)
    base: arith.Term = 0
    if work.is_cut:
        base = mul(add(mul(p, work.most_tiles), t), work.mr * work.nr)
    lane = For(fresh_var("v"), index(0), index(work.nr), "vector", unroll=work.nv, alone=True)
    zero = const(0.0, work.dtype)
    places = [add(base, lane.var, m * work.nr) for m in range(work.mr)]
    init: list[Expr] = [zero] * work.mr
    if work.is_cut:
        resumed = arith.less(0, kb)
        init = [load(partial, place, resumed, zero) for place in places]
    factors = [work.row(start, m, p, kb, lane.var) for m in range(work.mr)]
    loops, results = tile.contract(
        work.reductions(kb), factors, work.column(p, kb, lane.var), init, work.ahead(p, kb, lane.var))
    lane.body = loops + [Store(partial, place, value) for place, value in zip(places, results, strict=True)]
    last = index(1) if not work.is_cut else arith.where(arith.less(work.blocks - 2, kb), 1, 0)
    return [lane, *tile.serial("last", 0, last, lambda _: _finish(work, partial, base, first, start, p))]


def _finish(work: Work, partial: Buffer, base: arith.Term, first: Expr, start: Expr, p: Expr) -> list[Stmt]:
    width, shift = work.columns(p)

    def row(r: Expr) -> list[Stmt]:
        lane = For(fresh_var("n"), index(0), width, "vector", unroll=work.nv if arith.value(width) == work.nr else 1)
        value = load(partial, add(base, mul(r, work.nr), shift, lane.var))
        lane.body = work.finish(value, add(start, r), p, lane.var)
        return [lane]

    skipped = index(0) if first is start else sub(first, start)
    return tile.serial("r", skipped, work.mr if work.last is None else work.last(start), row)
