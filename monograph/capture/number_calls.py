"""Functions of Python on numbers that only the run knows: `math.exp(x.sum().item())`.

Each becomes a call of that very function by the program, so that results, exceptions and rounding are eager's. What
gives no number, or another kind of one for some numbers, is left to those who ask for the value.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.number import DTYPES, TracedNumber, kind_of
from monograph.capture.recorder import type_of
from monograph.ir.op import Effect, Op
from monograph.ops import host

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["MATH", "TRACERS", "call", "watched"]

# What functions of `math` give, but for those that TracedNumber answers itself (floor, ceil, trunc).
MATH: dict[str, type] = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign", "cos", "cosh",
                     "degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fmod", "gamma", "hypot", "ldexp",
                     "lgamma", "log", "log10", "log1p", "log2", "nextafter", "pow", "radians", "remainder", "sin",
                     "sinh", "sqrt", "tan", "tanh", "ulp"), float),
    **dict.fromkeys(("comb", "factorial", "gcd", "isqrt", "lcm", "perm"), int),
    **dict.fromkeys(("isclose", "isfinite", "isinf", "isnan"), bool),
}


TRACERS: weakref.WeakKeyDictionary[Any, weakref.ref[Tracer]] = weakref.WeakKeyDictionary()     # by mode of their fakes


def call(function: Callable[..., Any], kind: type, *args: Any) -> TracedNumber:
    """`function(*args)`, a `kind`, of numbers of which at least one is traced."""
    tracer: Tracer = next(arg.tracer for arg in args if isinstance(arg, TracedNumber))
    kinds = tuple(kind_of(arg) for arg in args)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        values = tuple(tracer.memory.read(tracer.lift(tracer.number_tensor(arg))) for arg in args)
        value, = tracer.node(_op(function, kind, kinds), (values,), {}, [type_of((), DTYPES[kind])])
        with compat.plain_torch():
            fake = tracer.fresh((), (), DTYPES[kind])
        tracer.memory.add(fake, value)
        return tracer.wrap(fake)


@functools.cache
def _op(function: Callable[..., Any], kind: type, kinds: tuple[type, ...]) -> Op:
    def run(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        fake = next((number for number in given if isinstance(number, compat.FakeTensor)), None)
        if fake is not None:                 # a derivative is being traced: the values are made up
            tracer = TRACERS[fake.fake_mode]()
            assert tracer is not None
            return [call(function, kind, *map(tracer.wrap, given)).tensor]
        result = function(*[number.item() for number in given])
        return [torch.tensor(result, dtype=DTYPES[kind])]

    return host.of_function(function.__name__, run, effects=frozenset({Effect.RAISES}), sync=False)


@functools.cache
def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that takes traced numbers too."""
    @functools.wraps(function)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        numbers = tuple(map(_number, args))
        if not kwargs and any(isinstance(arg, TracedNumber) for arg in numbers) and all(map(kind_of, numbers)):
            return call(function, MATH[name], *numbers)
        return function(*args, **kwargs)

    return replacement


def _number(value: Any) -> Any:
    """The number in a traced tensor of one element; anything else as it is."""
    if isinstance(value, torch.Tensor) and isinstance(value, compat.FakeTensor) and value.numel() == 1 \
            and not value.is_complex():
        return value.item()
    return value
