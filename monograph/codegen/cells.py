"""Kernels over words of the frame: numbers that the run tells, what follows from them, and what is asked of them.

    told(...)       a word := the one element of a tensor, if it is not below what it was promised to be
    related(...)    is one number so related to another?
    sized(...)      words := expressions of the numbers in other words, if these are within their limits

Each has one argument for all words, the first word being number 0, and fails where a condition does not hold; Python
goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import torch

from monograph.ir.symbolic import Dim, Maximum, Minimum, Quotient, Remainder, Sum, Symbol
from monograph.loops.nodes import INDEX, Buffer, Check, Expr, Kernel, Stmt, Store, index, load, op

__all__ = ["related", "sized", "told"]

RELATIONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def told(name: str, dtype: torch.dtype, word: int, count: int, lo: int | None) -> Kernel:
    """The kernel's arguments: the tensor, the words."""
    given, words = Buffer("x", dtype, 1), Buffer("words", INDEX, count)
    number: Expr = load(given, index(0))
    if dtype is not INDEX:
        number = op("cast", number, dtype=INDEX)
    body: list[Stmt] = [] if lo is None else [_check("ge", number, index(lo))]
    return _kernel(name, [given, words], [*body, Store(words, index(word), number)])


def related(name: str, left: Dim, right: Dim, relation: str, cells: Mapping[str, int], count: int) -> Kernel:
    words = Buffer("words", INDEX, count)
    sides = (_number(side, words, cells) for side in (left, right))
    return _kernel(name, [words], [_check(RELATIONS[relation], *sides)])


def sized(
    name: str, sizes: Sequence[tuple[int, Dim]], limits: Iterable[tuple[str, int]], cells: Mapping[str, int],
    count: int,
) -> Kernel:
    """`sizes`: words and what they shall hold; `limits`: symbols and the words of the most they may be."""
    words = Buffer("words", INDEX, count)
    checks: list[Stmt] = [_check("le", load(words, index(cells[symbol])), load(words, index(word)))
                          for symbol, word in limits]
    return _kernel(name, [words], [
        *checks, *(Store(words, index(word), _number(dim, words, cells)) for word, dim in sizes)])


def _kernel(name: str, arguments: list[Buffer], body: list[Stmt]) -> Kernel:
    return Kernel(name, [*arguments, Buffer("error", INDEX, 8, "error")], [], body)


def _check(relation: str, left: Expr, right: Expr) -> Check:
    return Check(op(relation, left, right, dtype=torch.bool), 1, ())


def _number(dim: Dim, words: Buffer, cells: Mapping[str, int]) -> Expr:
    """`dim`, with what is in the words of its symbols. By zero divides nobody who needs the result."""
    def number(dim: Dim) -> Expr:
        if isinstance(dim, int):
            return index(dim)
        if isinstance(dim, Symbol):
            return load(words, index(cells[dim.name]))
        if isinstance(dim, Sum):
            terms = [_folded("mul", [index(factor), *map(number, atoms)]) for atoms, factor in dim.terms]
            return _folded("add", [*terms, index(dim.constant)])
        if isinstance(dim, (Quotient, Remainder)):
            name = "floordiv" if isinstance(dim, Quotient) else "mod"
            return op(name, number(dim.left), number(dim.right), dtype=INDEX)
        assert isinstance(dim, (Maximum, Minimum)), dim
        return _folded("max" if isinstance(dim, Maximum) else "min", list(map(number, dim.args)))

    return number(dim)


def _folded(name: str, parts: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: op(name, a, b, dtype=INDEX), parts)
