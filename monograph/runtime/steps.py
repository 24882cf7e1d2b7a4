"""Steps that run from Python: one function per step of a program, `perform(frame, tensors, outputs) -> next step`.

Native steps have one as well, for who wants to run a program step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from monograph import compat
from monograph.runtime import abi, anysize, failure, library, record, rows
from monograph.runtime.early import early, kept, late
from monograph.runtime.frame import Frame
from monograph.runtime.held import Binder, binder, names_in, names_told
from monograph.runtime.program import (
    AnySize,
    Branch,
    Jump,
    Library,
    Move,
    Native,
    Point,
    Program,
    RowAt,
    RowsNext,
    RowsStart,
    Slot,
)

__all__ = ["Begin", "Perform", "prepare"]

Tensors: TypeAlias = list[Any]
Perform: TypeAlias = Callable[[Frame, Tensors, Tensors], int]


Begin: TypeAlias = Callable[[Frame, Tensors, Tensors], None]


def prepare(
    program: Program, resolve: library.Resolve | None, native: Callable[[Frame, int], None]
) -> tuple[list[Perform], Begin | None]:
    """The functions of all steps, and one for those done where a call begins, if any; `native(frame, number)` runs a
    kernel."""
    made = _Maker(program, resolve, native)
    before = early(program)
    ready = sorted(before | late(program))
    performs = [_past(number) if number in before else made.perform(number) for number in range(len(program.steps))]
    return performs, made.beginning(ready) if ready else None


def _past(number: int) -> Perform:
    return lambda frame, tensors, outputs: number + 1


class _Maker:
    def __init__(
        self, program: Program, resolve: library.Resolve | None, native: Callable[[Frame, int], None]
    ) -> None:
        self.program, self.resolve, self.native = program, resolve, native
        self.given = frozenset[str]().union(*map(names_told, program.inputs))
        self.limits: anysize.Limits = {}
        self.kept = kept(program)

    def perform(self, number: int) -> Perform:
        step = self.program.steps[number]
        if isinstance(step, Native):
            return self.kernel(number)
        if isinstance(step, Library):
            return self.library(number, step)
        if isinstance(step, Branch):
            slot, target = step.slot, step.target
            return lambda frame, tensors, outputs: (
                number + 1 if bool(frame.value(slot, tensors, outputs)) else target
            )
        if isinstance(step, Jump):
            target = step.target
            return lambda frame, tensors, outputs: target
        if isinstance(step, RowsStart):
            return rows.start(self.program, number, step)
        if isinstance(step, AnySize):
            return self.any_size(number, step)
        if isinstance(step, RowsNext):
            return rows.next_rows(number, step)
        if isinstance(step, Point):
            return rows.point(number, step)
        if isinstance(step, RowAt):
            return rows.row_at(number, step)
        return self.move(number, step) if isinstance(step, Move) else record.perform(self.program, number, step)

    def kernel(self, number: int) -> Perform:
        def perform(frame: Frame, tensors: Tensors, outputs: Tensors) -> int:
            self.native(frame, number)
            return number + 1

        return perform

    def library(self, number: int, step: Library) -> Perform:
        call = library.prepare(step, self.resolve)
        stores = [self.store(slot) for slot in step.results]
        drops = [position for position in step.drops if position not in self.kept]

        def perform(frame: Frame, tensors: Tensors, outputs: Tensors) -> int:
            operands: list[Any] = []

            def view(slot: int) -> Any:
                operands.append(frame.value(slot, tensors, outputs))
                return operands[-1]

            try:
                results = call.run(view, frame.symbols)
            except Exception as error:
                failure.point_at(error, step.file, step.line)
                raise
            for store, result in zip(stores, results):
                if store is not None:
                    store(frame, result, operands, tensors, outputs)
            if step.symbol:
                frame.tell()
            _drop(frame, drops)
            return number + 1

        return perform

    def any_size(self, number: int, step: AnySize) -> Perform:
        start = anysize.Start(self.program, step, self.limits)

        def perform(frame: Frame, tensors: Tensors, outputs: Tensors) -> int:
            start.grow(frame.symbols)
            known = start.known(frame.symbols)
            start.set(frame, tensors, outputs, known, frame.room(known.bytes))
            start.finish(frame)
            return number + 1

        return perform

    def beginning(self, numbers: Sequence[int]) -> Begin:
        """Steps done where a call begins. Blocks of one lie where those of another do, when that has run."""
        starts = {number: anysize.Start(self.program, step, self.limits) for number in numbers
                  if isinstance(step := self.program.steps[number], AnySize)}
        others = {number: self.perform(number) for number in numbers if number not in starts}

        def begin(frame: Frame, tensors: Tensors, outputs: Tensors) -> None:
            known = {number: start.known(frame.symbols) for number, start in starts.items()}
            address = frame.room(max([found.bytes for found in known.values()], default=0), early=True)
            for number in numbers:
                if number in starts:
                    starts[number].set(frame, tensors, outputs, known[number], address)
                else:
                    others[number](frame, tensors, outputs)

        return begin

    def move(self, number: int, step: Move) -> Perform:
        slots = self.program.slots
        pairs = [(source, slots[source].kind != "held", slots[target].position) for source, target in step.pairs]
        binds = [(slots[slot].position, self.binder(slots[slot])) for slot in step.binds]
        drops = [position for position in step.drops if position not in self.kept]

        def perform(frame: Frame, tensors: Tensors, outputs: Tensors) -> int:
            moved = []
            for source, copies, target in pairs:
                value = frame.value(source, tensors, outputs)
                if copies:
                    value = value.clone()
                    frame.own.add(compat.storage_address(value))
                moved.append((target, value))
            for target, value in moved:
                frame.held[target] = value
            for position, bind in binds:
                bind(frame.held[position], frame.symbols)
            _drop(frame, drops)
            return number + 1

        return perform

    @staticmethod
    def binder(slot: Slot) -> Binder:
        found = binder(slot.type)
        assert found is not None, slot
        return found

    def store(self, number: int | None) -> Callable[[Frame, Any, list[Any], Tensors, Tensors], None] | None:
        """What puts a result into its slot."""
        if number is None:
            return None
        slot = self.program.slots[number]
        if slot.kind == "held":
            return _hold(slot, self.given)
        adopts = slot.kind == "output" and slot.type == self.program.outputs[slot.position]
        base = abi.FIRST_INPUT_BASE + len(self.program.inputs) + slot.position

        def store(frame: Frame, result: Any, operands: list[Any], tensors: Tensors, outputs: Tensors) -> None:
            if adopts and _is_fresh(result, slot, operands):
                outputs[slot.position] = result
                if frame.is_native:
                    frame.words[frame.bases + base] = result.data_ptr()
                return
            with compat.no_torch_function(), compat.kernels_only():
                frame.value(number, tensors, outputs).copy_(result)

        return store


def _hold(slot: Slot, given: frozenset[str]) -> Callable[[Frame, Any, list[Any], Tensors, Tensors], None]:
    """`given`: the symbols that the inputs of a call tell, once for all of it."""
    position, bind = slot.position, None if names_in(slot.type) <= given else binder(slot.type)

    def store(frame: Frame, result: Any, operands: list[Any], tensors: Tensors, outputs: Tensors) -> None:
        if isinstance(result, torch.Tensor) and result.layout is torch.strided:
            storage = compat.storage_address(result)
            for x in operands:
                if isinstance(x, torch.Tensor) and compat.storage_address(x) == storage:
                    break
            else:
                frame.own.add(storage)
                storage = 0
            # A view of whatever the operand is: maybe of memory that later steps write to.
            if storage and any(compat.storage_address(memory) == storage for memory in (frame.arena, *outputs)):
                with compat.no_torch_function(), compat.kernels_only():
                    result = result.clone()
                frame.own.add(compat.storage_address(result))
        frame.held[position] = result
        if bind is not None:
            bind(result, frame.symbols)

    return store


def _drop(frame: Frame, positions: Sequence[int]) -> None:
    for position in positions:
        frame.held[position] = None


def _is_fresh(result: torch.Tensor, slot: Slot, operands: list[Any]) -> bool:
    """May the result be the output itself, laid out as the caller wants it, without a copy?"""
    if result.layout is not torch.strided or result.device.type != "cpu" or result.is_conj() or result.is_neg():
        return False
    kind, storage = slot.tensor, compat.storage_address(result)
    return (
        result.dtype == kind.dtype and tuple(result.shape) == kind.shape
        and result.stride() == kind.strides and result.storage_offset() == 0
        and result.untyped_storage().nbytes() == result.numel() * result.element_size()
        and all(compat.storage_address(x) != storage for x in operands if isinstance(x, torch.Tensor))
    )
