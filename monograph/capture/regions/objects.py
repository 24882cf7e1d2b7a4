"""What a branch does to Python's own objects: their content before, put back between branches, compared after.

Looked at are the lists, dicts, sets, deques and attributes that can be reached from the variables of the statement, and
what the trace watches anyway (`readset_journal`). Iterators are looked at too: one that a branch advances cannot be put
back. So are objects that can be put back but not merged (`whole`).
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from monograph.capture.convert.operators import Perhaps
from monograph.capture.grown import Grown
from monograph.capture.guards import ABSENT
from monograph.capture.number import TracedNumber
from monograph.capture.readset_journal import content, put, slots
from monograph.capture.regions import whole

__all__ = ["Objects"]

DEEPEST = 6
OURS = __name__.split(".")[0] + "."
PLAIN = (torch.Tensor, TracedNumber, type, types.ModuleType, types.BuiltinFunctionType, torch.dtype, torch.device, str,
         bytes, int, float, complex, bool, type(None), torch.Size)


class Objects:
    """Containers and their content at one moment."""

    def __init__(self, roots: Iterable[Any], watched: Iterable[Any] = ()) -> None:
        self.content: dict[int, tuple[Any, Any]] = {}
        self.iterators: dict[int, tuple[Any, Any]] = {}
        self.wholes: dict[int, tuple[Any, Any]] = {}
        for root in roots:
            self._visit(root, 0)
        for container in watched:          # after the roots, whose parts are looked at too
            self._add(container)

    def _add(self, container: Any) -> bool:
        if id(container) in self.content:
            return False
        self.content[id(container)] = (container, _content(container))
        return True

    def _visit(self, value: Any, depth: int) -> None:
        if isinstance(value, Perhaps):
            value = vars(value).get("value")
        if isinstance(value, (types.BuiltinMethodType, types.MethodWrapperType)):
            value = value.__self__
        if isinstance(value, Grown):
            self._add(value)
        if id(value) in self.wholes or depth > DEEPEST or type(value).__module__.startswith(OURS):
            return
        before = None if isinstance(value, torch.Tensor) else whole.state(value)
        if before is not None:
            self.wholes[id(value)] = value, before
        if isinstance(value, PLAIN):
            return
        if isinstance(value, (list, dict, set, deque)):
            if self._add(value):
                for entry in (dict.values(value) if isinstance(value, dict) else value):
                    self._visit(entry, depth + 1)
        elif isinstance(value, (tuple, frozenset)):
            for entry in value:
                self._visit(entry, depth + 1)
        elif isinstance(value, Iterator):
            self.iterators.setdefault(id(value), (value, position(value)))
        elif isinstance(value, types.MethodType):
            self._visit(value.__self__, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._visit(part, depth + 1)
        elif isinstance(value, types.FunctionType):
            self._add(value.__dict__)
            for cell in value.__closure__ or ():
                if self._add(cell):
                    for entry in content(cell):
                        self._visit(entry, depth + 1)
        elif isinstance(getattr(value, "__dict__", None), dict) and not _is_of_torch(value):
            deeper = depth if isinstance(value, torch.nn.Module) else depth + 1
            self._visit(type(value), deeper)
            if self._add(value.__dict__):
                for entry in list(value.__dict__.values()):
                    self._visit(entry, deeper)
        elif slots(type(value)) and self._add(value):
            for entry in content(value).values():
                self._visit(entry, depth + 1)

    def has_advanced(self) -> bool:
        """Whether an iterator is not where it was, or may not be: a generator does not tell."""
        return any(before is None or position(iterator) != before for iterator, before in self.iterators.values())

    def altered(self) -> str | None:
        """The kind of an object that cannot be merged and is not as it was; all of these are put back."""
        kind = None
        for value, before in self.wholes.values():
            if not whole.is_same(before, whole.state(value)):
                kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
                whole.put_back(value, before)
        return kind

    def now(self) -> dict[int, Any]:
        """The content of the same containers at present."""
        return {key: _content(container) for key, (container, _) in self.content.items()}

    def restore(self) -> None:
        for container, before in self.content.values():
            refill(container, before)


def _content(container: Any) -> Any:
    return container.parts() if isinstance(container, Grown) else content(container)


def position(iterator: Any) -> Any:
    """Where an iterator stands, for comparison; None where it does not say."""
    if isinstance(iterator, types.GeneratorType):
        return None
    try:
        _, parts, *rest = iterator.__reduce__()
    except (TypeError, ValueError):
        return None
    inner = [position(part) for part in parts if isinstance(part, Iterator)]
    return None if None in inner else (inner, [part for part in (*parts, *rest) if isinstance(part, int)])


def refill(container: Any, value: Any) -> None:
    """Give a container the content that `readset_journal.content` read from it."""
    if isinstance(container, Grown):
        container.restore(value)
    elif isinstance(container, types.CellType):
        if value:
            container.cell_contents, = value
        elif content(container):
            del container.cell_contents
    elif isinstance(container, dict):
        if not (len(container) == len(value) and all(map(_same_item, container.items(), value.items()))):
            container.clear()
            container.update(value)
    elif isinstance(container, set | frozenset):
        if container != value:
            put(container, None, value)
    elif isinstance(container, list | deque):
        put(container, None, value)
    else:
        for name in content(container):
            if name not in value:
                put(container, name, ABSENT)
        for name, entry in value.items():
            put(container, name, entry)


def _same_item(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    return a[0] is b[0] and a[1] is b[1]


def _is_of_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and not isinstance(value, torch.nn.Module)
