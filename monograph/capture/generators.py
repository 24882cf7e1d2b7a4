"""Draws from generators that the program is given: `torch.rand(3, generator=g)`.

All of torch's generators for the CPU work alike, so that a draw from `g` is a draw from the default one put into the
state of `g`: while a call draws, the two change places, and `draws` sees states that are set and come back. The
state that `g` has before the call is read by the program; the one it ends in is given to it after the run, like any
write to an object of Python's (`readset_effects`). While tracing `g` tells the time as the default generator
does. A generator that the call makes is seeded in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from monograph import compat
from monograph.capture.regions.errors import Unmergeable
from monograph.ir.op import Effect
from monograph.ir.types import TensorType
from monograph.ops import host

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Generators"]

READS = frozenset({Effect.READS_STATE})


class Generators:
    """The generators that were there before a trace; `start` has the state of each that was used, by id."""

    def __init__(self) -> None:
        self.known: dict[int, torch.Generator] = {}
        self.before: dict[int, torch.Tensor] = {}
        self.seeds: dict[int, int] = {}
        self.start: dict[int, torch.Tensor] = {}

    def note(self, generator: torch.Generator) -> None:
        """The program may draw from this one."""
        if id(generator) not in self.known:
            self.known[id(generator)] = generator
            self.before[id(generator)] = generator.get_state()
            self.seeds[id(generator)] = generator.initial_seed()

    def restore(self) -> None:
        """All are as they were before the trace."""
        for key, generator in self.known.items():
            generator.set_state(self.before[key])
        self.start.clear()

    def ends(self) -> list[tuple[torch.Generator, torch.Tensor]]:
        """Those that are not in the state they were in, with a state that stands for the one they end in."""
        with compat.plain_torch():
            states = [(generator, generator.get_state(), self.start.get(key, self.before[key]))
                      for key, generator in self.known.items()]
            return [(generator, state) for generator, state, start in states if not torch.equal(state, start)]

    @contextmanager
    def drawing(self, tracer: Tracer, generator: torch.Generator) -> Iterator[None]:
        """Inside, draws are those of `generator`."""
        if tracer.in_region:
            raise Unmergeable("a branch or loop draws from a generator of its own")
        default = torch.default_generator
        with compat.plain_torch():
            if id(generator) in self.known and id(generator) not in self.start:
                self._begin(tracer, generator)
            outer = default.get_state()
            tracer.draws.value_of(outer)         # now: the program so far may have run when it is needed
            default.set_state(generator.get_state())
        try:
            yield
        finally:
            with compat.plain_torch():
                after = default.get_state()
                tracer.draws.value_of(after)
                generator.set_state(after)
                default.set_state(outer)

    def _begin(self, tracer: Tracer, generator: torch.Generator) -> None:
        """Let the state that a known generator has at the call be a value of the program."""
        before = self.before[id(generator)]
        states = self.start

        def run(_: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            return [before if id(generator) in states else generator.get_state()]

        op = host.of_function("generator_state", run, effects=READS)
        value, = tracer.record.node(op, ((),), {}, [TensorType(torch.uint8, tuple(before.shape))]).results
        states[id(generator)] = tracer.draws.begin(value)
        generator.set_state(states[id(generator)])
