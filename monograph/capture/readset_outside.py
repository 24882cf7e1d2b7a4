"""Numbers from outside of the program: clocks and random generators that are not torch's.

    Outside ::= tracer  own states of the generators

A number that user code reads becomes a call of the program, made in its place at every run: `host.random_random.0()`.
While tracing such calls draw from states of their own, so that the generators stay as they were. What gives no number
(`random.shuffle`, arrays of numpy.random) is refused by name, and so are generators that are objects of the user's,
which are known by their state having changed.
"""

from __future__ import annotations

import random
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from monograph import compat
from monograph.capture.draws import FIRST_TICK
from monograph.capture.number import TracedNumber
from monograph.capture.recorder import type_of
from monograph.errors import UnsupportedError
from monograph.ops import host
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Outside", "put_states", "states"]

# What gives numbers, and what belongs to the same generators and gives none.
NUMBERS: dict[types.ModuleType, tuple[str, ...]] = {
    time: ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
           "process_time_ns", "thread_time", "thread_time_ns"),
    random: ("random", "uniform", "randint", "randrange", "gauss", "normalvariate", "lognormvariate", "expovariate",
             "betavariate", "gammavariate", "triangular", "vonmisesvariate", "paretovariate", "weibullvariate",
             "getrandbits"),
    np.random: ("random", "rand", "randn", "randint", "uniform", "normal", "random_sample", "standard_normal",
                "exponential", "beta", "gamma", "poisson", "binomial", "laplace", "lognormal", "standard_exponential"),
}
REFUSED: dict[types.ModuleType, tuple[str, ...]] = {
    random: ("choice", "choices", "sample", "shuffle", "seed", "setstate", "getstate", "randbytes"),
    np.random: ("choice", "permutation", "shuffle", "seed", "set_state", "get_state", "bytes", "multinomial",
                "multivariate_normal", "dirichlet"),
    torch: ("get_rng_state", "seed"),
    torch.random: ("get_rng_state", "seed"),
}
SHARED = (random.random.__self__, np.random.rand.__self__)      # type: ignore[attr-defined]
DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}      # in this order: a bool is an int
HINT = "draw before the call and pass the result in"

Replace = Callable[[Any, str, Any], None]


def states() -> Any:
    """Where the generators of Python and numpy stand."""
    return random.getstate(), np.random.get_state()


def put_states(kept: Any) -> None:
    random.setstate(kept[0])
    np.random.set_state(kept[1])


class Outside:
    """The reads of one trace. `user_frame` gives the frame of user code that called a stand-in, None for other code.
    `seeded(function, value)` is told that the program read torch's seed."""

    def __init__(self, user_frame: Callable[[], Any], seeded: Callable[[Any, int], None]) -> None:
        self.user_frame = user_frame
        self.seeded = seeded
        self.tracer: Tracer | None = None
        self.own = states()                  # of the generators, as the traced program leaves them
        self.used = False
        self.tracing = True
        self.stand_ins: dict[int, Any] = {}       # id of a function -> what stands in its place
        self.generators: list[tuple[Any, str, Any]] = []

    def install(self, replace: Replace) -> None:
        """For one attempt at the trace."""
        self.own, self.used, self.tracing = states(), False, True
        self.generators.clear()
        for module, names in NUMBERS.items():
            for name in names:
                self._put(replace, module, name, self._number)
        for module, names in REFUSED.items():
            for name in names:
                self._put(replace, module, name, self._refusal)
        self._put(replace, np.random, "default_rng", self._unseeded)
        for module in (torch, torch.random):
            self._put(replace, module, "initial_seed", self._initial_seed)

    def _put(self, replace: Replace, module: Any, name: str, make: Callable[[str, Any], Any]) -> None:
        old = getattr(module, name)
        self.stand_ins[id(old)] = made = make(f"{module.__name__}.{name}", old)
        replace(module, name, made)

    def _number(self, name: str, old: Any) -> Any:
        def number(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            if frame is None or self.tracer is None:
                return old(*args, **kwargs)
            args, kwargs = tuple(map(_plain, args)), {key: _plain(value) for key, value in kwargs.items()}
            before = self.own
            with self._own_states():
                example = old(*args, **kwargs)
            self.own = before
            if not isinstance(example, (float, int)) or isinstance(example, int) and abs(example) >= 1 << 62:
                raise self._error(f"{name}() gives a {type(example).__name__}", frame)
            return self._record(name, lambda: old(*args, **kwargs), example, frame)

        return number

    def _record(self, name: str, call: Callable[[], Any], example: Any, frame: Any) -> Any:
        tracer = self.tracer
        assert tracer is not None
        self.used = True

        dtype = DTYPES[next(kind for kind in DTYPES if isinstance(example, kind))]

        def run(_: Any) -> list[Any]:
            if not self.tracing:
                return [torch.tensor(call(), dtype=dtype)]
            with self._own_states():
                return [torch.tensor(call(), dtype=dtype)]

        with torch.no_grad(), torch._C.DisableTorchFunction():
            tracer.record.loc = _location(frame)
            op = host.of_function(name, run, random=True)
            value, = tracer.node(op, ((),), {}, [type_of((), dtype)])
            with compat.plain_torch():
                fake = tracer.fresh((), (), dtype)
            tracer.memory.add(fake, value)
            return tracer.item(fake)

    @contextmanager
    def _own_states(self) -> Iterator[None]:
        """Draws inside come from the states of the traced program."""
        real = states()
        put_states(self.own)
        try:
            yield
        finally:
            self.own = states()
            put_states(real)

    def _refusal(self, name: str, old: Any) -> Any:
        def refused(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            if frame is not None:
                raise self._error(f"{name}()", frame)
            return old(*args, **kwargs)

        return refused

    def _unseeded(self, name: str, old: Any) -> Any:
        def generator(seed: Any = None) -> Any:
            frame = self.user_frame()
            if seed is None and frame is not None:
                raise self._error(f"{name}() without a seed", frame)
            return old(seed)

        return generator

    def _initial_seed(self, name: str, old: Any) -> Any:
        seed = old()                         # before the trace, whose draws seed the generator in their own way

        def initial_seed() -> int:
            now = int(old())
            frame = self.user_frame()
            if frame is None or now < FIRST_TICK and now != seed:
                return now
            self.seeded(old, seed)
            return int(seed)

        return initial_seed

    def _error(self, what: str, frame: Any) -> UnsupportedError:
        return UnsupportedError(f"{what} while the program is captured, and would be the same at every call",
                                loc=_location(frame), why="the trace runs once for many calls", hint=HINT)

    # -- generators of the user's ------------------------------------------------------

    def reach(self, value: Any, path: str) -> None:
        """Note a generator that the program may draw from; of a bound method, the one it belongs to."""
        owner = getattr(value, "__self__", None) if isinstance(value, types.BuiltinMethodType) else value
        if isinstance(owner, (random.Random, np.random.Generator, np.random.RandomState)) and not any(
                owner is known for known in (*SHARED, *(generator for generator, _, _ in self.generators))):
            self.generators.append((owner, path, _state(owner)))

    def check(self) -> None:
        """UnsupportedError where one was drawn from; all are as before."""
        drawn = [entry for entry in self.generators if not _equal(_state(entry[0]), entry[2])]
        for owner, _, state in drawn:
            _put_state(owner, state)
        if drawn:
            raise UnsupportedError(f"the program draws from {drawn[0][1]}, a {type(drawn[0][0]).__name__}, and would "
                                   "draw the same at every call", why="the trace runs once for many calls", hint=HINT)


def _plain(value: Any) -> Any:
    return value._ask() if isinstance(value, TracedNumber) else value


def _location(frame: Any) -> SourceLoc:
    return SourceLoc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def _state(owner: Any) -> Any:
    if isinstance(owner, random.Random):
        return owner.getstate()
    return owner.bit_generator.state if isinstance(owner, np.random.Generator) else owner.get_state(legacy=False)


def _put_state(owner: Any, state: Any) -> None:
    if isinstance(owner, random.Random):
        owner.setstate(state)
    elif isinstance(owner, np.random.Generator):
        owner.bit_generator.state = state
    else:
        owner.set_state(state)


def _equal(a: Any, b: Any) -> bool:
    """Of states: tuples of numbers, or dicts that may hold arrays."""
    if isinstance(a, dict):
        return all(_equal(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)
