"""`view` and `reshape` of tensors with sizes that values decide.

torch compares sizes one by one until it knows which dims make up which, and keeps every answer. Here formulas tell;
where they do not, what holds in this call becomes a condition, of runs of dims that are as long as can be:

    [h, w, 3] strides [w, 1, h*w] -> [h//2, 2, w//2, 2, 3]    for 4*(h//2)*(w//2) == h*w
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.dims import dims
from monograph.capture.layout import contiguous_strides
from monograph.ir import symbolic
from monograph.ir.symbolic import Dim, Symbol

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["reshape", "viewed"]

aten = torch.ops.aten


def viewed(tracer: Tracer, x: torch.Tensor, size: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """Sizes and strides of `x.view(size)`; None where there is no such view, or none of these sizes is told."""
    return _Reshape(tracer, x, size).view() if _is_told(tracer, x, size) else None


def reshape(tracer: Tracer, x: torch.Tensor, size: Sequence[Any]) -> Any:
    """`x.reshape(size)`, a view or a copy; NotImplemented where torch shall tell."""
    if not _is_told(tracer, x, size):
        return NotImplemented
    made = _Reshape(tracer, x, size)
    if made.size is None:
        return NotImplemented
    tracer.record.loc = tracer.where()
    if made.view() is None:
        if made.depends:
            return NotImplemented
        x = tracer.again(aten.clone.default, (x,), {"memory_format": torch.contiguous_format})
    return tracer.again(aten.view.default, (x, [*map(tracer.sizes.size, made.size)]), {})


def _is_told(tracer: Tracer, x: torch.Tensor, size: Sequence[Any]) -> bool:
    return bool(tracer.sizes.told) and any(map(tracer.sizes.is_told, (*x.shape, *size)))


class _Reshape:
    """`size`: without -1, None where it does not fit. `depends`: whether there is a view depends on a size being 0 or
    1."""

    def __init__(self, tracer: Tracer, x: torch.Tensor, size: Sequence[Any]) -> None:
        self.tracer = tracer
        self.shape, self.strides, self.depends = dims(x.shape), dims(x.stride()), False
        self.size = self._sizes(dims(size))

    def number(self, dim: Dim) -> int:
        return symbolic.evaluate(dim, self.tracer.sizes.numbers)

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes are the same in this call, and so in others of this program."""
        size = self.tracer.sizes.size
        return symbolic.statically_equal(a, b) or bool(size(a) == size(b))

    def _sizes(self, size: Sequence[Dim]) -> list[Dim] | None:
        whole, given = symbolic.product(self.shape), [each for each in size if each != -1]
        rest = symbolic.product(given)
        if any(isinstance(each, int) and each < 0 for each in given) or not self.number(rest):
            return None
        if len(given) == len(size):
            with self.tracer.sizes.asserted():
                return given if self.equal(whole, rest) else None
        count = whole // rest
        if len(given) != len(size) - 1:
            return None
        if isinstance(rest, int) and self.number(whole) % rest == 0:
            with self.tracer.sizes.asserted():
                return self._filled(size, count) if self.equal(whole, count * rest) else None
        if not symbolic.statically_equal(count * rest, whole):
            count = self.number(whole) // self.number(rest)
            if not count or not self.equal(whole, count * rest):
                return None
        return self._filled(size, count)

    def _filled(self, size: Sequence[Dim], count: Dim) -> list[Dim]:
        return [count if isinstance(each, int) and each == -1 else each for each in size]

    def view(self) -> tuple[list[Any], list[Any]] | None:
        """As eager finds it: runs of dims that lie in memory as one are made of runs of new ones."""
        size = self.tracer.sizes.size
        if self.size is None:
            return None
        if self.strides == dims(contiguous_strides(self.shape)):
            sizes = [*map(size, self.size)]
            return sizes, [*contiguous_strides(sizes)]
        if not self.shape or not self.number(symbolic.product(self.shape)):
            self.depends = True
            return None
        steps: list[Dim] = [0] * len(self.size)
        end, count, step = len(steps), 1, self.strides[-1]
        for axis in reversed(range(len(self.shape))):
            count = count * self.shape[axis]
            if axis and (self._is_one(axis - 1) or self.equal(self.strides[axis - 1], count * step)):
                continue
            start = self._run(end, count, bool(axis))
            if start is None:
                self.depends = any(self.number(each) == 1 or self.equal(each, 1)
                                   for each in self.shape if not isinstance(each, int))
                return None
            for place in reversed(range(start, end)):
                steps[place], step = step, step * self.size[place]
            if axis:
                end, count, step = start, 1, self.strides[axis - 1]
        return [*map(size, self.size)], [*map(size, steps)]

    def _is_one(self, axis: int) -> bool:
        """A number that values tell is left alone: the program would be for that number."""
        size = self.shape[axis]
        return size == 1 or self.number(size) == 1 and not isinstance(size, Symbol) and self.equal(size, 1)

    def _run(self, end: int, count: Dim, more: bool) -> int | None:
        """Where the new dims begin that end at `end` and are `count` together; all that are left unless there are
        `more` runs."""
        assert self.size is not None
        starts = range(end + 1) if more else range(1)
        products = [(start, symbolic.product(self.size[start:end])) for start in starts]
        sure = next((start for start, made in products if symbolic.statically_equal(made, count)), None)
        if sure is not None:
            return sure
        return next((start for start, made in products if self.number(made) == self.number(count)
                     and self.equal(made, count)), None)
