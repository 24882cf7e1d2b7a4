"""Loops over integers of few values whose body needs the very number: `for i in hit: x = self.experts[i](x)`.

Python indexes its lists and dicts with numbers alone, and so the body is traced once per value that the entry may have,
each in a branch of its own. What values these are follows from the op that made the entry (`limits`): an index that
`nonzero` gives is below the size of what was searched.

An attempt that asks for such a number (`Entries.ask`) starts the trace again with the loop's site in `split`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.number import TracedNumber
from monograph.capture.regions.errors import Cases
from monograph.ir.graph import Node, Value
from monograph.ir.types import TensorType

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Entries", "Number"]

MOST = 256        # values of an entry
DEEPEST = 100     # nodes between an entry and what is asked

Limits = tuple[int, int] | None        # the smallest and the largest

SAME = frozenset("""
    aten.select.int aten.slice.Tensor aten.view.default aten.reshape.default aten._unsafe_view.default
    aten.unsqueeze.default aten.squeeze.dim aten.squeeze.default aten.unbind.int aten.clone.default aten.alias.default
    aten.detach.default aten.index_select.default aten.permute.default aten.transpose.int aten.expand.default
    aten.flatten.using_ints aten.split.Tensor aten.lift_fresh_copy.default aten._to_copy.default aten.flip.default
""".split())
FIRST = frozenset({"aten.argmax.default", "aten.argmin.default"})     # ops whose first, or second, result is places
SECOND = frozenset({"aten.topk.default", "aten.sort.default", "aten.sort.stable", "aten.max.dim", "aten.min.dim"})
WIDE = (torch.int64, torch.int32)


def limits(value: Value) -> Limits:
    """Between which numbers the integers in `value` lie; None where the ops do not say."""
    for _ in range(DEEPEST):
        node = value.node
        if node is None or value.tensor.dtype not in WIDE:
            return None
        if node.op.name not in SAME:
            found = _made(node, value)
            return found if found is not None and 0 <= found[1] < MOST else None
        value = node.inputs[0]
    return None


def _made(node: Node, value: Value) -> Limits:
    name, dim = node.op.name, node.attributes.get("dim")
    if name == "aten.remainder.Scalar":
        other = node.attributes["other"]
        return (0, other - 1) if type(other) is int and other > 0 else None
    sizes: Sequence[Any] = ()
    if name == "aten.nonzero.default":
        sizes = node.inputs[0].tensor.shape
    elif name in FIRST and dim is None:
        sizes = (node.inputs[0].tensor.numel,)
    elif (name in FIRST or name in SECOND and value is node.results[1]) and node.inputs[0].tensor.shape:
        sizes = (node.inputs[0].tensor.shape[-1 if dim is None else dim],)
    return (0, max(sizes) - 1) if sizes and all(isinstance(size, int) for size in sizes) else None


@dataclass
class Number:
    """An entry of a loop that is an integer, or has one as a part."""

    number: Any                           # traced: i64[]
    values: range
    known: Callable[[int], Any]           # the entry, where that is its number


class Entries:
    """Of the loops whose bodies are being traced, the sites and the integers that their entries are made of."""

    def __init__(self, tracer: Tracer, split: set[Any]) -> None:
        self.tracer = tracer
        self.split = split
        self.running: list[tuple[Any, Value]] = []

    def number(self, site: Any, entry: Any) -> Number | None:
        """What to trace the body of the loop at `site` by, if it is to be split."""
        if site not in self.split:
            return None
        parts = entry if type(entry) is tuple else (entry,)
        for place, part in enumerate(parts):
            value = self._value(part)
            found = limits(value) if value is not None else None
            if found is not None:
                def known(number: int, place: int = place, part: Any = part) -> Any:
                    exact = number if isinstance(part, TracedNumber) else _tensor(self.tracer, part, number)
                    return exact if parts is not entry else (*parts[:place], exact, *parts[place + 1:])

                number = part if isinstance(part, TracedNumber) else part.item()
                return Number(number, range(found[0], found[1] + 1), known)
        return None

    def _value(self, part: Any) -> Value | None:
        """The integer in a part of an entry."""
        tensor = part.tensor if isinstance(part, TracedNumber) else part
        if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1 or tensor.dtype is not torch.int64:
            return None
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return self.tracer.memory.read(self.tracer.lift(tensor))

    @contextmanager
    def within(self, site: Any, entry: Any) -> Iterator[None]:
        """The body of a loop is traced with this entry."""
        count = len(self.running)
        if site not in self.split:
            for part in entry if type(entry) is tuple else (entry,):
                value = self._value(part)
                if value is not None:
                    self.running.append((site, value))
        try:
            yield
        finally:
            del self.running[count:]

    def ask(self, value: Value) -> None:
        """Python needs the very number in `value`: split the loop that it is an entry of."""
        for site, entry in reversed(self.running):
            if limits(entry) is not None and _comes_from(value, entry):
                raise Cases(site)


def _tensor(tracer: Tracer, entry: torch.Tensor, number: int) -> torch.Tensor:
    """A tensor like `entry` whose number is known: who writes to it wants to write to what the loop runs over."""
    found = torch.full(entry.shape, number, dtype=entry.dtype)
    with torch._C.DisableTorchFunction():
        tracer.memory.of(found).frozen = "a part of a tensor is written in a loop", None
    return found


def _comes_from(value: Value, entry: Value) -> bool:
    pending, seen = [value], 0
    while pending and seen < DEEPEST:
        current, seen = pending.pop(), seen + 1
        if current is entry:
            return True
        if current.node is not None and isinstance(current.type, TensorType):
            pending += current.node.inputs
    return False
