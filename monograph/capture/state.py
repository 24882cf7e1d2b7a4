"""What a trace must leave as it found it: random generators, modules, objects, caches, tensors.

Python runs for real while tracing, so it may leave marks. What no later call could repeat is put
back, and refused by name.
"""

from __future__ import annotations

import functools
import gc
import logging
import random
import types
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from monograph import compat
from monograph.capture.guards import same
from monograph.capture.inputs import Entry

__all__ = ["Snapshot", "clear_caches", "outlived", "reset_tensors"]

DEEPEST = 40
TABLES = ("_parameters", "_buffers", "_modules")
OPAQUE = (torch.Tensor, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
          torch.dtype, torch.device, str, bytes, int, float, complex, bool, type(None))


class Snapshot:
    """The state around a trace. `roots` are the function and its arguments."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.containers: dict[int, tuple[str, Any, Any]] = {}     # id -> (path, dict or list, copy)
        self.cells: list[tuple[str, Any, Any]] = []
        self.python_generator = random.getstate()
        self.grad_enabled = torch.is_grad_enabled()
        for root in roots:
            self._root(root)

    # -- taking ------------------------------------------------------------------------

    def _root(self, root: Any) -> None:
        if isinstance(root, types.MethodType):
            self._object(root.__self__, "self", 0)
            root = root.__func__
        if isinstance(root, types.FunctionType):
            for name, cell in zip(root.__code__.co_freevars, root.__closure__ or (), strict=True):
                try:
                    content = cell.cell_contents
                except ValueError:
                    continue
                self.cells.append((name, cell, content))
                self._object(content, name, 0)
        else:
            self._object(root, "", 0)

    def _object(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, OPAQUE) or depth > DEEPEST or _is_of_torch(value):
            return
        if isinstance(value, torch.nn.Module):
            self._module(value, path)
        elif isinstance(value, (list, dict)):
            self._container(value, path, depth)
        elif isinstance(value, tuple):
            for position, entry in enumerate(value):
                self._object(entry, f"{path}[{position}]", depth + 1)
        elif isinstance(value, logging.Logger):
            self._container(vars(value), path, DEEPEST, attributes=True)       # it caches what it was asked
        elif isinstance(getattr(value, "__dict__", None), dict) and depth < 4:
            self._container(value.__dict__, path, depth, attributes=True)

    def _module(self, module: torch.nn.Module, path: str) -> None:
        own = module.__dict__
        if id(own) in self.containers:
            return
        self.containers[id(own)] = (path, own, dict(own))
        prefix = f"{path}." if path else ""
        for name in TABLES:
            table = own.get(name)
            if table:
                self.containers[id(table)] = (path, table, dict(table))
        for name, value in own.items():
            if name[0] != "_" and not isinstance(value, OPAQUE):
                self._object(value, prefix + name, 1)
        for name, child in own.get("_modules", {}).items():
            if child is not None:
                self._module(child, prefix + name)

    def _container(self, value: Any, path: str, depth: int, attributes: bool = False) -> None:
        if id(value) in self.containers:
            return
        self.containers[id(value)] = (path, value, value.copy())
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for name, entry in list(entries):
            if not isinstance(entry, OPAQUE):
                self._object(entry, f"{path}.{name}" if attributes else f"{path}[{name!r}]", depth + 1)

    # -- putting back ------------------------------------------------------------------

    def restore(self) -> str | None:
        """Put everything back; the first mark that could not have been left by a repeatable program, if any."""
        mark: str | None = None
        for path, container, before in self.containers.values():
            name = _changed(container, before)
            if name is not None:
                mark = mark or f"sets {path}{'.' if path and name[0] != '[' else ''}{name}"
                _put_back(container, before)
        for name, cell, content in self.cells:
            if not same(cell.cell_contents, content):
                mark = mark or f"sets the variable {name} of an enclosing function"
                cell.cell_contents = content
        if self.python_generator != random.getstate():
            random.setstate(self.python_generator)
            mark = mark or "draws from Python's random module"
        torch._C._set_grad_enabled(self.grad_enabled)
        return mark


def _is_of_torch(value: Any) -> bool:
    """Torch's own objects (ops, generators) keep caches of no consequence."""
    return type(value).__module__.split(".")[0] == "torch" and not isinstance(value, torch.nn.Module)


def _changed(container: Any, before: Any) -> str | None:
    """The first entry that differs, None when all are the same objects or equal plain values."""
    if isinstance(container, list):
        if len(container) != len(before) or not all(map(same, container, before)):
            return "[...]"
        return None
    if len(container) == len(before) and all(
            name in container and same(container[name], value) for name, value in before.items()):
        return None
    for name in [*before, *container]:
        if name not in before or name not in container or not same(container[name], before[name]):
            return str(name) if isinstance(name, str) else f"[{name!r}]"
    return None


def _put_back(container: Any, before: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(before)
    else:
        container.update(before)


def reset_tensors(entries: Iterable[Entry]) -> str | None:
    """Undo what autograd left on real tensors; a mark as `Snapshot.restore` gives."""
    mark: str | None = None
    for entry in entries:
        real = entry.real
        if entry.version >= 0 and real._version != entry.version:
            compat.set_version(real, entry.version)
        if real.is_leaf and real.grad is not entry.grad:
            real.grad = entry.grad
            mark = mark or f"writes the gradient of {entry.source}"
    return mark


def outlived(storages: Sequence[Any]) -> bool:
    """Whether one of these storages of fakes, by weak reference, is still there though the trace is over."""
    if all(storage.expired() for storage in storages):
        return False
    gc.collect(1)                 # in a cycle of the trace's own
    return not all(storage.expired() for storage in storages)


def clear_caches() -> None:
    """Empty every functools cache that holds a fake."""
    kind = type(functools.lru_cache(gc.get_objects))
    for cache in gc.get_objects():
        if type(cache) is kind and any(_has_fake(value, 0) for value in gc.get_referents(cache)):
            cache.cache_clear()


def _has_fake(value: Any, depth: int) -> bool:
    """Whether a cached value is, or in a few steps contains, a fake tensor."""
    if isinstance(value, torch.Tensor):
        return isinstance(value, compat.FakeTensor)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, set)):
        return False
    return depth < 4 and any(_has_fake(entry, depth + 1) for entry in list(value))
