"""Matrix products: C[b.., m, n] = sum over k of A[b.., m, k] * B[b.., k, n], finished by an epilogue.

    parallel task over (batch, column groups, row groups):
      [copy the group's columns of B into panels, where B is not packed and its columns are strided]
      the task's share (see `blocked`)

A packed B is [ceil(N / NR)][K][NR], zeros beyond N (see `pack`). Where the last tile or an unpacked panel
would reach past the end it starts earlier instead: it computes some elements again but finishes only the
new ones, so that nothing out of bounds is read and each result is stored once. The order of every sum is
fixed by the sizes alone, whatever the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from monograph.loops.nodes import Buffer, Expr, For, Kernel, Stmt, Store, fresh_var, index, load
from monograph.templates import arith, blocked, tile
from monograph.templates.arith import add, minimum, mul, sub
from monograph.templates.blocked import Ahead, Factor, Work
from monograph.templates.tile import Epilogue, Machine, Reduction

__all__ = ["Operand", "Plan", "Spec", "build", "plan"]

K_BLOCK = 1024               # a panel of B (64 KiB at 16 f32 columns) streams from the second-level cache
ROW_BLOCK = 192              # rows of A per task: their blocks of K stay in the second-level cache
SERIAL_FLOPS = 200_000       # below this a parallel region costs more than it gives
AHEAD_ROWS = 64              # up to this many rows packed panels are prefetched, AHEAD steps of k early
AHEAD = 32
LINE_BYTES = 64
TASKS = 16                   # tasks a large product is split into; fixed, so that results never depend on threads


@dataclass(frozen=True, slots=True)
class Operand:
    """Where a matrix lies: strides of the batch dims, then rows, then columns, in elements.

    `group` neighbours along the last batch dim share a matrix (heads of queries that share keys).
    """

    buffer: Buffer
    strides: tuple[int, ...]
    offset: int = 0
    group: int = 1

    def at(self, batch: tuple[Expr, ...], row: arith.Term, column: arith.Term) -> Expr:
        if self.group != 1:
            batch = (*batch[:-1], arith.floordiv(batch[-1], self.group))
        terms = [mul(b, stride) for b, stride in zip(batch, self.strides[:-2], strict=True)]
        return add(*terms, mul(row, self.strides[-2]), mul(column, self.strides[-1]), self.offset)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is cut: the tile, columns per panel, k per block, tiles per row group, panels per column group."""

    mr: int
    nv: int
    nr: int
    kc: int
    row_tiles: int
    panels: int
    parallel: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """A product. `arguments` are all buffers of the kernel, in the order it is called with.

    With `packed`, `b.strides` ends with (anything, anything): a batch entry holds whole panels. `cut` must be
    the plan B was packed for.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    dtype: torch.dtype
    a: Operand
    b: Operand
    packed: bool
    arguments: tuple[Buffer, ...]
    cut: Plan


def plan(
    batch: tuple[int, ...], m: int, n: int, k: int, dtype: torch.dtype, target: Machine, *, panel: int | None = None,
) -> Plan:
    """The cut of a product of these sizes; `panel` is the width of the panels of a packed B."""
    chosen = tile.choose(m, n, dtype, target, panel=panel)
    nr = panel if panel is not None else min(chosen.nv * target.lanes(dtype), n)
    tiles, panels = arith.ceil_div(m, chosen.mr), arith.ceil_div(n, nr)
    blocks = max(1, arith.ceil_div(k, K_BLOCK if m > 4 else 4096))
    kc = k if blocks == 1 else arith.round_up(arith.ceil_div(k, blocks), 2 * tile.K_UNROLL)
    parallel = 2 * math.prod(batch) * m * n * k >= SERIAL_FLOPS
    row_groups = max(1, arith.ceil_div(m, ROW_BLOCK))
    if not parallel:
        return Plan(chosen.mr, chosen.nv, nr, kc, arith.ceil_div(tiles, row_groups), panels, False)
    wanted = max(1, TASKS // math.prod(batch))
    column_groups = min(panels, max(1, wanted // row_groups))
    if row_groups * column_groups < wanted:
        row_groups = min(tiles, max(row_groups, wanted // column_groups))
    row_tiles, group = arith.ceil_div(tiles, row_groups), arith.ceil_div(panels, column_groups)
    return Plan(chosen.mr, chosen.nv, nr, kc, row_tiles, group, True)


def build(name: str, spec: Spec, epilogue: Epilogue, target: Machine) -> Kernel:
    """The kernel of a product. `epilogue(acc, (*batch, m, n))` has the logical coordinates of the result."""
    cut = spec.cut
    tiles, panels = arith.ceil_div(spec.m, cut.mr), arith.ceil_div(spec.n, cut.nr)
    sizes = (*spec.batch, arith.ceil_div(panels, cut.panels), arith.ceil_div(tiles, cut.row_tiles))
    tasks = math.prod(sizes)
    task = For(fresh_var("task"), index(0), index(tasks), "parallel" if cut.parallel and tasks > 1 else "serial")
    *batch, column_group, row_group = arith.unravel(task.var, sizes)
    share = _Share(spec, epilogue, tuple(batch), mul(row_group, cut.row_tiles), mul(column_group, cut.panels))
    work = share.work(tiles, panels)
    partial = blocked.scratch(work)
    task.body = share.pack(work.panels) + blocked.statements(work, partial)
    scratch = [partial] + ([share.copy] if share.copy is not None else [])
    return Kernel(name, list(spec.arguments), scratch, [task] if tasks else [])


class _Share:
    """One task's part of a product: tiles from `first_tile` on, panels from `first_panel` on."""

    def __init__(
        self, spec: Spec, epilogue: Epilogue, batch: tuple[Expr, ...], first_tile: Expr, first_panel: Expr,
    ) -> None:
        self.spec, self.cut, self.epilogue, self.batch = spec, spec.cut, epilogue, batch
        self.first_tile, self.first_panel = first_tile, first_panel
        self.copy: Buffer | None = None
        if not spec.packed and spec.b.strides[-1] != 1:
            self.copy = Buffer("panels", spec.dtype, self.cut.panels * spec.k * self.cut.nr, "scratch")

    def work(self, tiles: int, panels: int) -> Work:
        spec, cut = self.spec, self.cut
        return Work(
            spec.dtype, cut.mr, cut.nv, cut.nr,
            tiles=arith.remaining(self.first_tile, cut.row_tiles, tiles),
            panels=arith.remaining(self.first_panel, cut.panels, panels),
            most_tiles=cut.row_tiles, most_panels=cut.panels,
            blocks=max(1, arith.ceil_div(spec.k, cut.kc)),
            reductions=self.reductions, rows=self.rows, columns=self.columns, row=self.row, column=self.column,
            finish=self.finish,
            ahead=self.ahead,
        )

    def reductions(self, kb: Expr) -> list[Reduction]:
        length = arith.remaining(mul(kb, self.cut.kc), self.cut.kc, self.spec.k)
        return [Reduction("k", index(0), length, tile.K_UNROLL)]

    def rows(self, t: Expr) -> tuple[Expr, Expr]:
        first = mul(add(self.first_tile, t), self.cut.mr)
        return first, first if self.spec.m % self.cut.mr == 0 else minimum(first, self.spec.m - self.cut.mr)

    def row(self, start: Expr, m: int, p: Expr, kb: Expr, lane: Expr) -> Factor:
        a = self.spec.a
        row_stride, k_stride = a.strides[-2:]
        base = a.at(self.batch, start, mul(kb, self.cut.kc))
        return lambda ks: load(a.buffer, add(base, mul(ks[0], k_stride), m * row_stride))

    def first_column(self, p: Expr) -> tuple[Expr, Expr]:
        """The panel's first column, and where its computation starts."""
        first = mul(add(self.first_panel, p), self.cut.nr)
        whole = self.spec.packed or self.spec.n % self.cut.nr == 0
        return first, first if whole else minimum(first, self.spec.n - self.cut.nr)

    def columns(self, p: Expr) -> tuple[Expr, Expr]:
        first, start = self.first_column(p)
        return arith.remaining(first, self.cut.nr, self.spec.n), index(0) if first is start else sub(first, start)

    def column(self, p: Expr, kb: Expr, lane: Expr) -> Factor:
        spec, cut, b = self.spec, self.cut, self.spec.b
        first_k = mul(kb, cut.kc)
        if self.copy is not None:
            packed = add(mul(p, spec.k * cut.nr), mul(first_k, cut.nr))
            copy = self.copy
            return lambda ks: load(copy, add(packed, mul(ks[0], cut.nr), lane))
        if spec.packed:
            packed = self.packed(p, kb)
            return lambda ks: load(b.buffer, add(packed, mul(ks[0], cut.nr), lane))
        base = b.at(self.batch, first_k, self.first_column(p)[1])
        return lambda ks: load(b.buffer, add(base, mul(ks[0], b.strides[-2]), lane))

    def packed(self, p: Expr, kb: Expr) -> Expr:
        """Where the block `kb` of a packed panel begins."""
        spec, cut, b = self.spec, self.cut, self.spec.b
        batch = [mul(at, stride) for at, stride in zip(self.batch, b.strides[:-2], strict=True)]
        panel = mul(add(self.first_panel, p), spec.k * cut.nr)
        return add(*batch, panel, mul(kb, cut.kc * cut.nr), b.offset)

    def ahead(self, p: Expr, kb: Expr, lane: Expr) -> Ahead:
        """Few rows leave little time to fetch a packed panel: ask for it early."""
        b, nr = self.spec.b, self.cut.nr
        if not self.spec.packed or self.spec.m > AHEAD_ROWS:
            return lambda ks: []
        start, line = self.packed(p, kb), LINE_BYTES // self.spec.dtype.itemsize
        return lambda ks: [
            (b.buffer, add(start, mul(ks[0], nr), lane, AHEAD * nr + part)) for part in range(0, nr, line)
        ]

    def finish(self, accumulated: Expr, row: Expr, p: Expr, lane: Expr) -> list[Stmt]:
        column = add(mul(add(self.first_panel, p), self.cut.nr), lane)
        return self.epilogue(accumulated, (*self.batch, row, column))

    def pack(self, panels: Expr) -> list[Stmt]:
        """copy[p][k][:] = B[k, columns of panel p]"""
        if self.copy is None:
            return []
        spec, cut, copy = self.spec, self.cut, self.copy

        def panel(p: Expr) -> list[Stmt]:
            # One vector of columns at a time, k inside: each column's elements are read one after the other.
            lane = For(fresh_var("v"), index(0), index(cut.nr), "vector")
            column = spec.b.at(self.batch, 0, add(self.first_column(p)[1], lane.var))
            place = add(mul(p, spec.k * cut.nr), lane.var)
            k_stride = spec.b.strides[-2]
            lane.body = tile.serial("k", 0, spec.k, lambda k: [
                Store(copy, add(place, mul(k, cut.nr)), load(spec.b.buffer, add(column, mul(k, k_stride))))])
            return [lane]

        return tile.serial("p", 0, panels, panel)
