"""Symbolic sizes: integers known only at run time.

    Dim  ::= int | Expr
    Expr ::= Symbol(name, lo, hi) | sum | product | Expr // Expr | Expr % Expr | max | min

Expressions are immutable, hashable, compared structurally after normalisation (a sum of products
with integer coefficients), and know their range. Never a sympy object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

__all__ = ["Dim", "Expr", "Symbol", "evaluate", "free_symbols", "product"]


class Expr:
    """A non-constant integer expression."""

    __slots__ = ()


class Symbol(Expr):
    """A named size with a range; `hi` None means unbounded."""

    __slots__ = ("hi", "lo", "name")

    def __init__(self, name: str, lo: int = 0, hi: int | None = None) -> None:
        self.name = name
        self.lo = lo
        self.hi = hi

    def __repr__(self) -> str:
        return self.name


Dim: TypeAlias = int | Expr


def product(dims: Iterable[Dim]) -> Dim:
    """Product of dims; 1 for none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim   # type: ignore[operator]
    return result


def evaluate(dim: Dim, env: Mapping[str, int]) -> int:
    """The number `dim` stands for when its symbols have the values of `env`."""
    raise NotImplementedError


def free_symbols(dim: Dim) -> frozenset[str]:
    """Names of the symbols in `dim`."""
    raise NotImplementedError
