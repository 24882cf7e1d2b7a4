"""Facts on what values hold: containers, objects that are their attributes, bound methods, arrays, thread locals."""

from __future__ import annotations

import argparse
import array
import contextvars
import decimal
import functools
import gc
import io
import queue
import sys
import threading
import types
import weakref
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from monograph.capture.guards import ABSENT, Fact
from monograph.capture.readset_mutables import decimal_settings

if TYPE_CHECKING:
    from monograph.capture.readset import ReadSet

__all__ = ["SIMPLE", "ValueReads"]

CACHED = type(functools.lru_cache(len))
LONGEST = 1 << 16      # of lists and dicts of numbers and texts, which are compared as a whole
LONG = 4096        # other containers longer than this are compared by identity and length only
NAMESPACES = (types.SimpleNamespace, argparse.Namespace, UserDict, UserList, ChainMap)
VIEWS = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
SIMPLE = (int, float, bool, str, bytes, complex, type(None), torch.Size, torch.dtype, torch.device)


class ValueReads:
    """The part of a ReadSet that looks at what values hold, but for tensors, modules, functions and classes."""

    def __init__(self, reads: ReadSet) -> None:
        self.reads = reads
        self.facts = reads.facts

    def read(self, value: Any, path: str) -> None:
        self.reads.mutables.value(value, path)
        if isinstance(value, (types.MethodType, staticmethod, classmethod)):
            self.reads.reach(value.__func__, path)
            if isinstance(value, types.MethodType):
                self.reads.reach(value.__self__, path if path == "" else f"{path}.__self__")
                self._method(value)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                self.reads.reach(part, path)
        elif isinstance(value, functools.partial):
            self._partial(value, path)
        elif isinstance(value, weakref.ref):
            self.facts["weak", id(value)] = Fact(f"what {path} refers to", "{0}()", (value,), "same", value())
            self.reads.reach(value(), path)
        elif isinstance(value, CACHED):
            self.reads.reach(value.__wrapped__, path)
        elif isinstance(value, threading.local):
            self._local(value, path)
        elif isinstance(value, contextvars.ContextVar):
            self.facts["context", id(value)] = Fact(
                f"context variable {value.name}", "{0}.get({1})", (value, ABSENT), "same", value.get(ABSENT))
        elif isinstance(value, (dict, list, tuple, set, frozenset, deque)):
            self._container(value, path)
        elif isinstance(value, VIEWS):
            for behind in gc.get_referents(value):
                self.reads.reach(behind, path)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.facts["array", id(value)] = Fact(
                f"content of {path}", "{1}({0}) == {2}", (value, array_content, array_content(value)))
            self.settings("how numpy writes arrays", np.get_printoptions)
        elif isinstance(value, (io.StringIO, io.BytesIO)):
            self.facts["stream", id(value)] = Fact(f"content of {path}", "({0}.getvalue(), {0}.tell()) == {1}",
                                                   (value, (value.getvalue(), value.tell())))
        elif value is decimal or value is decimal.Decimal or value is decimal.getcontext:
            self.settings("the decimal context", decimal_settings)
            self.reads.mutables.decimals()
        elif isinstance(value, (bytearray, memoryview, array.array)):
            self.facts["array", id(value)] = Fact(f"content of {path}", "bytes({0}) == {1}", (value, bytes(value)))
        elif isinstance(value, (*NAMESPACES, queue.Queue)):
            self.namespace(value, path)

    def _method(self, method: types.MethodType) -> None:
        """What a method finds by `super()`."""
        cls = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
        for owner in cls.__mro__:
            if any(raw is method.__func__ or getattr(raw, "__func__", None) is method.__func__
                   for raw in list(vars(owner).values())):
                self.reads.classes.by_super(cls, owner, method.__func__)
                return

    def settings(self, label: str, read: Callable[[], Any]) -> None:
        """Note what `read()` gives."""
        self.facts.setdefault(("settings", label), Fact(label, "{0}() == {1}", (read, read())))

    def namespace(self, value: Any, path: str) -> None:
        """An object of the standard library's that is its attributes: all are noted, for reads cannot be seen."""
        table = vars(value)
        self.reads.journal.watch(table, path)
        self.facts["length", id(table)] = Fact(f"attributes of {path}", "[*{0}] == {1}", (table, list(table)),
                                               watch=(table,))
        for name, entry in table.items():
            self.reads.entry((id(value), name), table, name, entry, f"{path}.{name}")
            self.reads.reach(entry, f"{path}.{name}")

    def _local(self, value: threading.local, path: str) -> None:
        """What a thread has of its own: the attributes by name."""
        names = list(vars(value))
        self.facts["length", id(value)] = Fact(f"attributes of {path}", "[*{0}.__dict__] == {1}", (value, names))
        for name in names:
            entry = vars(value)[name]
            self.facts[id(value), name] = Fact(f"{path}.{name}", f"{{0}}.{name}", (value,), "same", entry)
            self.reads.reach(entry, f"{path}.{name}")

    def _partial(self, value: functools.partial[Any], path: str) -> None:
        state = (value.func, *value.args, *value.keywords.values())
        text = "[*map(id, ({0}.func, *{0}.args, *{0}.keywords.values()))] == {1}"
        self.facts["partial", id(value)] = Fact(f"arguments of {path}", text, (value, [*map(id, state)]))
        self.reads.reach(value.func, path)
        for argument in (*value.args, *value.keywords.values()):
            self.reads.reach(argument, path)

    def _container(self, value: Any, path: str) -> None:
        """Content facts. Tuples cannot change, but what they hold can."""
        kind = type(value)
        if value is sys.modules:             # which grows with every import, while tracing too
            for name, module in list(value.items()):
                self.facts["item", id(value), name] = Fact(
                    f"module {name}", "{0}.get({1})", (value, name), "same", module, (value,))
                self.reads.reach(module, name)
            return
        if kind in (list, set, deque) or isinstance(value, dict):
            self.reads.journal.watch(value, path)
        if LONG < len(value) <= LONGEST and type(value) in (list, dict) and all(
                isinstance(entry, SIMPLE) for entry in (value.values() if isinstance(value, dict) else value)):
            self.facts["item", id(value)] = Fact(f"content of {path}", "{0} == {1}", (value, value.copy()))
            return
        if len(value) > LONG:
            self.facts["length", id(value)] = Fact(f"length of {path}", "len({0})", (value,), "same", len(value))
            return
        if isinstance(value, dict):
            self._dict(value, path)
        elif isinstance(value, (list, deque)):
            base, plain = (list if isinstance(value, list) else deque), kind in (list, deque)
            size, get = ("len({0})", "{{0}}[{i}]") if plain else ("{1}({0})", "{{2}}({{0}}, {i})")
            objects = (value,) if plain else (value, base.__len__, base.__getitem__)
            self.facts["length", id(value)] = Fact(f"length of {path}", size, objects, "same", base.__len__(value))
            for i, entry in enumerate(base.__iter__(value)):
                self.facts["item", id(value), i] = Fact(f"{path}[{i}]", get.format(i=i), objects, "same", entry)
                self.reads.reach(entry, f"{path}[{i}]")
        elif isinstance(value, tuple):
            for i, entry in enumerate(tuple.__iter__(value)):
                self.reads.reach(entry, f"{path}[{i}]")
        else:
            base = set if isinstance(value, set) else frozenset
            if base is set:
                self.facts["item", id(value)] = Fact(path, "{0} == {1}", (value, set(value)))
            for entry in base.__iter__(value):
                self._key(entry, path)

    def _dict(self, value: dict[Any, Any], path: str) -> None:
        if isinstance(value, defaultdict):
            self.facts["factory", id(value)] = Fact(
                f"default_factory of {path}", "{0}.default_factory", (value,), "same", value.default_factory)
            self.reads.reach(value.default_factory, f"default_factory of {path}")
        keys = list((OrderedDict if isinstance(value, OrderedDict) else dict).__iter__(value))
        if not keys:
            self.facts["length", id(value)] = Fact(f"keys of {path}", "not {0}", (value,), watch=(value,))
        else:
            order = () if isinstance(value, OrderedDict) else (value,)      # move_to_end leaves no trace in the dict
            self.facts["length", id(value)] = (
                Fact(f"keys of {path}", "[*{0}] == {1}", (value, keys), watch=order)
                if all(isinstance(key, SIMPLE) for key in keys) else
                Fact(f"keys of {path}", "[*map(id, {0})] == {1}", (value, [*map(id, keys)]), watch=order))
        get = "{0}[{1}]" if type(value) is dict else "{2}({0}, {1})"
        for key in keys:
            entry = dict.__getitem__(value, key)
            label = f"{path.removesuffix('_modules')}{key}" if path.endswith("_modules") else f"{path}[{key!r}]"
            objects = (value, key, dict.__getitem__)
            self.facts["item", id(value), key] = Fact(label, get, objects, "same", entry, (value,))
            self._key(key, path)
            self.reads.reach(entry, label)

    def _key(self, value: Any, path: str) -> None:
        """What one has to iterate for. Registries hold the classes of a whole library, of which only some are used."""
        if not isinstance(value, type):
            self.reads.reach(value, f"a key of {path}")


def array_content(array: np.ndarray) -> tuple[Any, ...]:
    """All that may change of an array in place."""
    return array.shape, array.strides, array.dtype, array.flags.num, array.tobytes()
