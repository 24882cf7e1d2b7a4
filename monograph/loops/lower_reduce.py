"""Reductions: fold the elements over some dims of the first operand.

Floats are summed in their op-math dtype, integers as torch says (usually i64). Extrema let NaN win; positions are
those of the first extremum, or of the first NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.sized import known_less
from monograph.loops.lower_scalar import Scalars, opmath
from monograph.loops.lower_value import Coordinates, Rule, Values, dtype_of, shape_of
from monograph.loops.lower_view import dimension
from monograph.loops.nodes import Combine, Expr, index

__all__ = ["RULES", "Folded"]

BOOL = torch.bool


class Folded:
    """The box of elements of an operand that belong to one element of the result."""

    def __init__(self, values: Values, node: Node, k: int, coordinates: Coordinates, dims: Any = "dim") -> None:
        operand = node.operands[0]
        assert isinstance(operand, Value)
        self.values = values
        self.node = node
        self.operand = operand
        self.shape = shape_of(operand)
        rank = len(self.shape)
        given = node.attributes.get(dims) if isinstance(dims, str) else dims
        chosen: Sequence[int] = (given,) if isinstance(given, int) else given or range(rank)
        self.dims = sorted({dimension(dim, rank) for dim in chosen}) if rank else []
        keepdim = len(shape_of(node.results[k])) == rank
        self.around = coordinates
        rest = iter(c for i, c in enumerate(coordinates) if not (keepdim and i in self.dims))
        self.kept = [index(0) if dim in self.dims else next(rest) for dim in range(rank)]
        self.extents = [self.shape[dim] for dim in self.dims]
        self.count = 1
        for extent in self.extents:
            self.count *= extent
        self.m = Scalars(values.affine, dtype_of(node.results[k]), node.loc)

    def point(self, inner: Coordinates) -> Coordinates:
        """The coordinates in the operand."""
        result = list(self.kept)
        for dim, at in zip(self.dims, inner):
            result[dim] = at
        return tuple(result)

    def element(self, inner: Coordinates, dtype: torch.dtype | None = None) -> Expr:
        x = self.values.at(self.operand, self.point(inner))
        return x if dtype is None else self.m.cast(x, dtype)

    def fold(self, combine: Combine, body: Callable[[Coordinates], Expr], dtype: torch.dtype) -> Expr:
        return self.values.fold(combine, self.extents, self.around, body, dtype)

    def total(self, dtype: torch.dtype, fn: Callable[[Expr], Expr] = lambda x: x) -> Expr:
        """The sum of fn(element), computed in `dtype`."""
        return self.fold(Combine.SUM, lambda inner: fn(self.element(inner, dtype)), dtype)

    def extremum(self, combine: Combine) -> Expr:
        """In the op-math dtype of the operand."""
        dtype = opmath(dtype_of(self.operand))
        if dtype is BOOL:
            combine = Combine.OR if combine is Combine.MAX else Combine.AND
        return self.fold(combine, lambda inner: self.element(inner, dtype), dtype)

    def position(self, combine: Combine) -> Expr:
        """Row-major position, within the box, of the first extremum; of the first NaN where there is one."""
        m, affine = self.m, self.values.affine
        best = self.extremum(combine)
        narrow = torch.int32 if known_less(self.count, 2**31) else torch.int64

        def body(inner: Coordinates) -> Expr:
            x = self.element(inner, best.dtype)
            hit = m.eq(x, best)
            if x.dtype.is_floating_point:
                hit = m("or", hit, m("isnan", x))
            at = m.cast(affine.ravel(inner, self.extents), narrow)
            return m.select(hit, at, self.count - 1)

        return m.cast(self.fold(Combine.MIN, body, narrow), torch.int64)


Reduction = Callable[[Folded, dict[str, Any]], Expr]


def _rule(fn: Reduction, dims: Any = "dim") -> Rule:
    def rule(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
        folded = Folded(values, node, k, coordinates, dims)
        return folded.m.cast(fn(folded, node.attributes), dtype_of(node.results[k]))

    return rule


def _sum(f: Folded, attributes: dict[str, Any]) -> Expr:
    return f.total(opmath(f.m.dtype))


def _nansum(f: Folded, attributes: dict[str, Any]) -> Expr:
    m = f.m
    return f.total(opmath(m.dtype), lambda x: m.select(m("isnan", x), 0, x) if x.dtype.is_floating_point else x)


def _mean(f: Folded, attributes: dict[str, Any]) -> Expr:
    return f.m.div(f.total(opmath(f.m.dtype)), float(f.count))


def _prod(f: Folded, attributes: dict[str, Any]) -> Expr:
    dtype = opmath(f.m.dtype)
    return f.fold(Combine.PROD, lambda inner: f.element(inner, dtype), dtype)


def _truth(combine: Combine) -> Reduction:
    return lambda f, attributes: f.fold(combine, lambda inner: f.m.truth(f.element(inner)), BOOL)


def _extremum(combine: Combine) -> Reduction:
    return lambda f, attributes: f.extremum(combine)


def _position(combine: Combine) -> Reduction:
    return lambda f, attributes: f.position(combine)


def _count_nonzero(f: Folded, attributes: dict[str, Any]) -> Expr:
    return f.fold(Combine.SUM, lambda inner: f.m.cast(f.m.truth(f.element(inner)), torch.int64), torch.int64)


def _shifted_exponentials(f: Folded, dtype: torch.dtype) -> tuple[Expr, Expr]:
    """The finite largest element, and the sum of exp(element - largest)."""
    m = f.m
    largest = f.fold(Combine.MAX, lambda inner: f.element(inner, dtype), dtype)
    shift = m.select(m("isinf", largest), 0.0, largest)
    return shift, f.fold(Combine.SUM, lambda inner: m("exp", m.sub(f.element(inner, dtype), shift)), dtype)


def _logsumexp(f: Folded, attributes: dict[str, Any]) -> Expr:
    shift, total = _shifted_exponentials(f, opmath(f.m.dtype))
    return f.m.add(f.m("log", total), shift)


def _variance(f: Folded, attributes: dict[str, Any]) -> Expr:
    """Two passes: the mean, then the squares of the differences."""
    m, dtype = f.m, opmath(f.m.dtype)
    if "unbiased" in attributes:
        correction = float(attributes["unbiased"])
    else:
        given = attributes.get("correction")
        correction = 1.0 if given is None else float(given)
    mean = m.div(f.total(dtype), float(f.count))
    squares = f.total(dtype, lambda x: m.mul(m.sub(x, mean), m.sub(x, mean)))
    return m.div(squares, max(f.count - correction, 0.0))


def _deviation(f: Folded, attributes: dict[str, Any]) -> Expr:
    return f.m("sqrt", _variance(f, attributes))


def _vector_norm(f: Folded, attributes: dict[str, Any]) -> Expr:
    m, dtype = f.m, opmath(f.m.dtype)
    order = float(attributes.get("ord", attributes.get("p", 2)))
    size: Callable[[Coordinates], Expr] = lambda inner: m("abs", f.element(inner, dtype))   # noqa: E731
    if order == float("inf"):
        return f.fold(Combine.MAX, size, dtype)
    if order == float("-inf"):
        return f.fold(Combine.MIN, size, dtype)
    if order == 0:
        return f.fold(Combine.SUM, lambda inner: m.cast(m("ne", f.element(inner, dtype), 0), dtype), dtype)
    if order == 1:
        return f.fold(Combine.SUM, size, dtype)
    if order == 2:
        return m("sqrt", f.total(dtype, lambda x: m.mul(x, x)))
    power = f.fold(Combine.SUM, lambda inner: m("pow", size(inner), m.lift(order, dtype)), dtype)
    return m("pow", power, m.lift(1 / order, dtype))


def _by_result(*functions: Reduction, dims: Any = "dim") -> Rule:
    """One function per result of the op."""
    rules = [_rule(fn, dims) for fn in functions]
    return lambda values, node, k, coordinates: rules[k](values, node, k, coordinates)


def _softmax(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
    """exp(x - max) / sum, rounded once."""
    f, x, dtype = _along(values, node, coordinates)
    m = f.m
    largest = f.fold(Combine.MAX, lambda inner: f.element(inner, dtype), dtype)
    total = f.fold(Combine.SUM, lambda inner: m("exp", m.sub(f.element(inner, dtype), largest)), dtype)
    return m.cast(m.div(m("exp", m.sub(x, largest)), total), dtype_of(node.results[0]))


def _log_softmax(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
    f, x, dtype = _along(values, node, coordinates)
    m = f.m
    largest = f.fold(Combine.MAX, lambda inner: f.element(inner, dtype), dtype)
    total = f.fold(Combine.SUM, lambda inner: m("exp", m.sub(f.element(inner, dtype), largest)), dtype)
    return m.cast(m.sub(m.sub(x, largest), m("log", total)), dtype_of(node.results[0]))


def _along(values: Values, node: Node, coordinates: Coordinates) -> tuple[Folded, Expr, torch.dtype]:
    """The row an element belongs to, the element, and the dtype to compute in."""
    f = Folded(values, node, 0, coordinates)
    f.around = tuple(f.kept)
    dtype = opmath(dtype_of(node.results[0]))
    return f, f.m.cast(values.at(f.operand, coordinates), dtype), dtype


def _layer_norm(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
    """native_layer_norm(x, shape, weight?, bias?, eps) -> y, mean, rstd"""
    x, weight, bias = node.operands
    assert isinstance(x, Value)
    rank, inner = len(shape_of(x)), len(node.attributes["normalized_shape"])
    f = Folded(values, node, k, coordinates, tuple(range(rank - inner, rank)))
    f.around = tuple(f.kept)
    m, dtype = f.m, opmath(dtype_of(x))
    mean = m.div(f.total(dtype), float(f.count))
    squares = f.total(dtype, lambda e: m.mul(m.sub(e, mean), m.sub(e, mean)))
    variance = m.div(squares, float(f.count))
    rstd = m.div(1.0, m("sqrt", m.add(variance, m.lift(node.attributes["eps"], dtype))))
    if k:
        return m.cast(mean if k == 1 else rstd, dtype_of(node.results[k]))
    y = m.mul(m.sub(m.cast(values.at(x, coordinates), dtype), mean), rstd)
    if isinstance(weight, Value):
        y = m.mul(y, m.cast(values.at(weight, coordinates[rank - inner:]), dtype))
    if isinstance(bias, Value):
        y = m.add(y, m.cast(values.at(bias, coordinates[rank - inner:]), dtype))
    return m.cast(y, dtype_of(node.results[0]))


def _rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {}

    def add(overloads: str, fn: Reduction, dims: Any = "dim") -> None:
        for name in overloads.split():
            table[f"aten.{name}"] = _rule(fn, dims)

    add("sum.default sum.dim_IntList", _sum)
    add("nansum.default", _nansum)
    add("mean.default mean.dim", _mean)
    add("prod.default prod.dim_int", _prod)
    add("any.default any.dim any.dims", _truth(Combine.OR))
    add("all.default all.dim all.dims", _truth(Combine.AND))
    add("amax.default max.default", _extremum(Combine.MAX))
    add("amin.default min.default", _extremum(Combine.MIN))
    add("argmax.default", _position(Combine.MAX))
    add("argmin.default", _position(Combine.MIN))
    add("count_nonzero.default count_nonzero.dim_IntList", _count_nonzero)
    add("logsumexp.default", _logsumexp)
    add("var.default var.dim var.correction", _variance)
    add("std.default std.dim std.correction", _deviation)
    add("linalg_vector_norm.default norm.ScalarOpt_dim", _vector_norm)
    for overload in ("default", "dim", "correction"):
        table[f"aten.var_mean.{overload}"] = _by_result(_variance, _mean)
        table[f"aten.std_mean.{overload}"] = _by_result(_deviation, _mean)
    table["aten.max.dim"] = _by_result(_extremum(Combine.MAX), _position(Combine.MAX))
    table["aten.min.dim"] = _by_result(_extremum(Combine.MIN), _position(Combine.MIN))
    table["aten.aminmax.default"] = _by_result(_extremum(Combine.MIN), _extremum(Combine.MAX))
    table["aten._softmax.default"] = table["aten.softmax.int"] = _softmax
    table["aten._log_softmax.default"] = table["aten.log_softmax.int"] = _log_softmax
    table["aten.native_layer_norm.default"] = _layer_norm
    return table


RULES: dict[str, Rule] = _rules()
