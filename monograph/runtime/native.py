"""A program's native code in memory, with the tables that the step runner walks.

One `Code` serves all calls of a program, in any number of threads: it is not written after it is built.
What changes from call to call is in a `runtime.frame.Frame`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from monograph.errors import CompileError
from monograph.ir.types import TensorType
from monograph.runtime import abi, probe
from monograph.runtime.abi import StepKind
from monograph.runtime.early import early, late
from monograph.runtime.held import solid
from monograph.runtime.link import Image, link
from monograph.runtime.program import (
    ERROR_WORDS,
    AnySize,
    Branch,
    Jump,
    Library,
    Native,
    Program,
    Record,
    RowAt,
    RowsNext,
    Step,
)
from monograph.runtime.symbols import externals
from monograph.runtime.validate import span, static

__all__ = ["ERROR_WORDS", "Code", "first_row_word", "load"]

# Letting other Python threads run costs about 0.1 us, and up to a switch interval (5 ms) to come back when one of
# them computes; so only programs that touch this much memory, or have this many steps, do it.
LONG_BYTES = 256 * 1024
LONG_STEPS = 64

_REDIRECT = {"GOMP_parallel": "monograph_parallel"}      # see runtime.threads


@dataclass(frozen=True)
class Code:
    """Everything native of a program."""

    call: Callable[[int], int]        # monograph_call(frame address) -> status
    steps: Callable[[int], int]
    watch: Callable[[int], int]
    step_table: np.ndarray
    arguments: np.ndarray
    reads_tensors: bool               # the runner knows where torch keeps things; else pointers are filled in
    facts: np.ndarray                 # pointers to one Fact per input, then per output
    layout: np.ndarray
    base_count: int
    widest: int                       # most arguments of a step
    is_long: bool
    image: Image
    _keep: tuple[np.ndarray, ...] = ()


def load(program: Program) -> Code | None:
    """Link the objects of `program` and build its tables; None where it has no object at all."""
    if not program.objects:
        if any(isinstance(step, Native) for step in program.steps) or program.derived:
            raise CompileError("a program with native steps or derived weights has no object code")
        return None
    image = link(program.objects, externals(), _REDIRECT)
    step_table, arguments, widest = _steps(program, image)
    long = is_long(program)
    known = probe.layout()
    facts, memory = (np.zeros(0, np.int64),) * 2 if known is None else _facts(program)
    return Code(
        _function(image, "monograph_call", long), _function(image, "monograph_steps", long),
        _function(image, "monograph_watch", False), step_table, arguments, known is not None, facts,
        _signed(known or (0,) * len(abi.LayoutWord)), _base_count(program), widest, long, image, (memory,),
    )


def is_long(program: Program) -> bool:
    """Worth releasing the interpreter lock for?"""
    native = [step for step in program.steps if isinstance(step, Native)]
    loops = any(isinstance(step, Jump) and step.target <= number for number, step in enumerate(program.steps))
    if len(native) >= LONG_STEPS or loops:
        return True
    touched = 0
    for step in native:
        for number in step.slots:
            kind = program.slots[number].tensor
            touched += span(kind) if kind.is_static else LONG_BYTES
    return touched >= LONG_BYTES


def _function(image: Image, name: str, releases_lock: bool) -> Callable[[int], int]:
    try:
        address = image.symbols[name]
    except KeyError:
        raise CompileError(f"the program's objects do not define {name!r}: the step runner is missing") from None
    prototype = ctypes.CFUNCTYPE if releases_lock else ctypes.PYFUNCTYPE
    return prototype(ctypes.c_int64, ctypes.c_void_p)(address)


def _signed(words: tuple[int, ...]) -> np.ndarray:
    return np.array(words, np.uint64).view(np.int64)


def _base_count(program: Program) -> int:
    return first_row_word(program) + program.row_words


def first_row_word(program: Program) -> int:
    """The base that row word 0 is."""
    tensors = len(program.inputs) + len(program.outputs) + len(program.derived) + len(program.literals)
    return abi.FIRST_INPUT_BASE + tensors


def base_of(program: Program, number: int) -> tuple[int, int]:
    """(number of the base, byte offset) of a slot."""
    slot = program.slots[number]
    if slot.kind == "arena":
        return abi.ARENA_BASE, slot.position
    if slot.kind == "word":
        return abi.WORDS_BASE, 8 * slot.position
    if slot.kind == "rows":
        return first_row_word(program) + slot.position, 0
    if slot.kind == "held":     # native code does not see it
        return abi.ARENA_BASE, 0
    counts = {"input": 0, "output": len(program.inputs)}
    counts["derived"] = counts["output"] + len(program.outputs)
    counts["literal"] = counts["derived"] + len(program.derived)
    return abi.FIRST_INPUT_BASE + counts[slot.kind] + slot.position, 0


def _steps(program: Program, image: Image) -> tuple[np.ndarray, np.ndarray, int]:
    """Step table, argument table and the largest argument count."""
    places = [base_of(program, number) for number in range(len(program.slots))]
    rows: list[tuple[int, ...]] = []
    arguments: list[tuple[int, int]] = []
    before, after = early(program), late(program)
    for number, step in enumerate(program.steps):
        may_fail = _has_kernel(step) and (number in after or not isinstance(step, AnySize))
        if not isinstance(step, Native) and not may_fail:
            rows.append(_past(number) if number in before else _control(program, step, len(arguments)))
            if isinstance(step, Branch):
                arguments.append(places[step.slot])
            elif isinstance(step, RowsNext):
                first = first_row_word(program)
                arguments.append((first + step.counter, len(step.pointers)))
                arguments.extend((first + word, size) for word, size in step.pointers)
            elif isinstance(step, RowAt):
                first = first_row_word(program)
                arguments += [(first + step.word, first + step.stack), (first + step.counter, 0), places[step.index]]
            elif _is_native_round(step):
                first = first_row_word(program)
                arguments.append((first + step.counter, len(step.words)))
                for word, slot in zip(step.words, step.carried, strict=True):
                    arguments += [(first + word, span(program.slots[slot].type)), places[slot]]
            continue
        assert isinstance(step, (Native, Library, AnySize)), step
        address = image.symbols.get(step.symbol)
        if address is None:
            raise CompileError(f"no object of the program defines kernel {step.symbol!r}")
        begin = len(arguments)
        arguments.extend(places[number] for number in step.slots)
        if may_fail or (isinstance(step, Native) and step.can_fail):
            arguments.append((abi.ERROR_BASE, 0))
        rows.append((address, begin, len(arguments) - begin, 0, 0))
    step_table = np.array(rows, np.int64).reshape(-1, abi.STEP_WORDS)
    argument_table = np.array(arguments, np.int64).reshape(-1, abi.ARGUMENT_WORDS)
    return step_table, argument_table, max((row[2] for row in rows if row[0]), default=0)


def _past(number: int) -> tuple[int, ...]:
    """The row of a step done where the call begins."""
    return (0, 0, StepKind.JUMP, number + 1, 0)


def _has_kernel(step: Step) -> bool:
    """Is there one that Python stands in for where it fails?"""
    return isinstance(step, (Library, AnySize)) and bool(step.symbol)


def _is_native_round(step: Step) -> TypeGuard[Record]:
    return isinstance(step, Record) and step.action == "round" and step.counter >= 0


def _control(program: Program, step: Step, argument: int) -> tuple[int, ...]:
    """The row of a step without a kernel."""
    if isinstance(step, Jump):
        return (0, 0, StepKind.JUMP, step.target, 0)
    if isinstance(step, RowsNext):
        return (0, argument, StepKind.ROWS, step.target, 0)
    if isinstance(step, RowAt):
        return (0, argument, StepKind.ROW_AT, 0, step.row_bytes)
    if _is_native_round(step):
        return (0, argument, StepKind.RECORD, 0, 0)
    if not isinstance(step, Branch) or program.slots[step.slot].kind == "held":
        return (0, 0, StepKind.PYTHON, 0, 0)
    dtype = program.slots[step.slot].tensor.dtype
    bits, floating = 8 * dtype.itemsize, dtype.is_floating_point or dtype.is_complex
    sign = 0
    if floating:            # zeros of either sign are false
        width = bits // 2 if dtype.is_complex else bits
        sign = sum(1 << at for at in range(width - 1, bits, width))
    mask = (1 << bits) - 1 & ~sign
    kind = {8: StepKind.TEST_8, 16: StepKind.TEST_16, 32: StepKind.TEST_32, 64: StepKind.TEST_64}[bits]
    return (0, argument, kind, step.target, mask if mask < 1 << 63 else mask - (1 << 64))


def _facts(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Pointers to the facts of inputs and outputs, and the memory behind them."""
    rows = [_fact(kind) for kind in solid((*program.inputs, *program.outputs))]
    memory = np.array([word for row in rows for word in row], np.int64)
    lengths = np.cumsum([0, *(len(row) for row in rows)])[:-1]
    pointers = memory.ctypes.data + 8 * lengths.astype(np.int64)
    return pointers, memory


def _fact(kind: TensorType) -> list[int]:
    shape, strides = static(kind.shape), static(kind.strides)
    return [probe.dtype_code(kind.dtype), kind.dtype.itemsize, len(shape), *shape, *strides]
