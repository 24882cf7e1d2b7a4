"""Sizes known only at run time, as JSON.

    Dim  ::= int | {"symbol": [name, lo, hi]} | {"sum": [constant, [coefficient, Dim*]*]} | {op: [Dim*]}
    op   ::= // | % | max | min
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monograph.ir import symbolic
from monograph.ir.symbolic import Dim, Maximum, Minimum, Quotient, Remainder, Sum, Symbol

__all__ = ["read", "write"]


def write(dim: Dim) -> Any:
    """The JSON of a size."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Symbol):
        return {"symbol": [dim.name, dim.lo, dim.hi]}
    if isinstance(dim, Sum):
        return {"sum": [dim.constant, *([factor, *map(write, atoms)] for atoms, factor in dim.terms)]}
    if isinstance(dim, (Quotient, Remainder)):
        return {"//" if isinstance(dim, Quotient) else "%": [write(dim.left), write(dim.right)]}
    assert isinstance(dim, (Maximum, Minimum)), dim
    return {"max" if isinstance(dim, Maximum) else "min": [write(arg) for arg in dim.args]}


def read(entry: Any) -> Dim:
    """The size that `write` wrote; ValueError, TypeError or KeyError where it did not."""
    if not isinstance(entry, dict):
        return _integer(entry)
    (kind, parts), = entry.items()
    if kind == "symbol":
        name, lo, hi = parts
        if type(name) is not str:
            raise ValueError(f"{name!r} is not a name")
        return Symbol(name, _integer(lo), None if hi is None else _integer(hi))
    if kind == "sum":
        constant, *terms = parts
        total: Dim = _integer(constant)
        for factor, *atoms in terms:
            total = total + _integer(factor) * symbolic.product(map(read, atoms))
        return total
    return _OPERATIONS[kind](list(map(read, parts)))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not an integer")
    return value


def _pair(args: Sequence[Dim]) -> tuple[Dim, Dim]:
    left, right = args
    return left, right


def _quotient(args: Sequence[Dim]) -> Dim:
    left, right = _pair(args)
    return left // right


def _remainder(args: Sequence[Dim]) -> Dim:
    left, right = _pair(args)
    return left % right


_OPERATIONS = {
    "//": _quotient, "%": _remainder,
    "max": lambda args: symbolic.maximum(*args), "min": lambda args: symbolic.minimum(*args),
}
