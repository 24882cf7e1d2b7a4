"""Derived weights: folded, packed or converted copies of parameters, never stale.

Policy
    watched  every call compares the data pointer, version counter and a sampled content checksum of each source
             with those the copy was made from, and asks whether an optimiser stepped it since
    live     copies are made again for every call; nothing is kept
    frozen   copies are made once

What sampling can miss: a sparse edit of a few elements that bumps no version (through `.data`, numpy or an
inference tensor). `Weights.forget()` makes the next call derive everything again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch

from monograph import compat
from monograph.runtime import abi, optimisers, threads
from monograph.runtime.program import Derived, Program
from monograph.runtime.recipe import Computation
from monograph.runtime.validate import span, static

__all__ = ["Copies", "Policy", "Weights"]

Policy: TypeAlias = Literal["watched", "live", "frozen"]

LINE = 64
LINES = 4                  # cache lines sampled of a large weight
WHOLE = 16 * LINE          # weights up to this many bytes are read whole


@dataclass(frozen=True, slots=True)
class Copies:
    """Derived tensors with what they were derived from. Never changed: calls in flight keep theirs."""

    tensors: tuple[torch.Tensor, ...]
    pointers: np.ndarray
    seen: np.ndarray           # one Seen row per source
    epoch: int                 # optimiser steps taken into account


class Weights:
    """The derived weights of one program."""

    def __init__(self, program: Program, policy: Policy) -> None:
        self._derived = program.derived
        self.policy: Policy = policy
        self.sources = sorted(_inputs_of(program.derived))
        rows = [_watch(number, program) for number in self.sources]
        self.watches = np.array(rows, np.int64).reshape(-1, abi.WATCH_WORDS)
        self.is_watched = policy == "watched" and bool(self.sources)
        self.nothing = Copies((), np.zeros(0, np.int64), np.full((len(self.sources), abi.SEEN_WORDS), -2, np.int64), -1)
        self.current = self.nothing
        self._lock = threading.Lock()
        _all.add(self)
        if self.is_watched:
            optimisers.listen()

    @property
    def is_empty(self) -> bool:
        """Nothing derived yet, though the program has derived weights."""
        return self.current is self.nothing and bool(self._derived)

    def forget(self) -> None:
        """Derive everything again at the next call."""
        self.current = self.nothing

    def steps_since(self, copies: Copies) -> bool:
        """Has any optimiser stepped since `copies` were last found right?"""
        return self.is_watched and copies.epoch != optimisers.epoch()

    def fresh(self, tensors: Sequence[torch.Tensor]) -> Copies:
        """All copies made now, and not kept."""
        return self._derive(self.nothing, tensors, set(self.sources), self.nothing.seen, optimisers.epoch())

    def update(self, tensors: Sequence[torch.Tensor], observed: np.ndarray) -> Copies:
        """Derive again what depends on a changed source.

        `observed` holds what the watch found before this call: a weight written meanwhile is
        derived again by the next call.
        """
        with self._lock:
            current, epoch = self.current, optimisers.epoch()
            differs = (observed != current.seen).any(axis=1)
            changed = {number for number, changed in zip(self.sources, differs.tolist()) if changed}
            if current.epoch != epoch:
                changed |= {number for number in self.sources if optimisers.stepped(tensors[number], current.epoch)}
            if current is self.nothing:
                changed = set(self.sources)
            self.current = self._derive(current, tensors, changed, observed.copy(), epoch)
            return self.current

    def _derive(
        self, current: Copies, tensors: Sequence[torch.Tensor], changed: set[int], seen: np.ndarray, epoch: int
    ) -> Copies:
        threads.make_torch_safe()
        made: list[torch.Tensor] = []
        remade: set[int] = set()
        homes = _block(self._derived) if current is self.nothing else [None] * len(self._derived)
        for number, item in enumerate(self._derived):
            stale = current is self.nothing or any(
                source in changed if isinstance(source, int) else source[1] in remade for source in item.sources
            )
            if not stale:
                made.append(current.tensors[number])
                continue
            operands = [
                tensors[source] if isinstance(source, int) else made[source[1]] for source in item.sources
            ]
            made.append(_make(item, operands, homes[number]))
            remade.add(number)
        pointers = np.array([tensor.data_ptr() for tensor in made], np.int64)
        return Copies(tuple(made), pointers, seen, epoch)

    def _reset_lock(self) -> None:
        self._lock = threading.Lock()


_all: weakref.WeakSet[Weights] = weakref.WeakSet()


def _reset_locks() -> None:
    for weights in list(_all):
        weights._reset_lock()


threads.after_fork(_reset_locks)


def _inputs_of(derived: Sequence[Derived]) -> set[int]:
    return {source for item in derived for source in item.sources if isinstance(source, int)}


def _watch(number: int, program: Program) -> tuple[int, ...]:
    """Which bytes of an input are sampled: whole lines, evenly spread from the first to the last, then a tail."""
    size = span(program.inputs[number])
    if size <= WHOLE:
        lines = size // LINE
        return number, lines, LINE, lines * LINE, size - lines * LINE
    return number, LINES, (size - LINE) // (LINES - 1), 0, 0


def _block(derived: Sequence[Derived]) -> list[torch.Tensor]:
    """Homes for all copies in one allocation, so that what making them frees is not scattered between them."""
    offsets = [0]
    for item in derived:
        offsets.append(offsets[-1] + -(-span(item.type) // LINE) * LINE)
    block = compat.empty_strided((offsets[-1],), (1,), torch.uint8)
    homes = []
    for item, start in zip(derived, offsets):
        home = block[start:start + span(item.type)].view(item.type.dtype)
        homes.append(home.as_strided(static(item.type.shape), static(item.type.strides)))
    return homes


def _make(item: Derived, operands: list[torch.Tensor], home: torch.Tensor | None) -> torch.Tensor:
    """One copy, laid out as its type says, in `home` or in memory of its own."""
    if home is None:
        home = compat.empty_strided(static(item.type.shape), static(item.type.strides), item.type.dtype)
    with compat.no_inference_mode(), compat.no_torch_function(), compat.kernels_only():
        compute = item.compute if isinstance(item.compute, Computation) else Computation(item.compute, ())
        compute.into(home, *(operand.detach() for operand in operands))
    return home
