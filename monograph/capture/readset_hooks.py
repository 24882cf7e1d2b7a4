"""Seeing attribute reads and writes: `__getattribute__` and `__setattr__` of classes are replaced while a trace runs.

Patches are process-wide, so they are made under `LOCK`, listen to one thread only, and are undone
in the reverse order whatever happens. The environment is seen in the same way; clocks and random generators are read
at every call (`readset_outside`); what user code prints and warns is kept, to be said at every call.
"""

from __future__ import annotations

import builtins
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Container
from dataclasses import replace
from sys import _getframe  # by names of our own: modules are what is watched
from threading import get_ident
from typing import Any

import torch
from torch import nn

from monograph import compat
from monograph.capture.draws import DefaultGenerator
from monograph.capture.guards import ABSENT
from monograph.capture.readset_code import is_standard_file, is_user_file
from monograph.capture.readset_logging import Logged, Stream, keep_enabled, keep_log
from monograph.capture.readset_messages import Message, frozen, keep_print, keep_warn
from monograph.capture.readset_modules import ModuleReads
from monograph.capture.readset_outside import Outside
from monograph.capture.readset_tensors import TensorReads

__all__ = ["LOCK", "MODULE_TABLES", "WHOLE", "Hooks"]

WHOLE = frozenset({"__dict__", "__getstate__", "__reduce_ex__"})      # of an object: vars, copies, pickles
HEARD = WHOLE | {"__class__"}
MODULE_TABLES = ("_parameters", "_buffers", "_modules")      # in the order in which a module looks into them
GETATTR: Any = nn.Module.__getattr__ if nn.Module.__getattr__.__module__ == nn.Module.__module__ else object()

LOCK = threading.RLock()

# A child of fork must not find the lock held by a thread that it does not have.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)

OUTSIDE = {function.__code__.co_filename for function in (Outside.install, DefaultGenerator.seed)}

Read = Callable[[Any, str, Any], None]
Told = Callable[[str, Any, tuple[Any, ...], Any], None]
Absent = Callable[[Any, str], None]


class Hooks:
    """For the attributes of instances of hooked classes are called: once `before(class, name)`, before any code of a
    property runs, `read(object, name, value)`, `absent(object, name)`
    and, before it happens, `write(object, name)` and `delete(object, name)`; `environ(table, key, value or None)` for
    environment variables, `listens(logger, level, answer)` for loggers, `told` for what is asked of the process. All in
    the thread that made this object."""

    def __init__(self, before: Callable[[type, str], None], read: Read, absent: Absent, write: Absent, delete: Absent,
                 environ: Callable[[Any, Any, Any], None], listens: Callable[[logging.Logger, int, bool], None],
                 told: Told, seen: Container[Any]) -> None:
        self.before = before
        self.looked: set[tuple[type, str]] = set()
        self.read = read
        self.absent = absent
        self.write = write
        self.delete = delete
        self.environ = environ
        self.listens = listens
        self.seen = seen                     # (id of an object, name): reads of no more interest
        self.thread = get_ident()
        self.made: set[Any] = set()          # hooks of attributes
        self.patched: dict[tuple[type, str], tuple[bool, Any]] = {}
        self.refused: set[type] = set()
        self.watched: dict[type, None] = {}
        self.replaced: list[tuple[Any, str, Any]] = []
        self.stood_for: dict[int, Any] = {}       # by the id of what was put in its place
        self.lent: dict[tuple[int, str], tuple[dict[str, Any], Any, Any]] = {}     # of globals: what is there, stand-in
        self.modules: ModuleReads | None = None
        self.outside = Outside(self._user_frame, told)

    def watch(self, cls: type) -> None:
        """Hook one class. A class that cannot be patched (immutable) is left alone."""
        if cls in self.refused:
            return
        self.watched[cls] = None
        hooks = {"__getattribute__": self._getattribute, "__setattr__": self._setattr, "__delattr__": self._delattr}
        for name, hooked in hooks.items():
            old = getattr(cls, name)
            if old not in self.made:         # neither hooked, nor the heir of a class that is
                self._patch(cls, name, hooked(old))

    def watch_again(self) -> None:
        """Hook what an earlier attempt hooked."""
        for cls in list(self.watched):
            self.watch(cls)

    def watch_environment(self) -> None:
        table = type(os.environ)
        self._patch(table, "__getitem__", self._getitem(table.__getitem__))
        for name in ("__iter__", "__len__", "copy"):
            self._patch(table, name, self._whole(getattr(table, name)))
        for name in ("__setitem__", "__delitem__"):
            self._patch(table, name, self.outside.refusal("a write to os.environ", getattr(table, name)))

    def watch_outside(self) -> None:
        self.outside.install(self._replace)
        for (_, name), (table, before, made) in self.lent.items():       # of an earlier attempt, which looked at them
            table[name] = self.outside.stand_ins.get(id(before), made)

    def watch_modules(self, modules: ModuleReads) -> None:
        modules.install(self._replace)
        self.modules = modules

    def watch_tensors(self, tensors: TensorReads) -> None:
        self._patch(torch.Tensor, "__getattr__", lambda tensor, name: tensors.getattr(tensor, name, _getframe(1)))
        self._patch(torch.Tensor, "__setattr__", tensors.setter())
        compat.replace_tensor_text(self._replace, tensors.written)

    def stand_in(self, table: dict[str, Any], name: str) -> None:
        """Let the global `name` be what stands in place of a clock or random function, if it is one."""
        made = self.outside.stand_ins.get(id(table[name]))
        if made is not None:
            self.lend(table, name, made)

    def lend(self, table: dict[str, Any], name: str, value: Any) -> None:
        """Let the global `name` be `value` while the trace runs."""
        self.lent[id(table), name] = table, table.get(name, ABSENT), value
        table[name] = value

    def brought(self, table: dict[str, Any], name: str) -> bool:
        """Whether a global is there for the trace only."""
        return self.lent.get((id(table), name), (table, None))[1] is ABSENT

    def behind(self, value: Any) -> Any:
        """What a function that stands in for another one in a module stands for; itself for anything else."""
        return self.stood_for.get(id(value), value)

    def in_class(self, cls: type, name: str) -> Any:
        """What a class itself has under a name, but for what the trace put there; ABSENT for nothing."""
        own, old = self.patched.get((cls, name), (True, cls.__dict__.get(name, ABSENT)))
        return old if own else ABSENT

    def watch_messages(self, messages: list[Message]) -> None:
        """Keep what user code prints, warns, writes to a standard stream and logs instead of saying it."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is not None:
                self._replace(sys, name, Stream(name, getattr(sys, name), self._user_frame, messages.append))
        self._replace(builtins, "print", keep_print(messages, self._user_frame, builtins.print))
        self._replace(warnings, "warn", keep_warn(messages, self._user_frame, warnings.warn))

        def keep(message: Logged, frame: Any) -> None:
            messages.append(replace(message, values=frozen(message.values, frame, "logged")))

        self._replace(logging.Logger, "_log", keep_log(keep, self._is_user, logging.Logger._log))
        self._replace(logging.Logger, "getEffectiveLevel", self._level(logging.Logger.getEffectiveLevel))
        self._replace(logging.Logger, "isEnabledFor",
                      keep_enabled(self.listens, self._is_user, logging.Logger.isEnabledFor))

    def _level(self, old: Any) -> Any:
        def getEffectiveLevel(logger: logging.Logger) -> int:
            level: int = old(logger)
            if self._is_user(_getframe(1)):
                self.outside.told(f"level of logger {logger.name}", old, (logger,), level)
            return level

        return getEffectiveLevel

    def _replace(self, module: Any, name: str, function: Any) -> None:
        before = getattr(module, name)
        inherited = isinstance(module, type) and name not in module.__dict__
        self.replaced.append((module, name, ABSENT if inherited else before))
        self.stood_for[id(function)] = before
        setattr(module, name, function)

    def _user_frame(self, *, through: bool = False) -> Any:
        """The frame that called a replaced function, where it is user code in the traced thread; else None.
        `through`: user code that called it by way of the standard library counts too."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename in OUTSIDE:
            frame = frame.f_back
        while through and frame is not None and is_standard_file(frame.f_code.co_filename):
            frame = frame.f_back
        return frame if frame is not None and self._is_user(frame) else None

    def _is_user(self, frame: Any) -> bool:
        """Whether `frame` is user code in the traced thread, not what is done once, when a module is loaded."""
        return get_ident() == self.thread and is_user_file(frame.f_code.co_filename) and not (
            self.modules is not None and self.modules.importing)

    def uninstall(self) -> None:
        self.outside.tracing = False
        self.outside.tracer = None           # whose fakes end with the trace
        if self.modules is not None:
            self.modules.uninstall()
        for (_, name), (table, before, _) in self.lent.items():
            if before is ABSENT:
                del table[name]
            else:
                table[name] = before
        while self.replaced:
            module, name, before = self.replaced.pop()
            if before is ABSENT:
                delattr(module, name)
            else:
                setattr(module, name, before)
        for (cls, name), (own, old) in reversed(list(self.patched.items())):
            if own:
                setattr(cls, name, old)
            else:
                delattr(cls, name)
        self.patched.clear()
        self.made.clear()

    def _patch(self, cls: type, name: str, function: Any) -> None:
        own = name in cls.__dict__
        old = cls.__dict__.get(name)
        try:
            setattr(cls, name, function)
        except (TypeError, AttributeError):      # built-in, or guarded by its metaclass
            self.refused.add(cls)
            return
        self.patched[cls, name] = own, old
        self.made.add(function)

    def _getattribute(self, old: Any) -> Any:
        read, absent, thread, current, seen = self.read, self.absent, self.thread, get_ident, self.seen
        looked, before = self.looked, self.before

        def __getattribute__(instance: Any, name: str) -> Any:
            if (type(instance), name) not in looked and current() == thread:
                looked.add((type(instance), name))
                before(type(instance), name)
            try:
                value = old(instance, name)
            except AttributeError:
                if (id(instance), name) not in seen and name[:2] != "__" and current() == thread:
                    absent(instance, name)
                if getattr(type(instance), "__getattr__", None) is GETATTR:       # which asks for `__dict__` six times
                    table = old(instance, "__dict__")
                    for kind in MODULE_TABLES:
                        if name in table.get(kind, ()):
                            return table[kind][name]
                raise
            if (id(instance), name) not in seen and (name[:2] != "__" or name in HEARD) and current() == thread:
                read(instance, name, value)
            return value

        return __getattribute__

    def _setattr(self, old: Any) -> Any:
        write, thread, current = self.write, self.thread, get_ident

        def __setattr__(instance: Any, name: str, value: Any) -> None:
            if current() == thread:
                write(instance, name)
            old(instance, name, value)

        return __setattr__

    def _delattr(self, old: Any) -> Any:
        delete, thread, current = self.delete, self.thread, get_ident

        def __delattr__(instance: Any, name: str) -> None:
            if current() == thread:
                delete(instance, name)
            old(instance, name)

        return __delattr__

    def _whole(self, old: Any) -> Any:
        """A method that reads all of the environment."""
        environ, thread, current = self.environ, self.thread, get_ident

        def method(table: Any) -> Any:
            if current() == thread:
                environ(table, None, None)
            return old(table)

        return method

    def _getitem(self, old: Any) -> Any:
        environ, thread, current = self.environ, self.thread, get_ident

        def __getitem__(table: Any, key: str) -> str:
            try:
                value = old(table, key)
            except KeyError:
                if current() == thread:
                    environ(table, key, None)
                raise
            if current() == thread:
                environ(table, key, value)
            return value

        return __getitem__
