"""Long loops whose trips Python knows, recorded as one loop: what compiling them costs does not grow with the trips.

    for i in range(1000): h = f(h, i)            the body is traced with a traced `i`, as for `range(int(t))`
    for row in x: ...                            x: [1000, *]

A body that needs the very number (`self.layers[i]`), or leaves something else behind at each iteration, is written out
once per iteration, as Python runs it. So is one that computes nothing but numbers.

Python runs a function that was not converted. `look` finds those in which a long loop is running, so that they are.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture import blame
from monograph.capture.counted import Counted
from monograph.capture.regions.errors import Asked

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["LONG", "OFTEN", "Long", "long", "look", "row"]

LONG = 64        # iterations of a loop that is rolled
OFTEN = 64       # ops between two looks at what is running
STORES = frozenset({"STORE_FAST", "STORE_DEREF", "STORE_NAME"})


class Long(Counted):
    """An iterator of many entries: `make()`, where Python runs through it."""

    def __init__(self, length: int, item: Callable[[Any], Any], make: Callable[[], Iterator[Any]]) -> None:
        super().__init__(length, item)
        self.make = make
        self.made: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self.made is None:
            self.made = self.make()
        return self.made

    def __next__(self) -> Any:
        return next(iter(self))


def long(items: Any) -> Counted | None:
    """`items` as something counted, when Python knows that it has many entries: a range, a tensor, a zip of them."""
    if isinstance(items, Counted) and type(items.length) is int and items.length >= LONG:
        return None if isinstance(items, Long) and items.made is not None else items
    if type(items) is range and len(items) >= LONG:
        start, step = items.start, items.step
        return Counted(len(items), lambda index: start + index * step)
    if isinstance(items, torch.Tensor) and items.dim() and type(items.shape[0]) is int and items.shape[0] >= LONG:
        return Counted(items.shape[0], functools.partial(row, items))
    return None


def row(items: torch.Tensor, index: Any) -> torch.Tensor:
    """What a loop over a tensor gives at an index: autograd knows that it is one of several views."""
    found = items[index]
    return found.unsqueeze(0).unbind(0)[0] if found.requires_grad else found


def look(tracer: Tracer) -> None:
    """Raise Asked where a function that can be converted is in a loop over many integers."""
    frame = blame.user_frame()
    while frame is not None and not blame.is_trace(frame.f_code):
        if blame.is_user_code(frame.f_code) and _counts_far(frame) and tracer.can_convert(frame.f_code):
            raise Asked(frame.f_code, tracer.refusal("a long loop"))
        frame = frame.f_back


def _counts_far(frame: FrameType) -> bool:
    """Whether a loop is running in `frame` whose variable is an integer far from 0."""
    values = [frame.f_locals.get(name) for begin, end, name in _loops(frame.f_code) if begin < frame.f_lasti < end]
    return any(type(value) is int and abs(value) >= LONG // 2 for value in values)


_known: dict[int, tuple[CodeType, list[tuple[int, int, str]]]] = {}      # by identity of the code


def _loops(code: CodeType) -> list[tuple[int, int, str]]:
    """The `for` loops of a function with one variable: where each begins and ends, and its name."""
    if id(code) in _known:
        return _known[id(code)][1]
    found: list[tuple[int, int, str]] = []
    before = None
    for instruction in dis.get_instructions(code):
        if before is not None and before.opname == "FOR_ITER" and instruction.opname in STORES:
            found.append((before.offset, before.argval, instruction.argval))
        before = instruction
    _known[id(code)] = code, found
    return found
