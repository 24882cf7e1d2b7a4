"""The functions converted for one trace: which asked for a value, and the code put in their place.

An attempt at a trace ends with the first function that asks. Where one has asked, others do as a rule: the next attempt
reads the values and goes on, so that all that ask on this call's path are known at its end. The next trace of the same
function begins with what was converted for the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from torch.nn import Module

from monograph.capture.convert.compile import Unconvertible, convert, converted_from
from monograph.capture.convert.swap import Swap, enclosing

__all__ = ["Conversions", "original"]

REMEMBERED = 1000        # functions traced
MOST = 32        # questions that one attempt goes on after: loops ask at every iteration


def original(code: CodeType) -> CodeType:
    """The user's own code behind code that may be converted."""
    return converted_from(code) or code


_learnt: dict[int, tuple[CodeType, tuple[CodeType, ...]]] = {}      # by id of a function's code: it, what was converted


def _code_of(root: Any) -> CodeType | None:
    """The user's code that calling `root` runs, if it is a function, a method or a module."""
    if isinstance(root, Module):
        root = type(root).forward
    root = getattr(root, "__func__", root)
    return original(root.__code__) if isinstance(root, FunctionType) else None


class Conversions:
    """Use as a context manager around all attempts at one trace; code is as it was afterwards."""

    def __init__(self, root: Any = None) -> None:
        """`root`: what is traced."""
        self.root = _code_of(root)
        self.swap = Swap()
        self.tried: dict[CodeType, str] = {}      # the user's code -> why it could not be converted, "" if it was
        self.waiting: list[CodeType] = []         # what has asked in this attempt, which went on
        self.shims: dict[CodeType, tuple[CodeType, CodeType]] = {}        # the user's code -> its shim, what ran before

    def __enter__(self) -> Conversions:
        self.swap.__enter__()
        before = _learnt.get(id(self.root))
        if before is not None:
            self.convert_all(before[1])
        return self

    def __exit__(self, *exception: Any) -> None:
        found = tuple(code for code, why in self.tried.items() if not why)
        if found and self.root is not None:
            while len(_learnt) >= REMEMBERED:
                _learnt.pop(next(iter(_learnt)), None)
            _learnt[id(self.root)] = self.root, found
        self.swap.__exit__(*exception)

    def can_convert(self, code: CodeType) -> bool:
        """Whether the function that `code` belongs to has source and runs as it was written still."""
        try:
            old = enclosing(code)
            if old in self.tried:
                return False
            convert(old)
        except Unconvertible as reason:
            self.tried[code] = str(reason)
            return False
        return True

    def convert_all(self, codes: Iterable[CodeType]) -> bool:
        """Convert what can be; whether there was anything."""
        found = [code for code in codes if self.can_convert(code)]
        if found:
            self._install(map(enclosing, found))
        return bool(found)

    def runs_as_written(self, code: CodeType) -> bool:
        """Whether the function of `code` is not converted."""
        try:
            return bool(self.tried.get(enclosing(code), "not tried"))
        except Unconvertible:
            return True

    def can_wait(self, code: CodeType) -> bool:
        """Whether the attempt is to go on before `code`, which has asked and can be converted, is."""
        if "" not in self.tried.values() or len(self.waiting) == MOST:
            return False
        self.waiting.append(code)
        return True

    def convert(self, code: CodeType) -> None:
        """Convert `code`, and what waits for it."""
        self._install(map(enclosing, (code, *self.waiting)))
        self.waiting.clear()

    def _install(self, codes: Iterable[CodeType]) -> None:
        pairs = [(old, convert(old)) for old in dict.fromkeys(codes)]
        found = self.swap.install_all(pairs)
        for old, _ in pairs:
            self.tried[old] = "" if id(old) in found else "no function runs this code"

    def outline(self, code: CodeType, shim: Callable[[FunctionType, CodeType], CodeType]) -> bool:
        """Let the one function that was written as `code` run what `shim` makes for it; whether there is one."""
        functions = self.swap.functions(code)
        if len(functions) != 1:
            return False
        now = functions[0].__code__
        self.shims[code] = shim(functions[0], code), now
        self.swap.install(now, self.shims[code][0])
        return True

    def put_back(self, code: CodeType) -> None:
        """The function that was written as `code` runs what it ran before `outline`."""
        self.swap.undo(*self.shims.pop(code))
