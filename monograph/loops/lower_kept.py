"""What a kernel need not store: elements that stay what they are.

    out[i, j] = select(i == e, v, x[i, j])     ->     i = e:  out[i, j] = select(i == e, v, x[i, j])

where the output lies in the place of x (see `schedule.kernel`, "In place"): a row written into what a loop carries
costs that row, however long the buffer is. An `e` out of range, which another statement checks, writes nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monograph.ir.graph import Value
from monograph.loops.lower_value import Values, shape_of
from monograph.loops.nodes import INDEX, Expr, Load, Op, Store, index

__all__ = ["changing"]


def changing(values: Values, value: Value, coordinates: Sequence[Expr]) -> tuple[Store, Sequence[Expr]]:
    """`value` stored at `coordinates`, or at those of them where it may be another than before; and these."""
    statement = values.store(value, coordinates, values.at(value, tuple(coordinates)))
    chosen = statement.value
    if isinstance(chosen, Op) and chosen.name == "select" and _stays(values, value, statement, chosen.args[2]):
        for at, place in _places(chosen.args[0]):
            if at in coordinates and values.free(at) and values.free(at).isdisjoint(values.free(place)):
                inside = _inside(values, place, shape_of(value)[list(coordinates).index(at)])
                fixed = tuple(inside if coordinate is at else coordinate for coordinate in coordinates)
                return values.store(value, fixed, values.at(value, fixed)), fixed
    return statement, coordinates


def _inside(values: Values, place: Expr, size: int) -> Expr:
    op = values.affine.op
    if values.affine.inside(place, size):
        return place
    return op("min", op("max", place, index(0), dtype=INDEX), index(size - 1), dtype=INDEX)


def _stays(values: Values, value: Value, statement: Store, element: Expr) -> bool:
    """Whether `element` is what stands where it is stored."""
    places = values.schedule.places
    if not isinstance(element, Load) or element.index is not statement.index or places.get(value) is None:
        return False
    source = next((source for source, buffer in values.sources.items() if buffer is element.buffer), None)
    return source is not None and places.get(source) == places[value]


def _places(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The positions that a condition compares, both ways."""
    pending = [condition]
    while pending:
        term = pending.pop()
        if isinstance(term, Op) and term.name == "and":
            pending += term.args
        elif isinstance(term, Op) and term.name == "eq" and term.args[0].dtype is INDEX:
            left, right = term.args
            yield left, right
            yield right, left
