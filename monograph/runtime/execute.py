"""Runs a program: `Executable(program).run(tensors) -> fresh output tensors`.

A call takes a frame from the pool, allocates the outputs, makes one native call (more where library steps
stand between, and where a loop takes long) and gives the frame back. Calls may overlap in any number of
threads. Inputs are expected to be what the program was compiled for; each fact is checked again where its
pointer is read, so a wrong tensor gives an InputError and never a wild access.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from monograph import compat
from monograph.errors import DeviceError, InputError
from monograph.ir import dtypes
from monograph.ir.types import TensorType
from monograph.runtime import abi, failure, held, lazy, library, native, steps, threads
from monograph.runtime.abi import FrameWord, Status
from monograph.runtime.derive import Policy, Weights
from monograph.runtime.frame import Frame
from monograph.runtime.held import PLACEHOLDER, binder, solid
from monograph.runtime.program import Native, Program
from monograph.runtime.validate import static, validate

__all__ = ["Executable"]

# Plain numbers: looking up an enum's member costs more than writing the word.
_INPUTS, _OUTPUTS, _FIRST, _LAST = (
    int(word) for word in (FrameWord.INPUTS, FrameWord.OUTPUTS, FrameWord.FIRST, FrameWord.LAST)
)


class Executable:
    """A program made ready to run.

    weights  what derived weights promise: see `runtime.derive`
    resolve  functions for library ops that torch does not have
    """

    def __init__(
        self, program: Program, *, weights: Policy = "watched", resolve: library.Resolve | None = None
    ) -> None:
        validate(program)
        self.program = program
        self.weights = Weights(program, weights)
        self.code = native.load(program)
        self._steps, self._begin = steps.prepare(program, resolve, self._native)
        self._last = len(program.steps)
        self._inputs = solid(program.inputs)
        self._outputs = [
            (static(kind.shape), static(kind.strides), kind.dtype) for kind in solid(program.outputs)
        ]
        kinds = program.inputs
        binders = [(number, binder(kinds[number])) for number, _ in program.held_inputs]
        self._binders = [(number, bind) for number, bind in binders if bind is not None]
        self._holders = [
            (number, program.slots[slot].position, held.checker(number, kinds[number]))
            for number, slot in program.held_inputs
        ]
        self._dtypes = [kind.dtype if isinstance(kind, TensorType) else None
                        for kind in (kinds[number] for number, _ in program.held_inputs)]
        told = frozenset[str]().union(*(held.names_told(kinds[number]) for number, _ in program.held_inputs))
        self._shapes_tell = None not in self._dtypes and all(
            held.names_in(kinds[number]) <= told for number, _ in program.held_inputs)
        self._symbols: dict[tuple[Any, ...], dict[str, Any]] = {}      # by the shapes of the inputs that are held
        kinds = program.outputs
        self._strides = [held.remembered(kind.strides) if isinstance(kind, TensorType) and kind.strides is not None
                         else None for kind in (kinds[number] for number, _ in program.held_outputs)]
        self._holds = program.held > 0
        self._frames: list[Frame] = []

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Fresh outputs for `inputs`, which hold the weights too, in the order of `program.inputs`."""
        tensors, outputs = self._start(inputs)
        frame = self._take()
        try:
            if self._holds:
                self._hold(frame, tensors, outputs)
            status = self._call(frame, tensors, outputs, self._last)
            if status:
                self._continue(frame, tensors, outputs, status)
            if self._holds:
                self._release(frame, outputs)
        finally:
            if self._holds:
                frame.hold()
            self._frames.append(frame)
        return outputs

    def run_timed(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[float]]:
        """Like `run`, one step at a time: outputs, and the seconds each of `program.steps` took in sum."""
        tensors, outputs = self._start(inputs)
        frame = self._take()
        seconds = [0.0] * self._last
        try:
            if self._holds:
                self._hold(frame, tensors, outputs)
            self._call(frame, tensors, outputs, 0)
            number = 0
            while number < self._last:
                start, at = time.perf_counter(), number
                frame.learn()
                number = self._steps[number](frame, tensors, outputs)
                seconds[at] += time.perf_counter() - start
            if self._holds:
                self._release(frame, outputs)
        finally:
            if self._holds:
                frame.hold()
            self._frames.append(frame)
        return outputs, seconds

    def trim(self) -> None:
        """Free the arenas of calls that ended."""
        self._frames.clear()

    def refresh(self) -> None:
        """Derive all weights again at the next call."""
        self.weights.forget()

    # -- one call

    def _start(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The inputs as a list of our own, and fresh outputs."""
        tensors = list(inputs)
        if len(tensors) != len(self.program.inputs):
            raise InputError(f"the program takes {len(self.program.inputs)} tensors, not {len(tensors)}")
        threads.prepare()
        empty = compat.empty_strided_cpu
        return tensors, [empty(size, stride, dtype) for size, stride, dtype in self._outputs]

    def _take(self) -> Frame:
        try:
            return self._frames.pop()
        except IndexError:
            return Frame(self.program, self.code, self.weights.watches)

    def _hold(self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Take numbers and tensors of unknown size out of the inputs, learn the symbols of their types, and make
        ready what these decide."""
        symbols = frame.symbols
        if not self._recall(frame, tensors):
            for number, bind in self._binders:
                bind(tensors[number], symbols)
            for number, position, check in self._holders:
                frame.held[position] = check(tensors[number], symbols)
            if self._shapes_tell:
                if len(self._symbols) >= held.REMEMBERED:
                    self._symbols.clear()
                self._symbols[tuple([tensors[number].shape for number, *_ in self._holders])] = dict(symbols)
        for number, *_ in self._holders:
            tensors[number] = PLACEHOLDER
        frame.tell()
        if self._begin is not None:
            self._begin(frame, tensors, outputs)

    def _recall(self, frame: Frame, tensors: list[torch.Tensor]) -> bool:
        """Take the inputs, if they are plain and of shapes that were seen before."""
        for (number, position, _), dtype in zip(self._holders, self._dtypes):
            if dtype is None or not held.is_plain(tensors[number], dtype):
                return False
            frame.held[position] = tensors[number]
        known = self._symbols.get(tuple([tensors[number].shape for number, *_ in self._holders]))
        if known is None:
            return False
        frame.symbols.update(known)
        return True

    def _release(self, frame: Frame, outputs: list[torch.Tensor]) -> None:
        """Hand out what is held of the outputs, in memory of their own."""
        program, own, made = self.program, frame.own, frame.made
        frame.learn()
        others = []
        for (number, slot), strides in zip(program.held_outputs, self._strides):
            position = program.slots[slot].position
            value = frame.exact(position)
            wanted = None if strides is None else strides(frame.symbols)
            fresh = made.get(position)
            if value is not frame.held[position]:
                made.pop(position, None)
            if fresh is not None and fresh is value and wanted in (None, fresh.stride()):
                outputs[number] = made.pop(position)
            else:
                others.append((number, value, wanted))
        if others:
            own.update(map(compat.storage_address, made.values()))
        for number, value, wanted in others:
            storage = compat.storage_address(value) if isinstance(value, torch.Tensor) else 0
            outputs[number] = held.lay_out(value, wanted, storage in own)
            own.discard(storage)

    def _continue(
        self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor], status: int
    ) -> None:
        """Go on after the native code stopped with `status`: a step of Python's comes next, or a loop takes long."""
        code, last = self.code, self._last
        while status:
            kind, number = status >> 32, status & 0xFFFFFFFF
            if kind == Status.FAILED and isinstance(self.program.steps[number], Native):
                self._fail(frame, number)
            if kind != Status.PAUSED:
                frame.learn()
                number = self._steps[number](frame, tensors, outputs)
            if number >= last:
                return
            if code is None:
                status = Status.PYTHON << 32 | number
            else:
                frame.words[_FIRST] = number
                frame.words[_LAST] = last
                status = code.steps(frame.address)

    def _call(
        self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor], last: int
    ) -> int:
        """Read pointers, bring derived weights up to date, run steps [0, last) as far as they are native."""
        code = self.code
        if code is None:
            tensors[:] = _check(self._inputs, tensors)
            return Status.PYTHON << 32 if last else 0
        weights = self.weights
        words = frame.words
        if self.program.derived:
            self._choose_copies(frame, tensors)
        words[_INPUTS] = id(tensors)
        words[_OUTPUTS] = id(outputs)
        words[_FIRST] = 0
        words[_LAST] = last
        if frame.is_filled:      # by the call before
            frame.read_tensors(True)
        if not code.reads_tensors:
            self._read_slowly(frame, tensors, outputs)
        status = code.call(frame.address)
        while status:
            kind = status >> 32
            if kind == Status.STALE:
                frame.use(weights.update(tensors, frame.observed), weights.is_watched)
            elif kind in (Status.INPUT, Status.OUTPUT):
                self._read_slowly(frame, tensors, outputs)
            else:
                return status
            status = code.call(frame.address)
        return 0

    def _choose_copies(self, frame: Frame, tensors: list[torch.Tensor]) -> None:
        """Hand the frame the derived weights to run with, or none where the runner must look at all sources first."""
        weights = self.weights
        if weights.policy == "live":
            frame.use(weights.fresh(_check(self._inputs, tensors)), False)
            return
        if weights.is_empty and not weights.sources:      # made of numbers alone: no source will ever look changed
            weights.update(tensors, frame.observed)
        copies = weights.current
        if weights.is_empty or weights.steps_since(copies):
            frame.use(weights.nothing, True)
        else:
            frame.use(copies, weights.is_watched)

    def _read_slowly(self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Fill in every pointer the public way, and the versions of watched weights."""
        tensors[:] = _check(self._inputs, tensors)
        frame.read_tensors(False)
        first = frame.bases + abi.FIRST_INPUT_BASE
        for number, tensor in enumerate((*tensors, *outputs)):
            frame.words[first + number] = tensor.data_ptr()
        for row, number in enumerate(self.weights.sources):
            frame.observed[row, 1] = compat.version(tensors[number])

    def _native(self, frame: Frame, number: int) -> None:
        assert self.code is not None
        frame.words[_FIRST] = number
        frame.words[_LAST] = number + 1
        status = self.code.steps(frame.address)
        if status:
            self._fail(frame, status & 0xFFFFFFFF)

    def _fail(self, frame: Frame, number: int) -> None:
        step = self.program.steps[number]
        assert isinstance(step, Native)
        record = frame.words[frame.error:frame.error + native.ERROR_WORDS].tolist()
        raise failure.exception(self.program, step, record)


def _check(types: Sequence[TensorType], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors, lazy conjugates and negatives made real; InputError where one is not what its type says."""
    checked = []
    for number, (expected, tensor) in enumerate(zip(types, tensors, strict=True)):
        if not isinstance(tensor, torch.Tensor):
            raise InputError(f"input {number} is of class {type(tensor).__name__}; {expected} was compiled for")
        if tensor.device.type != "cpu":
            raise DeviceError(f"input {number} is on {tensor.device}; {expected} was compiled for")
        if tensor.layout is not torch.strided:
            raise InputError(f"input {number} is a {tensor.layout} tensor; {expected} was compiled for")
        same = tensor.dtype == expected.dtype and tuple(tensor.shape) == expected.shape
        if not same or not _strides_fit(tensor, expected):
            found = f"{dtypes.name(tensor.dtype)}{list(tensor.shape)} with strides {tensor.stride()}"
            raise InputError(f"input {number} is {found}; {expected} was compiled for")
        tensor = lazy.resolved(tensor)
        if tensor.numel() and not tensor.data_ptr():
            raise InputError(f"input {number} has no memory: its storage was emptied")
        checked.append(tensor)
    return checked


def _strides_fit(tensor: torch.Tensor, expected: TensorType) -> bool:
    """Strides of dims of size 1, and all strides of an empty tensor, say nothing about memory."""
    if tensor.numel() == 0:
        return True
    return all(
        size == 1 or stride == want
        for size, stride, want in zip(tensor.shape, tensor.stride(), expected.strides or (), strict=True)
    )

