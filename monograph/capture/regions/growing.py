"""Loops whose trips only the run knows, and the lists that they append to.

A list that nobody but one variable of the loop's function leads to becomes a `Grown` before the loop. The first round
of the loop shows what its entries look like, and how many there are for an iteration. There is room for as many as
there can be, where the trips are known before the loop, else for a power of two that is enough in this call; one in
which it is not is captured again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.convert.operators import State
from monograph.capture.dims import key_of
from monograph.capture.grown import Grown
from monograph.capture.number import TracedNumber
from monograph.capture.regions.errors import Seen, Unmergeable
from monograph.ir import symbolic

if TYPE_CHECKING:
    from monograph.capture.regions.operators import RegionOperators
    from monograph.capture.tracer import Tracer

__all__ = ["run"]

ROOM = 64


def _counts(values: tuple[Any, ...]) -> list[int]:
    return [sys.getrefcount(value) for value in values]


def _alone() -> int:
    """How often a list is referred to, seen from `_counts`, that only a variable of a function leads to."""
    value: list[Any] = []

    def variable() -> tuple[Any, ...]:
        return (value,)

    values = variable()
    count, = _counts(values)
    return count


ALONE = _alone()


def run(operators: RegionOperators, loop: Callable[[Sequence[Grown]], bool], state: State, site: Any, trips: Any = None,
        early: bool = False) -> None:
    """Record a loop. `loop(lists)` does, unless lists are to be given buffers first: then it gives False and all is
    as it was. `trips`: how often it runs, where that is known before, or at most, where it may end `early`."""
    outer = operators.lists
    for found in outer:
        found.loops += 1
    lists = _growing(operators, state, site, rolled=type(trips) is int)
    _bind(state, lists)
    operators.lists = [*outer, *lists.values()]
    try:
        while not loop([*lists.values()]):
            for found in lists.values():
                if found.looks is not None and not found.buffers:
                    _reserve(operators, found, trips)
    finally:
        operators.lists = outer
        for found in outer:
            found.loops -= 1
    for found in lists.values():
        if found.buffers:
            _close(operators, found, exact=trips is not None and not early)
    _bind(state, {name: found.given for name, found in lists.items() if not found.buffers})


def _growing(operators: RegionOperators, state: State, site: Any, *, rolled: bool) -> dict[str, Grown]:
    """The variables that are lists which the loop appends to, and what is to stand for these. `rolled`: Python knows
    the trips, and has run some of them if the loop could not be one from the start."""
    if not state.grown or site in operators.forks and not rolled:
        return {}
    values = state.get()
    counts, ours = _counts(values), {id(made) for made in operators.growing}
    return {name: Grown(operators.tracer, value, site) for name, value, count in zip(state.names, values, counts)
            if name in state.grown and type(value) is list and count == ALONE + (id(value) in ours)}


def _bind(state: State, new: Mapping[str, Any]) -> None:
    if new:
        state.set(tuple([new.get(name, value) for name, value in zip(state.names, state.get(), strict=True)]))


def _reserve(operators: RegionOperators, found: Grown, trips: Any) -> None:
    tracer = operators.tracer
    ragged = [look.ragged is not None for look in found.looks or ()]
    if any(ragged) and (trips is None or found.nested or found.sometimes or found.given):
        raise Unmergeable("a list that a loop grows has tensors of several sizes", found.site)
    if trips is None or found.nested:
        if tracer.in_region:
            raise Unmergeable("the length of a list that values in a branch or loop decide", found.site)
        found.reserve(tracer.plan.room.get(found.site, ROOM))
        return
    if isinstance(trips, TracedNumber):
        trips = tracer.size(trips.of(lambda count: count.clamp(min=0), trips))
    if not isinstance(trips, (torch.SymInt, int)):
        raise Unmergeable("the length of a list is needed", found.site)
    totals = [[_total(tracer, size, trips) for size in sizes] for sizes in zip(*found.amounts)] if any(ragged) else []
    if any(None in parts for parts in totals):
        raise Unmergeable("a list that a loop grows has tensors of several sizes", found.site)
    found.reserve(trips * (found.always + found.sometimes), [sum(parts) for parts in totals], enough=True)


def _total(tracer: Tracer, size: Any, length: Any) -> Any:
    """The sum over a loop of `length` iterations of a size that is linear in one whose sum is known."""
    sizes, dim = tracer.sizes, key_of(size)
    name, *others = tracer.sizes.names_of(size) or ("",)
    if not name:
        return size * length
    if others or name not in sizes.sums or key_of(sizes.sums[name][1]) != key_of(length):
        return None
    base, one, two = (symbolic.substitute(dim, {name: number}) for number in range(3))
    if not isinstance(base, int) or not isinstance(one, int) or two != 2 * one - base:
        return None
    return (one - base) * sizes.sums[name][0] + base * length


def _close(operators: RegionOperators, found: Grown, exact: bool) -> None:
    """The loop is over, and the length of a list is a size; `exact`: the loop ran as often as was known before."""
    tracer = operators.tracer
    found.close()
    if found.has_enough and exact and not found.sometimes:
        found.length = found.limit
        return
    length = found.length = tracer.size(tracer.traced(found.length))
    if not isinstance(length, torch.SymInt):
        raise Unmergeable("the length of a list is needed", found.site)
    if not found.has_enough and length > found.limit:
        room = tracer.plan.room
        room[found.site] = 2 * max(found.limit, room.get(found.site, 0))
        raise Seen
