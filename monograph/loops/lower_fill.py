"""Kernels that write their results in an order of their own, one element after the other.

    compact(mask)           the positions of the true elements, side by side, and how many there are
    spread(repeats; size)   every position, as often as its element says
    place(x, at)            every element, where its position says
    sort(x)                 see `lower_sort`
    index_add, index_put    see `lower_scatter`

The number of elements written so far is carried by the loop. What is written where nothing counts is inside of the
result all the same: element number n comes from position n at the earliest.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable

from monograph.ir.graph import Node, Value
from monograph.loops import lower_scatter, lower_sort
from monograph.loops.lower_value import Values, shape_of
from monograph.loops.nodes import INDEX, Buffer, Carried, Expr, For, Kernel, Stmt, Store, carry, fresh_var, index

__all__ = ["RULES", "fill"]


def fill(values: Values, node: Node) -> tuple[list[Stmt], list[Buffer]]:
    """The statements of a kernel for `node` alone, its views aside, and the scratch memory that they use."""
    body = RULES[node.op.name](values, node)
    stores = (statement for statement in Kernel("", [], body=body).statements() if isinstance(statement, Store))
    return body, [buffer for buffer in dict.fromkeys(store.buffer for store in stores) if buffer.kind == "scratch"]


def _element(values: Values, value: Value, at: Expr) -> Expr:
    """The element of `value` at a flat position."""
    return values.at(value, values.affine.unravel(at, shape_of(value)))


def _compact(values: Values, node: Node) -> list[Stmt]:
    mask, (places, count) = node.inputs[0], node.results
    points = pymath.prod(shape_of(mask))
    at = values.domain(fresh_var("i"), points)
    loop = For(at, index(0), index(points), carried=[Carried("count", INDEX, index(0))])
    found = carry(loop, 0)
    loop.body = [values.store(places, (found,), at)] if places in values.targets else []
    loop.yields = [values.affine.add(found, values.affine.op("cast", _element(values, mask, at), dtype=INDEX))]
    return [loop, values.store(count, (), carry(loop, 0))] if count in values.targets else [loop]


def _spread(values: Values, node: Node) -> list[Stmt]:
    repeats, result = node.inputs[0], node.result
    (points,), (size,) = shape_of(repeats), shape_of(result)
    affine = values.affine
    at, place = values.domain(fresh_var("i"), points), values.domain(fresh_var("i"), size)
    loop = For(at, index(0), index(points), carried=[Carried("done", INDEX, index(0))])
    done = carry(loop, 0)
    repeat = affine.op("max", affine.op("cast", _element(values, repeats, at), dtype=INDEX), index(0), dtype=INDEX)
    end = affine.op("min", affine.add(done, repeat), index(size), dtype=INDEX)
    number = at if result.tensor.dtype is INDEX else affine.op("cast", at, dtype=result.tensor.dtype)
    loop.body = [For(place, done, end, body=[values.store(result, (place,), number)])]
    loop.yields = [end]
    return [loop]


def _place(values: Values, node: Node) -> list[Stmt]:
    x, places = node.inputs
    points = pymath.prod(shape_of(x))
    at = values.domain(fresh_var("i"), points)
    return [For(at, index(0), index(points), body=[
        values.store(node.result, (_element(values, places, at),), _element(values, x, at))])]


RULES: dict[str, Callable[[Values, Node], list[Stmt]]] = {
    "mono.compact": _compact, "mono.place": _place, "mono.spread": _spread,
    **lower_scatter.RULES, **lower_sort.RULES,
}
