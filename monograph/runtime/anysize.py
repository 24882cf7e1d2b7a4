"""What stands before kernels that take sizes: the numbers they need, their results, and where the rest lies.

What follows from the sizes alone is computed once for each set of them and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from monograph import compat
from monograph.ir import symbolic
from monograph.ir.placement import Block, place
from monograph.ir.symbolic import Expr
from monograph.ir.types import TensorType
from monograph.runtime.frame import Frame
from monograph.runtime.held import numbers
from monograph.runtime.program import ROOM, AnySize, Program
from monograph.runtime.rows import row_major

__all__ = ["start"]

Perform: TypeAlias = Callable[[Frame, list[Any], list[Any]], int]
REMEMBERED = 256        # sets of sizes


@dataclass(frozen=True, slots=True)
class _Known:
    """What follows from one set of sizes: numbers for words, offsets of blocks, bytes of all blocks, types of results,
    bytes that given values need beyond their own."""

    sizes: np.ndarray
    offsets: np.ndarray
    bytes: int
    results: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    rooms: dict[int, int]


def start(program: Program, number: int, step: AnySize) -> Perform:
    """Make results, set pointers and numbers."""
    names = _names(program, step)
    known: dict[tuple[int, ...], _Known] = {}
    words = np.array([word for word, _ in step.sizes], np.int64)
    blocks = np.array([word for word, *_ in step.blocks], np.int64)

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        symbols, first, memory = frame.symbols, frame.row_words, frame.memory
        key = tuple([symbols[name] for name in names])
        found = known.get(key)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[key] = _known(program, step, symbols)
        memory[words + first] = found.sizes
        memory[blocks + first] = found.offsets + frame.room(found.bytes)
        for slot, word in step.given:
            tensor = frame.value(slot, tensors, outputs)
            if not tensor.is_contiguous():
                with compat.no_torch_function(), compat.kernels_only():
                    tensor = tensor.contiguous()
            if word in found.rooms:
                tensor = _with_room(tensor, found.rooms[word])
            frame.rows[word] = tensor
            memory[first + word] = tensor.data_ptr()
        for position, word, shape, strides, dtype in found.results:
            result = compat.empty_strided_cpu(shape, strides, dtype)
            frame.held[position] = frame.rows[word] = result
            frame.own.add(compat.storage_address(result))
            memory[first + word] = result.data_ptr()
        return number + 1

    return perform


def _names(program: Program, step: AnySize) -> list[str]:
    """The symbols it depends on."""
    types = [program.slots[slot].type for slot, _ in step.results]
    dims: list[Any] = [dim for type in types if isinstance(type, TensorType) for dim in type.shape]
    dims += [dim for _, dim in step.sizes]
    dims += [size for _, size, _, _ in step.blocks] + list(step.margins)
    dims += [dim for _, *pair in step.rooms for dim in pair]
    return sorted({name for dim in dims if isinstance(dim, Expr) for name in symbolic.free_symbols(dim)})


def _known(program: Program, step: AnySize, symbols: Mapping[str, Any]) -> _Known:
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
    return _Known(
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
