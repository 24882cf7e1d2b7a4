"""From torch's sizes to ours: the one place that knows how ShapeEnv writes an expression.

    int -> int        SymInt -> ir.symbolic expression, or its hashable key
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from monograph import errors
from monograph.ir.symbolic import Dim, Symbol

__all__ = ["dim", "dims", "is_symbolic", "key_of"]

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_symbolic(value: Any) -> bool:
    return isinstance(value, SYMBOLIC)


def key_of(size: Any) -> Any:
    """A hashable stand-in for a size: the number when it is known."""
    if isinstance(size, torch.SymInt):
        expression = size.node.expr
        return int(expression) if expression.is_number else expression
    return int(size)


def dim(size: Any) -> Dim:
    """A size as the IR writes it."""
    key = key_of(size)
    if isinstance(key, int):
        return key
    if key.is_Symbol:
        return Symbol(str(key))
    raise errors.UnsupportedError(f"a size known only at run time ({key})")


def dims(sizes: Iterable[Any]) -> tuple[Dim, ...]:
    return tuple(size if type(size) is int else dim(size) for size in sizes)
