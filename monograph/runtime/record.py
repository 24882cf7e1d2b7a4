"""What a loop remembers of its rounds: a count, and stacks of carried values.

Stacks of values of known size are blocks of memory that the step runner writes to; when they are full they are made
anew, twice as large. Others are lists of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from monograph import compat
from monograph.runtime.frame import Frame
from monograph.runtime.held import binder
from monograph.runtime.program import Program, Record
from monograph.runtime.validate import span, static

__all__ = ["perform"]

Perform: TypeAlias = Callable[[Frame, list[Any], list[Any]], int]
FIRST_ROOM = 16


def perform(program: Program, number: int, step: Record) -> Perform:
    """The function of one step."""
    work = _blocks(program, step) if step.counter >= 0 else _lists(program, step)
    binds = [(program.slots[slot].position, binder(program.slots[slot].type)) for slot in step.results]

    def run(frame: Frame, tensors: list[Any], outputs: list[Any]) -> int:
        with compat.no_torch_function(), compat.kernels_only():
            work(frame, [frame.value(slot, tensors, outputs) for slot in step.carried])
        if step.action == "finish":
            for position, bind in binds:
                if isinstance(frame.held[position], torch.Tensor):
                    frame.own.add(compat.storage_address(frame.held[position]))
                if bind is not None:
                    bind(frame.held[position], frame.symbols)
        return number + 1

    return run


def _lists(program: Program, step: Record) -> Callable[[Frame, list[Any]], None]:
    trips, *stacks = (program.slots[slot].position for slot in step.results)

    def start(frame: Frame, values: list[Any]) -> None:
        frame.held[trips] = 0
        for stack in stacks:
            frame.held[stack] = []

    def next_round(frame: Frame, values: list[Any]) -> None:
        frame.held[trips] += 1
        for stack, value in zip(stacks, values):
            frame.held[stack].append(value.clone())

    def finish(frame: Frame, values: list[Any]) -> None:
        for stack, value in zip(stacks, values):
            rounds = frame.held[stack]
            frame.held[stack] = torch.stack(rounds) if rounds else value.new_empty((0, *value.shape))

    return {"start": start, "round": next_round, "finish": finish}[step.action]


def _blocks(program: Program, step: Record) -> Callable[[Frame, list[Any]], None]:
    trips, *stacks = (program.slots[slot].position for slot in step.results)
    kinds = [program.slots[slot].tensor for slot in step.carried]
    extents = [span(kind) // kind.dtype.itemsize for kind in kinds]

    def start(frame: Frame, values: list[Any]) -> None:
        counter = frame.row_words + step.counter
        frame.words[counter] = frame.words[counter + 1] = 0
        frame.held[trips] = 0

    def next_round(frame: Frame, values: list[Any]) -> None:
        words, counter = frame.words, frame.row_words + step.counter
        done, room = words[counter], words[counter + 1]
        if done >= room:
            room = words[counter + 1] = max(FIRST_ROOM, 2 * room)
            for word, kind, extent in zip(step.words, kinds, extents, strict=True):
                block = torch.empty((room, extent), dtype=kind.dtype, device="cpu")
                if done:
                    block[:done].copy_(frame.rows[word][:done])
                frame.rows[word] = block
        for word, value, extent, kind in zip(step.words, values, extents, kinds, strict=True):
            row = frame.rows[word][done]
            row.copy_(value.as_strided((extent,), (1,)))
            words[frame.row_words + word] = row.data_ptr() + extent * kind.dtype.itemsize
        words[counter] = done + 1

    def finish(frame: Frame, values: list[Any]) -> None:
        done = frame.held[trips] = frame.words[frame.row_words + step.counter]
        for stack, word, value, kind, extent in zip(stacks, step.words, values, kinds, extents, strict=True):
            if not done:
                frame.held[stack] = value.new_empty((0, *value.shape))
                continue
            block = frame.rows.pop(word)
            if 4 * done < 3 * len(block):
                block = block[:done].clone()
            frame.held[stack] = block.as_strided((done, *value.shape), (extent, *static(kind.strides)))

    return {"start": start, "round": next_round, "finish": finish}[step.action]
