"""The value of any tensor of an item at any coordinates, as one expression ("define by run").

    Values.at(value, coordinates)    an expression of the tensor's own dtype; coordinates are i64 expressions
    Values.bind(value, fn)           from now on `at` asks `fn(coordinates)` for it
    Values.store(value, coordinates, expr)    a Store into the value's buffer, through its layout

What each op computes is said by rules, one table per family (`lower_pointwise`, `lower_view`, ...):

    Rule = (values, node, k, coordinates) -> Expr        result k of the node

`where(condition)` puts everything built inside it under a mask: loads that might leave their buffer become masked,
checks only count where the condition holds.
"""

from __future__ import annotations

import contextlib
import itertools
import math as pymath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import torch

from monograph.errors import CompileError
from monograph.ir.graph import Node, Value
from monograph.ir.sized import is_sized
from monograph.ir.types import ScalarType, TensorType
from monograph.loops.affine import Affine, strides_of
from monograph.loops.lower_terms import Free, fold_op, identity, reduce
from monograph.loops.nodes import Buffer, Check, Combine, Const, Expr, Store, Var, const, index, load, var
from monograph.schedule.kernel import Schedule
from monograph.source import SourceLoc

__all__ = ["Coordinates", "Rule", "Values", "dtype_of", "shape_of"]

Coordinates: TypeAlias = tuple[Expr, ...]
Rule: TypeAlias = "Callable[[Values, Node, int, Coordinates], Expr]"
UNROLLED = 9         # a 3x3 window
SCALARS = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}


class ItemLike(Protocol):
    """What lowering needs of an item of the schedule."""

    @property
    def nodes(self) -> list[Node]: ...
    inputs: list[Value]
    outputs: list[Value]


def shape_of(value: Value) -> tuple[int, ...]:
    """The static shape; a number has none."""
    if isinstance(value.type, ScalarType):
        return ()
    return value.type.shape     # type: ignore[return-value]


def dtype_of(value: Value) -> torch.dtype:
    return SCALARS[value.type.kind] if isinstance(value.type, ScalarType) else value.type.dtype


class Values:
    """Composes values of one item; owns the kernel's argument buffers."""

    rules: Mapping[str, Rule] = {}
    ordered = True          # loops may carry scans

    def __init__(self, item: ItemLike, schedule: Schedule) -> None:
        self.schedule = schedule
        self.affine = Affine()
        self.free = Free()
        self.checks: list[Check] = []
        self.mask: Expr | None = None
        self.inside = set(item.nodes)
        self.sources = {value: self._buffer(value, f"in{i}") for i, value in enumerate(item.inputs)}
        self.targets = {value: self._buffer(value, f"out{i}") for i, value in enumerate(item.outputs)}
        self._bound: dict[Value, Callable[[Coordinates], Expr]] = {}
        self._memo: dict[tuple[Any, ...], Expr] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    # Buffers.

    def strides(self, value: Value) -> tuple[int, ...]:
        """Strides of the memory a materialised value lives in."""
        layout = self.schedule.layouts.get(value)
        if layout is not None:
            return tuple(layout.strides)
        if isinstance(value.type, TensorType) and value.type.strides is not None:
            return value.type.strides       # type: ignore[return-value]
        return strides_of(shape_of(value))

    def _buffer(self, value: Value, name: str) -> Buffer:
        shape = shape_of(value)
        extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, self.strides(value)))
        return Buffer(name, dtype_of(value), 0 if 0 in shape else extent)

    def arguments(self) -> list[Buffer]:
        """Inputs, outputs, and the error record when there are checks."""
        error = [Buffer("error", torch.int64, 8, "error")] if self.checks else []
        return [*self.sources.values(), *self.targets.values(), *error]

    # Variables.

    def variable(self, extent: int, avoid: frozenset[Var] = frozenset()) -> Var:
        """A variable of range [0, extent) outside of `avoid`; the same one for the same question.

        Sharing names between the loops of outputs and reductions makes equal work equal expressions.
        """
        for n in itertools.count():
            candidate = var(f"i{extent}_{n}" if n else f"i{extent}")
            if candidate not in avoid:
                self.affine.extents[candidate] = extent
                return candidate
        raise AssertionError

    def fold(
        self, combine: Combine, extents: Sequence[int], around: Sequence[Expr], body: Callable[[Coordinates], Expr],
        dtype: torch.dtype,
    ) -> Expr:
        """The fold of `body(point)` over all points of a box; `around`: the coordinates it happens at.

        A small box becomes one expression.
        """
        total = pymath.prod(extents)
        if total == 0:
            return identity(combine, dtype)
        if not is_sized(total) and total <= UNROLLED:
            return self._unrolled(combine, extents, body, dtype)
        avoid = frozenset[Var]().union(*(self.free(c) for c in around))
        if self.mask is not None:
            avoid |= self.free(self.mask)
        point: list[Expr] = []
        variables: list[Var] = []
        for extent in extents:
            if extent == 1:
                point.append(index(0))
                continue
            variables.append(self.variable(extent, avoid.union(variables)))
            point.append(variables[-1])
        return reduce(combine, tuple(variables), body(tuple(point)))

    def _unrolled(
        self, combine: Combine, extents: Sequence[int], body: Callable[[Coordinates], Expr], dtype: torch.dtype
    ) -> Expr:
        neutral = identity(combine, dtype)
        result: Expr = neutral
        from_zero = combine is Combine.SUM and dtype.is_floating_point      # a sum of -0.0 alone is 0.0
        for point in itertools.product(*(range(extent) for extent in extents)):
            element = body(tuple(index(i) for i in point))
            if element is not neutral:          # what lies in the padding of a window
                first = result is neutral and not from_zero
                result = element if first else fold_op(self.affine, combine, result, element)
        return result

    def domain(self, variable: Var, extent: int) -> Var:
        """Tell the range [0, extent) of a variable made elsewhere."""
        self.affine.extents[variable] = extent
        return variable

    def number(self, *key: object) -> int:
        """A number for `key`, the same for equal keys."""
        return self._numbers.setdefault(key, len(self._numbers))

    # Values.

    def bind(self, value: Value, fn: Callable[[Coordinates], Expr]) -> None:
        """Use `fn(coordinates)` as the value from now on."""
        self._bound[value] = fn
        self._memo.clear()

    def at(self, value: Value, coordinates: Sequence[Expr]) -> Expr:
        """The element of `value` at `coordinates`, one i64 expression per dim."""
        point = tuple(coordinates)
        key = (value, point, self.mask)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._compute(value, point)
        return found

    def _compute(self, value: Value, point: Coordinates) -> Expr:
        bound = self._bound.get(value)
        if bound is not None:
            return bound(point)
        node = value.node
        if node is not None and node in self.inside:
            rule = self.rules.get(node.op.name)
            if rule is None:
                raise CompileError(f"no kernel for {node.op.name}", loc=node.loc)
            return rule(self, node, value.index, point)
        return self.load(self.sources[value], self.affine.dot(point, self.strides(value)))

    def load(self, buffer: Buffer, position: Expr, loc: SourceLoc | None = None) -> Expr:
        """buffer[position], masked when the position may be outside."""
        if buffer.size == 0:
            return const(False if buffer.dtype is torch.bool else 0, buffer.dtype)
        if self.mask is None or self.affine.inside(position, buffer.size):
            return load(buffer, position, loc=loc)
        if isinstance(self.mask, Const) and not self.mask.value:
            return const(False if buffer.dtype is torch.bool else 0, buffer.dtype)
        return load(buffer, position, self.mask, loc=loc)

    def store(self, value: Value, coordinates: Sequence[Expr], expr: Expr, mask: Expr | None = None) -> Store:
        """Write one element of an output through its layout."""
        assert expr.dtype is dtype_of(value), (expr.dtype, value)
        loc = value.node.loc if value.node is not None else None
        return Store(self.targets[value], self.affine.dot(coordinates, self.strides(value)), expr, mask, loc)

    # Conditions.

    @contextlib.contextmanager
    def where(self, condition: Expr) -> Iterator[None]:
        """Inside, expressions matter only where `condition` holds."""
        outer = self.mask
        self.mask = condition if outer is None else self.affine.op("and", outer, condition, dtype=torch.bool)
        if isinstance(self.mask, Const) and self.mask.value:
            self.mask = None
        try:
            yield
        finally:
            self.mask = outer

    def choose(self, condition: Expr, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Expr:
        """`then()` where the condition holds, `otherwise()` elsewhere; each loads only where it counts."""
        if isinstance(condition, Const):
            return then() if condition.value else otherwise()
        with self.where(condition):
            yes = then()
        with self.where(self.affine.op("not", condition, dtype=torch.bool)):
            no = otherwise()
        return self.affine.op("select", condition, yes, no, dtype=yes.dtype)

    def check(self, condition: Expr, exception: str, message: str, values: Sequence[Expr], node: Node) -> None:
        """The program raises where `condition` is false (and counts)."""
        if self.mask is not None:
            ignored = self.affine.op("not", self.mask, dtype=torch.bool)
            condition = self.affine.op("or", ignored, condition, dtype=torch.bool)
        if isinstance(condition, Const) and condition.value:
            return
        if any(check.condition is condition for check in self.checks):
            return
        self.checks.append(
            Check(condition, len(self.checks) + 1, tuple(values), node.loc, exception=exception, message=message)
        )

    def below(self, expr: Expr, limit: int) -> Expr:
        """expr < limit"""
        return self.affine.op("lt", expr, index(limit), dtype=torch.bool)
