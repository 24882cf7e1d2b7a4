"""Where a tensor lies in its storage. Sizes may be torch's symbols; in the key they are ours.

    Layout ::= (sizes, strides, offset, dtype, conj bit, negative bit)

Two tensors of one storage with equal `key` are the same elements in the same order. The stride of
a dimension of size 1 says nothing and is left out of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from monograph import compat
from monograph.capture.dims import dims, hint, key_of
from monograph.ir.symbolic import Expr, evaluate, known_equal, maximum

__all__ = ["Layout", "channels_last_strides", "compact", "contiguous_strides", "disjoint", "is_empty"]

INT = int
INTS = frozenset({int})


def contiguous_strides(sizes: Any) -> tuple[int, ...]:
    """Row-major strides as torch gives them to a fresh tensor (a size of 0 counts as 1)."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * (max(size, 1) if type(size) is INT else larger(size, 1))
    return tuple(reversed(strides))


def larger(a: Any, b: int) -> Any:
    """The larger of a symbol and a number."""
    return maximum(a, b) if isinstance(a, Expr) else torch.sym_max(a, b)


def channels_last_strides(sizes: Any) -> tuple[int, ...] | None:
    """Strides of a fresh channels-last tensor; None where there is no such format."""
    if len(sizes) not in (4, 5):
        return None
    batch, *space, channels = contiguous_strides((sizes[0], *sizes[2:], sizes[1]))
    return batch, channels, *space


def is_empty(tensor: torch.Tensor) -> bool:
    """Whether a tensor has no elements in any call: sizes that are symbols are not asked for."""
    return any(type(size) is INT and size == 0 for size in tensor.shape)


def disjoint(a: Layout, b: Layout, base: Layout) -> bool:
    """Whether two layouts over a dense `base` surely share no element: as boxes of its dims they do not meet."""
    if not (base.is_static and base.is_dense() and a.dtype == b.dtype == base.dtype):
        return False
    dims = [(step, size) for size, step in base._by_stride()][::-1]
    left, right = _box(a, dims), _box(b, dims)
    if left is None or right is None:
        return False
    return any(p_end <= q_start or q_end <= p_start
               for (p_start, p_end), (q_start, q_end) in zip(left, right, strict=True))


def _box(layout: Layout, dims: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """Start and end along every (stride, size) of the base, outermost first; None when the layout is no box."""
    if not layout.is_static or layout.conj or layout.neg:
        return None
    sizes = {step: size for size, step in zip(layout.sizes, layout.strides, strict=True) if size != 1}
    if len(sizes) != sum(size != 1 for size in layout.sizes) or not set(sizes) <= {step for step, _ in dims}:
        return None
    box, rest = [], layout.offset
    for step, limit in dims:
        start, rest = divmod(rest, step)
        end = start + sizes.get(step, 1)
        if end > limit:               # it runs on into the next row
            return None
        box.append((start, end))
    return box


class Layout:
    """Sizes, strides and offset are in elements of `dtype`, the offset from the start of the storage."""

    __slots__ = ("_key", "conj", "dtype", "is_static", "neg", "offset", "sizes", "strides")

    def __init__(self, sizes: Any, strides: Any, offset: Any, dtype: torch.dtype, conj: bool = False,
                 neg: bool = False) -> None:
        self.sizes = tuple(sizes)
        self.strides = tuple(strides)
        self.offset = offset
        self.dtype = dtype
        self.conj = conj
        self.neg = neg
        self.is_static = INTS.issuperset(map(type, (*self.sizes, *self.strides, offset)))
        self._key = None if self.is_static else self._key_now()       # what is known of symbols changes

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """The layout of a tensor (a fake one, while tracing)."""
        return cls(tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype,
                   tensor.is_conj(), tensor.is_neg())

    @property
    def key(self) -> tuple[Any, ...]:
        if self._key is None:
            self._key = self._key_now()
        return self._key

    def _key_now(self) -> tuple[Any, ...]:
        shape, strides, offset = self.sizes, self.strides, self.offset
        if not self.is_static:
            shape, strides, offset = tuple(map(key_of, shape)), tuple(map(key_of, strides)), key_of(offset)
        if 1 in shape:
            strides = tuple(0 if size == 1 else step for size, step in zip(shape, strides, strict=True))
        return shape, strides, offset, self.dtype, self.conj, self.neg

    @property
    def numbers(self) -> Layout:
        """The layout in this call."""
        if self.is_static:
            return self
        return Layout(map(hint, self.sizes), map(hint, self.strides), hint(self.offset), self.dtype, self.conj,
                      self.neg)

    def evaluated(self, env: Mapping[str, int]) -> Layout:
        """The layout where symbols are what `env` says."""
        sizes, strides, offset = dims(self.sizes), dims(self.strides), key_of(self.offset)
        return Layout((evaluate(size, env) for size in sizes), (evaluate(step, env) for step in strides),
                      evaluate(offset, env), self.dtype, self.conj, self.neg)

    @property
    def whole(self) -> tuple[Any, ...]:
        """All there is to know, to be hashed."""
        if self.is_static:
            return self.sizes, self.strides, self.offset, self.dtype, self.conj, self.neg
        return dims(self.sizes), dims(self.strides), key_of(self.offset), self.dtype, self.conj, self.neg

    @property
    def numel(self) -> Any:
        count = 1
        for size in self.sizes:
            count = count * size
        return count

    @property
    def extent(self) -> Any:
        """One past the last element touched, from the start of the storage."""
        if any(type(size) is INT and size == 0 for size in self.sizes):
            return self.offset
        return self.offset + sum((size - 1) * step for size, step in zip(self.sizes, self.strides, strict=True)) + 1

    def at_zero(self) -> Layout:
        """The same layout at the start of a storage of its own."""
        return Layout(self.sizes, self.strides, 0, self.dtype, self.conj, self.neg)

    def is_dense(self) -> bool:
        """No gap and no overlap, from offset 0: some permutation of a contiguous tensor."""
        if self.conj or self.neg:
            return False
        if not self.is_static:
            return self._is_dense_here()
        if self.offset != 0:
            return False
        if 0 in self.sizes:
            return True
        expected = 1
        for size, step in self._by_stride():
            if step != expected:
                return False
            expected *= size
        return True

    def _is_dense_here(self) -> bool:
        """As `is_dense`, of sizes that are symbols: what is so in this call and not known of all is asked for."""
        shape, steps, offset = self.key[:3]
        if offset != 0 or not self.is_backed:
            return False
        expected: Any = 1
        empty: Any = 1           # as torch counts, for which no size is below 1
        for d in sorted(range(len(shape)), key=lambda d: (hint(self.strides[d]), hint(self.sizes[d]))):
            if shape[d] == 1:
                continue
            if not (known_equal(steps[d], key_of(expected)) or known_equal(steps[d], key_of(empty))) and not (
                    hint(self.strides[d]) == hint(expected) and bool(self.strides[d] == expected)):
                return False
            expected, empty = expected * self.sizes[d], empty * larger(self.sizes[d], 1)
        return True

    @property
    def is_backed(self) -> bool:
        """Known once the sizes of the arguments are."""
        return self.is_static or all(
            type(n) is INT or compat.is_backed(n) for n in (*self.sizes, *self.strides, self.offset))

    def fits(self, base: Layout) -> bool:
        """Whether index arithmetic over `base`, which is dense, reaches all of this."""
        return bool(self.extent <= base.numel)

    @property
    def is_ambiguous(self) -> bool:
        """Row-major or channels-last but for the strides of dims of size 1: torch's ops disagree about results then."""
        if 1 not in self.key[0] or 0 in self.key[0] or not self.is_backed:
            return False
        if not self.is_static:
            return self.numbers.is_ambiguous
        plain, last = contiguous_strides(self.sizes), channels_last_strides(self.sizes)
        if self.strides == plain:
            return False
        return self._lies_by(plain) or (last is not None and self.strides != last and self._lies_by(last))

    def _lies_by(self, strides: tuple[int, ...]) -> bool:
        dims = zip(self.sizes, self.strides, strides, strict=True)
        return all(size == 1 or step == want for size, step, want in dims)

    def order(self) -> list[int]:
        """Dimensions from the outermost to the innermost in memory."""
        return sorted(range(len(self.sizes)), key=lambda d: (-hint(self.strides[d]), hint(self.sizes[d]) == 1))

    def overlaps_itself(self) -> bool:
        """True when two indices surely meet in one element (a stride of 0), as eager's check does."""
        return any(step == 0 and (size > 1 if type(size) is INT else compat.is_backed(size) and bool(size > 1))
                   for size, step in zip(self.sizes, self.key[1], strict=True))

    def is_non_overlapping_and_dense(self) -> bool:
        """As torch's property of that name: like `is_dense`, wherever it starts."""
        return Layout(self.sizes, self.strides, 0, self.dtype).is_dense()

    def _by_stride(self) -> list[tuple[int, int]]:
        pairs = [(size, step) for size, step in zip(self.sizes, self.strides, strict=True) if size != 1]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))

    def __repr__(self) -> str:
        return f"<Layout {list(self.sizes)} strides {list(self.strides)} at {self.offset}, {self.dtype}>"


def compact(layout: Layout) -> Layout:
    """The layout of a storage of its own for what lies at `layout`: the same strides where they leave no gap."""
    packed = Layout(layout.sizes, layout.strides, 0, layout.dtype)
    return packed if packed.is_dense() else Layout(layout.sizes, contiguous_strides(layout.sizes), 0, layout.dtype)
