"""Integers in order, digit by digit; equal ones stay as they come.

    sort(x) -> elements[2 * n], places[2 * n]

One pass per byte, the lowest first: it counts how often each digit occurs, and moves the elements from one half of the
results to the other, those of each digit side by side. Two passes end in the first half.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable
from dataclasses import dataclass

import torch

from monograph.ir.graph import Node
from monograph.loops.lower_value import Values, shape_of
from monograph.loops.nodes import INDEX, Buffer, Carried, Expr, For, Stmt, Store, carry, fresh_var, index, load, op

__all__ = ["RULES"]

DIGITS = 256
BITS = 8


def sort(values: Values, node: Node) -> list[Stmt]:
    x = node.inputs[0]
    points = pymath.prod(shape_of(x))
    sorting = _Sort(index(points), values.targets[node.results[0]], values.targets.get(node.results[1]),
                    Buffer("counts", INDEX, DIGITS, "scratch"), Buffer("free", INDEX, DIGITS, "scratch"))
    at = values.domain(fresh_var("i"), points)
    copies = sorting.stored(at, values.at(x, values.affine.unravel(at, shape_of(x))), at)
    first = For(at, index(0), index(points), body=copies)
    size = x.tensor.dtype.itemsize
    if size == 1:
        return [first, *sorting.turn(index(0), index(0), True), sorting.back()]
    two = fresh_var("p")
    low = _op("mul", two, index(2))
    last = op("eq", two, index(size // 2 - 1), dtype=torch.bool)
    return [first, For(two, index(0), index(size // 2), body=[
        *sorting.turn(low, index(0), False), *sorting.turn(_op("add", low, index(1)), sorting.points, last)])]


@dataclass
class _Sort:
    points: Expr
    elements: Buffer
    places: Buffer | None           # None: nobody reads them
    counts: Buffer
    free: Buffer                    # by digit: the next place

    def stored(self, position: Expr, element: Expr, place: Expr) -> list[Stmt]:
        made: list[Stmt] = [Store(self.elements, position, element)]
        return made if self.places is None else [*made, Store(self.places, position, place)]

    def moved(self, source: Expr, target: Expr) -> list[Stmt]:
        place = index(0) if self.places is None else load(self.places, source)
        return self.stored(target, load(self.elements, source), place)

    def digit(self, position: Expr, number: Expr, is_last: Expr | bool) -> Expr:
        """Digit `number` of the element at `position`; in the last one negative elements come first."""
        wide = load(self.elements, position)
        if wide.dtype is not INDEX:
            wide = op("cast", wide, dtype=INDEX)
        found = _op("and", _op("shr", wide, _op("mul", number, index(BITS))), index(DIGITS - 1))
        if not self.elements.dtype.is_signed or is_last is False:
            return found
        turned = _op("xor", found, index(DIGITS // 2))
        return turned if is_last is True else op("select", is_last, turned, found, dtype=INDEX)    # type: ignore[arg-type]

    def turn(self, number: Expr, source: Expr, is_last: Expr | bool) -> list[Stmt]:
        """Move all elements from the half that begins at `source` to the other, by digit `number`."""
        digit, total, one, two = (fresh_var(name) for name in "dtij")
        target = _op("sub", self.points, source)
        clear = For(digit, index(0), index(DIGITS), body=[Store(self.counts, digit, index(0))])
        here = self.digit(_op("add", source, one), number, is_last)
        more = _op("add", load(self.counts, here), index(1))
        count = For(one, index(0), self.points, body=[Store(self.counts, here, more)])
        add = For(total, index(0), index(DIGITS), carried=[Carried("total", INDEX, index(0))])
        so_far = carry(add, 0)
        add.yields = [_op("add", so_far, load(self.counts, total))]
        add.body = [Store(self.free, total, so_far)]
        position = _op("add", source, two)
        there = self.digit(position, number, is_last)
        free = load(self.free, there)
        move = For(two, index(0), self.points, body=[
            *self.moved(position, _op("add", target, free)), Store(self.free, there, _op("add", free, index(1)))])
        return [clear, count, add, move]

    def back(self) -> Stmt:
        at = fresh_var("i")
        return For(at, index(0), self.points, body=self.moved(_op("add", self.points, at), at))


def _op(name: str, *args: Expr) -> Expr:
    return op(name, *args, dtype=INDEX)


RULES: dict[str, Callable[[Values, Node], list[Stmt]]] = {"mono.sort": sort}
