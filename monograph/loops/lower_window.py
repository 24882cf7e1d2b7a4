"""Pooling: each element of the result folds a window of the first operand.

    window ::= kernel, stride, padding, dilation per spatial dim (the last dims of the operand)

Small windows are written out, larger ones become serial loops. What lies in the padding is not read.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.loops.lower_scalar import Scalars, opmath
from monograph.loops.lower_terms import identity
from monograph.loops.lower_value import Coordinates, Rule, Values, dtype_of, shape_of
from monograph.loops.nodes import Combine, Expr, index

__all__ = ["RULES"]


class Window:
    """The window of one element of the result."""

    def __init__(self, values: Values, node: Node, c: Coordinates, spatial: int) -> None:
        attributes = node.attributes
        self.values, self.node, self.c = values, node, c
        operand = node.operands[0]
        assert isinstance(operand, Value)
        self.operand = operand
        self.kernel = _each(attributes["kernel_size"], spatial)
        self.stride = _each(attributes.get("stride") or self.kernel, spatial)
        self.padding = _each(attributes.get("padding", 0), spatial)
        self.dilation = _each(attributes.get("dilation", 1), spatial)
        self.outer, self.inner = c[:-spatial], c[-spatial:]
        self.sizes = shape_of(operand)[-spatial:]
        self.m = Scalars(values.affine, opmath(dtype_of(operand)), node.loc)

    def point(self, inside: Coordinates) -> list[Expr]:
        """Spatial coordinates in the operand; they may lie in the padding."""
        affine = self.values.affine
        return [
            affine.add(affine.scale(at, stride), affine.scale(step, dilation), -padding)
            for at, step, stride, dilation, padding
            in zip(self.inner, inside, self.stride, self.dilation, self.padding)
        ]

    def valid(self, point: list[Expr]) -> Expr:
        checks = [check for at, size in zip(point, self.sizes) for check in (self.m.ge(at, 0), self.m.lt(at, size))]
        return self.m.all(*checks)

    def fold(self, combine: Combine, fn: Callable[[Expr, list[Expr]], Expr], dtype: torch.dtype) -> Expr:
        """Over the elements of the window that exist: fn(element, spatial coordinates)."""
        def body(inside: Coordinates) -> Expr:
            point = self.point(inside)

            def element() -> Expr:
                x = self.values.at(self.operand, (*self.outer, *point))
                return fn(self.m.cast(x, self.m.dtype), point)

            return self.values.choose(self.valid(point), element, lambda: identity(combine, dtype))

        return self.values.fold(combine, self.kernel, self.c, body, dtype)


def _each(value: Any, count: int) -> tuple[int, ...]:
    entries = (value,) if isinstance(value, int) else tuple(value)
    return entries * count if len(entries) == 1 else entries


def _max_pool(spatial: int) -> Rule:
    def rule(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
        window = Window(values, node, c, spatial)
        m = window.m
        best = window.fold(Combine.MAX, lambda x, point: x, m.dtype)
        return m.cast(best, dtype_of(node.results[0])) if k == 0 else _position(window, best)

    return rule


def _position(window: Window, best: Expr) -> Expr:
    """Flat position in the plane of the first largest element; of the last NaN where there is one."""
    m, affine = window.m, window.values.affine
    narrow = torch.int32 if pymath.prod(window.sizes) < 2**31 else torch.int64
    none = torch.iinfo(narrow).max

    def flat(point: list[Expr]) -> Expr:
        return m.cast(affine.ravel(point, window.sizes), narrow)

    first = window.fold(Combine.MIN, lambda x, p: m.select(m.eq(x, best), flat(p), none), narrow)
    if best.dtype.is_floating_point:
        last = window.fold(Combine.MAX, lambda x, p: m.select(m("isnan", x), flat(p), -1), narrow)
        first = m.select(m("isnan", best), last, first)
    return m.cast(first, torch.int64)


def _avg_pool(spatial: int) -> Rule:
    def rule(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
        window = Window(values, node, c, spatial)
        total = window.fold(Combine.SUM, lambda x, point: x, window.m.dtype)
        divide = "div" if total.dtype.is_floating_point else "truncdiv"
        return window.m.cast(window.m(divide, total, _divisor(window)), dtype_of(node.result))

    return rule


def _divisor(window: Window) -> Expr:
    attributes, m, affine = window.node.attributes, window.m, window.values.affine
    override = attributes.get("divisor_override")
    if override:
        return m.lift(override)
    padded = attributes.get("count_include_pad", True)
    count: Expr = index(1)
    for at, size, kernel, stride, padding in zip(
            window.inner, window.sizes, window.kernel, window.stride, window.padding):
        start = affine.add(affine.scale(at, stride), -padding)
        end = m("min", affine.add(start, kernel), size + padding)
        if not padded:
            start, end = m("max", start, 0), m("min", end, size)
        count = m.mul(count, affine.add(end, affine.scale(start, -1)))
    return m.cast(count, m.dtype)


RULES: dict[str, Rule] = {
    "aten.max_pool2d_with_indices.default": _max_pool(2),
    "aten.max_pool3d_with_indices.default": _max_pool(3),
    "aten.avg_pool1d.default": _avg_pool(1),
    "aten.avg_pool2d.default": _avg_pool(2),
    "aten.avg_pool3d.default": _avg_pool(3),
}
