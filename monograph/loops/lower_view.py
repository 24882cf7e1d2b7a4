"""Views: result[c] = operand[map(c)], no arithmetic on elements.

    RULES: op name -> rule; every rule maps the coordinates of the result to those of the first operand.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.sized import maximum, minimum
from monograph.loops.lower_value import Coordinates, Rule, Values, shape_of
from monograph.loops.nodes import INDEX, Expr, index

__all__ = ["RULES", "dimension"]

Map = Callable[[Values, Node, int, Coordinates, tuple[int, ...]], Sequence[Expr]]


def dimension(dim: int, rank: int) -> int:
    """A dim counted from the front."""
    return dim % rank if rank else 0


def _rule(fn: Map) -> Rule:
    def rule(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
        operand = _operand(node)
        return values.at(operand, tuple(fn(values, node, k, coordinates, shape_of(operand))))

    return rule


def _operand(node: Node) -> Value:
    operand = node.operands[0]
    assert isinstance(operand, Value)
    return operand


def reshape(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    flat = values.affine.ravel(c, shape_of(node.results[k]))
    return values.affine.unravel(flat, shape)


def expand(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    own = c[len(c) - len(shape):]
    return [index(0) if size == 1 else at for size, at in zip(shape, own)]


def permute(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    result = list(c)
    for at, dim in zip(c, node.attributes["dims"]):
        result[dimension(dim, len(shape))] = at
    return result


def transpose(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    rank = len(shape)
    if rank < 2:
        return c
    a, b = (dimension(node.attributes.get(name, i), rank) for i, name in enumerate(("dim0", "dim1")))
    result = list(c)
    result[a], result[b] = c[b], c[a]
    return result


def reverse_dims(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    return c[::-1]


def squeeze(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    rank = len(shape)
    dims = node.attributes.get("dim")
    chosen = range(rank) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {dimension(dim, rank) for dim in chosen if rank and shape[dimension(dim, rank)] == 1}
    rest = iter(c)
    return [index(0) if dim in gone else next(rest) for dim in range(rank)]


def unsqueeze(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape) + 1)
    return [*c[:dim], *c[dim + 1:]]


def select(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape))
    position = node.attributes["index"]
    return [*c[:dim], index(position % shape[dim]), *c[dim:]]


def unbind(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape))
    return [*c[:dim], index(k), *c[dim:]]


def bounds(attributes: dict[str, Any], size: int) -> tuple[int, int, int]:
    """start, end and step of a slice, clamped as torch does."""
    start, end = attributes.get("start"), attributes.get("end")
    start = 0 if start is None else start + size if start < 0 else start
    end = size if end is None else end + size if end < 0 else end
    start = minimum(maximum(start, 0), size)
    return start, maximum(minimum(end, size), start), attributes.get("step", 1)


def slice_(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape))
    start, _, step = bounds(node.attributes, shape[dim])
    return [*c[:dim], values.affine.add(values.affine.scale(c[dim], step), start), *c[dim + 1:]]


def split(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape))
    before = sum(shape_of(result)[dim] for result in node.results[:k])
    return [*c[:dim], values.affine.add(c[dim], before), *c[dim + 1:]]


def narrow(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dim = dimension(node.attributes["dim"], len(shape))
    start = node.attributes["start"] % max(shape[dim], 1)
    return [*c[:dim], values.affine.add(c[dim], start), *c[dim + 1:]]


def diagonal(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    rank = len(shape)
    offset = node.attributes["offset"]
    first, second = dimension(node.attributes["dim1"], rank), dimension(node.attributes["dim2"], rank)
    rest = iter(c[:-1])
    result = [index(0) if dim in (first, second) else next(rest) for dim in range(rank)]
    result[first] = values.affine.add(c[-1], max(-offset, 0))
    result[second] = values.affine.add(c[-1], max(offset, 0))
    return result


def unfold(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    if not shape:
        return ()
    dim = dimension(node.attributes["dimension"], len(shape))
    at = values.affine.add(values.affine.scale(c[dim], node.attributes["step"]), c[-1])
    return [*c[:dim], at, *c[dim + 1:-1]]


def flip(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    dims = {dimension(dim, len(shape)) for dim in node.attributes["dims"]}
    return [
        values.affine.add(values.affine.scale(at, -1), size - 1) if dim in dims else at
        for dim, (at, size) in enumerate(zip(c, shape))
    ]


def repeat(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    return [values.affine.mod(at, size) for at, size in zip(c[len(c) - len(shape):], shape)]


def movedim(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    rank = len(shape)
    source, target = node.attributes["source"], node.attributes["destination"]
    source = (source,) if isinstance(source, int) else source
    target = (target,) if isinstance(target, int) else target
    place = {dimension(s, rank): dimension(d, rank) for s, d in zip(source, target)}
    free = iter(d for d in range(rank) if d not in place.values())
    return [c[place[dim] if dim in place else next(free)] for dim in range(rank)]


def roll(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
    """A choice of two places for each rolled dim: cut in two where it matters, each piece has plain strides."""
    shifts, dims = node.attributes["shifts"], node.attributes["dims"]
    shifts = (shifts,) if isinstance(shifts, int) else shifts
    dims = (dims,) if isinstance(dims, int) else dims
    if not dims:
        flat = values.affine.ravel(c, shape)
        return values.affine.unravel(_rolled(values, flat, shifts[0], pymath.prod(shape)), shape)
    point = list(c)
    for shift, dim in zip(shifts, dims):
        at = dimension(dim, len(shape))
        if shape:
            point[at] = _rolled(values, point[at], shift, shape[at])
    return point


def _rolled(values: Values, at: Expr, shift: int, size: int) -> Expr:
    shift %= max(size, 1)
    affine = values.affine
    if shift == 0:
        return at
    return affine.op("select", values.below(at, shift), affine.add(at, size - shift), affine.add(at, -shift),
                     dtype=INDEX)


def padded(beyond: Callable[[Values, Expr, int], tuple[Expr, Expr]]) -> Map:
    """Pads that repeat elements: `beyond(values, at, size)` is where to read before the start and after the end."""
    def place(values: Values, node: Node, k: int, c: Coordinates, shape: tuple[int, ...]) -> Sequence[Expr]:
        affine, padding = values.affine, node.attributes["padding"]
        point = list(c)
        for i in range(len(padding) // 2):
            dim = len(shape) - 1 - i
            at, size = affine.add(c[dim], -padding[2 * i]), shape[dim]
            before, after = beyond(values, at, size)
            inner = affine.op("select", values.below(at, size), at, after, dtype=INDEX)
            point[dim] = affine.op("select", values.below(at, 0), before, inner, dtype=INDEX)
        return point

    return place


def _mirrored(values: Values, at: Expr, size: int) -> tuple[Expr, Expr]:
    back = values.affine.scale(at, -1)
    return back, values.affine.add(back, 2 * (size - 1))


def _edges(values: Values, at: Expr, size: int) -> tuple[Expr, Expr]:
    return index(0), index(size - 1)


MAPS: dict[str, tuple[Map, str]] = {
    "view": (reshape, "default"), "reshape": (reshape, "default"), "_unsafe_view": (reshape, "default"),
    "_reshape_alias": (reshape, "default"), "flatten": (reshape, "using_ints"), "unflatten": (reshape, "int"),
    "expand": (expand, "default"), "broadcast_to": (expand, "default"), "expand_as": (expand, "default"),
    "permute": (permute, "default"), "transpose": (transpose, "int"), "t": (transpose, "default"),
    "numpy_T": (reverse_dims, "default"), "movedim": (movedim, "int intlist"),
    "squeeze": (squeeze, "default dim dims"), "unsqueeze": (unsqueeze, "default"),
    "select": (select, "int"), "unbind": (unbind, "int"), "slice": (slice_, "Tensor"),
    "split": (split, "Tensor sizes"), "split_with_sizes": (split, "default"), "chunk": (split, "default"),
    "narrow": (narrow, "default"),
    "diagonal": (diagonal, "default"), "unfold": (unfold, "default"),
    "flip": (flip, "default"), "repeat": (repeat, "default"), "tile": (repeat, "default"), "roll": (roll, "default"),
}


def _rules() -> dict[str, Rule]:
    """The views, and their `_copy` variants where torch has them."""
    rules: dict[str, Rule] = {}
    for packet, (fn, overloads) in MAPS.items():
        for overload in overloads.split():
            rules[f"aten.{packet}.{overload}"] = _rule(fn)
            if hasattr(torch.ops.aten, f"{packet}_copy"):
                rules[f"aten.{packet}_copy.{overload}"] = _rule(fn)
    for dims in (1, 2, 3):
        rules[f"aten.reflection_pad{dims}d.default"] = _rule(padded(_mirrored))
        rules[f"aten.replication_pad{dims}d.default"] = _rule(padded(_edges))
    return rules


RULES: dict[str, Rule] = _rules()
