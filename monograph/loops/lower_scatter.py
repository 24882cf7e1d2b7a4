"""Writes at computed positions: a copy of the first operand, and then one element after the other.

    index_add(x, dim, index, source)            x[.., index[i], ..] += source[.., i, ..]
    index_put(x, indices, value, accumulate)    x[indices] = value, or += with `accumulate`

Elements are written in the order in which eager writes them, so that the last of those at one place wins, and sums of
them are eager's. Inside of what one index chooses no two elements meet: that is done with vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monograph.ir.graph import Node, Value
from monograph.loops.lower_index import BOUNDS, RANGE, position
from monograph.loops.lower_pointwise import broadcast
from monograph.loops.lower_value import Values, dtype_of, shape_of
from monograph.loops.lower_view import dimension
from monograph.loops.nodes import Expr, For, Stmt, Store, fresh_var, index, load

__all__ = ["RULES"]

Body = Callable[[tuple[Expr, ...]], list[Stmt]]


def nest(values: Values, shape: Sequence[int], vectors: int, body: Body) -> list[Stmt]:
    """Loops over the points of `shape`, the last `vectors` dims of which need no order."""
    coordinates: list[Expr] = []
    loops: list[For] = []
    for at, size in enumerate(shape):
        if size == 1:
            coordinates.append(index(0))
            continue
        variable = values.domain(fresh_var("i"), size)
        is_last = at == len(shape) - 1 and vectors
        loops.append(For(variable, index(0), index(size), "vector" if is_last else "serial"))
        coordinates.append(variable)
    inner = body(tuple(coordinates))
    for loop in reversed(loops):
        loop.body = inner
        inner = [loop]
    return inner


def _copied(values: Values, x: Value, result: Value) -> list[Stmt]:
    return nest(values, shape_of(x), 1, lambda c: [values.store(result, c, values.at(x, c))])


def _written(values: Values, result: Value, point: Sequence[Expr], element: Expr, add: bool) -> list[Stmt]:
    """The element stored or added at `point`, after the checks that `point` brought with it."""
    checks: list[Stmt] = list(values.checks)
    target, place = values.targets[result], values.affine.dot(point, values.strides(result))
    if add:
        element = values.affine.op("add", load(target, place), element, dtype=dtype_of(result))
    return [*checks, Store(target, place, element)]


def index_add(values: Values, node: Node) -> list[Stmt]:
    x, indices, source = node.inputs
    shape, result = shape_of(x), node.result
    dim = dimension(node.attributes["dim"], len(shape))
    inner = len(shape) - 1 - dim

    def body(c: tuple[Expr, ...]) -> list[Stmt]:
        chosen = values.at(indices, c[dim:dim + 1] if shape_of(indices) else ())
        at = position(values, node, chosen, shape[dim], dim, message=RANGE)
        return _written(values, result, (*c[:dim], at, *c[dim + 1:]), values.at(source, c), add=True)

    return [*_copied(values, x, result), *nest(values, shape_of(source), inner, body)]


def index_put(values: Values, node: Node) -> list[Stmt]:
    x, indices, value = node.operands[:3]
    assert isinstance(x, Value) and isinstance(indices, tuple) and isinstance(value, Value)
    shape, result = shape_of(x), node.result
    given = [dim for dim, entry in enumerate(indices) if isinstance(entry, Value)]
    box = _box([shape_of(indices[dim]) for dim in given])       # type: ignore[arg-type]
    start, rank = given[0], len(box)
    rest = shape[given[-1] + 1:]

    def body(c: tuple[Expr, ...]) -> list[Stmt]:
        point: list[Expr] = [*c[:start]]
        for dim in given:
            entry = indices[dim]
            assert isinstance(entry, Value)
            chosen = values.at(entry, broadcast(entry, c[start:start + rank]))
            point.append(position(values, node, chosen, shape[dim], dim - start, wrap=True, message=BOUNDS))
        point += c[start + rank:]
        element = values.at(value, broadcast(value, c))
        return _written(values, result, point, element, add=bool(node.attributes["accumulate"]))

    return [*_copied(values, x, result), *nest(values, (*shape[:start], *box, *rest), len(rest), body)]


def _box(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that these broadcast to."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*wide))


RULES: dict[str, Callable[[Values, Node], list[Stmt]]] = {
    "aten.index_add.default": index_add, "aten.index_put.default": index_put,
}
