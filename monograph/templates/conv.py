"""Convolutions, channels last: out[n, o, oh, ow] = sum over c, kh, kw of x[n, c, ih, iw] * w[o, c, kh, kw], finished.

    parallel task over (n, groups of output rows, groups of panels):
      [stage: copy the input rows the task needs into scratch, channels innermost, padded with zeros]
      the task's share (see `blocked`): rows are output pixels, columns are output channels

Without padding and with contiguous channels the input is read in place. A reduction runs over (kh, kw, c), or
over (kh, kw * c) where the pixels of a window's row are neighbours; a long one is cut into blocks of a row of
the kernel and at most K_BLOCK elements of it. Depthwise convolutions multiply vectors of channels instead
of broadcasting a pixel. 1-d convolutions have one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from monograph.loops.nodes import Buffer, Expr, For, Kernel, Stmt, fresh_var, index, load
from monograph.templates import arith, blocked, staging, tile
from monograph.templates.arith import add, floordiv, minimum, mod, mul, sub
from monograph.templates.blocked import Ahead, Factor, Work
from monograph.templates.tile import Epilogue, Machine, Reduction

__all__ = ["Plan", "Shape", "Spec", "build", "plan"]

WHOLE_BLOCK = 6144           # reductions up to this length are not cut: their panels stream from the second-level cache
K_BLOCK = 1024
SERIAL_FLOPS = 200_000
PANELS_INSIDE_DEPTH = 256
PANELS_INSIDE_BYTES = 256 * 1024
STAGE_COST = 0.35            # cycles to copy one element, against 1 / 16 for a multiply-add


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a convolution; pairs are (height, width)."""

    n: int
    c: int
    h: int
    w: int
    o: int
    oh: int
    ow: int
    kh: int
    kw: int
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @property
    def depthwise(self) -> bool:
        return self.groups == self.c == self.o and self.groups > 1

    @property
    def macs(self) -> int:
        return self.n * self.o * self.oh * self.ow * self.kh * self.kw * (self.c // self.groups)

    def input_rows(self, rows: int) -> int:
        """Input rows that `rows` output rows read."""
        return (rows - 1) * self.stride[0] + (self.kh - 1) * self.dilation[0] + 1

    @property
    def flat(self) -> bool:
        """One row of pixels: a 1-d convolution, which is cut along its width."""
        return self.h == self.oh == self.kh == 1 and self.padding[0] == 0 and self.w > 1

    def turned(self) -> Shape:
        """Height and width exchanged."""
        return Shape(
            self.n, self.c, self.w, self.h, self.o, self.ow, self.oh, self.kw, self.kh,
            self.stride[::-1], self.padding[::-1], self.dilation[::-1], self.groups,
        )

    @property
    def outside(self) -> tuple[bool, bool]:
        """Do windows reach rows, columns beyond the image? On the far side the sizes of the result tell."""
        rows, columns = self.input_rows(self.oh) - self.padding[0], self.input_columns - self.padding[1]
        return self.padding[0] > 0 or rows > self.h, self.padding[1] > 0 or columns > self.w

    @property
    def input_columns(self) -> int:
        return (self.ow - 1) * self.stride[1] + (self.kw - 1) * self.dilation[1] + 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Tile, panel width, output rows and panels per task, elements per block (0: the reduction is whole)."""

    mr: int
    nv: int
    nr: int
    rows: int
    panels: int
    block: int
    stage: bool
    parallel: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """`x_strides` are those of (n, c, h, w); w is packed by `ops.panels`."""

    shape: Shape
    dtype: torch.dtype
    x: Buffer
    x_strides: tuple[int, int, int, int]
    w: Buffer
    arguments: tuple[Buffer, ...]
    cut: Plan
    x_offset: int = 0
    w_offset: int = 0


def plan(
    shape: Shape, x_strides: tuple[int, ...], dtype: torch.dtype, target: Machine, *, panel: int | None = None,
) -> Plan:
    """The cut of a convolution; `panel` is the width of the panels of a packed weight (not of a depthwise one)."""
    if shape.flat:
        return plan(shape.turned(), _turned(x_strides), dtype, target, panel=panel)
    lanes = target.lanes(dtype)
    stage = any(shape.outside) or x_strides[1] != 1
    pixels, each = shape.oh * shape.ow, shape.o // shape.groups
    if shape.depthwise:
        nv = 2 if shape.c >= 2 * lanes else 1
        chosen, nr = tile.Tile(min(4, pixels), nv), min(nv * lanes, shape.c)
        panels = arith.ceil_div(shape.c, nr)
    else:
        chosen = tile.choose(pixels, each, dtype, target, panel=panel)
        nr = panel if panel is not None else chosen.nv * lanes
        panels = shape.groups * arith.ceil_div(each, nr)
    length = shape.kw * (shape.c // shape.groups)
    block = 0
    if shape.kh * length > WHOLE_BLOCK and not shape.depthwise:
        inner = length if _merged(shape, x_strides, stage) else shape.c // shape.groups
        outer = length // inner
        block = arith.round_up(arith.ceil_div(inner, arith.ceil_div(inner * outer, K_BLOCK)), tile.K_UNROLL)
    rows, group = _split(shape, chosen, nr, panels, stage)
    return Plan(chosen.mr, chosen.nv, nr, rows, group, block, stage, 2 * shape.macs >= SERIAL_FLOPS)


def _turned(strides: tuple[int, ...]) -> tuple[int, int, int, int]:
    n, c, h, w = strides
    return n, c, w, h


def _merged(shape: Shape, x_strides: tuple[int, ...], stage: bool) -> bool:
    """Are the kw * c elements of a window's row neighbours, as they are in the packed weight?"""
    if shape.groups != 1:
        return False
    return shape.kw == 1 or (shape.dilation[1] == 1 and (stage or x_strides[3] == shape.c))


def _split(shape: Shape, chosen: tile.Tile, nr: int, panels: int, stage: bool) -> tuple[int, int]:
    """Output rows and panels per task: the split that ends first, with at least two tasks per thread where possible."""
    workers = 2 * max(2, torch.get_num_threads())
    depth = shape.kh * shape.kw * (1 if shape.depthwise else shape.c // shape.groups)

    def cost(rows: int, group: int) -> float:
        tasks = shape.n * arith.ceil_div(shape.oh, rows) * arith.ceil_div(panels, group)
        tiles = arith.ceil_div(rows * shape.ow, chosen.mr)
        work = tiles * group * chosen.mr * nr * depth / 16
        # Panels and pixels stream from the outer caches once per task.
        work += (group * nr + rows * shape.ow) * depth / 8
        if stage:
            work += shape.input_rows(rows) * (shape.w + 2 * shape.padding[1]) * shape.c * STAGE_COST
        return arith.ceil_div(tasks, workers) * (work + 200)

    least_rows = arith.ceil_div(chosen.mr, shape.ow)
    row_choices = {max(least_rows, arith.ceil_div(shape.oh, parts)) for parts in range(1, shape.oh + 1)}
    # The last group of rows must hold a whole tile.
    row_choices = {rows for rows in row_choices if (shape.oh % rows or rows) * shape.ow >= chosen.mr}
    group_choices = {arith.ceil_div(panels, parts) for parts in (1, 2, 4, 8, 16, 32) if parts <= panels}
    choices = [(rows, group) for rows in row_choices for group in group_choices]
    return min(choices, key=lambda choice: (cost(*choice), -choice[0], -choice[1]))


def build(name: str, spec: Spec, epilogue: Epilogue, target: Machine) -> Kernel:
    """The kernel of a convolution. `epilogue(acc, (n, o, oh, ow))`."""
    if spec.shape.flat:
        upright = replace(spec, shape=spec.shape.turned(), x_strides=_turned(spec.x_strides))
        return build(name, upright, lambda acc, at: epilogue(acc, (*at[:2], at[3], at[2])), target)
    shape, cut = spec.shape, spec.cut
    row_groups = arith.ceil_div(shape.oh, cut.rows)
    panels = _panels(shape, cut)
    column_groups = arith.ceil_div(panels, cut.panels)
    tasks = shape.n * row_groups * column_groups
    task = For(fresh_var("task"), index(0), index(tasks), "parallel" if cut.parallel and tasks > 1 else "serial")
    n, row_group, column_group = arith.unravel(task.var, (shape.n, row_groups, column_groups))
    share = _Share(spec, epilogue, n, mul(row_group, cut.rows), mul(column_group, cut.panels), panels)
    work = share.work()
    partial = blocked.scratch(work)
    task.body = share.stage(spec) + blocked.statements(work, partial)
    scratch = [partial] + ([share.staged] if share.staged is not None else [])
    return Kernel(name, list(spec.arguments), scratch, [task] if tasks else [])


def _panels(shape: Shape, cut: Plan) -> int:
    if shape.depthwise:
        return arith.ceil_div(shape.c, cut.nr)
    return shape.groups * arith.ceil_div(shape.o // shape.groups, cut.nr)


class _Share:
    """One task's part: output rows from `first_row` on, panels from `first_panel` on, of image `n`."""

    def __init__(
        self, spec: Spec, epilogue: Epilogue, n: Expr, first_row: Expr, first_panel: Expr, panels: int,
    ) -> None:
        shape, cut = spec.shape, spec.cut
        self.spec, self.shape, self.cut, self.epilogue = spec, shape, cut, epilogue
        self.n, self.first_row, self.first_panel, self.all_panels = n, first_row, first_panel, panels
        self.depth = 1 if shape.depthwise else shape.c // shape.groups
        self.merged = not shape.depthwise and _merged(shape, spec.x_strides, cut.stage)
        self.inner = shape.kw * self.depth if self.merged else self.depth
        self.parts = arith.ceil_div(self.inner, cut.block) if cut.block else 1
        self.rows_here = arith.remaining(first_row, cut.rows, shape.oh)
        self.width = max(shape.w + 2 * shape.padding[1], shape.input_columns)
        self.staged: Buffer | None = None
        if cut.stage:
            size = shape.input_rows(cut.rows) * self.width * shape.c
            self.staged = Buffer("staged", spec.dtype, size, "scratch")
            self.source, self.row_pitch, self.pixel_pitch = self.staged, self.width * shape.c, shape.c
            self.origin: Expr = index(0)
        else:
            n_pitch, _, self.row_pitch, self.pixel_pitch = spec.x_strides
            self.source = spec.x
            self.origin = add(mul(n, n_pitch), mul(first_row, shape.stride[0] * self.row_pitch), spec.x_offset)

    def work(self) -> Work:
        shape, cut = self.shape, self.cut
        pixels = mul(self.rows_here, shape.ow)
        most = arith.ceil_div(cut.rows * shape.ow, cut.mr)
        number = arith.value(pixels)
        return Work(
            self.spec.dtype, cut.mr, cut.nv, cut.nr,
            tiles=index(most) if number is not None else floordiv(add(pixels, cut.mr - 1), cut.mr),
            panels=arith.remaining(self.first_panel, cut.panels, self.all_panels),
            most_tiles=most, most_panels=cut.panels,
            blocks=shape.kh * self.parts if cut.block else 1,
            reductions=self.reductions, rows=self.rows, columns=self.columns, row=self.row, column=self.column,
            finish=self.finish,
            ahead=self.ahead,
            panels_inside=self.panels_inside(),
        )

    def panels_inside(self) -> bool:
        shape, cut = self.shape, self.cut
        depth = shape.kh * shape.kw * self.depth
        small = cut.panels * depth * cut.nr * self.spec.dtype.itemsize <= PANELS_INSIDE_BYTES
        return not cut.block and depth <= PANELS_INSIDE_DEPTH and small

    # The reduction: (kh, kw, c) as loops, or kh and the part of a window's row taken from the block's number.

    def reductions(self, kb: Expr) -> list[Reduction]:
        shape, cut = self.shape, self.cut
        loops = [] if cut.block else [Reduction("kh", index(0), index(shape.kh))]
        if not self.merged:
            loops.append(Reduction("kw", index(0), index(shape.kw)))
        if shape.depthwise:
            return loops
        length: Expr = index(self.inner)
        if cut.block:
            length = arith.remaining(mul(mod(kb, self.parts), cut.block), cut.block, self.inner)
        return [*loops, Reduction("k", index(0), length, tile.K_UNROLL)]

    def place(self, kb: Expr) -> tuple[Expr | None, Expr]:
        """The kernel row and the first inner element of block `kb`; None where kh is a loop."""
        if not self.cut.block:
            return None, index(0)
        return floordiv(kb, self.parts), mul(mod(kb, self.parts), self.cut.block)

    def split(self, ks: tuple[Expr, ...], kh: Expr | None) -> tuple[Expr, Expr, Expr]:
        """(kh, kw, inner) of the loops' variables."""
        rest = list(ks)
        kh = rest.pop(0) if kh is None else kh
        kw = index(0) if self.merged else rest.pop(0)
        return kh, kw, rest[0] if rest else index(0)

    # Rows are output pixels of the task, row-major.

    def rows(self, t: Expr) -> tuple[Expr, Expr]:
        cut, pixels = self.cut, mul(self.rows_here, self.shape.ow)
        first, number = mul(t, cut.mr), arith.value(pixels)
        if number is not None and number % cut.mr == 0:
            return first, first
        return first, minimum(first, sub(pixels, cut.mr))

    def pixel(self, start: Expr, m: int) -> Expr:
        """Where the window of pixel `start + m` begins, from the task's origin."""
        shape = self.shape
        down, right = shape.stride[0] * self.row_pitch, shape.stride[1] * self.pixel_pitch
        if down == shape.ow * right or arith.value(self.rows_here) == 1:
            return add(mul(start, right), m * right)
        if shape.ow % self.cut.mr == 0:      # tiles do not cross rows
            return add(mul(floordiv(start, shape.ow), down), mul(mod(start, shape.ow), right), m * right)
        at = add(start, m)
        return add(mul(floordiv(at, shape.ow), down), mul(mod(at, shape.ow), right))

    def row(self, start: Expr, m: int, p: Expr, kb: Expr, lane: Expr) -> Factor:
        shape = self.shape
        kh_block, first = self.place(kb)
        panel = add(self.first_panel, p)
        channel: Expr = index(0)
        if shape.depthwise:
            channel = add(self.first_channel(panel), lane)
        elif shape.groups > 1:
            channel = mul(floordiv(panel, self.all_panels // shape.groups), self.depth)
        base = add(self.origin, channel, self.pixel(start, m))
        down, right = shape.dilation[0] * self.row_pitch, shape.dilation[1] * self.pixel_pitch

        def at(ks: tuple[Expr, ...]) -> Expr:
            kh, kw, inner = self.split(ks, kh_block)
            return load(self.source, add(base, first, mul(kh, down), mul(kw, right), inner))

        return at

    # Columns are output channels of a panel.

    def first_channel(self, panel: Expr) -> Expr:
        """The first channel a panel computes: a ragged last depthwise panel overlaps its neighbour."""
        first = mul(panel, self.cut.nr)
        if not self.shape.depthwise or self.shape.c % self.cut.nr == 0:
            return first
        return minimum(first, self.shape.c - self.cut.nr)

    def column(self, p: Expr, kb: Expr, lane: Expr) -> Factor:
        place = self.weight(p, kb, lane)
        return lambda ks: load(self.spec.w, place(ks))

    def ahead(self, p: Expr, kb: Expr, lane: Expr) -> Ahead:
        """Few pixels leave little time to fetch a panel: ask for it early."""
        shape, nr = self.shape, self.cut.nr
        if shape.depthwise or self.cut.rows * shape.ow > tile.AHEAD_ROWS:
            return lambda ks: []
        place, line = self.weight(p, kb, lane), tile.LINE_BYTES // self.spec.dtype.itemsize
        return lambda ks: [
            (self.spec.w, add(place(ks), tile.AHEAD * nr + part)) for part in range(0, nr, line)
        ]

    def weight(self, p: Expr, kb: Expr, lane: Expr) -> Factor:
        """Where the weight of the reduction loops' variables lies."""
        shape, cut, spec = self.shape, self.cut, self.spec
        kh_block, first = self.place(kb)
        panel = add(self.first_panel, p)
        if shape.depthwise:
            base, step = add(self.first_channel(panel), lane), shape.c
        else:
            base, step = add(mul(panel, shape.kh * shape.kw * self.depth * cut.nr), mul(first, cut.nr)), cut.nr

        def at(ks: tuple[Expr, ...]) -> Expr:
            kh, kw, inner = self.split(ks, kh_block)
            row = add(mul(kh, shape.kw * self.depth * step), mul(kw, self.depth * step), mul(inner, step))
            return add(base, row, *(() if shape.depthwise else (lane,)), spec.w_offset)

        return at

    def columns(self, p: Expr) -> tuple[Expr, Expr]:
        shape, cut, panel = self.shape, self.cut, add(self.first_panel, p)
        if shape.depthwise:
            first, start = mul(panel, cut.nr), self.first_channel(panel)
            return arith.remaining(first, cut.nr, shape.c), index(0) if first is start else sub(first, start)
        each = shape.o // shape.groups
        return arith.remaining(mul(mod(panel, self.all_panels // shape.groups), cut.nr), cut.nr, each), index(0)

    def finish(self, accumulated: Expr, pixel: Expr, p: Expr, lane: Expr) -> list[Stmt]:
        shape, cut, panel = self.shape, self.cut, add(self.first_panel, p)
        if shape.depthwise or shape.groups == 1:
            channel = add(mul(panel, cut.nr), lane)
        else:
            per_group = self.all_panels // shape.groups
            group = mul(floordiv(panel, per_group), shape.o // shape.groups)
            channel = add(group, mul(mod(panel, per_group), cut.nr), lane)
        row, column = floordiv(pixel, shape.ow), mod(pixel, shape.ow)
        return self.epilogue(accumulated, (self.n, channel, add(self.first_row, row), column))

    def stage(self, spec: Spec) -> list[Stmt]:
        """Copy what the task reads of the input into scratch."""
        if self.staged is None:
            return []
        shape = self.shape
        window = (shape.kh - 1) * shape.dilation[0] + 1
        image = staging.Image(
            spec.x, spec.x_strides, spec.x_offset, shape.c, shape.h, shape.w, left=shape.padding[1], width=self.width)
        first = add(mul(self.first_row, shape.stride[0]), -shape.padding[0])
        count = add(mul(sub(self.rows_here, 1), shape.stride[0]), window)
        return staging.copy(image, self.staged, self.n, first, count, padded=shape.outside[0])
