"""Checks that a program makes sense before anything runs it.

The runner walks addresses without asking, so every number it will use is bounded here: slot and base
numbers, byte offsets into the arena, the memory a slot spans against the tensor it lies in.
"""

from __future__ import annotations

from typing import Any

import torch

from monograph.errors import CompileError
from monograph.ir import dtypes
from monograph.ir.types import TensorType, Type
from monograph.runtime.held import is_held, solid
from monograph.runtime.program import (
    AnySize,
    Branch,
    Derived,
    Jump,
    Move,
    Native,
    Point,
    Program,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    Slot,
    SlotRef,
    Step,
)

__all__ = ["span", "static", "validate"]

MAX_BYTES = 1 << 46
MAX_RANK = 64
MAX_HELD = 1 << 24
MAX_PREDICATE_BYTES = 8


def validate(program: Program) -> None:
    """CompileError names the first thing that is wrong."""
    _within("arena size", program.arena_bytes, MAX_BYTES + 1)
    for number, kind in enumerate(solid((*program.inputs, *program.outputs))):
        _type(f"input or output {number}", kind)
    _within("number of held values", program.held, MAX_HELD)
    _within("number of row words", program.row_words, MAX_HELD)
    for types, pairs in ((program.inputs, program.held_inputs), (program.outputs, program.held_outputs)):
        for number, slot in pairs:
            _within("a held input or output", number, len(types))
            _held(program, "a held input or output", slot)
        if [number for number, type in enumerate(types) if is_held(type)] != sorted(number for number, _ in pairs):
            raise CompileError("malformed program: not every held input and output has a place")
    for name, word, held in program.cells:
        _within(f"the word of {name}", word, program.row_words)
        _within(f"the value of {name}", max(held, 0), max(program.held, 1))
    for number, item in enumerate(program.derived):
        _derived(program, number, item)
    holders = {
        "input": solid(program.inputs), "output": solid(program.outputs),
        "derived": [item.type for item in program.derived],
    }
    for number, place in enumerate(program.slots):
        _slot(program, number, place, holders)
    for number, step in enumerate(program.steps):
        _step(program, number, step)


def static(dims: Any) -> tuple[int, ...]:
    """Sizes or strides as numbers; CompileError where one is symbolic or missing."""
    if dims is None or not all(type(dim) is int for dim in dims):
        raise CompileError(f"a program needs static sizes and strides, not {dims}")
    return tuple(dims)


def span(kind: Type) -> int:
    """Bytes from the first to past the last element of a tensor of known size; 0 for an empty one."""
    if not isinstance(kind, TensorType):
        raise CompileError(f"a program needs a tensor, not {kind}")
    shape, strides = static(kind.shape), static(kind.strides)
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * stride for size, stride in zip(shape, strides))) * kind.dtype.itemsize


def _within(what: str, value: Any, limit: int) -> None:
    if type(value) is not int or not 0 <= value < limit:
        raise CompileError(f"malformed program: {what} is {value}, not in [0, {limit})")


def _type(what: str, kind: TensorType) -> None:
    shape, strides = static(kind.shape), static(kind.strides)
    if kind.dtype not in dtypes.NAMES or kind.device != "cpu":
        raise CompileError(f"malformed program: {what} is {kind}")
    if len(shape) != len(strides) or len(shape) > MAX_RANK or min((*shape, *strides), default=0) < 0:
        raise CompileError(f"malformed program: {what} has sizes {shape} and strides {strides}")
    _within(f"memory of {what}", span(kind), MAX_BYTES)


def _derived(program: Program, number: int, item: Derived) -> None:
    _type(f"derived weight {number}", item.type)
    for source in item.sources:
        if isinstance(source, int):
            _within(f"a source of derived weight {number}", source, len(program.inputs))
        elif isinstance(source, (tuple, list)) and len(source) == 2 and source[0] == "derived":
            _within(f"a source of derived weight {number}", source[1], number)
        else:
            raise CompileError(f"malformed program: derived weight {number} comes from {source!r}")


def _slot(program: Program, number: int, slot: Slot, holders: dict[str, list[TensorType]]) -> None:
    if slot.kind == "held":
        _within(f"position of slot {number}", slot.position, program.held)
        return
    kind = slot.type
    if slot.kind in ("rows", "word"):
        _within(f"position of slot {number}", slot.position, program.row_words - 1)
        return
    if not isinstance(kind, TensorType):
        raise CompileError(f"malformed program: slot {number} is of kind {slot.kind!r} and of type {kind}")
    _type(f"slot {number}", kind)
    if slot.kind == "arena":
        room = program.arena_bytes - slot.position
        _within(f"arena offset of slot {number}", slot.position, program.arena_bytes + 1)
        if slot.position % kind.dtype.itemsize:
            raise CompileError(f"malformed program: slot {number} is at offset {slot.position}, not aligned")
    else:
        room = _room(program, number, slot, holders)
    if span(kind) > room:
        raise CompileError(f"malformed program: slot {number} spans {span(kind)} bytes, its memory has {room}")


def _room(program: Program, number: int, slot: Slot, holders: dict[str, list[TensorType]]) -> int:
    """Bytes of the tensor a slot lies in; `holders`: the types of those by kind."""
    what = f"position of slot {number}"
    if slot.kind == "literal":
        _within(what, slot.position, len(program.literals))
        literal = program.literals[slot.position]
        return int(literal.untyped_storage().nbytes() - literal.storage_offset() * literal.element_size())
    if slot.kind not in holders:
        raise CompileError(f"malformed program: slot {number} is of kind {slot.kind!r}")
    _within(what, slot.position, len(holders[slot.kind]))
    return span(holders[slot.kind][slot.position])


def _step(program: Program, number: int, step: Step) -> None:
    slots = len(program.slots)
    if isinstance(step, (Branch, Jump)):
        _within(f"the target of step {number}", step.target, len(program.steps) + 1)
        if isinstance(step, Branch):
            _predicate(program, number, step)
        return
    if isinstance(step, (Move, Record)):
        _handed_on(program, number, step)
        return
    if isinstance(step, (Point, RowAt)):
        _stack(program, number, step)
        return
    if isinstance(step, (RowsStart, RowsNext)):
        _rows(program, number, step)
        return
    if isinstance(step, AnySize):
        _any_size(program, number, step)
        return
    if isinstance(step, Native):
        _kernel(program, number, step.symbol, step.slots)
        for index in step.errors:
            _within(f"an error of step {number}", index, len(program.errors))
        return
    _kernel(program, number, step.symbol, step.slots)
    _drops(program, number, step.drops)
    for operand in step.operands:
        _operand(number, operand, slots)
    for result in step.results:
        if result is not None:
            _within(f"a result slot of step {number}", result, slots)


def _kernel(program: Program, number: int, symbol: str, slots: tuple[int, ...]) -> None:
    for slot in slots:
        _within(f"a slot of step {number}", slot, len(program.slots))
        if program.slots[slot].kind == "held":
            raise CompileError(f"malformed program: kernel {symbol} of step {number} takes a held value")


def _held(program: Program, what: str, number: int) -> None:
    _within(what, number, len(program.slots))
    if program.slots[number].kind != "held":
        raise CompileError(f"malformed program: {what} is slot {number}, which is not held")


def _handed_on(program: Program, number: int, step: Move | Record) -> None:
    what = f"a slot of step {number}"
    if isinstance(step, Move):
        sources = [source for source, _ in step.pairs]
        held = [*(target for _, target in step.pairs), *step.binds]
        _drops(program, number, step.drops)
    else:
        sources, held = list(step.carried), list(step.results)
        if step.action not in ("start", "round", "finish") or not held:
            raise CompileError(f"malformed program: step {number} is {step}")
        if step.action != "start" and len(sources) != len(held) - 1:
            raise CompileError(f"malformed program: step {number} records {len(sources)} values in {len(held) - 1}")
        if step.counter >= 0:
            for word in (step.counter, *step.words):
                _within(f"a row word of step {number}", word, program.row_words - 1)
            if len(step.words) != len(held) - 1 or any(program.slots[slot].kind == "held" for slot in sources):
                raise CompileError(f"malformed program: step {number} records {sources} at {step.words}")
    for slot in sources:
        _within(what, slot, len(program.slots))
    for slot in held:
        _held(program, what, slot)


def _rows(program: Program, number: int, step: RowsStart | RowsNext) -> None:
    """Every pointer that a chunk uses is set by the start before it, over memory that the sizes in its types cover."""
    what = f"a row word of step {number}"
    if isinstance(step, RowsNext):
        _within(f"the target of step {number}", step.target, len(program.steps) + 1)
        _within(what, step.counter, program.row_words - 2)
        for word, size in ((step.counter, 0), *step.pointers):
            _within(what, word, program.row_words - 1)
            _within(f"bytes of a row of step {number}", size, MAX_BYTES)
        return
    for slot, word in (*step.given, *step.results):
        _held(program, f"a slot of step {number}", slot)
        _within(what, word, program.row_words - 1)
    for most, counter, fewest in step.chunks:
        _within(f"rows of step {number}", most - 1, MAX_BYTES)
        _within(f"fewest rows of step {number}", fewest - 1, most)
        _within(what, counter, program.row_words - 2)
    for word in step.roomy:
        _within(what, word, program.row_words - 1)


def _any_size(program: Program, number: int, step: AnySize) -> None:
    """Sizes of memory are computed by the runtime from the expressions: only the words are to be checked."""
    for slot, _ in (*step.given, *step.results):
        _held(program, f"a slot of step {number}", slot)
    _kernel(program, number, step.symbol, step.slots)
    for _, word in step.limits:
        _within(f"a limit of step {number}", word, program.row_words)
    for word, *_ in (*step.blocks, *step.rooms, *step.sizes, *((word,) for _, word in (*step.given, *step.results))):
        _within(f"a row word of step {number}", word, program.row_words - 1)


def _stack(program: Program, number: int, step: Point | RowAt) -> None:
    _held(program, f"a stack of step {number}", step.slot)
    words = [step.word, step.counter, *(step.users if isinstance(step, Point) else [step.stack])]
    for word in words:
        _within(f"a row word of step {number}", word, program.row_words - 1)
    if isinstance(step, RowAt):
        _within(f"an index of step {number}", step.index, len(program.slots))
        _within(f"bytes of a row of step {number}", step.row_bytes, MAX_BYTES)
        kind = program.slots[step.index].type
        if not isinstance(kind, TensorType) or kind.numel != 1 or kind.dtype is not torch.int64:
            raise CompileError(f"malformed program: step {number} takes {kind} as an index")


def _drops(program: Program, number: int, drops: tuple[int, ...]) -> None:
    for position in drops:
        _within(f"what step {number} drops", position, program.held)


def _predicate(program: Program, number: int, step: Branch) -> None:
    _within(f"the predicate of step {number}", step.slot, len(program.slots))
    kind = program.slots[step.slot].type
    if not isinstance(kind, TensorType) or program.slots[step.slot].kind == "held":
        return
    if kind.numel != 1 or kind.dtype.itemsize > MAX_PREDICATE_BYTES:
        raise CompileError(f"malformed program: step {number} asks whether {kind} is true")


def _operand(number: int, operand: Any, slots: int) -> None:
    if isinstance(operand, SlotRef):
        _within(f"an operand of step {number}", operand.slot, slots)
    elif isinstance(operand, tuple):
        for entry in operand:
            _operand(number, entry, slots)
