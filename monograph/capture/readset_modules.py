"""Facts on modules that a program reads otherwise than by a chain of names: `getattr(module, name)`, through another
variable, `vars(module)`, `import` inside of a function, `sys.modules`, `globals()`, `eval`.

While the trace runs such a module is of a class of ours, which sees what user code reads of it. All globals are noted
where code asks for them by names that nobody can foresee.
"""

from __future__ import annotations

import builtins
import importlib
import types
from collections.abc import Callable
from sys import _getframe, modules  # by names of our own: modules are what is watched
from threading import get_ident
from typing import TYPE_CHECKING, Any

from monograph.capture import blame
from monograph.capture.guards import Fact
from monograph.capture.readset_code import Names, is_of_user_file, quote
from monograph.errors import UnsupportedError

if TYPE_CHECKING:
    from monograph.capture.readset import ReadSet

__all__ = ["ModuleReads", "settled"]

class ModuleReads:
    """The part of a ReadSet that looks at modules."""

    def __init__(self, reads: ReadSet) -> None:
        self.reads = reads
        self.thread = get_ident()
        self.importing = 0                   # how deep in the loading of modules
        self.watched: dict[int, tuple[types.ModuleType, type, type]] = {}       # module, its class, ours

    def install(self, replace: Callable[[Any, str, Any], None]) -> None:
        """For one attempt at the trace."""
        for module, _, ours in self.watched.values():
            module.__class__ = ours
        replace(builtins, "__import__", self._imports(builtins.__import__))
        replace(importlib, "import_module", self._imports(importlib.import_module))

    def uninstall(self) -> None:
        for module, before, _ in self.watched.values():
            module.__class__ = before

    def watch(self, module: types.ModuleType) -> None:
        if id(module) in self.watched or module.__name__.partition(".")[0] == "torch":       # whose own code reads it
            return
        before = type(module)
        ours = type(before.__name__, (before,), {"__getattribute__": self._getattribute(before.__getattribute__),
                                                 "__setattr__": self._written(before.__setattr__),
                                                 "__delattr__": self._written(before.__delattr__),
                                                 "__module__": before.__module__})
        try:
            module.__class__ = ours
        except (TypeError, AttributeError):      # of a class that another one cannot stand for
            return
        self.watched[id(module)] = module, before, ours

    def looked_up(self, code: Names, table: dict[str, Any]) -> None:
        """Note what code that uses the globals `table` may read of them by text."""
        if code.by_text and not table.keys() >= code.by_text:
            self.all(table, str(table.get("__name__")))
            self.reads.mutables.of_globals(table, f"globals of {table.get('__name__')}",
                                           lambda name: (id(table), name) in self.reads.hooks.lent
                                           or name in code.stored)

    def _getattribute(self, old: Any) -> Any:
        def __getattribute__(module: Any, name: str) -> Any:
            try:
                value = old(module, name)
            except AttributeError:
                if is_of_user_file(_getframe(1).f_code) and self._asked():
                    self._absent(module, name)
                raise
            if is_of_user_file(_getframe(1).f_code) and self._asked():
                self._read(module, name, value)
            return value

        return __getattribute__

    def _written(self, old: Any) -> Any:
        def written(module: Any, name: str, *value: Any) -> None:
            if is_of_user_file(_getframe(1).f_code) and self._asked():
                raise UnsupportedError(f"the program sets {name} of the module {module.__name__}",
                                       loc=blame.location(_getframe(1)), why="nothing would do it again in later calls",
                                       hint="return the new value")
            old(module, name, *value)

        return written

    def _asked(self) -> bool:
        """Whether the traced thread asks, and not for a module that is being loaded."""
        return not self.importing and get_ident() == self.thread

    def _imports(self, old: Any) -> Any:
        def imported(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != self.thread:
                return old(*args, **kwargs)
            outermost = not self.importing and args[0] not in modules
            unchanged = self.reads.mutables.unchanged() if outermost else []
            self.importing += 1
            try:
                module = old(*args, **kwargs)
            finally:
                self.importing -= 1
                self.reads.mutables.refresh(unchanged)      # what a module does when it is loaded stays
            if is_of_user_file(_getframe(1).f_code) and self._asked() and isinstance(module, types.ModuleType):
                self.reads.reach(module, module.__name__)
            return module

        return imported

    def _read(self, module: types.ModuleType, name: str, value: Any) -> None:
        table = types.ModuleType.__getattribute__(module, "__dict__")
        path = f"{table.get('__name__')}.{name}"
        if name == "__dict__":
            self.all(table, str(table.get("__name__")))
        elif name in table:
            if name[:2] != "__":
                self.reads.functions.read_global(table, name, path)
        elif isinstance(value, (bool, int, float, str)):        # computed by the module
            self.reads.facts["computed", id(module), name] = Fact(path, f"{{0}}.{name}", (module,), "same", value)

    def _absent(self, module: types.ModuleType, name: str) -> None:
        table = types.ModuleType.__getattribute__(module, "__dict__")
        if name[:2] != "__":
            self.reads.facts["absent", id(table), name] = Fact(
                f"absence of {table.get('__name__')}.{name}", f"{quote(name)} not in {{0}}", (table,),
                watch=settled(table))

    def all(self, table: dict[str, Any], path: str) -> None:
        """Every global of a module, and which there are."""
        names = [name for name in table if name[:2] != "__" and not self.reads.hooks.brought(table, name)]
        for name in names:
            self.reads.functions.read_global(table, name, f"{path}.{name}")
        self.reads.facts["names", id(table)] = Fact(
            f"names of {path}", "[name for name in {0} if name[:2] != '__'] == {1}", (table, names),
            watch=settled(table))


def settled(table: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The globals of a module, to be watched unless every statement of a script changes them."""
    return () if table.get("__name__") == "__main__" else (table,)
