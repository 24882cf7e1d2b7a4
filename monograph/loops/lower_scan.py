"""Scans: running folds along one dim, in order.

At the variable of a loop the value is the state after that step. Anywhere else (a scan seen through a flip, say),
or where loops cannot be in order for all scans of a kernel, it is the fold of everything up to there, which is right
but slow.
f32 is accumulated in f64 and the halves in f32, as eager does. The last of equal extrema gives the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from monograph.ir.graph import Node, Value
from monograph.loops.interpret import postorder
from monograph.loops.lower_scalar import Scalars
from monograph.loops.lower_special import logaddexp
from monograph.loops.lower_terms import Reduce, Scan, identity, scan, slot
from monograph.loops.lower_value import Coordinates, Rule, Values, dtype_of, shape_of
from monograph.loops.lower_view import dimension
from monograph.loops.nodes import Combine, Expr, Var, index

__all__ = ["RULES", "orderable"]


def orderable(values: Values, exprs: Iterable[Expr]) -> bool:
    """Can one loop nest over these expressions run all their scans in order?

    They must share their variable, and a reduction may fold scans only along that variable: one state is carried.
    """
    found = postorder(exprs)
    if len({expr.variable for expr in found if isinstance(expr, Scan)}) > 1:
        return False
    for expr in found:
        if isinstance(expr, Reduce):
            for scan_ in postorder(expr.args):
                if isinstance(scan_, Scan):
                    folded = values.free(scan_).intersection(expr.variables)
                    if folded and folded != {scan_.variable}:
                        return False
    return True


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The dtype a running sum or product is kept in."""
    if dtype is torch.float32:
        return torch.float64
    return torch.float32 if dtype.is_floating_point and dtype.itemsize == 2 else dtype


class Line:
    """The elements up to one position along the scanned dim."""

    def __init__(self, values: Values, node: Node, k: int, c: Coordinates, dtype: torch.dtype) -> None:
        operand = node.operands[0]
        assert isinstance(operand, Value)
        self.values, self.node, self.k, self.operand = values, node, k, operand
        self.shape = shape_of(operand)
        self.dim = dimension(node.attributes["dim"], len(self.shape))
        self.c = c
        self.dtype = dtype
        self.m = Scalars(values.affine, dtype, node.loc)
        self.at = c[self.dim] if self.shape else index(0)
        others = [each for i, each in enumerate(c) if i != self.dim]
        plain = values.ordered and isinstance(self.at, Var) and all(self.at not in values.free(each) for each in others)
        self.variable = self.at if plain else None

    def element(self, at: Expr) -> Expr:
        point = (*self.c[:self.dim], at, *self.c[self.dim + 1:]) if self.shape else ()
        return self.m.cast(self.values.at(self.operand, point), self.dtype)

    def upto(self, combine: Combine, fn: Callable[[Expr, Expr], Expr], dtype: torch.dtype) -> Expr:
        """The fold of fn(element, position) over all positions up to this one."""
        size = self.shape[self.dim] if self.shape else 1

        def body(inner: Coordinates) -> Expr:
            inside = self.m.le(inner[0], self.at)
            return self.m.select(inside, fn(self.element(inner[0]), inner[0]), identity(combine, dtype))

        return self.values.fold(combine, [size], self.c, body, dtype)

    def state(self, name: str, inits: list[Expr], step: Callable[[list[Expr], Expr], list[Expr]]) -> Expr:
        """State k after the step at this position; the scan is one for all its states and readers."""
        assert isinstance(self.variable, Var)
        token = f"{name}@{self.values.number(self.node, self.c)}"
        slots = [slot(token, i, init.dtype) for i, init in enumerate(inits)]
        return scan(token, self.k, self.variable, inits, step(slots, self.element(self.variable)))


def _running(combine: Combine, name: str) -> Rule:
    """cumsum, cumprod"""
    def rule(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
        result = dtype_of(node.result)
        line = Line(values, node, k, c, accumulator(result))
        if line.variable is None:
            total = line.upto(combine, lambda x, at: x, line.dtype)
        else:
            step = line.m.add if combine is Combine.SUM else line.m.mul
            total = line.state(name, [identity(combine, line.dtype)], lambda s, x: [step(s[0], x)])
        return line.m.cast(total, result)

    return rule


def _extremum(combine: Combine, name: str) -> Rule:
    """cummax, cummin: values and positions; NaN wins, then the later of equals."""
    def rule(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
        operand = node.operands[0]
        assert isinstance(operand, Value)
        dtype = dtype_of(operand)
        wide = torch.float32 if dtype.is_floating_point and dtype.itemsize == 2 else dtype
        wide = torch.uint8 if dtype is torch.bool else wide
        line = Line(values, node, k, c, wide)
        m = line.m

        def beats(x: Expr, best: Expr) -> Expr:
            wins = m.ge(x, best) if combine is Combine.MAX else m.le(x, best)
            return m("or", wins, m("isnan", x)) if wide.is_floating_point else wins

        if line.variable is None:
            found = line.upto(combine, lambda x, at: x, wide)
            if k == 1:
                found = line.upto(Combine.MAX, lambda x, at: m.select(beats(x, found), at, index(-1)), torch.int64)
        else:
            def step(state: list[Expr], x: Expr) -> list[Expr]:
                better = beats(x, state[0])
                return [m.select(better, x, state[0]), m.select(better, line.at, state[1])]

            found = line.state(name, [identity(combine, wide), index(0)], step)
        return m.cast(found, dtype_of(node.results[k]))

    return rule


def _logcumsumexp(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    result = dtype_of(node.result)
    line = Line(values, node, k, c, accumulator(result))
    m = line.m
    if line.variable is not None:
        total = line.state("logcumsumexp", [identity(Combine.MAX, line.dtype)],
                           lambda s, x: [logaddexp(m, s[0], x)])
        return m.cast(total, result)
    largest = line.upto(Combine.MAX, lambda x, at: x, line.dtype)
    shift = m.select(m("isinf", largest), 0.0, largest)
    total = line.upto(Combine.SUM, lambda x, at: m("exp", m.sub(x, shift)), line.dtype)
    return m.cast(m.add(m("log", total), shift), result)


RULES: dict[str, Rule] = {
    "aten.cumsum.default": _running(Combine.SUM, "cumsum"),
    "aten.cumprod.default": _running(Combine.PROD, "cumprod"),
    "aten.cummax.default": _extremum(Combine.MAX, "cummax"),
    "aten.cummin.default": _extremum(Combine.MIN, "cummin"),
    "aten.logcumsumexp.default": _logcumsumexp,
}
