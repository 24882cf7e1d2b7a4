"""Where Python's integers outgrow the 64 bits of a traced one.

A call in which the result of an operator takes more runs in Python (`tracer.only_if`). Where ranges tell that none
does, `transform.ranges` drops the check.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from monograph.capture.number import TracedNumber

__all__ = ["EXACT", "ORDERS", "is_long", "keep_double", "keep_floor", "keep_negation", "keep_product", "keep_sum",
           "orders_doubles", "quotient"]

LEAST, MOST = -2**63, 2**63 - 1
LARGEST = 2.0**63 * (1 - 2.0**-50)        # a double that is smaller is that of an int of 64 bits
MANTISSA = 2**53                          # doubles are exact up to it
ORDERS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() / b.double()


# What torch's functions are for Python's numbers.
EXACT: dict[Any, Callable[[Any, Any], Any]] = {
    quotient: operator.truediv, torch.floor_divide: operator.floordiv, torch.remainder: operator.mod,
    torch.pow: operator.pow, torch.bitwise_and: operator.and_, torch.bitwise_or: operator.or_,
    torch.bitwise_xor: operator.xor,
}


def is_long(value: Any) -> bool:
    """Whether a number is one of Python's that takes more than 64 bits."""
    return type(value) is int and not LEAST <= value <= MOST


def keep_product(number: TracedNumber, compute: Callable[..., Any], left: Any, right: Any) -> None:
    """`compute` of two integers, of which `number` is one, found with doubles, is far enough from the limits."""
    number.tracer.only_if(number.of(lambda a, b: compute(a.double(), b.double()).abs() < LARGEST, left, right).tensor)


def keep_sum(number: TracedNumber, compute: Callable[..., Any], left: Any, right: Any) -> None:
    """`compute`, a sum or difference of two integers of which `number` is one, fits."""
    other = right if left is number else left
    if type(other) not in (int, bool):
        keep_product(number, compute, left, right)
    elif compute is operator.add:
        _keep_between(number, LEAST - other, MOST - other)
    elif left is number:
        _keep_between(number, LEAST + other, MOST + other)
    else:
        _keep_between(number, other - MOST, other - LEAST)


def keep_negation(number: TracedNumber) -> None:
    """The least integer has no counterpart."""
    _keep_between(number, LEAST + 1, MOST)


def keep_floor(number: TracedNumber, compute: Callable[..., Any], left: Any, right: Any) -> None:
    """`left // right`, of which `number` is one: the least integer through -1 does not fit."""
    if type(right) not in (int, bool) or right == -1:
        if left is number:
            keep_negation(number)
        elif left == LEAST:
            number.tracer.only_if((number != -1).tensor)


def keep_double(number: TracedNumber) -> None:
    """An integer is that of its double."""
    _keep_between(number, -MANTISSA, MANTISSA)


def orders_doubles(value: Any) -> bool:
    """Whether a float of Python's compares with integers as with their doubles, however these are rounded."""
    return type(value) is float and not MANTISSA <= abs(value) < math.inf


def _keep_between(number: TracedNumber, least: int, most: int) -> None:
    """An integer, or a bool, is in a range that holds 0 and 1 or one end of all."""
    if number.kind is bool and least <= 0 and most >= 1:
        return
    number = number.to(int)
    for compare, limit, needed in ((operator.ge, least, least > LEAST), (operator.le, most, most < MOST)):
        if needed:
            number.tracer.only_if(number.of(lambda x, compare=compare, limit=limit: compare(x, limit), number).tensor)
