"""What converted code needs besides `OPERATORS`: its states, Python's rules for names, `super()`, lambdas.

Nothing here depends on what is traced.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

from monograph.capture.convert import frames
from monograph.capture.convert.operators import UNBOUND, Perhaps, State
from monograph.capture.convert.syntax import HIDDEN

__all__ = ["SUPPORT", "Support"]

# What a traced branch cannot change through a global: not worth looking at.
OPAQUE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


class Variables:
    """The variables that a function names: cells of its closure, and globals."""

    __slots__ = ("cells", "globals", "names", "outside")

    def __init__(self, function: Any) -> None:
        code = function.__code__
        self.cells: tuple[types.CellType, ...] = function.__closure__ or ()
        self.outside: tuple[str, ...] = code.co_names
        self.globals: dict[str, Any] = function.__globals__
        self.names: tuple[str, ...] = code.co_freevars + self.outside

    def get(self) -> tuple[Any, ...]:
        return (*map(_content, self.cells), *(self.globals.get(name, UNBOUND) for name in self.outside))

    def set(self, values: tuple[Any, ...]) -> None:
        for cell, value in zip(self.cells, values):
            if value is not UNBOUND:
                cell.cell_contents = value
            elif _content(cell) is not UNBOUND:
                del cell.cell_contents
        for name, value in zip(self.outside, values[len(self.cells):]):
            if value is not UNBOUND:
                self.globals[name] = value
            else:
                self.globals.pop(name, None)

    def roots(self) -> tuple[Any, ...]:
        """The values that there are, except modules, functions and classes that are global."""
        inside = [value for value in map(_content, self.cells) if value is not UNBOUND]
        outside = [self.globals[name] for name in self.outside if name in self.globals]
        return (*inside, *(value for value in outside if not isinstance(value, OPAQUE)))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


class Support:
    @staticmethod
    def nothing() -> None:
        """An empty branch; no variables."""

    @staticmethod
    def state(assigned: Any, read: Any, dead: str = "", local: str = "", grown: str = "", held: str = "",
              ) -> State:
        """The variables that two functions name, of which the first may be assigned."""
        variables = Variables(assigned)
        return State(variables.names, variables.get, variables.set, Variables(read).roots, frozenset(dead.split()),
                     frozenset(local.split()), frozenset(grown.split()), frozenset(held.split()))

    @staticmethod
    def local(name: str, variable: Callable[[], Any]) -> Any:
        """A variable that may be unbound, read where Python would say so of a local one."""
        message = (f"cannot access local variable '{name}' where it is not associated with a value"
                   if sys.version_info >= (3, 11) else f"local variable '{name}' referenced before assignment")
        try:
            found = variable()
        except NameError:
            pass
        else:
            return found.read(message) if isinstance(found, Perhaps) else found
        raise UnboundLocalError(message)

    @staticmethod
    def super_(function: Any, cls: Any, first: Any) -> Any:
        """`super()` in a function nested in the one that said so."""
        return super(cls, first) if function is builtins.super else function()

    @staticmethod
    def visible(names: Any) -> Any:
        """What `locals()`, `vars()` or `dir()` gave, without hidden names."""
        if isinstance(names, dict) and any(isinstance(name, str) and name.startswith(HIDDEN) for name in names):
            return {name: value for name, value in names.items() if not str(name).startswith(HIDDEN)}
        if isinstance(names, list) and any(isinstance(name, str) and name.startswith(HIDDEN) for name in names):
            return [name for name in names if not str(name).startswith(HIDDEN)]
        return names

    @staticmethod
    def function(made: Any, defaults: tuple[Any, ...], keywords: dict[str, Any] | None) -> Any:
        """A lambda that was written as a function, with the defaults it was given."""
        made.__defaults__ = defaults or None
        made.__kwdefaults__ = keywords
        return made

    @staticmethod
    def then(parts: tuple[Any, ...] | None, test: Callable[[tuple[Any, ...]], Any]) -> Any:
        """Whether the parts that a pattern took its subject into match in their turn."""
        return False if parts is None else test(parts)

    @staticmethod
    def bind(captures: list[Any], *pairs: Any) -> bool:
        """Remembers what the names of a pattern stand for: position, value, position, value..."""
        for position in range(0, len(pairs), 2):
            captures[pairs[position]] = pairs[position + 1]
        return True

    level = staticmethod(frames.level)

    @staticmethod
    def empty_set() -> set[Any]:
        """`set()`, whatever the user calls by that name."""
        return set()


SUPPORT = Support()
