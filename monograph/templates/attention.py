"""Attention: out[b, h, s, :] = softmax over t of (scale * q[b,h,s,:] . k[b,h,t,:] + mask[b,h,s,t]) times v[b,h,t,:].

    parallel task over (b, h, groups of query rows):
      for kb in blocks of keys:
        keys = the block transposed into panels of NR columns
        for t in tiles of MR query rows:
          scores = q x keys
          for each row: scale, mask, running maximum; scores = exp(scores - maximum), running sum
          result tile = result tile * exp(old maximum - new maximum) + scores x v
          after the last block: finish the rows no earlier tile has finished

Few query rows do not pay for the transposition: there each score is a dot product along the head dim.
A row whose keys are all masked gives zeros, as in torch. Blocks of keys depend on the sizes alone.

Batch, queries and keys may be `Sized`. Then there may be fewer rows than a tile has, whose others are computed from
whatever memory follows the last one, and never finished; fewer keys than a panel has are loaded under a mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from monograph.ir import sized
from monograph.loops.nodes import (
    Buffer,
    Carried,
    Combine,
    Expr,
    For,
    Kernel,
    Stmt,
    Store,
    carry,
    const,
    fresh_var,
    index,
    load,
    op,
)
from monograph.templates import arith, exponential, tile
from monograph.templates.arith import add, minimum, mul, sub
from monograph.templates.operand import Operand
from monograph.templates.tile import Epilogue, Machine, Reduction

__all__ = ["Plan", "Shape", "Spec", "build", "plan"]

KEY_BLOCK = 512
QUERY_ROWS = 512             # rows per task at most: their results stay in the second-level cache
DOT_ROWS = 4                 # up to this many query rows scores are dot products
SERIAL_FLOPS = 200_000


@dataclass(frozen=True, slots=True)
class Shape:
    b: int
    h: int
    s: int
    t: int
    d: int
    e: int
    causal: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Tile rows, vectors; columns per panel of keys and of results; keys per block; query rows per task, and the tiles
    that is at most."""

    mr: int
    nv: int
    nr: int
    nr_out: int
    keys: int
    rows: int
    tiles: int
    dot: bool
    parallel: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """Operands have strides (b, h, row, column), those of columns 1 but for the mask's."""

    shape: Shape
    dtype: torch.dtype
    q: Operand
    k: Operand
    v: Operand
    mask: Operand | None
    scale: float
    arguments: tuple[Buffer, ...]
    cut: Plan


def plan(shape: Shape, dtype: torch.dtype, target: Machine) -> Plan:
    lanes = target.lanes(dtype)
    workers = 2 * max(2, torch.get_num_threads())
    wanted = sized.minimum(arith.ceil_div(shape.s, 32), arith.ceil_div(workers, shape.b * shape.h))
    groups = sized.maximum(arith.ceil_div(shape.s, QUERY_ROWS), wanted)
    rows = arith.ceil_div(shape.s, groups)
    chosen = tile.choose(sized.example(rows), sized.example(sized.minimum(shape.t, shape.e)), dtype, target)
    rows = sized.minimum(shape.s, arith.round_up(rows, chosen.mr))
    most = arith.round_up(QUERY_ROWS, chosen.mr)
    if not sized.is_sized(rows):
        while shape.s % rows and shape.s % rows < chosen.mr:     # the last group must hold a whole tile
            rows += 1
        most = rows
    width = chosen.nv * lanes
    if sized.is_sized(shape.t):
        nr, keys = width, KEY_BLOCK - KEY_BLOCK % width
    else:
        nr, keys = _key_block(shape.t, width)
    flops = 2 * shape.b * shape.h * shape.s * shape.t * (shape.d + shape.e)
    is_dot = not sized.is_sized(shape.s) and shape.s <= DOT_ROWS
    return Plan(
        chosen.mr, chosen.nv, nr, min(width, shape.e), keys, rows, arith.ceil_div(most, chosen.mr), is_dot,
        sized.example(flops) >= SERIAL_FLOPS,
    )


def _key_block(t: int, width: int) -> tuple[int, int]:
    """Columns per panel of keys, and keys per block, of `t`."""
    nr = min(width, t)
    keys = t
    if t > KEY_BLOCK:
        keys = KEY_BLOCK - KEY_BLOCK % nr
        while keys and 0 < t % keys < nr:              # the last block must hold a whole panel
            keys -= nr
        keys = keys or t
    return nr, keys


def build(
    name: str, spec: Spec, epilogue: Epilogue, target: Machine, *, logsumexp: Epilogue | None = None,
) -> Kernel:
    """`epilogue(result, (b, h, s, e))`, and `logsumexp(value, (b, h, s))` where that is wanted as well."""
    shape, cut = spec.shape, spec.cut
    groups = arith.ceil_div(shape.s, cut.rows)
    tasks = shape.b * shape.h * groups
    is_parallel = cut.parallel and sized.example(tasks) > 1
    task = For(fresh_var("task"), index(0), index(tasks), "parallel" if is_parallel else "serial")
    b, h, group = arith.unravel(task.var, (shape.b, shape.h, groups))
    share = _Share(spec, epilogue, logsumexp, (b, h), mul(group, cut.rows))
    task.body = share.statements()
    return Kernel(name, list(spec.arguments), share.scratch(), [task])


class _Share:
    """One task: query rows from `first_row` on of one head."""

    def __init__(
        self, spec: Spec, epilogue: Epilogue, logsumexp: Epilogue | None, head: tuple[Expr, Expr], first_row: Expr,
    ) -> None:
        shape, cut, dtype = spec.shape, spec.cut, spec.dtype
        self.spec, self.shape, self.cut, self.dtype = spec, shape, cut, dtype
        self.epilogue, self.logsumexp, self.head, self.first_row = epilogue, logsumexp, head, first_row
        self.rows_here = arith.remaining(first_row, cut.rows, shape.s)
        self.blocks = arith.ceil_div(shape.t, cut.keys)
        self.resumes = sized.is_sized(self.blocks) or self.blocks > 1
        self.any_rows, self.any_keys = sized.is_sized(shape.s), sized.is_sized(shape.t)
        self.tiles = cut.tiles
        self.panels_out = arith.ceil_div(shape.e, cut.nr_out)
        self.pitch = cut.keys + 16          # rows of scores do not fall on the same cache sets
        self.keys = Buffer("keys", dtype, arith.round_up(cut.keys, cut.nr) * shape.d, "scratch")
        self.scores = Buffer("scores", dtype, cut.mr * self.pitch, "scratch")
        self.result = Buffer("result", dtype, self.tiles * self.panels_out * cut.mr * cut.nr_out, "scratch")
        self.highest = Buffer("highest", dtype, self.tiles * cut.mr, "scratch")
        self.total = Buffer("total", dtype, self.tiles * cut.mr, "scratch")
        self.decay = Buffer("decay", dtype, cut.mr, "scratch")

    def scratch(self) -> list[Buffer]:
        keys = [] if self.cut.dot else [self.keys]
        return [*keys, self.scores, self.result, self.highest, self.total, self.decay]

    def number(self, value: float) -> Expr:
        return const(float(value), self.dtype)

    def op(self, name: str, *args: Expr) -> Expr:
        return op(name, *args, dtype=self.dtype)

    def choose(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        return op("select", condition, a, b, dtype=a.dtype)

    def statements(self) -> list[Stmt]:
        shape, cut = self.shape, self.cut
        blocks: arith.Term = self.blocks
        if shape.causal and self.resumes:      # keys behind the last row of the task see nothing
            last_row = add(self.first_row, self.rows_here, -1)
            blocks = minimum(add(arith.floordiv(last_row, cut.keys), 1), self.blocks)
        number = arith.value(self.rows_here)
        tiles: arith.Term = self.tiles
        if number is None:
            tiles = arith.floordiv(add(self.rows_here, cut.mr - 1), cut.mr)

        def block(kb: Expr) -> list[Stmt]:
            first_key = mul(kb, cut.keys)
            count = arith.remaining(first_key, cut.keys, shape.t)
            body = [] if cut.dot else self.transpose(first_key, count)
            return body + tile.serial("t", 0, tiles, lambda t: self.tile(t, kb, first_key, count, sub(blocks, 1)))

        return tile.serial("kb", 0, blocks, block)

    def transpose(self, first_key: Expr, count: Expr) -> list[Stmt]:
        """keys[panel][:, column] = k[key]"""
        cut, shape, k = self.cut, self.shape, self.spec.k

        def panel(p: Expr, masked: bool) -> list[Stmt]:
            # One vector of keys at a time, d inside: each key is read from end to end.
            lane = For(fresh_var("v"), index(0), index(cut.nr), "vector")
            column = add(self.panel_start(p, count), lane.var)
            key = k.at(self.head, add(first_key, column), 0)
            there = arith.less(column, count) if masked else None
            place = add(mul(p, shape.d * cut.nr), lane.var)
            lane.body = tile.serial("d", 0, shape.d, lambda d: [
                Store(self.keys, add(place, mul(d, cut.nr)), load(k.buffer, add(key, d), there))])
            return [lane]

        panels = self.panels(count)
        if not self.any_keys:
            return tile.serial("p", 0, panels, lambda p: panel(p, False))
        few = arith.less(count, cut.nr)
        whole = tile.serial("p", 0, arith.where(few, 0, panels), lambda p: panel(p, False))
        return whole + tile.serial("few", 0, arith.where(few, panels, 0), lambda p: panel(p, True))

    def panels(self, count: Expr) -> Expr:
        return arith.floordiv(add(count, self.cut.nr - 1), self.cut.nr)

    def panel_start(self, p: Expr, count: Expr) -> Expr:
        """A ragged last panel of keys overlaps the one before."""
        number = arith.value(count)
        start = mul(p, self.cut.nr)
        if number is not None and number % self.cut.nr == 0:
            return start
        overlapping = minimum(start, sub(count, self.cut.nr))
        return arith.maximum(overlapping, 0) if self.any_keys else overlapping

    def tile(self, t: Expr, kb: Expr, first_key: Expr, count: Expr, last_block: Expr) -> list[Stmt]:
        cut = self.cut
        first = mul(t, cut.mr)                     # counted from the task's first row
        number = arith.value(self.rows_here)
        whole = number is not None and number % cut.mr == 0
        start = first if whole else minimum(first, sub(self.rows_here, cut.mr))
        valid: arith.Term = cut.mr
        if self.any_rows:
            start = arith.maximum(start, 0)
            valid = minimum(sub(self.rows_here, start), cut.mr)
        row = add(self.first_row, start)
        seen = count
        if self.shape.causal:                      # keys after the tile's last row count nothing
            seen = arith.maximum(minimum(count, sub(add(row, cut.mr), first_key)), 0)
        body = self.dots(row, first_key, seen) if cut.dot else self.products(row, count, seen)
        body += tile.serial("r", 0, valid, lambda r: self.softmax(t, r, add(row, r), kb, first_key, seen))
        body += tile.serial("p", 0, self.panels_out, lambda p: self.accumulate(t, p, kb, first_key, seen))
        skipped = index(0) if whole else sub(first, start)
        last = arith.where(arith.less(kb, last_block), 0, 1) if self.resumes else index(1)
        return body + tile.serial("last", 0, last, lambda _: tile.serial(
            "r", skipped, valid, lambda r: self.finish(t, r, add(row, r))))

    def products(self, row: Expr, count: Expr, seen: Expr) -> list[Stmt]:
        """scores = q x keys, by panels."""
        cut, shape, q = self.cut, self.shape, self.spec.q

        def panel(p: Expr) -> list[Stmt]:
            lane = For(fresh_var("v"), index(0), index(cut.nr), "vector", unroll=cut.nv, alone=True)
            base = q.at(self.head, row, 0)
            keys = mul(p, shape.d * cut.nr)
            rows = [_row(q.buffer, base, m * q.strides[-2]) for m in range(cut.mr)]
            loops, results = tile.contract(
                [Reduction("d", index(0), index(shape.d), tile.K_UNROLL)], rows,
                lambda ks: load(self.keys, add(keys, mul(ks[0], cut.nr), lane.var)), [self.number(0)] * cut.mr)
            column = add(self.panel_start(p, count), lane.var)
            lane.body = loops + [Store(self.scores, add(column, m * self.pitch), x) for m, x in enumerate(results)]
            return [lane]

        return tile.serial("p", 0, self.panels(seen), panel)

    def dots(self, row: Expr, first_key: Expr, seen: Expr) -> list[Stmt]:
        """scores = q x keys, one dot product after the other."""
        shape, q, k = self.shape, self.spec.q, self.spec.k

        def key(column: Expr) -> list[Stmt]:
            lane = For(fresh_var("d"), index(0), index(shape.d), "vector", unroll=2)
            lane.carried = [Carried(f"dot{m}", self.dtype, self.number(0), Combine.SUM) for m in range(self.cut.mr)]
            base, at = q.at(self.head, row, 0), k.at(self.head, add(first_key, column), lane.var)
            lane.yields = [
                self.op("mul", load(q.buffer, add(base, lane.var, m * q.strides[-2])), load(k.buffer, at))
                for m in range(self.cut.mr)
            ]
            stores: list[Stmt] = [
                Store(self.scores, add(column, m * self.pitch), carry(lane, m)) for m in range(self.cut.mr)
            ]
            return [lane, *stores]

        return tile.serial("key", 0, seen, key)

    def score(self, r: Expr, row: Expr, first_key: Expr, column: Expr) -> Expr:
        """The scaled and masked score of a column of the block."""
        mask = self.spec.mask
        value = self.op("mul", load(self.scores, add(mul(r, self.pitch), column)), self.number(self.spec.scale))
        key = add(first_key, column)
        if mask is not None:
            extra = load(mask.buffer, mask.at(self.head, row, key))
            if extra.dtype is torch.bool:
                value = self.choose(extra, value, self.number(-math.inf))
            else:
                value = self.op("add", value, extra)
        if self.shape.causal:
            value = self.choose(op("le", key, row, dtype=torch.bool), value, self.number(-math.inf))
        return value

    def weight(self, r: Expr, row: Expr, first_key: Expr, column: Expr, shift: Expr) -> Expr:
        """exp(score - shift)"""
        fast = exponential.has_fast_exp2(self.dtype)
        unit = exponential.LOG2_E if fast else 1.0
        if self.spec.mask is not None or self.shape.causal:
            distance = self.op("sub", self.score(r, row, first_key, column), shift)
            distance = self.op("mul", distance, self.number(unit)) if fast else distance
        else:
            raw = load(self.scores, add(mul(r, self.pitch), column))
            distance = self.op(
                "fma", raw, self.number(self.spec.scale * unit), self.op("mul", shift, self.number(-unit)))
        return exponential.nonpositive_exp2(distance) if fast else self.op("exp", distance)

    def softmax(self, t: Expr, r: Expr, row: Expr, kb: Expr, first_key: Expr, seen: Expr) -> list[Stmt]:
        """Turn a row of scores into weights, and bring the row's maximum, sum and decay up to date."""
        place = add(mul(t, self.cut.mr), r)
        top = For(fresh_var("j"), index(0), seen, "vector", unroll=2)
        value = self.score(r, row, first_key, top.var)
        lowest = self.number(-math.inf)
        top.carried = [Carried("top", self.dtype, lowest, Combine.MAX)]
        top.yields = [value]
        old = lowest if not self.resumes else self.choose(arith.less(0, kb), load(self.highest, place), lowest)
        new = carry(top, 0) if not self.resumes else self.op("max", carry(top, 0), old)
        shift = self.choose(op("eq", new, lowest, dtype=torch.bool), self.number(0), new)

        total = For(fresh_var("j"), index(0), seen, "vector", unroll=2)
        at = add(mul(r, self.pitch), total.var)
        weight = self.weight(r, row, first_key, total.var, shift)
        total.carried = [Carried("total", self.dtype, self.number(0), Combine.SUM)]
        total.body = [Store(self.scores, at, weight)]
        total.yields = [load(self.scores, at)]      # after the store: the weight
        if not self.resumes:
            return [top, total, Store(self.highest, place, new), Store(self.total, place, carry(total, 0))]
        decay = Store(self.decay, r, self.op("exp", self.op("sub", old, shift)))
        again = arith.where(arith.less(0, kb), 1, 0)
        before = self.choose(arith.less(0, kb), load(self.total, place), self.number(0))
        return [
            top, Store(self.decay, r, self.number(1)), *tile.serial("again", 0, again, lambda _: [decay]), total,
            Store(self.total, place, self.op("fma", before, load(self.decay, r), carry(total, 0))),
            Store(self.highest, place, new),
        ]

    def accumulate(self, t: Expr, p: Expr, kb: Expr, first_key: Expr, seen: Expr) -> list[Stmt]:
        """result tile = result tile * decay + scores x v"""
        cut, v = self.cut, self.spec.v
        lane = For(fresh_var("v"), index(0), index(cut.nr_out), "vector", unroll=cut.nv, alone=True)
        base = mul(add(mul(t, self.panels_out), p), cut.mr * cut.nr_out)
        places = [add(base, lane.var, m * cut.nr_out) for m in range(cut.mr)]
        init: list[Expr] = [self.number(0)] * cut.mr
        if self.resumes:
            again = arith.less(0, kb)
            init = [
                self.op("mul", load(self.result, place, again, self.number(0)), load(self.decay, index(m)))
                for m, place in enumerate(places)
            ]
        values = v.at(self.head, first_key, self.out_start(p))
        rows = [_row(self.scores, index(0), m * self.pitch) for m in range(cut.mr)]
        loops, results = tile.contract(
            [Reduction("j", index(0), seen, tile.K_UNROLL)], rows,
            lambda ks: load(v.buffer, add(values, mul(ks[0], v.strides[-2]), lane.var)), init)
        lane.body = loops + [Store(self.result, place, x) for place, x in zip(places, results, strict=True)]
        return [lane]

    def out_start(self, p: Expr) -> Expr:
        start = mul(p, self.cut.nr_out)
        return start if self.shape.e % self.cut.nr_out == 0 else minimum(start, self.shape.e - self.cut.nr_out)

    def finish(self, t: Expr, r: Expr, row: Expr) -> list[Stmt]:
        cut, shape = self.cut, self.shape
        place = add(mul(t, cut.mr), r)
        total = load(self.total, place)
        safe = self.choose(op("eq", total, self.number(0), dtype=torch.bool), self.number(1), total)
        factor = self.op("div", self.number(1), safe)

        def panel(p: Expr) -> list[Stmt]:
            first, start = mul(p, cut.nr_out), self.out_start(p)
            width = arith.remaining(first, cut.nr_out, shape.e)
            lane = For(fresh_var("v"), index(0), width, "vector", unroll=cut.nv if arith.value(width) else 1)
            base = mul(add(mul(t, self.panels_out), p), cut.mr * cut.nr_out)
            shift = index(0) if first is start else sub(first, start)
            value = load(self.result, add(base, mul(r, cut.nr_out), shift, lane.var))
            lane.body = self.epilogue(self.op("mul", value, factor), (*self.head, row, add(first, lane.var)))
            return [lane]

        body = tile.serial("p", 0, self.panels_out, panel)
        if self.logsumexp is not None:
            highest = load(self.highest, place)
            value = self.op("add", highest, self.op("log", total))
            # the backward takes exp(score - this): -inf would make NaN of a row that is all masked
            masked = op("eq", highest, self.number(-math.inf), dtype=torch.bool)
            value = self.choose(masked, self.number(0), value)
            body += self.logsumexp(value, (*self.head, row))
        return body


def _row(buffer: Buffer, base: Expr, offset: int) -> Callable[[tuple[Expr, ...]], Expr]:
    return lambda ks: load(buffer, add(base, ks[0], offset))
