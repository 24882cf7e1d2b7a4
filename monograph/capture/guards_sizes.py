"""The part of a guard that reads the sizes which are symbols.

    SizeFacts ::= (leaf, Lying)*  Asked*

The check binds every symbol to the size that tells it, then asks: is it in its range, are the other sizes and the
strides what the symbols say, is every question that the trace asked about them answered as it was then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from monograph.capture.guards import Text
from monograph.capture.symbols import Asked, Lying
from monograph.ir import symbolic
from monograph.ir.symbolic import Symbol

__all__ = ["Free", "SizeFacts"]

Free = Mapping[int, tuple[frozenset[int], frozenset[int]]]      # leaf -> dims with free sizes, with free strides


class SizeFacts:
    """`lying`: by number of the leaf that the tensor is; `labels`: how messages call it. `integers`: the leaves that
    are integers; these are sizes themselves."""

    def __init__(self, lying: Mapping[int, Lying], asked: Sequence[Asked], labels: Mapping[int, str],
                 integers: frozenset[int] = frozenset()) -> None:
        self.lying = dict(lying)
        self.integers = integers
        self.asked = list(asked)
        self.labels = labels
        self.symbols: dict[str, tuple[int, int, Symbol]] = {}       # name -> leaf and dim that tell it
        for leaf, tensor in lying.items():
            for axis, dim in tensor.sizes.items():
                if isinstance(dim, Symbol):
                    self.symbols.setdefault(dim.name, (leaf, axis, dim))

    @property
    def free(self) -> Free:
        return {leaf: (frozenset(tensor.sizes), frozenset(tensor.strides)) for leaf, tensor in self.lying.items()}

    def write(self, text: Text, names: Mapping[int, str]) -> None:
        """Generate the check; `names` are the variables that hold the leaves."""
        text.lines += [f"{name} = {self._size(names, leaf, axis)}" for name, (leaf, axis, _) in self.symbols.items()]
        text.require([text_ for text_, _ in self._conditions(names)])

    def _size(self, names: Mapping[int, str], leaf: int, axis: int) -> str:
        return names[leaf] if leaf in self.integers else f"{names[leaf]}.size({axis})"

    def _label(self, leaf: int, axis: int) -> str:
        return self.labels[leaf] if leaf in self.integers else f"size {axis} of {self.labels[leaf]}"

    def _conditions(self, names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
        """Text of Python, and what it says in words."""
        for name, (leaf, axis, symbol) in self.symbols.items():
            here = self._label(leaf, axis)
            if symbol.hi is None:
                yield f"{name} >= {symbol.lo}", f"{here} is at least {symbol.lo}"
            else:
                yield f"{symbol.lo} <= {name} <= {symbol.hi}", f"{here} is from {symbol.lo} to {symbol.hi}"
        for leaf, tensor in self.lying.items():
            for axis, dim in tensor.sizes.items():
                if self.symbols.get(str(dim), ())[:2] != (leaf, axis):
                    yield (f"{self._size(names, leaf, axis)} == {dim}",
                           f"{self._label(leaf, axis)} is {self._words(str(dim), symbolic.free_symbols(dim))}")
            for axis, dim in tensor.strides.items():
                yield (f"{names[leaf]}.stride({axis}) == {dim}", f"stride {axis} of {self.labels[leaf]} is {dim}")
        for asked in self.asked:
            where = f" (asked at {asked.loc.short})" if asked.loc is not None else ""
            yield asked.condition.text, self._words(asked.condition.text, asked.condition.symbols) + where

    def _words(self, text: str, symbols: frozenset[str]) -> str:
        places = [f"{name} = {self._label(leaf, axis)}" for name, (leaf, axis, _) in self.symbols.items()
                  if name in symbols]
        return f"{text} with {', '.join(places)}" if places else text

    def failures(self, leaves: Sequence[Any]) -> list[str]:
        """What a call that has the right number of tensors violates, in words."""
        found = {f"l{leaf}": leaves[leaf] for leaf in self.lying}
        if not all(isinstance(leaves[leaf], int if leaf in self.integers else torch.Tensor) for leaf in self.lying):
            return []
        scope: dict[str, Any] = dict(found)
        for name, (leaf, axis, _) in self.symbols.items():
            value = leaves[leaf]
            scope[name] = value if leaf in self.integers else value.size(axis) if axis < value.dim() else -1
        names = {leaf: f"l{leaf}" for leaf in self.lying}
        told = ", ".join(f"{name} {scope[name]}" for name in self.symbols)
        return [f"{words}: not for {told}" for text, words in self._conditions(names) if not _holds(text, scope)]


def _holds(text: str, scope: dict[str, Any]) -> bool:
    try:
        return bool(eval(text, {"min": min, "max": max}, scope))
    except (IndexError, ZeroDivisionError):       # a tensor of fewer dims
        return False
