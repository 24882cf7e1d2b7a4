"""What stands before kernels that take sizes: the numbers they need, their results, and where the rest lies.

What follows from the sizes alone is computed once for each set of them and remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from monograph import compat
from monograph.ir.placement import Block, place
from monograph.ir.types import TensorType
from monograph.runtime.early import symbols_of
from monograph.runtime.frame import Frame
from monograph.runtime.held import REMEMBERED, numbers
from monograph.runtime.program import ROOM, AnySize, Program
from monograph.runtime.rows import row_major

__all__ = ["Known", "Start"]


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """What follows from one set of sizes: numbers for words, offsets of blocks, bytes of all blocks, types of results,
    bytes that given values need beyond their own."""

    sizes: np.ndarray
    offsets: np.ndarray
    bytes: int
    results: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    rooms: dict[int, int]


class Start:
    """Makes results, sets pointers and numbers."""

    def __init__(self, program: Program, step: AnySize) -> None:
        self.program, self.step = program, step
        self.names = sorted(symbols_of(program, step))
        self.remembered: dict[tuple[int, ...], Known] = {}
        self.sizes = np.array([word for word, _ in step.sizes], np.int64)
        self.blocks = np.array([word for word, *_ in step.blocks], np.int64)

    def known(self, symbols: Mapping[str, Any]) -> Known:
        key = tuple([symbols[name] for name in self.names])
        found = self.remembered.get(key)
        if found is None:
            if len(self.remembered) >= REMEMBERED:
                self.remembered.clear()
            found = self.remembered[key] = _known(self.program, self.step, symbols)
        return found

    def set(self, frame: Frame, tensors: list[Any], outputs: list[Any], known: Known, address: int) -> None:
        """`address`: of so many bytes as are known to be needed."""
        first, words = frame.row_words, frame.words
        if frame.sized.get(self) != (known, address):           # nothing else writes to these words
            frame.memory[self.sizes + first] = known.sizes
            frame.memory[self.blocks + first] = known.offsets + address
            frame.sized[self] = known, address
        for slot, word in self.step.given:
            tensor = frame.value(slot, tensors, outputs)
            if not tensor.is_contiguous():
                with compat.no_torch_function(), compat.kernels_only():
                    tensor = tensor.contiguous()
            if word in known.rooms:
                tensor = _with_room(tensor, known.rooms[word])
            frame.rows[word] = tensor
            words[first + word] = tensor.data_ptr()
        for position, word, shape, strides, dtype in known.results:
            result = compat.empty_strided_cpu(shape, strides, dtype)
            frame.held[position] = frame.made[position] = frame.rows[word] = result
            words[first + word] = result.data_ptr()


def _known(program: Program, step: AnySize, symbols: Mapping[str, Any]) -> Known:
    blocks = [Block(numbers(size, symbols), first, last) for _, size, first, last in step.blocks]
    margin = ROOM * max((numbers(size, symbols) for size in step.margins), default=0)
    needed = place(blocks) + margin
    results = []
    for slot, word in step.results:
        kind = program.slots[slot].type
        assert isinstance(kind, TensorType), kind
        shape = numbers(kind.shape, symbols)
        results.append((program.slots[slot].position, word, shape, row_major(shape), kind.dtype))
    rooms: dict[int, int] = {}
    for word, rows, row_bytes in step.rooms:
        if numbers(rows, symbols) < ROOM:
            rooms[word] = max(rooms.get(word, 0), ROOM * numbers(row_bytes, symbols))
    return Known(
        np.array([numbers(dim, symbols) for _, dim in step.sizes], np.int64),
        np.array([block.offset for block in blocks], np.int64), needed, tuple(results), rooms,
    )


def _with_room(tensor: torch.Tensor, more: int) -> torch.Tensor:
    """A copy of a contiguous tensor, with memory of so many bytes behind it."""
    count = tensor.numel()
    memory = compat.empty_strided_cpu((count + -(-more // tensor.element_size()),), (1,), tensor.dtype)
    with compat.no_torch_function(), compat.kernels_only():
        memory[:count].copy_(tensor.view(-1))
    return memory
