"""What the program asks the world: clocks, random generators, the process, files.

    Outside ::= tracer  states of the generators

A number that user code reads becomes a call of the program, made in its place at every run: `host.random_random.0()`.
What gives no number (`datetime.now()`) is refused by name; draws are in `readset_random`. What seldom changes
(`os.getpid()`, the content of a file) is a fact that the guard asks again.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime
import functools
import io
import math
import os
import random
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from monograph import compat
from monograph.capture import number_calls, readset_random
from monograph.capture.arrays import TracedArray
from monograph.capture.draws import FIRST_TICK, REAL, DefaultGenerator
from monograph.capture.generators import Generators
from monograph.capture.iterators import is_one_way, position, refusal
from monograph.capture.number import TracedNumber
from monograph.capture.readset_asked import CLOCKED, CLOCKS, FACTS, OF_NOW, REFUSED, SETTERS
from monograph.capture.readset_random import OWN, SHARED, SYSTEM, Choosing, States, are_equal, put_state, state_of
from monograph.capture.recorder import type_of
from monograph.errors import UnsupportedError
from monograph.ops import host
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Outside"]

CHOOSING = ("choice", "choices", "sample", "shuffle")
DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}      # in this order: a bool is an int
HINT = "draw before the call and pass the result in"

Replace = Callable[[Any, str, Any], None]


class Outside:
    """The reads of one trace. `user_frame` gives the frame of user code that called a stand-in, None for other code.
    `told(label, function, arguments, value)`: the program asked `function`, which may answer otherwise later."""

    def __init__(self, user_frame: Callable[..., Any], told: Callable[[str, Any, tuple[Any, ...], Any], None]) -> None:
        self.user_frame = user_frame
        self.told = told
        self.tracer: Tracer | None = None
        self.torch_seed = torch.initial_seed()      # the trace seeds the generator in its own way
        self.states = States()
        self.tracing = True
        self.stand_ins: dict[int, Any] = {}       # id of a function -> what stands in its place
        self.generators: list[tuple[Any, str, Any]] = []
        self.drawn: list[tuple[Any, str, Any]] = []          # those that an attempt has drawn from
        self.iterators: list[tuple[Any, str, Any]] = []
        self.of_torch = Generators()

    def install(self, replace: Replace) -> None:
        """For one attempt at the trace."""
        self.states, self.tracing = States(), True
        self.drawn = []
        for module, names in CLOCKS.items():
            for name in names:
                self._put(replace, module, name, self._number)
        for module, names in (*REFUSED.items(), *readset_random.REFUSED.items()):
            for name in names:
                self._put(replace, module, name, self.refusal)
        self._install_draws(replace)
        for module, names in SETTERS.items():
            for name in names:
                self._put(replace, module, name, self._setter)
        for module, names in FACTS.items():
            for name in names:
                self._put(replace, module, name, self._fact)
        for module, limits in OF_NOW.items():
            for name, count in limits.items():
                self._put(replace, module, name, functools.partial(self._of_now, count))
        for cls, names in CLOCKED.items():
            self._put(replace, datetime, cls.__name__, functools.partial(self._clocked, names))
        for module in (torch, torch.random):
            self._put(replace, module, "initial_seed", self._initial_seed)
            self._put(replace, module, "default_generator", self._default_generator)
        for name in ("random", "getrandbits", "randbytes"):
            replace(SYSTEM, name, self.refusal("a draw from a SystemRandom", getattr(SYSTEM, name), through=True))
        for name in number_calls.MATH:
            self._put(replace, math, name, lambda _, old, name=name: number_calls.watched(name, old))
        for module in (builtins, io):
            self._put(replace, module, "open", self._open)

    def _put(self, replace: Replace, module: Any, name: str, make: Callable[[str, Any], Any]) -> None:
        old = getattr(module, name, None)
        if old is None:                      # of another platform
            return
        self.stand_ins[id(old)] = made = make(f"{module.__name__}.{name}", old)
        replace(module, name, made)

    def _install_draws(self, replace: Replace) -> None:
        for module, names in readset_random.NUMBERS.items():
            for name in names:
                self._put(replace, module, name, functools.partial(self._number, owner=SHARED[module]))
        for name in CHOOSING:
            self._put(replace, random, name, functools.partial(self._choosing, name, SHARED[random]))
        self._put(replace, np.random, "shuffle", functools.partial(self._choosing, "shuffle", SHARED[np.random]))
        for name in (*readset_random.NUMBERS[random], *CHOOSING, *readset_random.REFUSED[random]):
            replace(OWN, name, self._method(name, getattr(OWN, name)))

    def _number(self, name: str, old: Any, owner: Any = None) -> Any:
        def number(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            if frame is None or self.tracer is None:
                return old(*args, **kwargs)
            args, kwargs = tuple(map(_plain, args)), {key: _plain(value) for key, value in kwargs.items()}
            return self._draw(name, lambda: old(*args, **kwargs), owner, frame)

        return number

    def _draw(self, name: str, call: Callable[[], Any], owner: Any, frame: Any) -> Any:
        """What `call` gives at every run, where it draws from `owner` (None: from nobody)."""
        tracer = self.tracer
        assert tracer is not None
        if owner is not None:
            self.states.note(owner)
        with self.states.drawing(keep=False):
            example = call()
        if isinstance(example, np.ndarray) and example.dtype.kind in "fib":
            return TracedArray(tracer, self._record(name, call, _of_array(example), frame))
        if isinstance(example, np.integer):
            return TracedArray(tracer, self._record(name, call, torch.tensor(int(example)), frame), scalar=True)
        if not isinstance(example, (float, int)) or isinstance(example, int) and abs(example) >= 1 << 62:
            raise self._error(f"{name}() gives a {type(example).__name__}", frame)
        dtype = DTYPES[next(kind for kind in DTYPES if isinstance(example, kind))]
        return tracer.item(self._record(name, call, torch.tensor(example, dtype=dtype), frame))

    def _record(self, name: str, call: Callable[[], Any], example: torch.Tensor, frame: Any) -> torch.Tensor:
        """A tensor like `example` that has what `call` gives at every run."""
        tracer, dtype, shape = self.tracer, example.dtype, tuple(example.shape)
        assert tracer is not None

        def run(_: Any) -> list[Any]:
            with self.states.drawing() if self.tracing else contextlib.nullcontext():
                return [torch.as_tensor(call(), dtype=dtype)]

        with torch.no_grad(), torch._C.DisableTorchFunction():
            tracer.record.loc = _location(frame)
            op = host.of_function(name, run, random=True)
            value, = tracer.node(op, ((),), {}, [type_of(shape, dtype)])
            with compat.plain_torch():
                fake = tracer.fresh(shape, example.stride(), dtype)
            tracer.memory.add(fake, value)
            return fake

    def _choosing(self, kind: str, owner: Any, name: str, old: Any) -> Any:
        def choosing(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            if frame is None or self.tracer is None:
                return old(*args, **kwargs)
            return self._choose(kind, owner, name, old, args, kwargs, frame)

        return choosing

    def _choose(self, kind: str, owner: Any, name: str, old: Any, args: Any, kwargs: Any, frame: Any) -> Any:
        self.states.note(owner)

        def draw(positions: Callable[[Any], Any]) -> torch.Tensor:
            with self.states.drawing(keep=False), compat.plain_torch():
                example = torch.tensor(positions(owner))
            return self._record(name, lambda: positions(owner), example, frame)

        with torch.no_grad(), torch._C.DisableTorchFunction():
            args = tuple(map(_plain, args))
            kwargs = {key: _plain(value) for key, value in kwargs.items()}
            found = getattr(Choosing(self.tracer, draw), kind)(*args, **kwargs)
        if found is not NotImplemented:
            return found
        with self.states.drawing(keep=False):
            old(*args, **kwargs)             # raises, where it may not choose
        raise self._error(f"{name} of such arguments", frame)

    def _method(self, name: str, old: Any) -> Any:
        """A method of `random.Random`, for generators that were there before the trace."""
        label = f"{OWN.__name__}.{name}"

        def method(owner: Any, *args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame(through=isinstance(owner, SYSTEM))
            if frame is not None and isinstance(owner, SYSTEM):
                raise self._error("a draw from a SystemRandom", frame)
            known = readset_random.draws_as_own(type(owner)) and any(owner is entry for entry, _, _ in self.generators)
            if frame is None or self.tracer is None or not known:
                return old(owner, *args, **kwargs)
            if name in readset_random.REFUSED[random]:
                raise self._error(label, frame)
            bound = functools.partial(old, owner)
            if name in CHOOSING:
                return self._choose(name, owner, label, bound, args, kwargs, frame)
            args, kwargs = tuple(map(_plain, args)), {key: _plain(value) for key, value in kwargs.items()}
            return self._draw(label, lambda: bound(*args, **kwargs), owner, frame)

        return method

    def refusal(self, name: str, old: Any, *, through: bool = False) -> Any:
        """A function that user code may not call; `through`: not by way of the standard library either."""
        def refused(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame(through=through)
            if frame is not None:
                raise self._error(name, frame)
            return old(*args, **kwargs)

        return refused

    def _setter(self, name: str, old: Any) -> Any:
        def refused(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            if frame is not None:
                raise UnsupportedError(f"the program calls {name}()", loc=_location(frame),
                                       why="the trace runs once for many calls, which would not do so",
                                       hint="call it outside of the compiled function")
            return old(*args, **kwargs)

        return refused

    def _of_now(self, count: int, name: str, old: Any) -> Any:
        """Given fewer than `count` arguments it takes the moment, or the system's entropy."""
        def refused(*args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame()
            given = sum(value is not None for value in (*args, *kwargs.values()))
            if frame is not None and given < count:
                raise self._error(f"{name}() of this moment", frame)
            return old(*args, **kwargs)

        return stand_in_class(old, refused, {}) if isinstance(old, type) else refused

    def _clocked(self, names: tuple[str, ...], name: str, old: type) -> Any:
        def method(which: str) -> Any:
            return staticmethod(self.refusal(f"{name}.{which}()", getattr(old, which)))

        return stand_in_class(old, old, {which: method(which) for which in names})

    def _fact(self, name: str, old: Any) -> Any:
        def fact(*args: Any, **kwargs: Any) -> Any:
            value = old(*args, **kwargs)
            if self.user_frame() is not None and not kwargs:
                self.told(f"{name}({', '.join(map(repr, args))})", old, args, value)
            return value

        return fact

    def _open(self, name: str, old: Any) -> Any:
        """A file that is read must stay as it is; to write one is refused."""
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            frame = self.user_frame(through=True)
            if frame is not None and not isinstance(file, int):
                if set(mode) & set("wax+"):
                    raise self._error(f"{name}({str(file)!r}, {mode!r})", frame)
                self.told(f"file {file}", stamp, (os.fspath(file),), stamp(os.fspath(file)))
            return old(file, mode, *args, **kwargs)

        return opened

    def _initial_seed(self, name: str, old: Any) -> Any:
        seed = self.torch_seed

        def initial_seed() -> int:
            now = int(old())
            if self.user_frame() is None or now < FIRST_TICK and now != seed:
                return now
            self.told("torch.initial_seed()", old, (), seed)
            return int(seed)

        return initial_seed

    def _default_generator(self, name: str, old: torch.Generator) -> torch.Generator:
        made = DefaultGenerator()
        made.real, made.asked_seed = old, self._initial_seed(name, old.initial_seed)
        made.reseed = self.refusal(f"{name}.seed", old.seed)
        return made

    def _error(self, what: str, frame: Any) -> UnsupportedError:
        return UnsupportedError(f"{what} while the program is captured, and would be the same at every call",
                                loc=_location(frame), why="the trace runs once for many calls",
                                hint="do it before the call and pass the result in, or after it")

    # -- generators of the user's ------------------------------------------------------

    def reach(self, value: Any, path: str) -> None:
        """Note a generator that the program may draw from; of a bound method, the one it belongs to."""
        if isinstance(value, torch.Generator) and not isinstance(value, DefaultGenerator) and value is not REAL:
            self.of_torch.note(value)
        if is_one_way(value):
            self.iterators.append((value, path, position(value)))
        owner = getattr(value, "__self__", None) if isinstance(value, types.BuiltinMethodType) else value
        if readset_random.is_known_class(owner) and not any(owner is known for known, _, _ in self.generators):
            self.generators.append((owner, path, state_of(owner)))

    def take_back(self) -> None:
        """Generators are as before; UnsupportedError where an iterator is not."""
        drawn = [entry for entry in self.generators if not are_equal(state_of(entry[0]), entry[2])]
        for owner, _, state in drawn:
            put_state(owner, state)
        self.drawn = self.drawn or drawn
        for iterator, path, before in self.iterators:
            if position(iterator) != before:
                error = refusal(path, type(iterator))
                error.final = True
                raise error

    def check(self) -> None:
        """UnsupportedError where a generator was drawn from."""
        if self.drawn:
            owner, path, _ = self.drawn[0]
            raise UnsupportedError(f"the program draws from {path}, a {type(owner).__name__}, and would "
                                   "draw the same at every call", why="the trace runs once for many calls", hint=HINT)


def stand_in_class(old: type, make: Callable[..., Any], methods: dict[str, Any]) -> type:
    """A class that answers like `old`, whose instances it makes, but for its class methods `methods`. Calling it is
    calling `make`."""
    class Meta(type(old)):            # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, old)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, old)

    return Meta(old.__name__, (old,), {**methods, "__module__": old.__module__, "__doc__": old.__doc__})


def stamp(file: Any) -> Any:
    """What changes when a file does; None where there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _of_array(array: Any) -> torch.Tensor:
    with compat.plain_torch():
        return torch.from_numpy(np.ascontiguousarray(array))


def _plain(value: Any) -> Any:
    return value._ask() if isinstance(value, TracedNumber) else value


def _location(frame: Any) -> SourceLoc:
    return SourceLoc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
