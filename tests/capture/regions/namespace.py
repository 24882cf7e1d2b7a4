"""What random programs find in their module: functions of every sort, classes, state of the module's own.

Read as text and run anew for each program (`tensor_programs.load`), as any module that a user imports.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as each

__all__ = ["F", "Base", "Box", "Noted", "associative_scan", "below", "blind", "carry", "collections", "combine",
           "contextlib", "counted", "descend", "each", "functools", "helper", "kept", "less", "more", "noted", "notes",
           "pairs", "row", "scaled", "scan", "step", "tally", "torch", "total", "while_loop"]

notes: list[Any] = []
tally = 0


def total(value: torch.Tensor) -> torch.Tensor:
    return value.sum()


def helper(value: torch.Tensor, amount: Any = 1) -> torch.Tensor:
    if value.sum() > amount:
        return value - amount
    for _ in range(2):
        value = value + 0.5
        if value.max() > 2:
            break
    return value


def descend(value: torch.Tensor, steps: Any) -> torch.Tensor:
    """Recursion with an early return by value."""
    if steps <= 0 or value.sum() > 3:
        return value
    return descend(value * 0.5 + 1, steps - 1)


# A function without source.
exec(compile("""
def blind(value, amount=1):
    if value.sum() > 0:
        return value - amount
    return value * 0.5
""", "<no source>", "exec"), globals())
blind: Callable[..., torch.Tensor] = globals()["blind"]


# -- decorators --------------------------------------------------------------------------


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """The larger of the result and the argument."""
    @functools.wraps(function)
    def around(value: torch.Tensor, *rest: Any, **options: Any) -> Any:
        result = function(value, *rest, **options)
        return result if result.sum() >= value.sum() else value
    return around


def scaled(amount: Any) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def around(*values: Any) -> Any:
            return function(*values) * amount
        return around
    return decorate


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def around(*values: Any) -> Any:
        global tally
        tally += 1
        return function(*values)
    return around


# -- generators and context managers --------------------------------------------------------


def pairs(value: torch.Tensor) -> Iterator[torch.Tensor]:
    for line in value:
        if line.sum() > 0:
            yield line * 2
        yield line


@contextlib.contextmanager
def noted(into: dict[str, Any], value: Any) -> Iterator[Any]:
    into["n"] = value
    try:
        yield value
    finally:
        into["end"] = value


class Noted:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __enter__(self) -> Any:
        notes.append("in")
        return self.value

    def __exit__(self, kind: Any, error: Any, where: Any) -> bool:
        notes.append("out" if kind is None else kind.__name__)
        return kind is KeyError


# -- for torch's own control flow ----------------------------------------------------------


def more(value: torch.Tensor, line: torch.Tensor) -> torch.Tensor:
    return value + line


def less(value: torch.Tensor, line: torch.Tensor) -> torch.Tensor:
    return value * 0.5


def below(count: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return (count < 4) & (value.sum() < 20)


def step(count: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return count + 1, value * 0.5 + 1


def row(line: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    return line * factor + 1


def carry(state: torch.Tensor, line: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return state + line, line - state


def combine(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return left + right


# -- classes -----------------------------------------------------------------------------


class Box:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.n = 0

    def put(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > self.x.sum():
            self.x = x
            self.n += 1
        return self.x


class Base(nn.Module):
    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.scale = nn.Parameter(torch.tensor([0.5, 1.0, -1.0]))
        self.layer = nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[0.5, 0.0, 0.25], [0.0, -0.5, 0.0], [1.0, 0.0, 0.0]]))
            self.layer.bias.fill_(0.25)
        self.count = 0
        self.seen: list[Any] = []
        self.last = torch.ones(2, 3)

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * 2 if x.max() > 1 else x

    def own(self, x: torch.Tensor, p: Any = 1) -> torch.Tensor:
        if x.sum() > p:
            self.total.add_(1)
            return x * 0.5
        return x + self.scale

    @property
    def size(self) -> int:
        return len(self.seen) + 1

    @classmethod
    def made(cls, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=2) if x.max() > 2 else x

    @staticmethod
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 if x.min() < 0 else x
