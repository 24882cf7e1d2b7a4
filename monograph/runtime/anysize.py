"""What stands before kernels that take sizes: the numbers they need, their results, and where the rest lies.

What follows from the sizes alone is computed once for each set of them and remembered. Where values tell some of
them, memory is made for `limits` on these, which grow with what was seen, and the numbers are left to a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from monograph import compat
from monograph.ir import symbolic
from monograph.ir.placement import Block, place
from monograph.ir.symbolic import Expr, Symbol
from monograph.ir.types import TensorType
from monograph.runtime.early import symbols_of
from monograph.runtime.frame import Frame
from monograph.runtime.held import REMEMBERED, numbers, row_major
from monograph.runtime.program import ROOM, AnySize, Program

__all__ = ["Known", "Limits", "Start"]

LEAST = 64          # of a limit
MANY = 1 << 14      # beyond this it grows by less than to the double
Limits: TypeAlias = "dict[str, int]"        # the most that symbols told by values may be, for all calls of a program


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """What follows from one set of sizes: numbers for words, offsets of blocks, bytes of all blocks, types of results,
    bytes that given values need beyond their own, limits by word."""

    sizes: np.ndarray
    offsets: np.ndarray
    bytes: int
    results: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    rooms: dict[int, int]
    limits: dict[int, int]


class Start:
    """Makes results, sets pointers and numbers."""

    def __init__(self, program: Program, step: AnySize, limits: Limits) -> None:
        self.program, self.step, self.limits = program, step, limits
        self.told = frozenset(name for name, _ in step.limits)
        self.names = sorted(symbols_of(program, step) - self.told)
        self.remembered: dict[tuple[int, ...], Known] = {}
        self.blocks = np.array([word for word, *_ in step.blocks], np.int64)
        self.early = [entry for entry in step.sizes if not self._waits(entry[1])]
        self.late = [entry for entry in step.sizes if self._waits(entry[1])]
        self.sizes = np.array([word for word, _ in self.early], np.int64)
        self.types = {program.slots[slot].position: kind for slot, _ in step.results
                      if isinstance(kind := program.slots[slot].type, TensorType)}
        self.loose = {position for position, kind in self.types.items() if any(map(self._waits, kind.shape))}

    def _waits(self, dim: Any) -> bool:
        return isinstance(dim, Expr) and not self.told.isdisjoint(symbolic.free_symbols(dim))

    def known(self, symbols: Mapping[str, Any]) -> Known:
        key = (*[symbols[name] for name in self.names], *[self.limits.get(name, LEAST) for name, _ in self.step.limits])
        found = self.remembered.get(key)
        if found is None:
            if len(self.remembered) >= REMEMBERED:
                self.remembered.clear()
            found = self.remembered[key] = self._known(symbols)
        return found

    def grow(self, symbols: Mapping[str, Any]) -> None:
        """From now on there is memory for as much as this call has, and somewhat more."""
        for name, _ in self.step.limits:
            number = symbols[name]
            if number > self.limits.get(name, LEAST):
                self.limits[name] = 1 << (number - 1).bit_length() if number < MANY else number + number // 8

    def set(self, frame: Frame, tensors: list[Any], outputs: list[Any], known: Known, address: int) -> None:
        """`address`: of so many bytes as are known to be needed."""
        first, words = frame.row_words, frame.words
        if frame.sized.get(id(self.step)) != (known, address):           # nothing else writes to these words
            frame.memory[self.sizes + first] = known.sizes
            frame.memory[self.blocks + first] = known.offsets + address
            for word, limit in known.limits.items():
                words[first + word] = limit
            frame.sized[id(self.step)] = known, address
        for slot, word in self.step.given:
            position = self.program.slots[slot].position
            if position in frame.loose:
                tensor = frame.held[position]
            else:
                tensor = _readable(frame.value(slot, tensors, outputs), known.rooms.get(word, 0))
            frame.rows[word] = tensor
            words[first + word] = tensor.data_ptr()
        for position, word, shape, strides, dtype in known.results:
            if position in self.loose:
                result = frame.held[position] = frame.rows[word] = _with_memory(shape, strides, dtype)
                frame.loose[position] = self.types[position]
            else:
                result = compat.empty_strided_cpu(shape, strides, dtype)
                frame.held[position] = frame.made[position] = frame.rows[word] = result
            words[first + word] = result.data_ptr()

    def finish(self, frame: Frame) -> None:
        """The numbers that wait for a value."""
        for word, dim in self.late:
            frame.words[frame.row_words + word] = _number(dim, frame.symbols)

    def _known(self, symbols: Mapping[str, Any]) -> Known:
        program, step = self.program, self.step
        most = dict(symbols)
        most.update((name, Symbol(name, 0, self.limits.get(name, LEAST))) for name in self.told)

        def upper(dim: Any) -> int:
            return _upper(dim, most)

        blocks = [Block(upper(size), first, last) for _, size, first, last in step.blocks]
        margin = ROOM * max((upper(size) for size in step.margins), default=0)
        needed = place(blocks) + margin
        results = []
        for slot, word in step.results:
            kind = program.slots[slot].type
            assert isinstance(kind, TensorType), kind
            shape = tuple(map(upper, kind.shape))
            results.append((program.slots[slot].position, word, shape, row_major(shape), kind.dtype))
        rooms: dict[int, int] = {}
        for word, rows, row_bytes in step.rooms:
            if self._waits(rows) or numbers(rows, symbols) < ROOM:
                rooms[word] = max(rooms.get(word, 0), ROOM * upper(row_bytes))
        return Known(
            np.array([_number(dim, symbols) for _, dim in self.early], np.int64),
            np.array([block.offset for block in blocks], np.int64), needed, tuple(results), rooms,
            {word: self.limits.get(name, LEAST) for name, word in step.limits},
        )


def _number(dim: Any, symbols: Mapping[str, Any]) -> int:
    """A size; what is divided by no elements is asked for by nobody."""
    try:
        found: int = numbers(dim, symbols)
    except ZeroDivisionError:
        return 0
    return found


def _upper(dim: Any, symbols: Mapping[str, Any]) -> int:
    """The most that an expression may be."""
    if not isinstance(dim, Expr):
        return int(dim)
    most = symbolic.bounds(symbolic.substitute(dim, symbols))[1]
    assert most is not None, dim
    return max(most, 0)


def _readable(tensor: torch.Tensor, more: int) -> torch.Tensor:
    """A tensor as kernels read it: contiguous, with memory of so many bytes behind it, and with some though it is
    empty."""
    if not tensor.is_contiguous():
        with compat.no_torch_function(), compat.kernels_only():
            tensor = tensor.contiguous()
    if not tensor.numel():
        more += tensor.element_size() * math.prod(max(size, 1) for size in tensor.shape)
    return _with_room(tensor, more) if more else tensor


def _with_memory(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A result that is too large, with room for the tiles that read past its end."""
    count = math.prod(shape)
    room = max((max(ROOM - size, 0) * math.prod(shape[at + 1:]) for at, size in enumerate(shape)), default=0)
    memory = compat.empty_strided_cpu((count + room,), (1,), dtype)
    return memory.as_strided(shape, strides)


def _with_room(tensor: torch.Tensor, more: int) -> torch.Tensor:
    """A copy of a contiguous tensor, with memory of so many bytes behind it."""
    count = tensor.numel()
    memory = compat.empty_strided_cpu((count + -(-more // tensor.element_size()),), (1,), tensor.dtype)
    with compat.no_torch_function(), compat.kernels_only():
        memory[:count].copy_(tensor.view(-1))
    return memory
