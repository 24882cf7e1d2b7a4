"""Rows of held tensors, some at a time: what stands before the native loop, and its head for runs step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from monograph import compat
from monograph.ir.types import TensorType
from monograph.runtime import failure
from monograph.runtime.frame import Frame
from monograph.runtime.held import remembered, row_major
from monograph.runtime.program import ROOM, Point, Program, RowAt, RowsNext, RowsStart

__all__ = ["next_rows", "point", "row_at", "start"]

Perform: TypeAlias = Callable[[Frame, list[Any], list[Any]], int]


def start(program: Program, number: int, step: RowsStart) -> Callable[[Frame, list[Any], list[Any]], int]:
    """Make results, set pointers and counters."""
    made = []
    for slot, word in step.results:
        kind = program.slots[slot].type
        assert isinstance(kind, TensorType), kind
        made.append((program.slots[slot].position, word, remembered(kind.shape), kind.dtype))
    size = remembered((step.size,))

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        words, first, symbols = frame.words, frame.row_words, frame.symbols
        left, = size(symbols)
        for slot, word in step.given:
            tensor = frame.value(slot, tensors, outputs)
            if not tensor.is_contiguous():
                with compat.no_torch_function(), compat.kernels_only():
                    tensor = tensor.contiguous()
            if left < ROOM and word in step.roomy:
                tensor = _with_room(tensor, left)
            frame.rows[word] = tensor
            words[first + word + 1] = tensor.data_ptr()
        for position, word, sizes, dtype in made:
            shape = sizes(symbols)
            result = compat.empty_strided_cpu(shape, row_major(shape), dtype)
            frame.held[position] = frame.made[position] = frame.rows[word] = result
            words[first + word + 1] = result.data_ptr()
        for most, counter, fewest in step.chunks:
            words[first + counter] = 0
            words[first + counter + 1] = left if fewest <= left else 0
            words[first + counter + 2] = most if fewest == most else -(-left // max(1, -(-left // most)))
            if fewest <= left:
                left = 0
        return number + 1

    return perform


def _with_room(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """A copy of a tensor of `rows` rows in memory of `ROOM` rows."""
    count = tensor.numel()
    memory = compat.empty_strided_cpu((count // max(rows, 1) * ROOM,), (1,), tensor.dtype)
    with compat.no_torch_function(), compat.kernels_only():
        memory[:count].copy_(tensor.view(-1))
    return memory


def point(number: int, step: Point) -> Perform:
    """Note where a stack is."""

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        tensor = frame.value(step.slot, tensors, outputs)
        if not tensor.is_contiguous():
            with compat.no_torch_function(), compat.kernels_only():
                tensor = tensor.contiguous()
        for word in (step.word, *step.users):
            frame.rows[word] = tensor
        frame.words[frame.row_words + step.word + 1] = tensor.data_ptr()
        frame.words[frame.row_words + step.counter] = len(tensor)
        return number + 1

    return perform


def row_at(number: int, step: RowAt) -> Perform:
    """One row, or the exception that torch raises where there is none."""

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        words, first = frame.words, frame.row_words
        index, count = int(frame.value(step.index, tensors, outputs)), words[first + step.counter]
        if not -count <= index < count:
            try:
                with compat.no_torch_function(), compat.kernels_only():
                    torch.ops.aten.index.Tensor(frame.rows[step.word], [torch.tensor(index, device="cpu")])
            except IndexError as error:
                failure.point_at(error, step.file, step.line)
                raise
        start = words[first + step.word + 1] = words[first + step.stack + 1]
        words[first + step.word] = start + (index % count) * step.row_bytes
        return number + 1

    return perform


def next_rows(number: int, step: RowsNext) -> Callable[[Frame, list[Any], list[Any]], int]:
    """The head of the loop, as the step runner has it."""

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        words, first = frame.words, frame.row_words
        at = first + step.counter
        done, every, each = words[at], words[at + 1], words[at + 2]
        if done >= every:
            return step.target
        row = min(done, every - each)
        words[at] = done + each
        for word, size in step.pointers:
            words[first + word] = words[first + word + 1] + row * size
        return number + 1

    return perform
