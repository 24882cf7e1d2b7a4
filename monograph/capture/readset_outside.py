"""What the program asks the world: clocks, random generators, the process, files.

    Outside ::= tracer  own states of the generators

A number that user code reads becomes a call of the program, made in its place at every run: `host.random_random.0()`.
While tracing such calls draw from states of their own, so that the generators stay as they were. What gives no number
(`random.shuffle`, arrays of numpy.random, `datetime.now()`) is refused by name, and so are generators that are objects
of the user's, which are known by their state having changed. What seldom changes (`os.getpid()`, the content of a
file) is a fact that the guard asks again.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import functools
import gc
import io
import math
import os
import random
import secrets
import socket
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from monograph import compat
from monograph.capture import number_calls
from monograph.capture.draws import FIRST_TICK, REAL, DefaultGenerator
from monograph.capture.generators import Generators
from monograph.capture.iterators import is_one_way, position, refusal
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
           "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns"),
    random: ("random", "uniform", "randint", "randrange", "gauss", "normalvariate", "lognormvariate", "expovariate",
             "betavariate", "gammavariate", "triangular", "vonmisesvariate", "paretovariate", "weibullvariate",
             "getrandbits"),
    np.random: ("random", "rand", "randn", "randint", "uniform", "normal", "random_sample", "standard_normal",
                "exponential", "beta", "gamma", "poisson", "binomial", "laplace", "lognormal", "standard_exponential"),
    secrets: ("randbelow", "randbits"),
}
REFUSED: dict[types.ModuleType, tuple[str, ...]] = {
    random: ("choice", "choices", "sample", "shuffle", "seed", "setstate", "getstate", "randbytes"),
    np.random: ("choice", "permutation", "shuffle", "seed", "set_state", "get_state", "bytes", "multinomial",
                "multivariate_normal", "dirichlet"),
    torch: ("seed",),
    torch.random: ("seed",),
    secrets: ("token_bytes", "token_hex", "token_urlsafe", "choice", "SystemRandom"),
    uuid: ("uuid1", "uuid4"),
    os: ("urandom", "times", "getloadavg"),
    sys: ("getrefcount",),
}
# What they set would be set once.
SETTERS: dict[types.ModuleType, tuple[str, ...]] = {
    torch: ("set_default_dtype", "set_default_device", "set_printoptions", "set_num_threads", "set_num_interop_threads",
            "use_deterministic_algorithms", "set_deterministic_debug_mode", "set_float32_matmul_precision",
            "set_warn_always", "set_flush_denormal"),
    np: ("set_printoptions", "seterr"),
    sys: ("setrecursionlimit", "setswitchinterval"),
    gc: ("enable", "disable", "set_threshold", "freeze", "unfreeze"),
    os: ("chdir", "putenv", "unsetenv", "umask", "mkdir", "makedirs", "remove", "unlink", "rename", "replace", "rmdir",
         "system", "kill"),
    decimal: ("setcontext",),
}
# Refused where they are not given the moment they speak of: by the number of arguments that takes.
OF_NOW: dict[types.ModuleType, dict[str, int]] = {
    time: {"localtime": 1, "gmtime": 1, "ctime": 1, "asctime": 1, "strftime": 2},
    np.random: {"default_rng": 1, "PCG64": 1, "MT19937": 1, "Philox": 1, "SFC64": 1, "RandomState": 1,
                "SeedSequence": 1},
    random: {"Random": 1, "SystemRandom": sys.maxsize},
}
CLOCKED: dict[type, tuple[str, ...]] = {datetime.datetime: ("now", "utcnow", "today"), datetime.date: ("today",)}
# Asked again before every call.
FACTS: dict[types.ModuleType, tuple[str, ...]] = {
    os: ("getpid", "getppid", "getcwd", "cpu_count", "getuid", "listdir"),
    os.path: ("exists", "isfile", "isdir", "getsize", "getmtime"),
    threading: ("get_ident", "get_native_id", "active_count"),
    socket: ("gethostname",),
    sys: ("getrecursionlimit", "getswitchinterval"),
    gc: ("isenabled", "get_threshold"),
    torch: ("get_num_threads", "get_num_interop_threads", "get_float32_matmul_precision",
            "get_deterministic_debug_mode", "is_warn_always_enabled"),
    np: ("geterr", "get_printoptions"),
}
SYSTEM = random.SystemRandom
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
    `told(label, function, arguments, value)`: the program asked `function`, which may answer otherwise later."""

    def __init__(self, user_frame: Callable[..., Any], told: Callable[[str, Any, tuple[Any, ...], Any], None]) -> None:
        self.user_frame = user_frame
        self.told = told
        self.tracer: Tracer | None = None
        self.torch_seed = torch.initial_seed()      # the trace seeds the generator in its own way
        self.own = states()                  # of the generators, as the traced program leaves them
        self.used = False
        self.tracing = True
        self.stand_ins: dict[int, Any] = {}       # id of a function -> what stands in its place
        self.generators: list[tuple[Any, str, Any]] = []
        self.drawn: list[tuple[Any, str, Any]] = []          # those that an attempt has drawn from
        self.iterators: list[tuple[Any, str, Any]] = []
        self.of_torch = Generators()

    def install(self, replace: Replace) -> None:
        """For one attempt at the trace."""
        self.own, self.used, self.tracing = states(), False, True
        self.drawn = []
        for module, names in NUMBERS.items():
            for name in names:
                self._put(replace, module, name, self._number)
        for module, names in REFUSED.items():
            for name in names:
                self._put(replace, module, name, self.refusal)
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
        if isinstance(owner, (random.Random, np.random.Generator, np.random.RandomState)) and not isinstance(
                owner, SYSTEM) and not any(
                owner is known for known in (*SHARED, *(generator for generator, _, _ in self.generators))):
            self.generators.append((owner, path, _state(owner)))

    def take_back(self) -> None:
        """Generators are as before; UnsupportedError where an iterator is not."""
        drawn = [entry for entry in self.generators if not _equal(_state(entry[0]), entry[2])]
        for owner, _, state in drawn:
            _put_state(owner, state)
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
