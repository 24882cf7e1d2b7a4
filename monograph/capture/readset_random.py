"""Draws from the generators of Python and numpy: made at every call, from the states that eager would draw from.

    random.gauss(0, 1)  np.random.rand(3)  mine.random()       a call of the program that gives a number or an array
    random.choice(items)  mine.sample(items, 2)                a call that gives positions, and what is there: of
    random.shuffle(items)                                      numbers a part of the program, of anything else what is
                                                               at the positions of this call

The generators are those of the modules and `random.Random`s of the user's, of subclasses that only add to it as well.
While a trace runs they draw from states of their own (`States`) and stay as they were. Objects of numpy's own classes,
and of subclasses that draw otherwise, cannot be watched: that one was drawn from is known by its state having changed,
and refused.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from monograph.capture.number import DTYPES, TracedNumber, kind_of

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["NUMBERS", "REFUSED", "SYSTEM", "Choosing", "States", "is_known_class", "put_states", "states_of"]

SYSTEM = random.SystemRandom
SHARED: dict[types.ModuleType, Any] = {random: random.random.__self__,      # type: ignore[attr-defined]
                                       np.random: np.random.rand.__self__}      # type: ignore[attr-defined]
OWN = random.Random          # its methods are replaced, for generators of the user's
INDIFFERENT = {"__dict__", "__doc__", "__firstlineno__", "__init__", "__module__", "__new__", "__static_attributes__",
               "__weakref__"}       # of a class
NUMBERS: dict[types.ModuleType, tuple[str, ...]] = {
    random: ("random", "uniform", "randint", "randrange", "gauss", "normalvariate", "lognormvariate", "expovariate",
             "betavariate", "gammavariate", "triangular", "vonmisesvariate", "paretovariate", "weibullvariate",
             "getrandbits"),
    np.random: ("random", "rand", "randn", "randint", "uniform", "normal", "random_sample", "standard_normal",
                "exponential", "beta", "gamma", "poisson", "binomial", "laplace", "lognormal", "standard_exponential",
                "choice", "permutation", "multinomial", "multivariate_normal", "dirichlet"),
}
REFUSED: dict[types.ModuleType, tuple[str, ...]] = {
    random: ("seed", "setstate", "getstate", "randbytes"),
    np.random: ("seed", "set_state", "get_state", "bytes"),
}

Draw = Callable[[Callable[[Any], Any]], torch.Tensor]       # of an array of positions, by a function of the generator


def is_known_class(value: Any) -> bool:
    """A generator of the user's."""
    return isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)) and not isinstance(
        value, SYSTEM) and not any(value is shared for shared in SHARED.values())


def draws_as_own(cls: type) -> bool:
    """Whether a subclass of `random.Random` leaves all that class does as it is."""
    own = {name for base in OWN.__mro__[:-1] for name in vars(base)} - INDIFFERENT
    return all(own.isdisjoint(vars(base)) for base in cls.__mro__[:cls.__mro__.index(OWN)])


def state_of(owner: Any) -> Any:
    if isinstance(owner, random.Random):
        return owner.getstate()
    return owner.bit_generator.state if isinstance(owner, np.random.Generator) else owner.get_state(legacy=False)


def put_state(owner: Any, state: Any) -> None:
    if isinstance(owner, random.Random):
        owner.setstate(state)
    elif isinstance(owner, np.random.Generator):
        owner.bit_generator.state = state
    else:
        owner.set_state(state)


def are_equal(a: Any, b: Any) -> bool:
    """Of states: tuples of numbers, or dicts that may hold arrays."""
    if isinstance(a, dict):
        return all(are_equal(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)


def states_of(owners: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(owner, state_of(owner)) for owner in owners]


def put_states(kept: Iterable[tuple[Any, Any]]) -> None:
    for owner, state in kept:
        put_state(owner, state)


class States:
    """Of the generators that a trace draws from: where the program so far leaves them."""

    def __init__(self) -> None:
        self.own: dict[int, tuple[Any, Any]] = {}

    @property
    def owners(self) -> list[Any]:
        return [owner for owner, _ in self.own.values()]

    @contextmanager
    def drawing(self, keep: bool = True) -> Iterator[None]:
        """Draws inside come from the states of the traced program, and with `keep` advance them."""
        real = states_of(self.owners)
        put_states(self.own.values())
        try:
            yield
        finally:
            if keep:
                self.own = {id(owner): (owner, state_of(owner)) for owner in self.owners}
            put_states(real)

    def note(self, owner: Any) -> None:
        if id(owner) not in self.own:
            self.own[id(owner)] = owner, state_of(owner)


class Choosing:
    """What chooses from a sequence, by name of the function; `NotImplemented` where Python is to say (it raises)."""

    def __init__(self, tracer: Tracer, draw: Draw) -> None:
        self.tracer = tracer
        self.draw = draw

    def choice(self, seq: Any) -> Any:
        count = len(seq)
        if not count:
            return NotImplemented
        return self._at(seq, TracedNumber(self.tracer, self.draw(lambda owner: owner.choice(range(count)))))

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> Any:
        count = len(population)
        if not count:
            return NotImplemented
        return self._gathered(population, self.draw(
            lambda owner: owner.choices(range(count), weights, cum_weights=cum_weights, k=k)))

    def sample(self, population: Any, k: int, *, counts: Any = None) -> Any:
        if counts is not None or not isinstance(population, Sequence) or not 0 <= k <= len(population):
            return NotImplemented
        count = len(population)
        return self._gathered(population, self.draw(lambda owner: owner.sample(range(count), k)))

    def shuffle(self, x: Any) -> Any:
        if not isinstance(x, list):
            return NotImplemented
        count = len(x)

        def order(owner: Any) -> list[int]:
            positions = list(range(count))
            owner.shuffle(positions)
            return positions

        x[:] = self._gathered(x, self.draw(order))
        return None

    def _at(self, seq: Any, position: TracedNumber) -> Any:
        table = self._table(seq)
        if table is None:
            return seq[position]
        return TracedNumber(self.tracer, table.index_select(0, position.tensor.reshape(1)).reshape(()))

    def _gathered(self, seq: Any, positions: torch.Tensor) -> list[Any]:
        table = self._table(seq)
        if table is None:
            return [seq[position] for position in self.tracer.ask_all(positions)]
        return [TracedNumber(self.tracer, number) for number in table.index_select(0, positions).unbind()]

    def _table(self, seq: Any) -> torch.Tensor | None:
        """A sequence of numbers of one kind as a tensor."""
        if type(seq) not in (list, tuple, range):
            return None
        kinds = {kind_of(entry) for entry in seq}
        if len(kinds) != 1 or None in kinds or any(type(entry) is int and abs(entry) >= 1 << 63 for entry in seq):
            return None
        if all(type(entry) in DTYPES for entry in seq):
            return torch.tensor(seq, dtype=DTYPES[kinds.pop()])       # type: ignore[index]
        return torch.stack([self.tracer.number_tensor(entry) for entry in seq])
