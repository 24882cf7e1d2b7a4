"""What a template does with each element of its result: the pointwise nodes that follow, and the stores.

The statements are lowered once, over plain coordinates and a stand-in for the accumulated value; each time the template
finishes an element they are copied with its own expressions in place of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from monograph.ir.graph import Value
from monograph.loops.lower import Lowering
from monograph.loops.lower_value import dtype_of, shape_of
from monograph.loops.nodes import INDEX, Buffer, Expr, Load, Op, Stmt, Store, Var, index, load, op
from monograph.schedule.kernel import Strided
from monograph.templates import arith

__all__ = ["Epilogue", "strided"]

BY_NUMBER = {"mul": arith.mul, "floordiv": arith.floordiv, "mod": arith.mod}


class Epilogue:
    """Called as `epilogue(accumulated, coordinates)`; coordinates are those of a result of shape `shape`.

    `finish(accumulated, coordinates)` makes the anchor's result of what the template accumulated (scale, bias).
    """

    def __init__(
        self, lowering: Lowering, result: Value, outputs: Sequence[Value], shape: tuple[int, ...],
        finish: Callable[[Expr, tuple[Expr, ...]], Expr] | None = None,
    ) -> None:
        self.coordinates: list[Expr] = []
        for size in shape:
            used = frozenset(v for v in self.coordinates if isinstance(v, Var))
            self.coordinates.append(index(0) if size == 1 else lowering.variable(size, used))
        self.accumulated = load(Buffer("accumulated", dtype_of(result), 1), index(0))
        own = tuple(self.coordinates)
        final = self.accumulated if finish is None else finish(self.accumulated, own)
        lowering.bind(result, lambda point: final)
        self.statements: list[Store] = []
        for value in outputs:
            point = _same_element(lowering, own, shape, shape_of(value))
            self.statements.append(lowering.store(value, point, lowering.at(value, point)))

    def __call__(self, accumulated: Expr, coordinates: tuple[Expr, ...]) -> list[Stmt]:
        known: dict[Expr, Expr] = {
            own: given for own, given in zip(self.coordinates, coordinates, strict=True) if isinstance(own, Var)
        }
        known[self.accumulated] = accumulated
        made: list[Stmt] = []
        for s in self.statements:
            mask = None if s.mask is None else _copy(s.mask, known)
            made.append(Store(s.buffer, _copy(s.index, known), _copy(s.value, known), mask, s.loc))
        return made


def _same_element(
    lowering: Lowering, coordinates: tuple[Expr, ...], shape: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[Expr, ...]:
    """The coordinates in `wanted` of the element at `coordinates` of `shape`, dims matched as far as they agree."""
    inner: list[Expr] = []
    left, right = list(shape), list(wanted)
    points = list(coordinates)
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
        inner.insert(0, points.pop())
    assert math.prod(left) == math.prod(right), (shape, wanted)
    outer = lowering.affine.unravel(lowering.affine.ravel(points, left), tuple(right))
    return (*outer, *inner)


def _copy(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    """`expr` with everything in `known` replaced; `known` remembers what was made."""
    stack = [expr]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        waiting = [arg for arg in top.args if arg not in known]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        known[top] = _rebuild(top, tuple(known[arg] for arg in top.args))
    return known[expr]


def _rebuild(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    if not args or all(new is old for new, old in zip(args, expr.args, strict=True)):
        return expr
    if isinstance(expr, Load):
        return load(expr.buffer, *args, loc=expr.loc)
    assert isinstance(expr, Op), expr
    if expr.dtype is INDEX:
        if expr.name == "add":
            return arith.add(*args)
        number = arith.value(args[-1])
        if expr.name in BY_NUMBER and number is not None:
            return BY_NUMBER[expr.name](args[0], number)
    return op(expr.name, *args, dtype=expr.dtype, loc=expr.loc)


def strided(lowering: Lowering, operand: Strided, coordinates: Sequence[Expr]) -> Expr:
    """The element of an operand at coordinates of its shape."""
    affine = lowering.affine
    position = affine.add(affine.dot(coordinates, operand.strides), operand.offset)
    return lowering.load(lowering.sources[operand.value], position)
