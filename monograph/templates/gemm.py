"""Matrix products: C[b.., m, n] = sum over k of A[b.., m, k] * B[b.., k, n], finished by an epilogue.

    parallel task over (batch, column groups, row groups):
      [copy the group's columns of B into panels, where B is not packed and lies badly]
      the task's share (see `blocked`)

A packed B is [ceil(N / NR)][K][NR], zeros beyond N. Where the last tile or an unpacked panel
would reach past the end it starts earlier instead: it computes some elements again but finishes only the
new ones, so that nothing out of bounds is read and each result is stored once. The order of every sum is
fixed by the sizes alone, whatever the number of threads.

Where n or k is `Sized`, columns of B are always copied, one block of k after the other: the panels of a task then have
a size that is known, and what the last one has beyond n is whatever was there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from monograph.ir import sized
from monograph.loops.nodes import Buffer, Expr, For, Kernel, Stmt, Store, fresh_var, index, load
from monograph.templates import arith, blocked, dots, tile
from monograph.templates.arith import add, minimum, mul, sub
from monograph.templates.blocked import Ahead, Factor, Work
from monograph.templates.operand import Operand
from monograph.templates.tile import Epilogue, Machine, Reduction

__all__ = ["Operand", "Plan", "Spec", "build", "plan"]

K_BLOCK = 1536               # a panel of B (96 KiB at 16 f32 columns) streams from the second-level cache
SIZED_K_BLOCK = 512          # the same where only a call knows k
ROW_BLOCK = 192              # rows of A per task: their blocks of K stay in the second-level cache
SERIAL_FLOPS = 200_000       # below this a parallel region costs more than it gives
COPY_ROWS = 16               # from this many rows on an activation's columns are copied into panels
COPY_BYTES = 512             # when its rows are further apart than this
COPY_COLUMNS = 96            # A's rows are copied together for this many columns, or four times as many
PADDING = 16                 # elements between copied rows, so that they do not share cache sets
TASKS = 16                   # tasks a large product is split into
COLUMN_TASKS = 8             # the same where each task goes through all rows


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
    rows_inside: bool = False       # a task goes through all row groups, so that it copies its columns of B once


@dataclass(frozen=True, slots=True)
class Spec:
    """A product. `arguments` are all buffers of the kernel, in the order it is called with.

    With `packed`, `b.strides` ends with (anything, anything): a batch entry holds whole panels. `cut` must be
    the plan B was packed for. With `rows`, as where `m` or a batch dim is `Sized`, so many rows are there;
    of A at least `tile.MOST_ROWS` can be read all the same.
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
    rows: Expr | None = None


def plan(
    batch: tuple[int, ...], m: int, n: int, k: int, dtype: torch.dtype, target: Machine, *, panel: int | None = None,
) -> Plan:
    """The cut of a product of these sizes; `panel` is the width of the panels of a packed B."""
    block = SIZED_K_BLOCK if sized.is_sized(k) else None
    widest = None if sized.is_sized(n) else n
    batch, m, n, k = tuple(map(sized.example, batch)), sized.example(m), sized.example(n), sized.example(k)
    chosen = tile.choose(m, n, dtype, target, panel=panel)
    nr = panel if panel is not None else chosen.nv * target.lanes(dtype)
    nr = nr if panel is not None or widest is None else min(nr, widest)
    tiles, panels = arith.ceil_div(m, chosen.mr), arith.ceil_div(n, nr)
    blocks = max(1, arith.ceil_div(k, K_BLOCK if m > 4 else 4096))
    kc = k if blocks == 1 else arith.round_up(arith.ceil_div(k, blocks), 2 * tile.K_UNROLL)
    kc = block or kc
    parallel = 2 * math.prod(batch) * m * n * k >= SERIAL_FLOPS
    row_groups = max(1, arith.ceil_div(m, ROW_BLOCK))
    if not parallel:
        return Plan(chosen.mr, chosen.nv, nr, kc, arith.ceil_div(tiles, row_groups), panels, False)
    if panel is None and row_groups > 1 and math.prod(batch) * panels >= COLUMN_TASKS:
        group = arith.ceil_div(panels, min(panels, arith.ceil_div(COLUMN_TASKS, math.prod(batch))))
        return Plan(chosen.mr, chosen.nv, nr, kc, arith.ceil_div(tiles, row_groups), group, True, True)
    wanted = max(1, TASKS // math.prod(batch))
    column_groups = min(panels, max(1, wanted // row_groups))
    if row_groups * column_groups < wanted:
        row_groups = min(tiles, max(row_groups, wanted // column_groups))
    row_tiles, group = arith.ceil_div(tiles, row_groups), arith.ceil_div(panels, column_groups)
    return Plan(chosen.mr, chosen.nv, nr, kc, row_tiles, group, True)


def build(name: str, spec: Spec, epilogue: Epilogue, target: Machine) -> Kernel:
    """The kernel of a product. `epilogue(acc, (*batch, m, n))` has the logical coordinates of the result."""
    cut = spec.cut
    if _along_k(spec):
        return dots.build(
            name, spec.batch, spec.m, spec.n, spec.k, spec.a, spec.b, spec.arguments, epilogue, parallel=cut.parallel)
    if spec.rows is not None:
        return _counted(name, spec, epilogue, spec.rows)
    tiles, panels = arith.ceil_div(spec.m, cut.mr), arith.ceil_div(spec.n, cut.nr)
    row_groups = arith.ceil_div(tiles, cut.row_tiles)
    sizes = (*spec.batch, arith.ceil_div(panels, cut.panels), 1 if cut.rows_inside else row_groups)
    tasks = math.prod(sizes)
    many = cut.parallel and (sized.is_sized(tasks) or tasks > 1)
    task = For(fresh_var("task"), index(0), index(tasks), "parallel" if many else "serial")
    *batch, column_group, row_group = arith.unravel(task.var, sizes)
    share = _Share(spec, epilogue, tuple(batch), mul(column_group, cut.panels))
    partial = blocked.scratch(share.work(tiles, panels))

    def rows(group: Expr) -> list[Stmt]:
        share.first_tile = mul(group, cut.row_tiles)
        return blocked.statements(share.work(tiles, panels), partial)

    task.body = share.pack(arith.remaining(share.first_panel, cut.panels, panels))
    task.body += tile.serial("g", 0, row_groups, rows) if cut.rows_inside else rows(row_group)
    scratch = [partial, *(buffer for buffer in (share.copy, share.rows_copy) if buffer is not None)]
    return Kernel(name, list(spec.arguments), scratch, [task] if tasks else [])


def _counted(name: str, spec: Spec, epilogue: Epilogue, count: Expr) -> Kernel:
    """The kernel of a product of `count` rows: tasks over (batch, row groups, column groups)."""
    panels = arith.ceil_div(spec.n, spec.cut.nr)
    some = sized.example(panels)
    fewest = arith.ceil_div(some, min(some, COLUMN_TASKS))      # where rows are few, tasks are columns
    cut = replace(spec.cut, panels=min(spec.cut.panels, fewest))
    spec = replace(spec, cut=cut)
    tiles = arith.floordiv(add(count, cut.mr - 1), cut.mr)
    groups = arith.ceil_div(panels, cut.panels)
    row_groups = arith.floordiv(add(tiles, cut.row_tiles - 1), cut.row_tiles)
    entries = math.prod(spec.batch)
    task = For(fresh_var("task"), index(0), mul(row_groups, groups * entries), "parallel" if cut.parallel else "serial")
    row_group, column_group = arith.floordiv(task.var, groups), arith.mod(task.var, groups)
    batch: tuple[Expr, ...] = (index(0),) * len(spec.batch)
    if entries != 1:
        each = arith.value(row_groups)
        assert each is not None, spec
        batch, row_group = arith.unravel(arith.floordiv(row_group, each), spec.batch), arith.mod(row_group, each)
    share = _Share(spec, epilogue, batch, mul(column_group, cut.panels))
    share.first_tile = mul(row_group, cut.row_tiles)
    partial = blocked.scratch(share.work(tiles, panels))
    task.body = share.pack(arith.remaining(share.first_panel, cut.panels, panels))
    task.body += blocked.statements(share.work(tiles, panels), partial)
    return Kernel(name, list(spec.arguments), [partial, *([share.copy] if share.copy is not None else [])], [task])


def _along_k(spec: Spec) -> bool:
    """Do few rows meet columns that lie along k?"""
    row, column = spec.b.strides[-2:]
    if sized.is_sized(spec.m) or (spec.rows is not None and not sized.is_sized(spec.batch)):
        return False
    return not spec.packed and spec.m <= dots.MOST_ROWS and row == 1 and (column != 1 or spec.n == 1)


def _is_copied(spec: Spec) -> bool:
    """Are B's columns copied into panels? Strided ones are; rows far apart share few cache sets and many pages."""
    if spec.packed:
        return False
    row, column = spec.b.strides[-2:]
    is_far = sized.example(row) * spec.dtype.itemsize > COPY_BYTES
    return sized.is_sized(spec.n) or column != 1 or (sized.example(spec.m) >= COPY_ROWS and is_far)


def _are_rows_copied(spec: Spec) -> bool:
    """Are A's rows copied together? Far apart they share few cache sets; enough columns must use the copy."""
    row, k = (abs(stride) * spec.dtype.itemsize for stride in spec.a.strides[-2:])
    along_k = spec.a.strides[-1] == 1
    bad = row % 8192 == 0 if along_k else k % 1024 == 0
    least = COPY_COLUMNS * (4 if along_k else 1)
    return bad and spec.rows is None and spec.m >= 2 * COPY_ROWS and spec.cut.panels * spec.cut.nr >= least


class _Share:
    """One task's part of a product: tiles from `first_tile` on, panels from `first_panel` on."""

    def __init__(self, spec: Spec, epilogue: Epilogue, batch: tuple[Expr, ...], first_panel: Expr) -> None:
        self.spec, self.cut, self.epilogue, self.batch = spec, spec.cut, epilogue, batch
        self.first_panel = first_panel
        self.first_tile: Expr = index(0)
        self.copy: Buffer | None = None
        self.depth = 0                  # how many of k a copied panel has
        self.rows_copy: Buffer | None = None
        self.copy_strides = (self.cut.kc + PADDING, 1)
        if _are_rows_copied(spec):
            most = (self.cut.row_tiles + 1) * self.cut.mr
            if spec.a.strides[-1] != 1:
                self.copy_strides = (1, most + PADDING)
            size = (most + PADDING) * (self.cut.kc + PADDING)
            self.rows_copy = Buffer("rows", spec.dtype, size, "scratch")
        if _is_copied(spec):
            self.depth = self.cut.kc if sized.is_sized(spec.k) else spec.k
            self.copy = Buffer("panels", spec.dtype, self.cut.panels * self.depth * self.cut.nr, "scratch")

    def work(self, tiles: int | Expr, panels: int) -> Work:
        spec, cut = self.spec, self.cut
        return Work(
            spec.dtype, cut.mr, cut.nv, cut.nr,
            tiles=arith.remaining(self.first_tile, cut.row_tiles, tiles),
            panels=arith.remaining(self.first_panel, cut.panels, panels),
            most_tiles=cut.row_tiles, most_panels=cut.panels,
            blocks=sized.maximum(1, arith.ceil_div(spec.k, cut.kc)),       # one that adds nothing makes zeros
            reductions=self.reductions, rows=self.rows, columns=self.columns, row=self.row, column=self.column,
            finish=self.finish,
            last=self.last,
            ahead=self.ahead,
            before=lambda kb: self.pack_block(kb, panels) + self.copy_rows(kb),
        )

    def reductions(self, kb: Expr) -> list[Reduction]:
        length = arith.remaining(mul(kb, self.cut.kc), self.cut.kc, self.spec.k)
        return [Reduction("k", index(0), length, tile.K_UNROLL)]

    def rows(self, t: Expr) -> tuple[Expr, Expr]:
        first = mul(add(self.first_tile, t), self.cut.mr)
        if self.spec.rows is not None:
            return first, arith.maximum(minimum(first, sub(self.spec.rows, self.cut.mr)), 0)
        return first, first if self.spec.m % self.cut.mr == 0 else minimum(first, self.spec.m - self.cut.mr)

    def last(self, start: Expr) -> arith.Term:
        """How many rows of the tile from `start` on are there."""
        rows, mr = self.spec.rows, self.cut.mr
        return mr if rows is None else minimum(sub(rows, start), mr)

    def row(self, start: Expr, m: int, p: Expr, kb: Expr, lane: Expr) -> Factor:
        if self.rows_copy is not None:
            row_stride, k_stride = self.copy_strides
            copied, first = self.rows_copy, mul(sub(start, self.row_zero()), row_stride)
            return lambda ks: load(copied, add(first, mul(ks[0], k_stride), m * row_stride))
        a = self.spec.a
        row_stride, k_stride = a.strides[-2:]
        base = a.at(self.batch, start, mul(kb, self.cut.kc))
        return lambda ks: load(a.buffer, add(base, mul(ks[0], k_stride), m * row_stride))

    def row_zero(self) -> Expr:
        """The first row the task computes."""
        return self.rows(index(0))[1]

    def copy_rows(self, kb: Expr) -> list[Stmt]:
        """rows_copy = the block `kb` of the task's rows of A, close together."""
        if self.rows_copy is None:
            return []
        spec, cut, copied, zero = self.spec, self.cut, self.rows_copy, self.row_zero()
        row_stride, k_stride = self.copy_strides
        tiles = arith.remaining(self.first_tile, cut.row_tiles, arith.ceil_div(spec.m, cut.mr))
        end = minimum(mul(add(self.first_tile, tiles), cut.mr), spec.m)
        length = arith.remaining(mul(kb, cut.kc), cut.kc, spec.k)
        base = spec.a.at(self.batch, zero, mul(kb, cut.kc))
        a_row, a_k = spec.a.strides[-2:]

        def run(outer: Expr, from_step: int, to_step: int, inner_from: int, count: Expr) -> list[Stmt]:
            lane = For(fresh_var("e"), index(0), count, "vector", unroll=4)
            value = load(spec.a.buffer, add(base, mul(outer, from_step), mul(lane.var, inner_from)))
            lane.body = [Store(copied, add(mul(outer, to_step), lane.var), value)]
            return [lane]

        count = sub(end, zero)
        if k_stride == 1:
            return tile.serial("r", 0, count, lambda r: run(r, a_row, row_stride, a_k, length))
        return tile.serial("k", 0, length, lambda k: run(k, a_k, k_stride, a_row, count))

    def first_column(self, p: Expr) -> tuple[Expr, Expr]:
        """The panel's first column, and where its computation starts."""
        first = mul(add(self.first_panel, p), self.cut.nr)
        n = self.spec.n
        whole = self.spec.packed or sized.is_sized(n) or n % self.cut.nr == 0
        return first, first if whole else minimum(first, self.spec.n - self.cut.nr)

    def columns(self, p: Expr) -> tuple[Expr, Expr]:
        first, start = self.first_column(p)
        return arith.remaining(first, self.cut.nr, self.spec.n), index(0) if first is start else sub(first, start)

    def column(self, p: Expr, kb: Expr, lane: Expr) -> Factor:
        spec, cut, b = self.spec, self.cut, self.spec.b
        first_k = mul(kb, cut.kc)
        if self.copy is not None:
            packed = mul(p, self.depth * cut.nr)
            if not sized.is_sized(spec.k):
                packed = add(packed, mul(first_k, cut.nr))
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
        if not self.spec.packed or sized.example(self.spec.m) > tile.AHEAD_ROWS:
            return lambda ks: []
        start, line = self.packed(p, kb), tile.LINE_BYTES // self.spec.dtype.itemsize
        return lambda ks: [
            (b.buffer, add(start, mul(ks[0], nr), lane, tile.AHEAD * nr + part)) for part in range(0, nr, line)
        ]

    def finish(self, accumulated: Expr, row: Expr, p: Expr, lane: Expr) -> list[Stmt]:
        column = add(mul(add(self.first_panel, p), self.cut.nr), lane)
        return self.epilogue(accumulated, (*self.batch, row, column))

    def pack(self, panels: Expr) -> list[Stmt]:
        """The task's columns of B, where they are copied once for all blocks of k."""
        return [] if self.copy is None or sized.is_sized(self.spec.k) else self._packed(panels, index(0), self.spec.k)

    def pack_block(self, kb: Expr, panels: int) -> list[Stmt]:
        """Their rows in the block `kb`, where they are not."""
        if self.copy is None or not sized.is_sized(self.spec.k):
            return []
        first = mul(kb, self.cut.kc)
        count = arith.remaining(self.first_panel, self.cut.panels, panels)
        return self._packed(count, first, arith.remaining(first, self.cut.kc, self.spec.k))

    def _packed(self, panels: Expr, first_k: Expr, length: arith.Term) -> list[Stmt]:
        """copy[p][k][:] = B[first_k + k, columns of panel p]"""
        spec, cut, copy = self.spec, self.cut, self.copy
        assert copy is not None

        def columns(p: Expr) -> tuple[Expr, Expr]:
            """Where they begin, and how many there are to be read."""
            first, start = self.first_column(p)
            return start, arith.remaining(first, cut.nr, spec.n) if sized.is_sized(spec.n) else index(cut.nr)

        def k_row(p: Expr, k: Expr) -> list[Stmt]:
            start, width = columns(p)
            lane = For(fresh_var("v"), index(0), width, "vector", unroll=cut.nv)
            value = load(spec.b.buffer, spec.b.at(self.batch, add(first_k, k), add(start, lane.var)))
            lane.body = [Store(copy, add(mul(p, self.depth * cut.nr), mul(k, cut.nr), lane.var), value)]
            return [lane]

        def panel(p: Expr) -> list[Stmt]:
            if spec.b.strides[-1] == 1:
                return tile.serial("k", 0, length, lambda k: k_row(p, k))
            # One vector of columns at a time, k inside: each column's elements are read one after the other.
            start, width = columns(p)
            lane = For(fresh_var("v"), index(0), width, "vector")
            column = spec.b.at(self.batch, first_k, add(start, lane.var))
            place = add(mul(p, self.depth * cut.nr), lane.var)
            k_stride = spec.b.strides[-2]
            lane.body = tile.serial("k", 0, length, lambda k: [
                Store(copy, add(place, mul(k, cut.nr)), load(spec.b.buffer, add(column, mul(k, k_stride))))])
            return [lane]

        return tile.serial("p", 0, panels, panel)
