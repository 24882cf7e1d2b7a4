"""Random draws: recorded in eager's order, and recognised when the program winds the generator back.

Kernels of fakes draw nothing, so while tracing the real default generator serves as a clock: it moves to
a new state with every draw. Code that saves and restores the generator's state (activation
checkpointing) thereby names an earlier draw, whose value is used again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph import compat, errors
from monograph.ir.graph import Value

__all__ = ["Draws"]

FIRST_TICK = 0x6D6F6E6F67726170      # seeds of the clock: none that a program would use


class Draws:
    """The draws of one trace. Use as a context manager: the generator is put back at the end."""

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[Any, tuple[Value, ...], torch.Tensor]] = {}
        self.ticks = itertools.count(FIRST_TICK)
        self.start = torch.default_generator.get_state()
        self.latest = self.start

    def draw(self, signature: Any, record: Callable[[], Sequence[Value]], loc: Any) -> tuple[Value, ...]:
        """The values of a random op: new ones from `record`, or those drawn from this very state before."""
        with compat.plain_torch():
            state = torch.default_generator.get_state()
            key = state.numpy().tobytes()
            again = self.known.get(key)
            if again is not None:
                if again[0] != signature:
                    raise errors.UnsupportedError("another draw from a generator state that was restored", loc=loc)
                torch.default_generator.set_state(again[2])
                return again[1]
            if not torch.equal(state, self.latest):
                raise errors.UnsupportedError("the program seeds the random generator", loc=loc,
                                              hint="call torch.manual_seed outside of the compiled function")
            values = tuple(record())
            torch.default_generator.manual_seed(next(self.ticks))
            self.latest = torch.default_generator.get_state()
            self.known[key] = (signature, values, self.latest)
            return values

    def restore(self) -> str | None:
        """Put the generator back; what the program did to it apart from drawing, if anything."""
        moved = not torch.equal(torch.default_generator.get_state(), self.latest)
        torch.default_generator.set_state(self.start)
        return "seeds or reads the random generator outside of tensor operations" if moved else None
