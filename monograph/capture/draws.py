"""Random draws: recorded in eager's order, and recognised when the program winds the generator back.

Kernels of fakes draw nothing, so while tracing the real default generator serves as a clock: it moves to
a new state with every draw. Code that saves and restores the generator's state (activation
checkpointing) thereby names an earlier draw, whose value is used again. Code that seeds leaves a
state that only its seed explains: recorded as `mono.seed`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture.recorder import Recorder
from monograph.ir.graph import Value
from monograph.ir.types import TensorType
from monograph.ops import table

__all__ = ["Draws"]

FIRST_TICK = 0x6D6F6E6F67726170      # seeds of the clock: none that a program would use


class Draws:
    """The draws of one trace."""

    def __init__(self, record: Recorder) -> None:
        self.record = record
        self.known: dict[bytes, tuple[Any, tuple[Value, ...], torch.Tensor]] = {}
        self.ticks = itertools.count(FIRST_TICK)
        self.start = torch.default_generator.get_state()
        self.latest = self.start

    def draw(self, signature: Any, record: Callable[[], Sequence[Value]]) -> tuple[Value, ...]:
        """The values of a random op: new ones from `record`, or those drawn from this very state before."""
        with compat.plain_torch():
            state = torch.default_generator.get_state()
            key = state.numpy().tobytes()
            again = self.known.get(key)
            if again is not None and again[0] == signature:
                torch.default_generator.set_state(again[2])
                return again[1]
            if again is not None or not torch.equal(state, self.latest):
                self._seed(state)
            values = tuple(record())
            torch.default_generator.manual_seed(next(self.ticks))
            self.latest = torch.default_generator.get_state()
            self.known[key] = (signature, values, self.latest)
            return values

    def settle(self) -> None:
        """At the end of the program: record a seeding that no draw followed."""
        with compat.plain_torch():
            state = torch.default_generator.get_state()
            if not torch.equal(state, self.latest):
                self._seed(state)
                self.latest = state

    def leave_region(self, known: dict[bytes, Any]) -> None:
        """What was drawn in a region stays in it; `known` is what was before."""
        if len(known) == len(self.known):
            return
        with compat.plain_torch():
            self.known = known
            torch.default_generator.manual_seed(next(self.ticks))
            self.latest = torch.default_generator.get_state()

    def restore(self) -> None:
        torch.default_generator.set_state(self.start)

    def _seed(self, state: torch.Tensor) -> None:
        """Record the seeding that led to `state`; UnsupportedError when none did."""
        seed = torch.default_generator.initial_seed()
        torch.default_generator.manual_seed(seed)
        if seed >= FIRST_TICK or not torch.equal(torch.default_generator.get_state(), state):
            raise errors.UnsupportedError("the program restores a state of the random generator and draws otherwise",
                                          loc=self.record.loc,
                                          why="what it draws would depend on draws before the call")
        self.record.node(table.lookup("mono.seed"), (), {"seed": seed}, (TensorType(torch.int8, ()),))
