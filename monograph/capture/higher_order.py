"""torch's own control flow, called by the user: cond, while_loop, and what torch defines by loops over known sizes.

    torch.cond(p, then, otherwise, operands)       a choice as of `then(...) if p else otherwise(...)`
    while_loop(test, body, carried)                a `while` whose variables are the carried tensors
    map, scan, associative_scan                    torch's definition for eager, step by step

Called eagerly, torch hands these to its compiler first; `uncompiled` has it call them plainly.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture.convert.operators import OPERATORS, State

__all__ = ["KNOWN", "call", "uncompiled"]


def call(func: Any, args: Any, kwargs: Any) -> Any:
    """What the higher-order op `func`, one of KNOWN, gives; the function mode must be active again."""
    rule = RULES.get(func.name())
    if rule is not None:
        return rule(*args, **kwargs)
    return compat.eager_definition(func)(*args, **kwargs)


def cond(predicate: Any, then: Callable[..., Any], otherwise: Callable[..., Any], operands: Any) -> Any:
    def branch(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: pytree.tree_map(lambda leaf: _apart(leaf, operands), function(*operands))
    return OPERATORS.choose(predicate, branch(then), branch(otherwise))


def _apart(leaf: Any, operands: Any) -> Any:
    """A copy of what lies in the memory of an operand: torch gives new tensors."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    home = compat.storage_id(leaf)
    taken = any(compat.storage_id(x) == home for x in pytree.tree_leaves(operands) if isinstance(x, torch.Tensor))
    return leaf.clone() if taken else leaf


def while_loop(test: Callable[..., Any], body: Callable[..., Any], carried: Any, others: Any,
               *rest: Any, **options: Any) -> Any:
    if rest or any(options.values()):
        raise errors.UnsupportedError("while_loop that keeps all its carried values",
                                      why="what a loop carries has one shape")
    values = [_apart(value, carried) for value in carried]

    def run() -> None:
        values[:] = body(*values, *others)

    def assign(new: tuple[Any, ...]) -> None:
        values[:] = new

    names = tuple(f"carried{position}" for position in range(len(values)))
    OPERATORS.while_(lambda: test(*values, *others), run, State(names, lambda: tuple(values), assign, lambda: ()), None)
    return tuple(values)


RULES: dict[str, Callable[..., Any]] = {"cond": cond, "while_loop": while_loop}
KNOWN = frozenset({*RULES, "map_impl", "scan", "associative_scan"})


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Inside, in this thread, `torch.compile` leaves functions as they are."""
    thread, compile = threading.get_ident(), torch.compile

    def plainly(model: Any = None, **options: Any) -> Any:
        if threading.get_ident() != thread:
            return compile(model, **options)
        return (lambda function: function) if model is None else model

    torch.compile = plainly
    try:
        yield
    finally:
        torch.compile = compile
