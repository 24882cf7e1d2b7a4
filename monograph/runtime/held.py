"""Values whose size only a call knows: numbers, and tensors as torch has them.

Symbols are names of numbers known so far in a call. `binder(type)` says which of them a value of that type tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import torch

from monograph.errors import DeviceError, InputError
from monograph.ir import dtypes, symbolic
from monograph.ir.symbolic import Dim, Expr, Sum, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.runtime import lazy

__all__ = [
    "PLACEHOLDER", "REMEMBERED", "Binder", "Check", "Symbols", "binder", "checker", "has_symbols", "is_held",
    "is_plain", "lay_out", "names_in", "names_told", "numbers", "remembered", "row_major", "sizer", "solid",
]

Symbols: TypeAlias = MutableMapping[str, Any]
Binder: TypeAlias = Callable[[Any, Symbols], None]
Check: TypeAlias = Callable[[Any, Mapping[str, Any]], Any]

REMEMBERED = 256        # sets of sizes

KINDS = {"int": int, "float": (int, float), "bool": bool}


PLACEHOLDER = torch.zeros(1, dtype=torch.uint8, device="cpu")
"""What native code sees instead of an input or output that is held."""


def is_held(type: Type) -> bool:
    """Does only a call know how much memory a value takes?"""
    return not (isinstance(type, TensorType) and type.is_static)


def solid(types: Sequence[Type]) -> list[TensorType]:
    """The types of tensors that native code sees."""
    placeholder = TensorType(PLACEHOLDER.dtype, (1,), strides=(1,))
    return [type if isinstance(type, TensorType) and type.is_static else placeholder for type in types]


def has_symbols(value: Any) -> bool:
    """Is there an expression in an operand or attribute?"""
    if isinstance(value, (tuple, list)):
        return any(map(has_symbols, value))
    return isinstance(value, Expr)


def numbers(value: Any, symbols: Mapping[str, Any]) -> Any:
    """`value` with every expression replaced by its number."""
    if isinstance(value, Symbol):
        return symbols[value.name]
    if isinstance(value, Expr):
        return symbolic.evaluate(value, symbols)
    if isinstance(value, (tuple, list)):
        return type(value)(numbers(entry, symbols) for entry in value)
    return value


def names_in(type: Type) -> frozenset[str]:
    """The symbols that a type speaks of."""
    if isinstance(type, ScalarType):
        return frozenset() if type.symbol is None else frozenset({type.symbol})
    return frozenset[str]().union(*map(symbolic.free_symbols, (*type.shape, *(type.strides or ()))))


def names_told(type: Type) -> frozenset[str]:
    """The symbols that the sizes of a value of that type tell, or that it is."""
    if isinstance(type, ScalarType):
        return frozenset() if type.symbol is None else frozenset({type.symbol})
    linear = [found[0] for dim in type.shape if (found := _linear(dim)) is not None]
    return frozenset(linear).union(dim.name for dim in type.shape if isinstance(dim, Symbol))


def binder(type: Type) -> Binder | None:
    """What learns the symbols of `type` from a value; None where it has none. Strides tell only what is not known yet:
    those of a result are as they shall be, which the value at hand need not have."""
    if isinstance(type, ScalarType):
        name = type.symbol
        return None if name is None else lambda value, symbols: symbols.__setitem__(name, value)
    dims = [*type.shape, *(type.strides or ())]
    lone = [(at, dim.name) for at, dim in enumerate(type.shape) if isinstance(dim, Symbol)]
    linear = [(at, *found) for at, dim in enumerate(dims) if (found := _linear(dim)) is not None]
    linear += [(at, dim.name, 1, 0) for at, dim in enumerate(dims) if at >= type.rank and isinstance(dim, Symbol)]
    if not lone and not linear:
        return None
    strides = type.strides is not None

    def bind(value: Any, symbols: Symbols) -> None:
        if not isinstance(value, torch.Tensor):
            return
        actual = (*value.shape, *value.stride()) if strides else value.shape
        for at, name in lone:
            symbols[name] = actual[at]
        for at, name, coefficient, constant in linear:
            symbols.setdefault(name, (actual[at] - constant) // coefficient)

    return bind


def _linear(dim: Any) -> tuple[str, int, int] | None:
    """Name, coefficient and constant of coefficient * symbol + constant."""
    if not isinstance(dim, Sum) or len(dim.terms) != 1:
        return None
    (monomial, coefficient), = dim.terms
    if len(monomial) != 1 or not isinstance(monomial[0], Symbol):
        return None
    return monomial[0].name, coefficient, dim.constant


def checker(number: int, type: Type) -> Check:
    """What gives back an input that is held, lazy conjugates made real, once the symbols of all inputs are bound;
    InputError unless it is of its type."""
    if isinstance(type, ScalarType):
        kind = type

        def check_number(value: Any, symbols: Mapping[str, Any]) -> Any:
            if not isinstance(value, KINDS[kind.kind]):     # type: ignore[arg-type]
                raise InputError(f"input {number} is {value!r}; a number of type {kind} was compiled for")
            return value

        return check_number
    tensor, rank = type, type.rank
    sizes = sizer(type.shape)
    ranges = [(at, dim.lo, dim.hi) for at, dim in enumerate(type.shape) if isinstance(dim, Symbol)]

    def check(value: Any, symbols: Mapping[str, Any]) -> Any:
        if not isinstance(value, torch.Tensor):
            raise InputError(f"input {number} is of class {value.__class__.__name__}; {tensor} was compiled for")
        if value.device.type != "cpu":
            raise DeviceError(f"input {number} is on {value.device}; {tensor} was compiled for")
        if value.layout is not torch.strided:
            raise InputError(f"input {number} is a {value.layout} tensor; {tensor} was compiled for")
        shape = value.shape
        fits = value.dtype is tensor.dtype and len(shape) == rank and shape == sizes(symbols)
        if not fits or any(shape[at] < lo or (hi is not None and shape[at] > hi) for at, lo, hi in ranges):
            found = f"{dtypes.name(value.dtype)}{list(shape)}"
            raise InputError(f"input {number} is {found}; {tensor} was compiled for")
        return lazy.resolved(value)

    return check


def is_plain(value: Any, dtype: torch.dtype) -> bool:
    """Is it a tensor in memory as it looks, of that dtype?"""
    return (isinstance(value, torch.Tensor) and value.dtype is dtype and value.is_cpu and value.layout is torch.strided
            and not value.is_conj() and not value.is_neg())


def remembered(entry: Any) -> Callable[[Mapping[str, Any]], Any]:
    """`numbers(entry, symbols)`, computed once for each set of numbers that `entry` asks for."""
    dims = [dim for dim in entry if isinstance(dim, Expr)]
    names = sorted(frozenset[str]().union(*map(symbolic.free_symbols, dims)))
    found: dict[tuple[Any, ...], Any] = {}

    def look_up(symbols: Mapping[str, Any]) -> Any:
        key = tuple([symbols[name] for name in names])
        made = found.get(key)
        if made is None:
            if len(found) >= REMEMBERED:
                found.clear()
            made = found[key] = numbers(entry, symbols)
        return made

    return look_up


def sizer(shape: tuple[Dim, ...]) -> Callable[[Mapping[str, Any]], tuple[int, ...]]:
    """What computes a shape from symbols."""
    template = [0 if isinstance(dim, Expr) else dim for dim in shape]
    unknown = [(at, dim.name if isinstance(dim, Symbol) else "", dim) for at, dim in enumerate(shape)
               if isinstance(dim, Expr)]

    def sizes(symbols: Mapping[str, Any]) -> tuple[int, ...]:
        made = list(template)
        for at, name, dim in unknown:
            made[at] = symbols[name] if name else numbers(dim, symbols)
        return tuple(made)

    return sizes


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor (a size of 0 counts as 1, as in torch)."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


def lay_out(value: Any, wanted: tuple[int, ...] | None, is_own: bool) -> Any:
    """`value` as an output: with the strides `wanted` (None: as it comes), in memory of its own, which it has where
    `is_own`."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    starts = is_own and not value.storage_offset() and not value.is_conj() and not value.is_neg()
    if starts and (wanted is None or value.stride() == wanted):
        return value
    if wanted is None:        # torch's own choice, which spreads out expanded views
        laid = torch.empty_like(value)
    else:
        laid = torch.empty_strided(value.shape, wanted, dtype=value.dtype, device=value.device)
    return laid.copy_(value)
