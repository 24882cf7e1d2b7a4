"""Arguments and results that are tensors around tensors: subclasses with a `__torch_dispatch__` that say by
`__tensor_flatten__` what they hold and are made again by `__tensor_unflatten__`.

    call(dispatcher, args, kwargs)       the program has what they hold; the wrappers are made around it

    Wrapped ::= class  names of the tensors inside  context  sizes  strides  other attributes  inside: (name, Wrapped)*

For each structure of the arguments there is a dispatcher of its own, for the same function `Opened`. While it is traced
the class's own code opens what is done with a wrapper, as in eager. A wrapper with a history is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.guards_ambient import modes_active
from monograph.errors import UnsupportedError

if TYPE_CHECKING:
    from monograph.dispatch import Dispatcher

__all__ = ["Opened", "Variant", "any_in", "call"]

HINT = "pass or return what it wraps"


@dataclass(eq=False)
class Wrapped:
    """How one wrapper is made around the tensors that it holds."""

    kind: Any
    names: tuple[str, ...]
    context: Any
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    others: dict[str, Any]
    inside: dict[str, Wrapped]

    def make(self, held: dict[str, Any]) -> torch.Tensor:
        parts = {name: self.inside[name].make(held[name]) if name in self.inside else held[name] for name in self.names}
        made: torch.Tensor = self.kind.__tensor_unflatten__(parts, self.context, self.sizes, self.strides)
        return made


@dataclass
class Handed:
    """A result that is the argument at this place of the leaves."""

    leaf: int


def is_wrapper(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and compat.opens(type(value)) and value.layout is torch.strided


def alike(a: Any, b: Any) -> bool:
    """Whether two entries of structures are equal; tensors are if they are one."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, torch.Tensor):
        return False
    if type(a) is dict:
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    return alike(vars(a), vars(b)) if isinstance(a, Wrapped) else bool(a == b)


def any_in(args: Any, kwargs: Any) -> bool:
    return any(map(is_wrapper, pytree.tree_leaves((args, kwargs))))


def opened(value: Any, what: str) -> tuple[Wrapped, dict[str, Any]]:
    """How a wrapper is made, and what it holds, in dicts by name. UnsupportedError where it has more to it."""
    kind = type(value).__name__
    if value.requires_grad:
        raise UnsupportedError(f"{what} is a {kind} that requires grad", why="its history is that of the wrapper",
                               hint="call under torch.no_grad(), or pass what it wraps")
    names, context = value.__tensor_flatten__()
    held, inside = {}, {}
    for name in names:
        part = getattr(value, name)
        if is_wrapper(part):
            inside[name], part = opened(part, f"{what}.{name}")
        held[name] = part
    others = {name: entry for name, entry in vars(value).items() if name not in names}
    found = Wrapped(type(value), tuple(names), context, tuple(value.shape), tuple(value.stride()), others, inside)
    again = found.make(held)
    same = type(again) is type(value) and (again.shape, again.stride(), again.dtype) == (
        value.shape, value.stride(), value.dtype)
    if not same or not alike({name: entry for name, entry in vars(again).items() if name not in names}, others):
        raise UnsupportedError(f"{what} is a {kind} that `__tensor_unflatten__` does not make as it is",
                               why="the graph has the tensors inside, which is all that is kept of it", hint=HINT)
    return found, held


class Opened:
    """The user's function, of arguments of which some are the dicts of what a wrapper holds; gives the structure of its
    result, which a trace knows by its number, and the leaves, dicts for wrappers again."""

    def __init__(self, function: Callable[..., Any], spec: Any, wrapped: list[Wrapped | None]) -> None:
        self.function = function
        self.spec = spec
        self.wrapped = wrapped
        self.results: list[tuple[Any, tuple[Wrapped | Handed | None, ...]]] = []
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        leaves = [entry if how is None else how.make(entry)
                  for how, entry in zip(self.wrapped, self.spec.flatten_up_to((args, kwargs)), strict=True)]
        given, named = pytree.tree_unflatten(leaves, self.spec)
        result, spec = pytree.tree_flatten(self.function(*given, **named))
        structures, values = zip(*(self._shut(entry, leaves) for entry in result)) if result else ((), ())
        shape = spec, structures
        if not modes_active():               # nobody is tracing
            return shape, list(values)
        self.results.append(shape)
        return len(self.results) - 1, list(values)

    def _shut(self, value: Any, leaves: list[Any]) -> tuple[Wrapped | Handed | None, Any]:
        if not is_wrapper(value):
            return None, value
        for position, leaf in enumerate(leaves):
            if leaf is value:
                return Handed(position), None
        how, held = opened(value, "a result")
        if modes_active() and not any(isinstance(part, compat.FakeTensor) for part in pytree.tree_leaves(held)):
            raise UnsupportedError(f"a result is a {type(value).__name__} with nothing in it that the call made",
                                   why="it may be one that was there before, or a new one", hint=HINT)
        return how, held


@dataclass
class Variant:
    """Of one compiled callable, for arguments of one structure."""

    spec: Any
    wrapped: list[Wrapped | None]
    dispatcher: Dispatcher


def call(dispatcher: Dispatcher, variants: list[Variant], make: Callable[[Opened], Dispatcher], args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:
    """Call `dispatcher.function` by the variant for these arguments, which `make` makes where there is none."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    wrapped, given = zip(*(opened(leaf, f"argument {number}") if is_wrapper(leaf) else (None, leaf)
                           for number, leaf in enumerate(leaves)))
    found = next(_fitting(variants, spec, list(wrapped)), None)
    if found is None:
        function = Opened(dispatcher.function, spec, list(wrapped))
        found = Variant(spec, list(wrapped), make(function))
        variants.append(found)
    inner, named = pytree.tree_unflatten(given, spec)
    shape, values = found.dispatcher(*inner, **named)
    function: Any = found.dispatcher.function
    shape, structures = function.results[shape] if isinstance(shape, int) else shape
    results = [leaves[how.leaf] if isinstance(how, Handed) else value if how is None else how.make(value)
               for how, value in zip(structures, values, strict=True)]
    return pytree.tree_unflatten(results, shape)


def _fitting(variants: list[Variant], spec: Any, wrapped: list[Wrapped | None]) -> Iterator[Variant]:
    return (variant for variant in variants if variant.spec == spec and alike(variant.wrapped, wrapped))
