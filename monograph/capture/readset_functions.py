"""Facts on functions: their code, defaults and closure, and the globals and attribute chains their code mentions.

`torch.nn.functional.relu` in the code of a reached function is a chain; every step of it through a module or a class
is a dict entry that may be replaced. Of torch's own layers only the functions of torch.nn.functional are noted.
"""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.arrays import not_lent
from monograph.capture.classes import Type
from monograph.capture.conversions import original
from monograph.capture.guards import ABSENT, Fact
from monograph.capture.guards_entries import entries
from monograph.capture.readset_code import find_attribute, is_user_class, is_user_file, names, quote
from monograph.capture.readset_modules import settled

if TYPE_CHECKING:
    from monograph.capture.readset import ReadSet

__all__ = ["FunctionReads"]


class FunctionReads:
    """The part of a ReadSet that looks at functions."""

    def __init__(self, reads: ReadSet) -> None:
        self.reads = reads
        self.codes: dict[int, types.CodeType] = {}       # of the user's functions met so far
        self.hidden: dict[int, dict[str, Any]] = {}      # by a table of globals: names that are not in it
        self.builtins: dict[str, Any] = {}               # what they mean
        self.met: dict[int, tuple[types.FunctionType, types.CodeType]] = {}      # they, and the code last looked at

    def read(self, function: types.FunctionType, path: str) -> None:
        code, name = original(function.__code__), function.__qualname__
        if not is_user_file(code.co_filename):
            self._library(code, function.__globals__)
            if "__wrapped__" in function.__dict__:       # a decorator's, around the user's
                self.reads.reach(function.__dict__["__wrapped__"], path)
            return
        self.codes[id(code)] = code
        self.reads.classes.spell(names(code).spelled)
        parts = {"code": ("__code__", code), "defaults": ("__defaults__", function.__defaults__),
                 "keyword defaults": ("__kwdefaults__", function.__kwdefaults__)}
        if function.__defaults__ is None and function.__kwdefaults__ is None:
            self.reads.facts["no defaults", id(function)] = Fact(
                f"defaults of {name}", "{0}.__defaults__ is {0}.__kwdefaults__ is None", (function,), watch=(function,))
            parts = {"code": parts["code"]}
        for part, (attribute, value) in parts.items():
            label = f"{part} of {name}"
            self.reads.facts[part, id(function)] = Fact(
                label, f"{{0}}.{attribute}", (function,), "same", value, (function,))
            if value is not code:
                self.reads.reach(value, label)
        if function.__dict__:
            self.reads.reach(function.__dict__, name)
        for free, cell in zip(code.co_freevars, function.__closure__ or ()):
            self._cell(cell, f"{free} (closure of {name})", code)
        self._globals(code, function.__globals__)
        self.met[id(function)] = function, code

    def look_again(self) -> None:
        """Converted since, a function may name globals that Python itself drops: `if x and 0: ...`."""
        for key, (function, code) in list(self.met.items()):
            new = function.__code__
            if new is not code:
                self.met[key] = function, new
                known, found = names(original(new)), names(new)
                if not {*known.globals, *known.stored}.issuperset((*found.globals, *found.stored)):
                    self._globals(new, function.__globals__)

    def _library(self, code: types.CodeType, table: dict[str, Any]) -> None:
        """Of torch's own layers only what people replace: the functions of torch.nn.functional."""
        if table.get("F") is torch.nn.functional:
            for root, attributes in names(code).chains:
                if root == "F":
                    self._chain(table[root], "torch.nn.functional", attributes)

    def _cell(self, cell: types.CellType, label: str, code: types.CodeType) -> None:
        self.reads.journal.watch(cell, label)
        try:
            value = cell.cell_contents
        except ValueError:
            return
        self.reads.facts["cell", id(cell)] = Fact(label, "{0}.cell_contents", (cell,), "same", value, (cell,))
        self._met(value, label)
        if isinstance(value, types.FunctionType):
            self.reads.reach(value.__dict__, f"attributes of {label}")
        elif isinstance(value, type) and is_user_class(value):
            for name in code.co_names:
                found = find_attribute(value, name)
                if found is not None and is_user_class(found[0]):
                    self.reads.classes.attribute(value, name)

    def _globals(self, code: types.CodeType, table: dict[str, Any]) -> None:
        found = names(code)
        for name in (*found.globals, *found.stored):        # what is perhaps stored stays as it was otherwise
            if name not in table or self.reads.hooks.brought(table, name):
                if name not in found.stored:
                    self._builtin(table, name)
            elif name not in found.fresh:
                self.read_global(table, name)
        if "type" in found.globals and "type" not in table:
            self.reads.hooks.lend(table, "type", Type)
        for name in found.bare:              # handed on: who knows what is read of it
            value = table.get(name)
            if isinstance(value, types.ModuleType):
                self.reads.reach(value, name)
            elif isinstance(value, types.FunctionType):
                self.reads.reach(value.__dict__, f"attributes of {name}")
        self.reads.modules.looked_up(found, table)
        for root, attributes in found.chains:
            if isinstance(table.get(root), types.FunctionType):
                self.reads.reach(table[root].__dict__, f"attributes of {root}")
            if root in table and root not in found.fresh:
                self._chain(table[root], root, attributes)
        for name in found.stored:
            self.reads.journal.watch_global(table, name, f"global {name}")

    def _builtin(self, table: dict[str, Any], name: str) -> None:
        """A name that is no global."""
        if not self.hidden:
            self.reads.facts["builtins"] = entries("", vars(builtins), self.builtins, (vars(builtins),))
        if id(table) not in self.hidden:
            self.hidden[id(table)] = {}
            self.reads.facts["hidden globals", id(table)] = entries(
                str(table.get("__name__")), table, self.hidden[id(table)], settled(table))
        self.hidden[id(table)][name] = ABSENT
        self.builtins[name] = self.reads.hooks.behind(vars(builtins).get(name, ABSENT))

    def read_global(self, table: dict[str, Any], name: str, path: str = "") -> None:
        key = ("global", id(table), name)
        if key not in self.reads.facts and not self.reads.hooks.brought(table, name):
            value = not_lent(self.reads.hooks.behind(table[name]))
            self.reads.facts[key] = Fact(path or f"global {name}", f"{{0}}[{quote(name)}]", (table,), "same", value,
                                         settled(table))
            if not isinstance(value, types.ModuleType) or path:
                self._met(value, path or name)
            self.reads.hooks.stand_in(table, name)

    def _met(self, value: Any, path: str) -> None:
        """A value with a name in code, which tells what is asked of it."""
        if isinstance(value, type) and is_user_class(value):
            self.reads.classes.read(value)
        else:
            self.reads.reach(value, path)

    def _computed(self, module: types.ModuleType, name: str, path: str) -> None:
        """An attribute that the class of a module computes: a flag of torch.backends."""
        if find_attribute(type(module), name) is None:       # `__getattr__` would import, or make something
            return
        value = getattr(module, name, None)
        if isinstance(value, (bool, int, float, str)):
            self.reads.facts["computed", id(module), name] = Fact(path, f"{{0}}.{name}", (module,), "same", value)

    def _chain(self, value: Any, path: str, attributes: tuple[str, ...]) -> None:
        """`torch.nn.functional.relu`: every step through a module or class is a dict entry that may be replaced."""
        for name in attributes:
            if isinstance(value, types.ModuleType):
                table = vars(value)
                if name == "__dict__":
                    self.reads.modules.all(table, path)
                    return
                if name not in table:
                    self._computed(value, name, f"{path}.{name}")
                    return
                key, path = ("global", id(table), name), f"{path}.{name}"
                value = not_lent(self.reads.hooks.behind(table[name]))
                if key not in self.reads.facts:
                    self.reads.facts[key] = Fact(path, f"{{0}}[{quote(name)}]", (table,), "same", value, settled(table))
                    self._met(value, path)
            elif isinstance(value, type) and is_user_class(value):
                self.reads.classes.attribute(value, name)
                found = find_attribute(value, name)
                value = found[1] if found else None
            else:
                return
