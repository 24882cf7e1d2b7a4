"""What `for` means over traced things, and asking a loop's test without leaving a trace."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture import blame
from monograph.capture.convert.operators import State
from monograph.capture.counted import Counted
from monograph.capture.number import TracedNumber
from monograph.capture.regions.body import Start
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.rolled import row
from monograph.capture.regions.sometimes import OURS
from monograph.ir.graph import Graph

if TYPE_CHECKING:
    from monograph.capture.regions.operators import RegionOperators
    from monograph.capture.tracer import Tracer

__all__ = ["TracedRange", "counted", "peek", "run_body", "run_counted", "run_stoppable"]

Thunk = Callable[[], Any]


class TracedRange(Counted):
    """`range` of traced numbers."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        if type(start) is int and type(step) is int and (start, step) == (0, 1):
            super().__init__(stop, lambda index: index)
            return
        distance = stop - start if not isinstance(step, TracedNumber) and step > 0 else start - stop
        stride = step if not isinstance(step, TracedNumber) and step > 0 else -step
        super().__init__((distance + (stride - 1)) // stride, lambda index: start + index * step)


def counted(tracer: Tracer, items: Any) -> Counted | None:
    """`items` as something counted, when its length is for the run to say."""
    if isinstance(items, torch.Tensor) and items.dim() and tracer.sizes.is_told(items.shape[0]):
        return Counted(items.shape[0], functools.partial(row, items))
    return items if isinstance(items, Counted) and type(items.length) is not int else None


def run_counted(operators: RegionOperators, items: Counted, assign: Callable[[Any], None], body: Thunk, state: State,
                stop: Thunk | None, *, start: int = 0, roll: bool = False) -> None:
    """`for target in items: body` from an index on, as a loop over an index of our own.

    `roll`: the length is Python's, and a loop is recorded all the same."""
    index: list[Any] = [start]
    length = items.length if roll else operators.tracer.traced(items.length)
    site = blame.site("for")

    def put(values: tuple[Any, ...]) -> None:
        *variables, index[0] = values
        state.set(tuple(variables))

    def step() -> None:
        run_body(operators, site, items.item(index[0]), assign, body, state)
        index[0] = index[0] + 1

    whole = State((*state.names, "$index"), lambda: (*state.get(), index[0]), put, state.read,
                  state.dead | {"$index"}, state.local, state.grown)
    operators.while_(lambda: index[0] < length, step, whole, stop,
                     length if isinstance(items.length, TracedNumber) else items.length, roll)


def run_body(operators: RegionOperators, site: Any, entry: Any, assign: Callable[[Any], None], body: Thunk,
             state: State) -> None:
    """One iteration of the loop at `site`: as it is, or a branch for each number that the entry may be."""
    entries = operators.tracer.entries_of_loops
    number = entries.number(site, entry)
    if number is None:
        with entries.within(site, entry):
            assign(entry)
            body()
        return

    def run(values: range) -> None:
        if len(values) == 1:
            assign(number.known(values[0]))
            body()
            return
        lower, upper = values[:len(values) // 2], values[len(values) // 2:]
        operators.if_(number.number < upper[0], functools.partial(run, lower), functools.partial(run, upper), inside)

    kept = frozenset(name for name in state.local if name.startswith(OURS))        # the test reads some
    inside = State(state.names, state.get, state.set, state.read, state.local - kept)
    run(number.values)


def run_stoppable(operators: RegionOperators, items: Iterator[Any], assign: Callable[[Any], None], body: Thunk,
                  state: State, stop: Thunk, last: Callable[[int], None] | None = None, written: int = -1) -> None:
    """`for` over something of known length that a traced value may end early: the rest nests in a branch.

    `last(written)` runs what follows the first `written` iterations."""
    _Stoppable(operators, items, assign, body, state, stop, last, written).run(0)


@dataclass
class _Stoppable:
    """Nothing in it leads back to it: with the loop ends what only the loop held, as a generator."""

    operators: RegionOperators
    items: Iterator[Any]
    assign: Callable[[Any], None]
    body: Thunk
    state: State
    stop: Thunk
    last: Callable[[int], None] | None
    written: int
    seen: list[Any] = field(default_factory=list)

    def at(self, position: int) -> tuple[Any, ...]:
        while len(self.seen) <= position:
            try:
                self.seen.append(next(self.items))
            except StopIteration:
                return ()
        return (self.seen[position],)

    def run(self, position: int) -> None:
        while entry := self.at(position):
            if position == self.written and self.last is not None:
                self.last(position)
                return
            self.assign(entry[0])
            self.body()
            position += 1
            stopped = self.operators.decide(self.stop())
            if isinstance(stopped, torch.Tensor):
                rest = functools.partial(self.rest, position, self.operators.tracer.record.graph)
                self.operators.branch(stopped, lambda: None, rest, self.state)
                return
            if stopped:
                return

    def rest(self, position: int, outside: Graph) -> None:
        if self.operators.tracer.record.graph is not outside and _acts_when_left(self.items):
            raise Unmergeable("a generator that does something when it ends is left in the middle on one path only")
        self.run(position)


def _acts_when_left(items: Iterator[Any]) -> bool:
    """Whether a generator has a `finally`, `except` or `with`."""
    return isinstance(items, types.GeneratorType) and any(
        instruction.opname == "PUSH_EXC_INFO" for instruction in dis.get_instructions(items.gi_code))


def peek(tracer: Tracer, test: Callable[[], bool | torch.Tensor], state: State) -> bool | torch.Tensor:
    """What `test` gives now. Python's answer stands with what it did; a traced one is to be asked again."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        start = Start(tracer, state, site=None, grad=False)
    with start:
        body = start.body(test, "test")
        if body.raised is not None:
            raise body.raised
        if isinstance(body.value, torch.Tensor) or body.graph.nodes:
            start.reset()
    if isinstance(body.value, torch.Tensor):
        found: torch.Tensor = body.value
        return found
    decided = test() if body.graph.nodes else body.value
    return decided
