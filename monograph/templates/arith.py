"""Index arithmetic for templates: i64 expressions with the constants folded.

Sums keep the order of their terms, outermost loop variable first and the constant last, so that code
generation hoists all but the innermost addition and folds the constant into the address.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from monograph.ir import sized
from monograph.loops.nodes import INDEX, Const, Expr, index, number, op

__all__ = [
    "add", "ceil_div", "equal", "floordiv", "less", "maximum", "minimum", "mod", "mul", "remaining", "round_up", "sub",
    "unravel", "where",
]

Term = Expr | int


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return ceil_div(a, b) * b


def expr(term: Term) -> Expr:
    return index(term) if isinstance(term, int) else term


def value(term: Term) -> int | None:
    """The number a term is, if it is one."""
    if isinstance(term, int):
        return term
    return number(term) if isinstance(term, Const) else None


def _split(term: Expr) -> tuple[Expr, int]:
    """x + c -> (x, c)"""
    if getattr(term, "name", None) == "add":
        constant = value(term.args[1])
        if constant is not None:
            return term.args[0], constant
    return term, 0


def add(*terms: Term) -> Expr:
    total: Expr | None = None
    constant = 0
    for term in terms:
        number = value(term)
        if number is not None:
            constant += number
            continue
        rest, offset = _split(expr(term))
        constant += offset
        total = rest if total is None else op("add", total, rest, dtype=INDEX)
    if total is None:
        return index(constant)
    return total if constant == 0 else op("add", total, index(constant), dtype=INDEX)


def sub(a: Term, b: Term) -> Expr:
    number = value(b)
    if number is not None:
        return add(a, -number)
    if a is b:
        return index(0)
    return op("sub", expr(a), expr(b), dtype=INDEX)


def mul(a: Term, factor: int) -> Expr:
    number = value(a)
    if number is not None:
        return index(number * factor)
    if factor == 0:
        return index(0)
    if factor == 1:
        return expr(a)
    rest, offset = _split(expr(a))     # (x + c) * f -> x * f + c * f
    return add(op("mul", rest, index(factor), dtype=INDEX), offset * factor)


def floordiv(a: Term, divisor: int) -> Expr:
    number = value(a)
    if number is not None:
        return index(number // divisor)
    return expr(a) if divisor == 1 else op("floordiv", expr(a), index(divisor), dtype=INDEX)


def mod(a: Term, divisor: int) -> Expr:
    number = value(a)
    if number is not None:
        return index(number % divisor)
    return index(0) if divisor == 1 else op("mod", expr(a), index(divisor), dtype=INDEX)


def minimum(a: Term, b: Term) -> Expr:
    x, y = value(a), value(b)
    if x is not None and y is not None:
        return index(sized.minimum(x, y))
    return op("min", expr(a), expr(b), dtype=INDEX)


def maximum(a: Term, b: Term) -> Expr:
    x, y = value(a), value(b)
    if x is not None and y is not None:
        return index(sized.maximum(x, y))
    return op("max", expr(a), expr(b), dtype=INDEX)


def less(a: Term, b: Term) -> Expr:
    return op("lt", expr(a), expr(b), dtype=torch.bool)


def equal(a: Term, b: Term) -> Expr:
    return op("eq", expr(a), expr(b), dtype=torch.bool)


def where(condition: Expr, a: Term, b: Term) -> Expr:
    return op("select", condition, expr(a), expr(b), dtype=INDEX)


def unravel(position: Expr, sizes: Sequence[int]) -> tuple[Expr, ...]:
    """The coordinates of a row-major position in a space of `sizes`."""
    coordinates: list[Expr] = []
    for axis, size in reversed(list(enumerate(sizes))):
        coordinates.append(position if axis == 0 else mod(position, size))
        position = floordiv(position, size)
    if sizes and sizes[0] == 1:
        coordinates[-1] = index(0)
    return tuple(reversed(coordinates))


def remaining(first: Expr, size: int, total: Term) -> Expr:
    """How many of `total` are left from `first` on, at most `size`; `first` is a multiple of `size`."""
    if not isinstance(total, int) or sized.is_sized((size, total)):
        return minimum(sub(total, first), size)
    return index(min(size, total)) if total % size == 0 or total <= size else minimum(sub(total, first), size)
