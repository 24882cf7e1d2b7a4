"""Random draws: recorded in eager's order, and recognised when the program winds the generator back.

Kernels of fakes draw nothing, so while tracing the real default generator serves as a clock: it begins in a
state of its own and moves to a new one with every draw. Code that saves and restores the generator's state (activation
checkpointing) thereby names an earlier draw, whose value is used again; where it draws otherwise, the state is
read at that place of the program (`mono.rng_state`) and set again. Code that seeds leaves a state that only its
seed explains: recorded as `mono.seed`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture.recorder import Recorder
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops import table

__all__ = ["FIRST_TICK", "DefaultGenerator", "Draws", "REAL"]

FIRST_TICK = 0x6D6F6E6F67726170      # seeds of the clock: none that a program would use

REAL = torch.default_generator       # what programs find at that place while they are traced is a DefaultGenerator


class Draws:
    """The draws of one trace. `evaluated()`: how many nodes of the graph have run already."""

    def __init__(self, record: Recorder, evaluated: Callable[[], int]) -> None:
        self.record = record
        self.root = record.graph
        self.evaluated = evaluated
        self.known: dict[bytes, tuple[Any, tuple[Value, ...], torch.Tensor]] = {}
        self.places: dict[bytes, tuple[Graph, Node | None]] = {}     # of a state: the node that leads to it
        self.saved: dict[bytes, Value] = {}
        self.ticks = itertools.count(FIRST_TICK)
        self.start = torch.default_generator.get_state()
        self.latest = self._tick(None)

    def draw(self, signature: Any, record: Callable[[], Sequence[Value]]) -> tuple[Value, ...]:
        """The values of a random op: new ones from `record`, or those drawn from this very state before."""
        with compat.plain_torch():
            state = torch.default_generator.get_state()
            key = _key(state)
            again = self.known.get(key)
            if again is not None and again[0] == signature:
                torch.default_generator.set_state(again[2])
                return again[1]
            if again is not None or not torch.equal(state, self.latest):
                self._reach(state)
            values = tuple(record())
            self.latest = self._tick(self.record.graph.nodes[-1])
            self.known[key] = (signature, values, self.latest)
            return values

    def settle(self) -> None:
        """At the end of the program: record a seeding, or the return to a state, that no draw followed."""
        with compat.plain_torch():
            state = torch.default_generator.get_state()
            if not torch.equal(state, self.latest):
                self._reach(state)
                self.latest = state

    def leave_region(self, known: dict[bytes, Any]) -> None:
        """What was drawn in a region stays in it; `known` is what was before."""
        if len(known) == len(self.known):
            return
        with compat.plain_torch():
            self.known = known
            graph = self.record.graph
            self.latest = self._tick(graph.nodes[-1] if graph.nodes else None)

    def restore(self) -> None:
        torch.default_generator.set_state(self.start)

    def value_of(self, state: torch.Tensor) -> Value | None:
        """What a state of the generator that the program got hold of is in each run; None for any other tensor."""
        if state.dtype is not torch.uint8 or state.shape != self.start.shape:
            return None
        with compat.plain_torch():
            return self._saved(_key(state))

    def begin(self, value: Value) -> torch.Tensor:
        """A new state, which stands for `value`."""
        with compat.plain_torch():
            now = REAL.get_state()
            REAL.manual_seed(next(self.ticks))
            state = REAL.get_state()
            REAL.set_state(now)
        self.saved[_key(state)] = value
        return state

    def _tick(self, node: Node | None) -> torch.Tensor:
        """A new state, to which `node` leads."""
        torch.default_generator.manual_seed(next(self.ticks))
        state = torch.default_generator.get_state()
        self.places[_key(state)] = self.record.graph, node
        return state

    def _reach(self, state: torch.Tensor) -> None:
        """Record what led to `state`: the return to an earlier one, or a seeding. UnsupportedError when none did."""
        before = self._saved(_key(state))
        if before is not None:
            self.record.node(table.lookup("mono.set_rng_state"), (before,), {}, (TensorType(torch.int8, ()),))
            return
        seed = torch.default_generator.initial_seed()
        torch.default_generator.manual_seed(seed)
        if seed >= FIRST_TICK or not torch.equal(torch.default_generator.get_state(), state):
            error = errors.UnsupportedError("the program restores a state of the random generator and draws otherwise",
                                            loc=self.record.loc,
                                            why="that state is none of this call, or one inside of a branch or loop")
            error.may_pass = threading.active_count() > 1          # another thread drew meanwhile
            raise error
        node = self.record.node(table.lookup("mono.seed"), (), {"seed": seed}, (TensorType(torch.int8, ()),))
        self.places[_key(state)] = self.record.graph, node

    def _saved(self, key: bytes) -> Value | None:
        """The state that `key` stands for, read in the program where the generator is in it."""
        if key in self.saved or key not in self.places:
            return self.saved.get(key)
        graph, node = self.places[key]
        if key == _key(self.latest) and graph is self.record.graph:
            position = len(graph.nodes)      # it is in that state still
        else:
            position = 0 if node is None else graph.nodes.index(node) + 1
        if graph is not self.root and graph is not self.record.graph or position < self.evaluated():
            return None
        op, types = table.lookup("mono.rng_state"), (TensorType(torch.uint8, tuple(self.start.shape)),)
        read = Node(op, (), {}, types, loc=self.record.loc)
        graph.nodes.insert(position, read)
        if graph is self.root:               # one of a branch or loop does not outlive it
            self.saved[key] = read.results[0]
        return read.results[0]


class DefaultGenerator(torch.Generator):
    """Stands for torch's own generator, whose class cannot be watched. Draws with it are draws without any."""

    real: torch.Generator
    asked_seed: Callable[[], int]
    reseed: Callable[[], int]

    def initial_seed(self) -> int:
        return self.asked_seed()

    def seed(self) -> int:
        return self.reseed()

    def manual_seed(self, seed: int) -> torch.Generator:
        self.real.manual_seed(seed)
        return self

    def get_state(self) -> torch.Tensor:
        return self.real.get_state()

    def set_state(self, state: torch.Tensor) -> torch.Generator:
        self.real.set_state(state)
        return self

    def clone_state(self) -> torch.Generator:
        return self.real.clone_state()


def _key(state: torch.Tensor) -> bytes:
    return state.numpy().tobytes()
