"""Sizes that only a call knows, where code wants ints.

    Sized ::= int(example) with an expression (ir.symbolic)

A graph whose symbols are replaced by `Sized` numbers is scheduled and lowered like a static one. Arithmetic gives the
expression of the result. A question has the answer that holds for all values of the symbols:

    a == b     whether the expressions are equal; one that only some values answer with yes is answered with no
    a < b      by the ranges of the symbols; where they do not tell, `Undecided` is raised. No symbol is taken for 0:
               what is asked then concerns no element
    bool(a)    whether it can be anything but zero
    a // b     what it is where b is not 0: what is asked of no elements has any answer

Who asks only to choose between two right ways asks inside `guessing()`, where examples answer. What would lose the
expression (float(a), int(a), a ** b) raises as well. `1.0 / a` and `range(a)` cannot: they see the example, and
have no place between a schedule and its kernels.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from monograph.errors import CompileError
from monograph.ir import symbolic
from monograph.ir.symbolic import Dim, Expr, Sum

__all__ = [
    "Sized", "Undecided", "example", "expression", "gcd", "guessing", "is_sized", "known_less",
    "maximum", "minimum", "sized",
]

_guesses: ContextVar[bool] = ContextVar("guesses", default=False)


class Undecided(CompileError):
    """The answer depends on a size that only a call knows."""


@contextlib.contextmanager
def guessing() -> Iterator[None]:
    """Inside, comparisons that nobody can answer for all sizes are answered for the examples."""
    token = _guesses.set(True)
    try:
        yield
    finally:
        _guesses.reset(token)


def sized(expr: Dim, examples: Mapping[str, int]) -> int:
    """`expr` as a number; `examples` has one for each of its symbols."""
    return _made(symbolic.evaluate(expr, examples), expr)


def expression(number: int) -> Dim:
    return number.expr if isinstance(number, Sized) else number


def example(number: int) -> int:
    """A plain number, to estimate with."""
    return int.__int__(number)


def is_sized(entry: object) -> bool:
    """Is there a `Sized` in a number, or in tuples of them?"""
    return any(map(is_sized, entry)) if isinstance(entry, (tuple, list)) else isinstance(entry, Sized)


def known_less(a: int, b: int) -> bool:
    """a < b whatever the symbols are."""
    if not isinstance(a, Sized) and not isinstance(b, Sized):
        return a < b
    return symbolic.known_lt(symbolic.filled(expression(a)), symbolic.filled(expression(b)))


def minimum(a: int, b: int) -> int:
    if not isinstance(a, Sized) and not isinstance(b, Sized):
        return min(a, b)
    return _made(min(example(a), example(b)), symbolic.minimum(expression(a), expression(b)))


def maximum(a: int, b: int) -> int:
    if not isinstance(a, Sized) and not isinstance(b, Sized):
        return max(a, b)
    return _made(max(example(a), example(b)), symbolic.maximum(expression(a), expression(b)))


def gcd(a: int, b: int) -> int:
    """A common divisor, the greatest one of plain numbers."""
    if not isinstance(a, Sized) and not isinstance(b, Sized):
        return math.gcd(a, b)
    if a == 0 or b == 0:
        return a + b
    if b % a == 0:
        return a
    return b if a % b == 0 else math.gcd(_content(a), _content(b))


def _content(number: int) -> int:
    """The greatest plain divisor."""
    if not isinstance(number, Sized):
        return number
    expr = number.expr
    return math.gcd(expr.constant, *(c for _, c in expr.terms)) if isinstance(expr, Sum) else 1


def _made(number: int, expr: Dim) -> int:
    return Sized(number, expr) if isinstance(expr, Expr) else expr


class Sized(int):
    """Built by `sized`."""

    expr: Expr

    def __new__(cls, number: int, expr: Expr) -> Sized:
        made = super().__new__(cls, number)
        made.expr = expr
        return made

    def __str__(self) -> str:
        return f"<{self.expr}>"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int):
            return NotImplemented
        return symbolic.statically_equal(self.expr, expression(other))

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, int) else NotImplemented

    def __bool__(self) -> bool:
        return True

    def __lt__(self, other: int) -> bool:
        return _less(self, other) if isinstance(other, int) else NotImplemented

    def __gt__(self, other: int) -> bool:
        return _less(other, self) if isinstance(other, int) else NotImplemented

    def __le__(self, other: int) -> bool:
        return not _less(other, self) if isinstance(other, int) else NotImplemented

    def __ge__(self, other: int) -> bool:
        return not _less(self, other) if isinstance(other, int) else NotImplemented

    def __neg__(self) -> int:
        return _made(-example(self), -self.expr)

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return -self if self < 0 else self

    def __int__(self) -> int:
        raise Undecided(f"a kernel is made for a number that {self.expr} is not always")

    def __float__(self) -> float:
        raise Undecided(f"a kernel is made for a float computed from {self.expr}")

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        raise Undecided(f"a kernel is made for a power of {self.expr}")

    __truediv__ = __rtruediv__ = __rpow__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __pow__

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        return other // self, other % self


def _less(a: int, b: int) -> bool:
    left, right = symbolic.filled(expression(a)), symbolic.filled(expression(b))
    if symbolic.known_lt(left, right):
        return True
    if symbolic.known_le(right, left):
        return False
    if _guesses.get():
        return example(a) < example(b)
    raise Undecided(f"whether {left} < {right} is another for other sizes")


def _operator(plain: Callable[[int, int], int], on: Callable[[Dim, Dim], Dim]) -> tuple[Any, Any]:
    """The operator and its reflection."""
    def left(self: Sized, other: int) -> int:
        return made(self, other) if isinstance(other, int) else NotImplemented

    def right(self: Sized, other: int) -> int:
        return made(other, self) if isinstance(other, int) else NotImplemented

    def made(a: int, b: int) -> int:
        try:
            number = plain(example(a), example(b))
        except ZeroDivisionError:            # the example of a size is 0, as it is for no call that comes here
            raise Undecided(f"{expression(a)} is divided by {expression(b)}") from None
        return _made(number, on(expression(a), expression(b)))

    return left, right


for _name, _plain, _on in (
    ("add", int.__add__, lambda a, b: a + b), ("sub", int.__sub__, lambda a, b: a - b),
    ("mul", int.__mul__, lambda a, b: a * b), ("floordiv", int.__floordiv__, symbolic.quotient),
    ("mod", int.__mod__, symbolic.remainder),
):
    _left, _right = _operator(_plain, _on)
    setattr(Sized, f"__{_name}__", _left)
    setattr(Sized, f"__r{_name}__", _right)
