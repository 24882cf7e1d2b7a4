"""Sizes of what branches leave that differ, or that one path alone knows: symbols that the statement tells.

    then: f32[n]         otherwise: f32[m]      ->  f32[v1]
    then: i64[v0, 2]     otherwise: nothing     ->  i64[v1, 2]      without elements where `otherwise` ran

What they are in this call is found by running the branch that this call takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from monograph import compat
from monograph.capture.layout import Layout, contiguous_strides, larger
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.sizes import declare
from monograph.ir import symbolic
from monograph.ir.graph import Value
from monograph.ir.symbolic import Dim, Symbol, free_symbols, known_equal, substitute
from monograph.ir.types import TensorType, Type

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["SHARED", "Differing"]

SHARED = "a tensor that may be the same as another one after a branch is written: followed, or who knows where"


class Differing:
    """Of the results of a statement with two `bodies`; `test` is true where the first ran."""

    def __init__(self, tracer: Tracer, start: Start, bodies: tuple[Body, Body], test: Value,
                 slot: Callable[[Value, Value, Callable[[Value], None], Type | None], None]) -> None:
        self.tracer = tracer
        self.start = start
        self.bodies = bodies
        self.test = test
        self.slot = slot
        self.symbols: dict[tuple[Dim, Dim], Symbol] = {}       # by the size on each path

    def local(self, sizes: Sequence[Dim]) -> set[str]:
        """The symbols in them that only a branch knows."""
        return (self.tracer.sizes.local - self.start.local) & set().union(*map(free_symbols, sizes))

    def alike(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether these are sizes that are one and the same on both paths, and known outside."""
        return tuple(a) == tuple(b) and not self.local(a)

    def tensor(self, at: Layout, a: Value, bt: Layout, b: Value, *, own: bool) -> torch.Tensor:
        """What is `a`, at layout `at`, on one path and `b` on the other. Who writes it writes no other tensor if it is
        its `own`, else is refused."""
        layout, tracer = self.layout(at, bt), self.tracer
        with compat.plain_torch():
            made: torch.Tensor = tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        frozen = None if own else self.start.frozen(SHARED)
        self.slot(a, b, lambda value: tracer.add_result(made, value, frozen), TensorType(at.dtype, layout.key[0]))
        return made

    def one_sided(self, layout: Layout, value: Value, side: int) -> torch.Tensor:
        """What one path alone leaves."""
        sizes = [*map(self.tracer.sizes.size, self.without(layout.key[0]))]
        strides = contiguous_strides([sizes[dim] for dim in layout.order()])
        other = Layout(sizes, [strides[layout.order().index(dim)] for dim in range(len(sizes))], 0, layout.dtype)
        with self.start.recording(self.bodies[1 - side]):
            none = self.tracer.record.full(sizes, 0, layout.dtype)
        if side == 0:
            return self.tensor(layout, value, other, none, own=False)
        return self.tensor(other, none, layout, value, own=False)

    def without(self, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The sizes on the path that makes nothing of these."""
        none = dict.fromkeys(self.local(sizes), 0)
        return tuple(substitute(size, none) for size in sizes)

    def layout(self, a: Layout, b: Layout) -> Layout:
        """Of a tensor that lies as `a` on one path and as `b` on the other, in a storage of its own."""
        order = a.order()
        if a.conj or a.neg or b.conj or b.neg or not (_is_packed(a, order) and _is_packed(b, order)):
            raise Unmergeable("a tensor of another size on each path is a view or lies in another order")
        sizes = [self.tracer.sizes.size(x if self.alike((x,), (y,)) else self._symbol(x, y))
                 for x, y in zip(a.key[0], b.key[0], strict=True)]
        packed = contiguous_strides([sizes[dim] for dim in order])
        return Layout(sizes, [packed[order.index(dim)] for dim in range(len(sizes))], 0, a.dtype)

    def _symbol(self, x: Dim, y: Dim) -> Symbol:
        found = self.symbols.get((x, y))
        if found is not None:
            return found
        tracer, sizes = self.tracer, self.tracer.sizes
        if sizes.numeric is None or not tracer.in_region and sizes.fixed(self.start.loc):
            raise Unmergeable("the size of what a branch leaves depends on values in it")
        symbol = self.symbols[x, y] = declare(tracer)
        if tracer.in_region:
            sizes.tell_inside(symbol)
            self.start.local.add(symbol.name)
        else:
            ran, numbers = tracer.paths.taken(self.test, *(body.graph for body in self.bodies))
            sizes.tell(symbol, symbolic.evaluate(x if ran else y, numbers), self.start.loc)
        return symbol


def _is_packed(layout: Layout, order: Sequence[int]) -> bool:
    """Whether a tensor has no gaps, its dims being in `order`, outermost first."""
    expected = empty = 1         # torch counts a size of 0 as 1
    for dim in reversed(order):
        size, step = layout.key[0][dim], layout.key[1][dim]
        if size == 1:
            continue
        if not (known_equal(step, expected) or known_equal(step, empty)):
            return False
        expected, empty = expected * size, empty * (max(size, 1) if isinstance(size, int) else larger(size, 1))
    return True
