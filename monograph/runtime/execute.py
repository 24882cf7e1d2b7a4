"""Runs a program: `Executable(program).run(tensors) -> fresh output tensors`.

A call takes a frame from the pool, allocates the outputs, makes one native call (more where library steps
stand between, and where a loop takes long) and gives the frame back. Calls may overlap in any number of
threads. Inputs are expected to be what the program was compiled for; each fact is checked again where its
pointer is read, so a wrong tensor gives an InputError and never a wild access.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from monograph import compat
from monograph.errors import DeviceError, InputError
from monograph.ir import dtypes
from monograph.ir.types import TensorType
from monograph.runtime import abi, failure, lazy, library, native, threads
from monograph.runtime.abi import FrameWord, Status
from monograph.runtime.derive import Policy, Weights
from monograph.runtime.frame import Frame
from monograph.runtime.program import Jump, Library, Native, Program
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
        self._calls = [library.prepare(step, resolve) if isinstance(step, Library) else None for step in program.steps]
        self._last = len(program.steps)
        self._outputs = [
            (static(kind.shape), static(kind.strides), kind.dtype) for kind in program.outputs
        ]
        self._frames: list[Frame] = []

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Fresh outputs for `inputs`, which hold the weights too, in the order of `program.inputs`."""
        tensors, outputs = self._start(inputs)
        frame = self._take()
        try:
            status = self._call(frame, tensors, outputs, self._last)
            if status:
                self._continue(frame, tensors, outputs, status)
        finally:
            self._frames.append(frame)
        return outputs

    def run_timed(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[float]]:
        """Like `run`, one step at a time: outputs, and the seconds each of `program.steps` took in sum."""
        tensors, outputs = self._start(inputs)
        frame = self._take()
        seconds = [0.0] * self._last
        try:
            self._call(frame, tensors, outputs, 0)
            number = 0
            while number < self._last:
                start, at = time.perf_counter(), number
                number = self._step(frame, number, tensors, outputs)
                seconds[at] += time.perf_counter() - start
        finally:
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

    def _continue(
        self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor], status: int
    ) -> None:
        """Go on after the native code stopped with `status`: a step of Python's comes next, or a loop takes long."""
        code, last = self.code, self._last
        while status:
            kind, number = status >> 32, status & 0xFFFFFFFF
            if kind == Status.FAILED:
                self._fail(frame, number)
            if kind == Status.PYTHON:
                number = self._step(frame, number, tensors, outputs)
            if number >= last:
                return
            if code is None:
                status = Status.PYTHON << 32 | number
            else:
                frame.words[_FIRST] = number
                frame.words[_LAST] = last
                status = code.steps(frame.address)

    def _step(self, frame: Frame, number: int, tensors: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
        """Run one step; the number of the next one."""
        step = self.program.steps[number]
        if isinstance(step, Native):
            self._native(frame, number)
        elif isinstance(step, Library):
            call = self._calls[number]
            assert call is not None
            self._library(frame, call, tensors, outputs)
        elif isinstance(step, Jump) or not bool(frame.view(step.slot, tensors, outputs)):
            return step.target
        return number + 1

    def _call(
        self, frame: Frame, tensors: list[torch.Tensor], outputs: list[torch.Tensor], last: int
    ) -> int:
        """Read pointers, bring derived weights up to date, run steps [0, last) as far as they are native."""
        code = self.code
        if code is None:
            tensors[:] = _check(self.program.inputs, tensors)
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
            frame.use(weights.fresh(_check(self.program.inputs, tensors)), False)
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
        tensors[:] = _check(self.program.inputs, tensors)
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

    def _library(
        self, frame: Frame, call: library.Call, tensors: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> None:
        """Run one op and put its results into their slots."""
        operands: list[torch.Tensor] = []

        def view(number: int) -> torch.Tensor:
            operands.append(frame.view(number, tensors, outputs))
            return operands[-1]

        results = call.run(view)
        for number, result in zip(call.step.results, results):
            if number is None:
                continue
            if not self._adopt(frame, number, result, operands, outputs):
                with compat.no_torch_function(), compat.kernels_only():
                    frame.view(number, tensors, outputs).copy_(result)

    def _adopt(
        self, frame: Frame, number: int, result: torch.Tensor, operands: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> bool:
        """Make a fresh result that is laid out as the caller wants it the output itself, without a copy."""
        slot = self.program.slots[number]
        if slot.kind != "output" or slot.type != self.program.outputs[slot.position] or not _is_plain(result):
            return False
        storage = compat.storage_address(result)
        fresh = (
            result.dtype == slot.type.dtype and tuple(result.shape) == slot.type.shape
            and result.stride() == slot.type.strides and result.storage_offset() == 0
            and result.untyped_storage().nbytes() == result.numel() * result.element_size()
            and all(compat.storage_address(operand) != storage for operand in operands)
        )
        if fresh:
            outputs[slot.position] = result
            base = frame.bases + abi.FIRST_INPUT_BASE + len(self.program.inputs) + slot.position
            if self.code is not None:
                frame.words[base] = result.data_ptr()
        return fresh


def _is_plain(tensor: torch.Tensor) -> bool:
    """Its elements are what its memory says."""
    return tensor.layout is torch.strided and tensor.device.type == "cpu" and not (tensor.is_conj() or tensor.is_neg())


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

