"""Sizes of a trace that are symbols: which they are, and what was taken for granted of them.

    Request ::= {(tensor, dim): Dim}       symbols with their ranges, or expressions of these
    tensor  ::= path of an argument | id of the tensor
    Asked   ::= condition  the user's line
    told    ::= symbols that values of the program tell (`sizes`): what is asked about these is checked there

`Sizes.place` says how a tensor that enters lies. A trace in which two symbols turn out to be tied to each other, or one
to be a number, starts again with a request that says so (`refined`): what was recorded before would not fit the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from monograph import compat
from monograph.capture import blame
from monograph.capture.alike import Alike
from monograph.capture.dims import Condition, Relation, condition, key_of, of_sympy, size_of
from monograph.ir import symbolic
from monograph.ir.symbolic import Dim, Symbol
from monograph.source import SourceLoc

__all__ = ["Asked", "Lying", "Origin", "Place", "Request", "Sizes", "SizesDiffer", "refined", "symbols_in"]

Place: TypeAlias = tuple[str | int, int]
Request: TypeAlias = Mapping[Place, Dim]
MADE_UP = 7        # what torch is told that such a symbol is; every answer that depends on it is refused
Origin: TypeAlias = "tuple[SourceLoc | None, int]"      # a line of the user's, and how many symbols it has made by then


class SizesDiffer(Exception):
    """Trace again with `request`: the last one had symbols that are tied. Never leaves the driver."""

    def __init__(self, request: Request) -> None:
        self.request = request
        super().__init__(request)


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer given while tracing, which other sizes may not give."""

    condition: Condition
    loc: SourceLoc | None


@dataclass(frozen=True, slots=True)
class Lying:
    """Sizes and strides of a tensor that entered, as far as they are not numbers. `key`: of the request."""

    key: str | int
    path: str
    sizes: Mapping[int, Dim]
    strides: Mapping[int, Dim]


@dataclass
class Sizes:
    """`symbols`: those in use; `lying`: the tensors that have them, by path; `asked`: what was asked, in order."""

    request: Request
    mode: Any = None
    symbols: dict[str, Symbol] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)
    lying: dict[str, Lying] = field(default_factory=dict)
    results: dict[Any, Any] = field(default_factory=dict)        # what results of ops look like, for `fake_memo`
    answers: list[tuple[Any, SourceLoc | None]] = field(default_factory=list)
    told: dict[str, Origin] = field(default_factory=dict)         # where symbols were made that values tell
    dims: dict[int, Dim] = field(default_factory=dict)            # numbers, by `alike`, that sizes were made of
    counts: dict[Any, Dim] = field(default_factory=dict)          # mask, as `alike` numbers it -> its true elements
    fixed_counts: dict[Any, int] = field(default_factory=dict)    # the same where the program is for that number
    sums: dict[str, tuple[Any, Any]] = field(default_factory=dict)     # symbol -> its sum over a loop, and the trips
    local: set[str] = field(default_factory=set)                  # symbols that a value in a branch or loop tells
    alike: Alike = field(default_factory=Alike)
    asserting: bool = False                                       # eager raises where what is asked is not so
    required: set[Relation] = field(default_factory=set)
    pinned: set[Origin] = field(default_factory=set)              # told symbols whose very number is needed, as
    numeric: frozenset[Origin] | None = frozenset()               # earlier attempts have found (None: all)
    made: Counter[Any] = field(default_factory=Counter)
    positive: bool = False                                        # integers that are sizes are above 0 where they are
    assumed: bool = False                                         # something of sizes that only a branch or loop knows
    check: Callable[[Any, SourceLoc | None], None] | None = None      # what is to happen with a condition on those

    def hear(self, asked: Any) -> None:
        loc = blame.location(blame.user_frame(2))
        if self.told and not self.told.keys().isdisjoint(map(str, asked.free_symbols)):
            assert self.check is not None
            self.check(asked, loc)
        else:
            self.answers.append((asked, loc))

    def name(self) -> str:
        """For another symbol that a value tells."""
        self.made["name"] += 1
        return f"v{self.made['name'] - 1}"

    def fixed(self, loc: SourceLoc | None) -> bool:
        """Whether the next symbol made at a line of the user's is to be a number."""
        self.made[loc] += 1
        return self.numeric is None or (loc, self.made[loc]) in self.numeric

    @contextmanager
    def asserted(self) -> Iterator[None]:
        """What is asked inside eager asks too, and raises where it is not so."""
        before, self.asserting = self.asserting, True
        try:
            yield
        finally:
            self.asserting = before

    def tell_inside(self, symbol: Symbol) -> None:
        """In this branch or loop `symbol` is a size, told by a value of it: nobody knows what it is in this call."""
        self.local.add(symbol.name)
        self.tell(symbol, MADE_UP, None)

    def tell(self, symbol: Symbol, value: int, loc: SourceLoc | None) -> None:
        """From here on `symbol` is a size, told by a value of the program; in this call it is `value`."""
        self.told[symbol.name], self.numbers[symbol.name] = (loc, self.made[loc]), value
        self.sizes[symbol.name] = compat.symbolic_size(self.mode, symbol.name, value, symbol.lo, symbol.hi, symbol,
                                                       own=True)

    def is_told(self, size: Any) -> bool:
        """Whether values of the program decide a size."""
        return isinstance(size, torch.SymInt) and not self.told.keys().isdisjoint(symbolic.free_symbols(key_of(size)))

    def names_of(self, size: Any) -> set[str]:
        """The symbols in a size."""
        return symbolic.free_symbols(key_of(size)) if isinstance(size, (int, torch.SymInt)) else set()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is told inside is known to nobody outside."""
        before = dict(self.dims), dict(self.counts), set(self.required)
        try:
            yield
        finally:
            self.dims, self.counts, self.required = before

    def pin(self, names: Iterable[str]) -> None:
        """The trace needs to know the numbers of symbols that values tell."""
        self.pinned.update(self.told[name] for name in names if name in self.told)

    @property
    def asked(self) -> list[Asked]:
        """Every condition once."""
        known = compat.dims_of(self.mode)
        found: dict[Condition, Asked] = {}
        for asked, loc in self.answers:
            made = condition(asked, known)
            found.setdefault(made, Asked(made, loc))
        return list(found.values())

    def size(self, dim: Dim) -> Any:
        """The int or SymInt that is `dim`."""
        return size_of(dim, self.sizes)

    def varies(self, real: torch.Tensor) -> bool:
        """Are sizes of an outer tensor, which is no argument, to be symbols?"""
        return bool(self.request) and bool(self._wanted(id(real), real))

    def place(self, path: str, real: torch.Tensor) -> tuple[Sequence[Any], Sequence[Any]] | None:
        """Sizes and strides of the fake of `real`, where some are symbols."""
        key: str | int = path
        wanted = self._wanted(key, real)
        if not wanted:
            key = id(real)
            wanted = self._wanted(key, real)
        if not wanted or real.is_conj() or real.is_neg():
            return None
        for axis, dim in wanted.items():
            if isinstance(dim, Symbol) and dim.name not in self.sizes:
                self._begin(dim, real.shape[axis])
        if any(symbolic.free_symbols(dim) - self.numbers.keys() for dim in wanted.values()):
            return None              # of symbols that are told by tensors which come later
        shape: list[Dim] = [wanted.get(axis, size) for axis, size in enumerate(real.shape)]
        if [symbolic.evaluate(dim, self.numbers) for dim in shape] != list(real.shape):
            return None
        strides = strides_of(real, shape)
        steps = {axis: step for axis, step in enumerate(strides) if not isinstance(step, int)}
        self.lying[path] = Lying(key, path, wanted, steps)
        return [*map(self.size, shape)], [*map(self.size, strides)]

    def _wanted(self, key: str | int, real: torch.Tensor) -> dict[int, Dim]:
        found = {axis: self.request[key, axis] for axis in range(real.dim()) if (key, axis) in self.request}
        return {axis: dim for axis, dim in found.items() if not isinstance(dim, Symbol) or real.shape[axis] >= dim.lo}

    def _begin(self, symbol: Symbol, value: int) -> None:
        self.symbols[symbol.name], self.numbers[symbol.name] = symbol, value
        self.sizes[symbol.name] = compat.symbolic_size(self.mode, symbol.name, value, symbol.lo, symbol.hi, symbol)

    def tied(self) -> dict[str, Dim]:
        """What the trace found symbols to be."""
        known = compat.dims_of(self.mode)
        return {name: of_sympy(expression, known) for name, expression in compat.size_replacements(self.mode).items()
                if name in self.symbols}


def strides_of(real: torch.Tensor, shape: Sequence[Dim]) -> list[Dim]:
    """The strides of `real` once its sizes are `shape`: a stride that is the stretch of another dim stays one."""
    strides: list[Dim] = list(real.stride())
    stretches: dict[int, Dim] = {}
    for axis in sorted(range(real.dim()), key=lambda axis: (real.stride(axis), real.shape[axis] != 1, -axis)):
        step, size = real.stride(axis), real.shape[axis]
        if step in stretches and step > 1:
            strides[axis] = stretches[step]
        if step > 0 and (size != 1 or not isinstance(shape[axis], int)):
            stretches[step * size] = strides[axis] * shape[axis]
    return strides


def refined(request: Request, tied: Mapping[str, Dim]) -> Request:
    """`request` with what is known of its symbols by now; a dim that is a number is left out."""
    made = {place: symbolic.substitute(dim, tied) for place, dim in request.items()}
    alone = {dim.name for dim in made.values() if isinstance(dim, Symbol)}
    # A symbol that no dim tells by itself cannot be read from a call: what it is part of stays as it is in this one.
    return {place: dim for place, dim in made.items()
            if not isinstance(dim, int) and symbolic.free_symbols(dim) <= alone}


def symbols_in(request: Request) -> dict[str, Symbol]:
    """The symbols of a request by name."""
    found: dict[str, Symbol] = {}
    for dim in request.values():
        found.update(symbolic.symbols_of(dim))
    return found
