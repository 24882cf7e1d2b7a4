"""Which sizes of a call become symbols.

    History ::= {kind of call: sizes seen*}      two calls are of one kind when only sizes differ

A size of an argument that was another one in an earlier call of the kind is a symbol in the next program; sizes that
have changed together, and alike, are one symbol. 0 and 1 never are: programs for these are made on their own. So is an
integer among the arguments, once it has had some values: before, it may be a flag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.driver import argument_path
from monograph.capture.guards import Fact, Guard
from monograph.capture.symbols import Place, Request
from monograph.errors import InputError
from monograph.ir.symbolic import Symbol

__all__ = ["SMALLEST", "History", "mark_dynamic"]

SMALLEST = 2        # of sizes that are symbols
TRIES = 3           # at a size as a symbol
LARGEST = 2 ** 31 - 1        # of integers that are symbols: products of a few fit 64 bits
FLAGS = 3           # values of an integer until it is taken for a size rather than a flag
MOST = 256          # places looked at
MARKS = "_monograph_sizes"       # attribute of a marked tensor: {dim: (min, max)}


def mark_dynamic(tensor: torch.Tensor, dim: int, *, min: int | None = None, max: int | None = None) -> None:
    """Programs compiled for `tensor` take any size from `min` to `max` in dimension `dim` (0 and 1 aside).

    A size outside of these bounds gets a program of its own. Raises InputError where the size that `tensor` has is not
    within them.
    """
    if not isinstance(tensor, torch.Tensor) or not -tensor.dim() <= dim < tensor.dim():
        raise InputError(f"dimension {dim} of {type(tensor).__name__}{list(getattr(tensor, 'shape', []))}",
                         hint="mark a dimension that the tensor has")
    size = tensor.shape[dim]
    if (min is not None and size < min) or (max is not None and size > max):
        raise InputError(f"size {size} of dimension {dim} is not from {min} to {max}", hint="widen the bounds")
    marks: dict[int, tuple[int | None, int | None]] = getattr(tensor, MARKS, {})
    setattr(tensor, MARKS, {**marks, dim % tensor.dim(): (min, max)})


@dataclass
class Kind:
    """`calls`: the sizes of calls that were compiled; `fixed`: how often a place could not be a symbol;
    `fetched`: where programs take further tensors from, that code replaces by others (a cache that grows)."""

    calls: list[Mapping[Place, int]] = field(default_factory=list)
    fixed: Counter[Place] = field(default_factory=Counter)
    fetched: list[tuple[Guard, Fact]] = field(default_factory=list)

    def replaced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[torch.Tensor, int, int]]:
        """Tensors at such places whose size in a dim is another one than it was; with the dim, and what it was."""
        for guard, fact in self.fetched[-MOST:]:
            now, then = guard.of_call([fact], args, kwargs)[0].now(), fact.want
            if isinstance(now, torch.Tensor) and compat.is_plain(now) and now.dim() == then.dim():
                yield from ((now, axis, size) for axis, size in enumerate(then.shape) if size != now.shape[axis])


@dataclass
class History:
    """Of one callable. `dynamic`: as `compile` has it."""

    dynamic: bool | None
    kinds: dict[Any, Kind] = field(default_factory=dict)

    def clear(self) -> None:
        self.kinds.clear()

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        """The sizes of this call that are to be symbols. Remembers the call."""
        if self.dynamic is False:
            return {}
        leaves, numbers = list(tensors((args, kwargs))), dict(integers((args, kwargs)))
        now = {(path, axis): size for path, tensor in leaves for axis, size in enumerate(tensor.shape)} | numbers
        kind = self.kinds.setdefault(_kind(args, kwargs), Kind())
        kind.calls.append(now)
        marked = {(path, axis): bounds for path, tensor in leaves
                  for axis, bounds in getattr(tensor, MARKS, {}).items()}

        def varies(place: Place, size: int) -> bool:
            seen = {call[place] for call in kind.calls}
            if place in numbers:
                return size <= LARGEST and len(seen) >= FLAGS
            return bool(self.dynamic) or place in marked or len(seen) > 1

        chosen = [place for place, size in now.items()
                  if size >= SMALLEST and kind.fixed[place] < TRIES and varies(place, size)]
        symbols: dict[Any, Symbol] = {}
        made: dict[Place, Symbol] = {}
        for place in chosen:
            together = tuple(call[place] for call in kind.calls) if len(kind.calls) > 1 else place
            if place in marked or len(set(together)) < 2:
                together = place
            lo, hi = marked.get(place, (None, LARGEST if place in numbers else None))
            made[place] = symbols.setdefault(together, Symbol(f"s{len(symbols)}", max(lo or 0, SMALLEST), hi))
        for tensor, axis, then in kind.replaced(args, kwargs):
            together = "replaced", then, tensor.shape[axis]
            if tensor.shape[axis] >= SMALLEST:
                made[id(tensor), axis] = symbols.setdefault(together, Symbol(f"s{len(symbols)}", SMALLEST))
        return made

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: Iterable[Place], guard: Guard) -> None:
        """What a program for such a call is like: places that could not be symbols, perhaps because of their sizes in
        it; places that it takes tensors from, by its guard."""
        kind = self.kinds.setdefault(_kind(args, kwargs), Kind())
        kind.fixed.update(fixed)
        kind.fetched += [(guard, fact) for fact in guard.fetched]


def tensors(call: tuple[tuple[Any, ...], dict[str, Any]]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among the arguments whose sizes may vary, each object once."""
    seen: set[int] = set()
    for path, leaf in pytree.tree_leaves_with_path(call):
        if isinstance(leaf, torch.Tensor) and compat.is_plain(leaf) and id(leaf) not in seen:
            seen.add(id(leaf))
            yield argument_path(pytree.keystr(path)), leaf


def integers(call: tuple[tuple[Any, ...], dict[str, Any]]) -> Iterator[tuple[Place, int]]:
    """The integers among the arguments, as sizes of tensors of one dim."""
    for path, leaf in pytree.tree_leaves_with_path(call):
        if type(leaf) is int:
            yield (argument_path(pytree.keystr(path)), 0), leaf


def _kind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What two calls that differ in sizes alone have in common."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    first = {id(leaf): position for position, leaf in reversed(list(enumerate(leaves)))}
    return str(spec), torch.is_grad_enabled(), tuple(_of_leaf(leaf, first[id(leaf)]) for leaf in leaves)


def _of_leaf(leaf: Any, first: int) -> Any:
    if isinstance(leaf, torch.Tensor):
        plain = compat.is_plain(leaf)
        return (first, type(leaf), *((leaf.dtype, leaf.dim(), leaf.requires_grad) if plain else ()))
    return (type(leaf), leaf) if isinstance(leaf, (bool, float, str, type(None))) else type(leaf)
