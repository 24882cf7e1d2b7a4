"""Rows of an image copied into scratch: channels innermost, zeros around.

    staged[r][left + iw][c] = x[n, c, first + r, iw]        zeros where that is outside the image

The source may have any strides. Where its channels are strided and many, vectors run over channels and a
serial loop inside over pixels: each channel's pixels then are read one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from monograph.loops.nodes import Buffer, Expr, For, Stmt, Store, const, fresh_var, index, load
from monograph.templates import arith, tile
from monograph.templates.arith import add, maximum, minimum, mul, sub

__all__ = ["Image", "copy"]

MANY_CHANNELS = 8


@dataclass(frozen=True, slots=True)
class Image:
    """The source, strides of (n, c, h, w), and the staged rows: `width` pixels, the image's from `left` on."""

    x: Buffer
    strides: tuple[int, int, int, int]
    offset: int
    channels: int
    h: int
    w: int
    left: int
    width: int

    @property
    def pitch(self) -> int:
        """Elements of a staged row."""
        return self.width * self.channels

    def at(self, n: Expr, ih: Expr) -> Expr:
        return add(mul(n, self.strides[0]), mul(ih, self.strides[2]), self.offset)


def copy(image: Image, staged: Buffer, n: Expr, first: Expr, count: Expr, *, padded: bool) -> list[Stmt]:
    """Stage `count` rows from `first` on; only `padded` rows may lie outside the image."""
    if image.width == 1:
        return _column(image, staged, n, first, count, padded)

    def row(r: Expr) -> list[Stmt]:
        ih, start = add(first, r), mul(r, image.pitch)
        if not padded:
            return _row(image, staged, n, ih, start)
        clamped = maximum(minimum(ih, image.h - 1), 0)
        inside = arith.equal(clamped, ih)
        zeros = tile.serial("out", 0, arith.where(inside, 0, 1), lambda _: _zeros(staged, start, image.pitch))
        return zeros + tile.serial(
            "in", 0, arith.where(inside, 1, 0), lambda _: _row(image, staged, n, clamped, start))

    return tile.serial("r", 0, count, row)


def _row(image: Image, staged: Buffer, n: Expr, ih: Expr, start: Expr) -> list[Stmt]:
    """One row of the image between its borders of zeros."""
    _, c_pitch, _, w_pitch = image.strides
    channels, width = image.channels, image.w
    source, target = image.at(n, ih), add(start, image.left * channels)
    if c_pitch == 1 and w_pitch == channels:
        body = _run(image, staged, source, 1, target, 1, width * channels)
    elif c_pitch == 1:
        body = tile.serial("iw", 0, width, lambda iw: _run(
            image, staged, add(source, mul(iw, w_pitch)), 1, add(target, mul(iw, channels)), 1, channels))
    elif channels >= MANY_CHANNELS:
        body = _transpose(image, staged, source, w_pitch, target, width)
    else:
        body = tile.serial("c", 0, channels, lambda c: _run(
            image, staged, add(source, mul(c, c_pitch)), w_pitch, add(target, c), channels, width))
    right = image.width - image.left - width
    after = add(target, width * channels)
    return _zeros(staged, start, image.left * channels) + body + _zeros(staged, after, right * channels)


def _column(image: Image, staged: Buffer, n: Expr, first: Expr, count: Expr, padded: bool) -> list[Stmt]:
    """All rows at once, of an image one pixel wide."""
    _, c_pitch, h_pitch, _ = image.strides
    channels = image.channels
    low: Expr = index(0)
    high = count
    if padded:
        low = minimum(maximum(mul(first, -1), 0), count)
        high = maximum(minimum(sub(image.h, first), count), 0)
    rows = sub(high, low) if padded else count
    source, target = image.at(n, add(first, low)), mul(low, channels)
    if c_pitch == 1 and h_pitch == channels:
        body = _run(image, staged, source, 1, target, 1, mul(rows, channels))
    elif c_pitch == 1:
        body = tile.serial("r", 0, rows, lambda r: _run(
            image, staged, add(source, mul(r, h_pitch)), 1, add(target, mul(r, channels)), 1, channels))
    elif channels >= MANY_CHANNELS:
        body = _transpose(image, staged, source, h_pitch, target, rows)
    else:
        body = tile.serial("c", 0, channels, lambda c: _run(
            image, staged, add(source, mul(c, c_pitch)), h_pitch, add(target, c), channels, rows))
    if not padded:
        return body
    after = mul(high, channels)
    return _zeros(staged, index(0), target) + body + _zeros(staged, after, sub(mul(count, channels), after))


def _run(
    image: Image, staged: Buffer, source: Expr, source_step: int, target: Expr, target_step: int, count: arith.Term,
) -> list[Stmt]:
    lane = For(fresh_var("e"), index(0), arith.expr(count), "vector", unroll=2)
    value = load(image.x, add(source, mul(lane.var, source_step)))
    lane.body = [Store(staged, add(target, mul(lane.var, target_step)), value)]
    return [lane]


def _transpose(
    image: Image, staged: Buffer, source: Expr, pixel_pitch: int, target: Expr, count: arith.Term,
) -> list[Stmt]:
    lane = For(fresh_var("c"), index(0), index(image.channels), "vector")
    channel = mul(lane.var, image.strides[1])

    def pixel(i: Expr) -> list[Stmt]:
        value = load(image.x, add(source, channel, mul(i, pixel_pitch)))
        return [Store(staged, add(target, mul(i, image.channels), lane.var), value)]

    lane.body = tile.serial("i", 0, count, pixel)
    return [lane]


def _zeros(staged: Buffer, start: Expr, count: arith.Term) -> list[Stmt]:
    if arith.value(count) == 0:
        return []
    lane = For(fresh_var("z"), index(0), arith.expr(count), "vector")
    lane.body = [Store(staged, add(start, lane.var), const(0.0, staged.dtype))]
    return [lane]
