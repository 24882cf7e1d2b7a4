"""The working memory of one call in flight: arena, pointers, error record.

Frames are kept in a pool per program: as many exist as calls ever ran at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from monograph import compat
from monograph.ir.types import TensorType
from monograph.runtime import abi
from monograph.runtime.abi import FrameWord
from monograph.runtime.derive import Copies
from monograph.runtime.held import numbers, row_major
from monograph.runtime.native import Code
from monograph.runtime.program import ERROR_WORDS, Program, Slot
from monograph.runtime.validate import span, static

__all__ = ["ALIGNMENT", "Frame"]

ALIGNMENT = 64


class Frame:
    """Tables of one call. `words` is writable memory as signed 64-bit words (see `runtime.abi`)."""

    __slots__ = (
        "_program", "_views", "address", "arena", "bases", "copies", "error", "held", "is_filled", "is_native",
        "loose", "made", "memory", "observed", "own", "row_words", "rows", "sized", "spaces", "symbols", "words",
    )

    def __init__(self, program: Program, code: Code | None, watches: np.ndarray) -> None:
        self._program = program
        self._views: dict[int, torch.Tensor] = {}
        self.copies: Copies | None = None
        self.is_native = code is not None
        self.hold()
        self.arena = _arena(program.arena_bytes)
        self.sized: dict[Any, Any] = {}     # by step: the sizes that its words are set for
        self.spaces = [_arena(0), _arena(0)]        # for blocks of a size that only calls know
        base_count, widest = (0, 0) if code is None else (code.base_count, code.widest)
        self.bases = len(FrameWord)
        self.row_words = 0      # the number of row word 0 in `words`
        args = self.bases + base_count
        self.error = args + widest
        observed = self.error + ERROR_WORDS
        self.memory = np.zeros(observed + len(watches) * abi.SEEN_WORDS, np.int64)
        self.observed = self.memory[observed:].reshape(-1, abi.SEEN_WORDS)
        self.words = memoryview(self.memory)        # type: ignore[arg-type]
        self.address: int = self.memory.ctypes.data
        if code is not None:
            self._connect(code, watches, args, observed)

    def _connect(self, code: Code, watches: np.ndarray, args: int, observed: int) -> None:
        words = self.words
        for word, first in ((FrameWord.BASES, self.bases), (FrameWord.ARGS, args), (FrameWord.OBSERVED, observed)):
            words[word] = self.address + 8 * first
        words[FrameWord.STEPS] = code.step_table.ctypes.data
        words[FrameWord.ARGUMENTS] = code.arguments.ctypes.data
        words[FrameWord.WATCHES] = watches.ctypes.data
        words[self.bases + abi.ARENA_BASE] = self.arena.data_ptr()
        words[self.bases + abi.ERROR_BASE] = self.address + 8 * self.error
        words[FrameWord.FACTS] = code.facts.ctypes.data
        words[FrameWord.LAYOUT] = code.layout.ctypes.data
        program = self._program
        self.row_words = self.bases + code.base_count - program.row_words
        words[self.bases + abi.WORDS_BASE] = self.address + 8 * self.row_words
        literals = code.base_count - program.row_words - len(program.literals)
        for number, literal in enumerate(program.literals):
            words[self.bases + literals + number] = literal.data_ptr()
        self.read_tensors(code.reads_tensors)

    def read_tensors(self, natively: bool) -> None:
        """Whether the runner reads the pointers of inputs and outputs, or finds them filled in."""
        self.is_filled = not natively
        self.words[FrameWord.INPUT_COUNT] = len(self._program.inputs) if natively else 0
        self.words[FrameWord.OUTPUT_COUNT] = len(self._program.outputs) if natively else 0

    def use(self, copies: Copies, watched: bool) -> None:
        """Take these derived weights; the frame holds them until the next call takes others."""
        if copies is self.copies:
            return
        self.copies = None              # an interrupt on the way must not leave the pointers of others under its name
        first = self.bases + abi.FIRST_INPUT_BASE + len(self._program.inputs) + len(self._program.outputs)
        self.memory[first:first + len(copies.pointers)] = copies.pointers
        self.words[FrameWord.SEEN] = copies.seen.ctypes.data
        self.words[FrameWord.WATCH_COUNT] = len(copies.seen) if watched else 0
        for number in [number for number in self._views if self._program.slots[number].kind == "derived"]:
            del self._views[number]
        self.copies = copies

    def room(self, size: int, *, early: bool = False) -> int:
        """The address of `size` bytes for kernels that take sizes. What is asked for early, where the call begins,
        stays where it is."""
        if self.spaces[early].numel() < size:
            self.spaces[early] = _arena(0)      # gone before there is more
            self.spaces[early] = _arena(size)
        return self.spaces[early].data_ptr()

    def hold(self) -> None:
        """Forget numbers and tensors of unknown size."""
        self.held: list[Any] = [None] * self._program.held
        self.symbols: dict[str, Any] = {}
        self.rows: dict[int, torch.Tensor] = {}     # by word: the tensor it points into
        self.made: dict[int, torch.Tensor] = {}     # held values as they were made for kernels to write
        self.loose: dict[int, TensorType] = {}      # those with memory for more than their size
        self.own: set[int] = set()                  # storages that this call made, of other held values

    def value(self, number: int, tensors: list[torch.Tensor], outputs: list[torch.Tensor]) -> Any:
        """The tensor that slot `number` is in this call, or the number it holds."""
        slot = self._program.slots[number]
        if slot.kind == "held":
            return self.exact(slot.position)
        if slot.kind == "rows":
            return self._rows(slot)
        if slot.kind == "input":
            return _laid(tensors[slot.position], slot)
        if slot.kind == "output":
            return _laid(outputs[slot.position], slot)
        found = self._views.get(number)
        if found is None:
            found = self._views[number] = self._fixed(slot)
        return found

    def exact(self, position: int) -> Any:
        """Held value number `position`, of the size that it has by now."""
        value, kind = self.held[position], self.loose.get(position)
        if kind is None:
            return value
        shape = numbers(kind.shape, self.symbols)
        return value if value.shape == shape else value.as_strided(shape, row_major(shape))

    def learn(self) -> None:
        """Take the symbols that kernels told from their words."""
        first = self.row_words
        for name, word, position in self._program.cells:
            if position >= 0:
                self.symbols[name] = self.held[position] = self.words[first + word]

    def tell(self) -> None:
        """Put the symbols that are known into their words."""
        first = self.row_words
        for name, word, _ in self._program.cells:
            if name in self.symbols:
                self.words[first + word] = self.symbols[name]

    def _rows(self, slot: Slot) -> torch.Tensor:
        tensor, kind = self.rows[slot.position], slot.tensor
        at = self.row_words + slot.position
        offset = tensor.storage_offset() + (self.words[at] - self.words[at + 1]) // kind.dtype.itemsize
        return tensor.as_strided(static(kind.shape), static(kind.strides), offset)

    def _fixed(self, slot: Slot) -> torch.Tensor:
        if slot.kind == "literal":
            return _laid(self._program.literals[slot.position], slot)
        if slot.kind == "derived":
            assert self.copies is not None
            return _laid(self.copies.tensors[slot.position], slot)
        kind = slot.tensor
        with compat.no_inference_mode():
            memory = self.arena[slot.position:slot.position + span(kind)].view(kind.dtype)
            return memory.as_strided(static(kind.shape), static(kind.strides))


def _laid(tensor: torch.Tensor, slot: Slot) -> torch.Tensor:
    """`tensor`, or its memory with the slot's sizes and strides."""
    kind = slot.tensor
    shape, strides = static(kind.shape), static(kind.strides)
    if tensor.shape == shape and tensor.stride() == strides and tensor.dtype == kind.dtype:
        return tensor
    if tensor.dtype != kind.dtype:
        tensor = tensor.view(kind.dtype)
    return tensor.as_strided(shape, strides)


def _arena(size: int) -> torch.Tensor:
    """`size` bytes, aligned to a cache line; an ordinary tensor even under inference mode."""
    with compat.no_inference_mode():
        memory = torch.empty(size + ALIGNMENT, dtype=torch.uint8, device="cpu")
        start = -memory.data_ptr() % ALIGNMENT
        return memory[start:start + size]
