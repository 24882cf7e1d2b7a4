"""Rows of held tensors, some at a time: what stands before the native loop, and its head for runs step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from monograph import compat
from monograph.ir.types import TensorType
from monograph.runtime.frame import Frame
from monograph.runtime.held import numbers
from monograph.runtime.program import Program, RowsNext, RowsStart

__all__ = ["next_rows", "start"]


def start(program: Program, number: int, step: RowsStart) -> Callable[[Frame, list[Any], list[Any]], int]:
    """Make results, set pointers and counters."""
    made = []
    for slot, word in step.results:
        kind = program.slots[slot].type
        assert isinstance(kind, TensorType), kind
        made.append((program.slots[slot].position, word, kind.shape, kind.dtype))

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        with compat.no_torch_function(), compat.kernels_only():
            for slot, word in step.given:
                _point(frame, word, frame.value(slot, tensors, outputs).contiguous())
            for position, word, shape, dtype in made:
                result = torch.empty(numbers(shape, frame.symbols), dtype=dtype, device="cpu")
                frame.held[position] = result
                _point(frame, word, result)
        size = numbers(step.size, frame.symbols)
        left = size
        for rows, counter in step.chunks:
            at = frame.row_word(counter)
            frame.words[at] = 0
            frame.words[at + 1] = left if rows <= left else 0
            if rows <= left:
                left = 0
        return number + 1

    return perform


def _point(frame: Frame, word: int, tensor: torch.Tensor) -> None:
    frame.rows[word] = tensor
    at = frame.row_word(word)
    frame.words[at] = frame.words[at + 1] = tensor.data_ptr()


def next_rows(number: int, step: RowsNext) -> Callable[[Frame, list[Any], list[Any]], int]:
    """The head of the loop, as the step runner has it."""

    def perform(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        words, at = frame.words, frame.row_word(step.counter)
        done, every = words[at], words[at + 1]
        if done >= every:
            return step.target
        row = min(done, every - step.rows)
        words[at] = done + step.rows
        for word, size in step.pointers:
            pointer = frame.row_word(word)
            words[pointer] = words[pointer + 1] + row * size
        return number + 1

    return perform
