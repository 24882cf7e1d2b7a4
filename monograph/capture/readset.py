"""Everything outside of its arguments that a trace read, as facts for the guard.

    ReadSet ::= known objects  Fact*  tensors  Journal

An object is *known* when the trace reached it from the traced callable, its arguments, globals or
closures; only reads of known objects become facts, so that what the trace made itself does not. A
value that is read becomes known in turn: containers are noted with their content, functions with
their code, defaults, closure and the globals they use, plain objects by hooking their class. What the
trace wrote and then read is no fact: the journal tells.

Code is looked at, not watched: a global that a reached function mentions is a fact whether or not
this very trace executed that line. (Watching calls would double the time of a trace.)
"""

from __future__ import annotations

import logging
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from monograph import compat
from monograph.capture import blame
from monograph.capture.classes import Type
from monograph.capture.guards import ABSENT, Fact
from monograph.capture.iterators import OneWay
from monograph.capture.readset_classes import ClassReads, is_given, plain_table
from monograph.capture.readset_code import OWN, find_attribute, is_user_class, quote
from monograph.capture.readset_functions import FunctionReads
from monograph.capture.readset_hooks import LOCK, MODULE_TABLES, WHOLE, Hooks
from monograph.capture.readset_journal import Change, Journal, read_slot, slots
from monograph.capture.readset_messages import Message
from monograph.capture.readset_modules import ModuleReads
from monograph.capture.readset_mutables import Mutables
from monograph.capture.readset_tensors import TensorReads
from monograph.capture.readset_values import SIMPLE, ValueReads
from monograph.capture.tree import holds
from monograph.source import SourceLoc

__all__ = ["ReadSet"]

HOOK_TABLES = frozenset(key for key in nn.Module().__dict__ if key.endswith("_hooks"))


class ReadSet:
    """Use as a context manager around the trace; `root` and `arguments` are what the user passed."""

    def __init__(self, root: Callable[..., Any], arguments: Any = ()) -> None:
        self.facts: dict[Any, Fact] = {}
        self.tensors: dict[int, tuple[torch.Tensor, str]] = {}
        self.known: dict[int, tuple[Any, str]] = {}
        self.journal = Journal()
        self.mutables = Mutables()
        self.classes = ClassReads(self)
        self.functions = FunctionReads(self)
        self.modules = ModuleReads(self)
        self.of_tensors = TensorReads(self)
        self.values = ValueReads(self)
        self.seen: set[tuple[int, str]] = set()     # attributes already looked at
        self.hooks = Hooks(self.classes.before, self.read, self.absent, self.write, self.delete, self.environment,
                           self.listens, self.told, self.seen)
        self.messages: list[Message] = []          # printed and warned by user code, in order
        self.arguments = arguments
        self.root = root
        self.written: dict[tuple[int, str], Any] = {}      # attributes written in this attempt -> whose
        self.met_again: set[int] = set()            # known objects that another path led to as well
        self.lines: dict[Any, SourceLoc | None] = {}      # key of a fact -> the user's line that read it first
        self._queue: deque[tuple[Any, str]] = deque()

    def __enter__(self) -> ReadSet:
        LOCK.acquire()
        try:
            self.hooks.watch(nn.Module)
            self.hooks.watch_again()
            self.hooks.watch_environment()
            self.hooks.watch_outside()
            self.hooks.watch_modules(self.modules)
            self.hooks.watch_tensors(self.of_tensors)
            self.hooks.watch_messages(self.messages)
            self.classes.of_torch()
            Type.told = self.classes.told
            self.reach(self.root, "")
            for argument in self.arguments:
                self.reach(argument, "argument")
            self.functions.look_again()
        except BaseException:
            Type.told = None
            self.hooks.uninstall()
            LOCK.release()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if exc[0] is not None:           # what the backward wrote so far
                self.journal.rollback()
        finally:
            Type.told = None
            self.hooks.uninstall()
            LOCK.release()

    def watch(self, tracer: Any) -> None:
        """Let a trace's branches see the containers met so far, and whether something was said."""
        tracer.watched = lambda: [container for container, _, _ in self.journal.entries.values()
                                  if not isinstance(container, type)]
        tracer.has_written = self.journal.has_written
        tracer.globals_now = self.journal.globals_now
        tracer.has_written_global = self.journal.has_written_global
        tracer.count_messages = lambda: len(self.messages)
        tracer.existed = self.existed
        tracer.reached = lambda: (list(self.functions.codes.values()), lambda value: id(value) in self.tensors)
        self.hooks.outside.tracer = tracer
        tracer.generators = self.hooks.outside.of_torch

    def existed(self, value: Any) -> bool:
        """Whether a list, dict or object was there before the trace: it is as it was then, writes are taken back."""
        value = OneWay.behind(value)
        known = self.known.get(id(value))
        if known is None or known[0] is not value or isinstance(value, (tuple, frozenset, *SIMPLE)):
            return False
        return not holds(value, lambda tensor: isinstance(tensor, compat.FakeTensor))

    # What the hooks tell.

    def read(self, instance: Any, name: str, value: Any) -> None:
        """`instance.name` was read and is `value`."""
        key = (id(instance), name)
        if key in self.seen:
            return
        if id(instance) not in self.known:
            self.classes.read_of_made(instance, name)
            return
        if name == "__dict__" and isinstance(instance, nn.Module) and not blame.is_user_code(sys._getframe(2).f_code):
            return                           # torch looks for what it reads next
        if name == "__class__":
            if name in sys._getframe(2).f_code.co_names:     # not `isinstance`
                self.seen.add(key)
                self.classes.told(value)
            return
        if name in WHOLE and name != "__dict__" and sys._getframe(2).f_code.co_filename.startswith(OWN):
            return                           # our own pickles
        self.seen.add(key)
        self.lines[key] = blame.location(blame.user_frame(2))
        if name in WHOLE:                    # all of it at once
            if table_of(instance) is not None:
                self.values.namespace(instance, self.known[id(instance)][1])
            return
        path = self._path(instance, name)
        table = table_of(instance)
        if slot_of(instance, name) is not None:
            if self.journal.written(instance, name, value):
                return
            self.facts[key] = Fact(path, f"{{0}}.{name}", (instance,), "same", value)
        elif table is None:
            self._computed(key, instance, name, value, path)
        elif name in table:
            if self.journal.written(table, name, table[name]):
                if (id(instance), name) not in self.written:       # past `__setattr__`: it may rest on what was
                    self._before(key, instance, table, name, path)
                return
            self.entry(key, table, name, value, path)
            if name in HOOK_TABLES and not value:
                return
            self.classes.read_own(instance, name)
        else:
            if not self._member(key, instance, table, name, path):
                self._class_attribute(key, instance, table, name, value, path)
            return
        self.reach(value, path)

    def absent(self, instance: Any, name: str) -> None:
        """`instance.name` is not found by plain lookup: a parameter, buffer or submodule, or nothing."""
        key = (id(instance), name)
        if key in self.seen or id(instance) not in self.known:
            return
        self.seen.add(key)
        self.lines[key] = blame.location(blame.user_frame(2))
        path, table = self._path(instance, name), table_of(instance)
        if slot_of(instance, name) is not None:
            self.facts[key] = Fact(f"absence of {path}", f"{{1}}({{0}}, {quote(name)})", (instance, hasattr), "same",
                                   False)
        if table is None:
            return
        if self._member(key, instance, table, name, path):
            return
        tables = self._tables(instance)
        tables += [cls.__dict__ for cls in type(instance).__mro__ if is_user_class(cls)]
        text = " and ".join(f"{quote(name)} not in {{{i}}}" for i in range(len(tables)))
        self.facts[key] = Fact(f"absence of {path}", text, tuple(tables), watch=tuple(map(plain_table, tables)))

    def write(self, instance: Any, name: str) -> None:
        """`instance.name` is about to be written. A branch or loop that perhaps does so leaves it as it is otherwise:
        that is a read."""
        if id(instance) in self.known:
            self.written[id(instance), name] = instance
            tracer = self.hooks.outside.tracer
            if tracer is not None and tracer.in_region:
                self._look(instance, name)
        else:
            self.classes.made(type(instance))

    def delete(self, instance: Any, name: str) -> None:
        """`instance.name` is about to be deleted, which only goes well where it is there: that is a read."""
        if id(instance) in self.known:
            self.written[id(instance), name] = instance
            self._look(instance, name)

    def settle(self, changes: Iterable[Change]) -> None:
        """At the end of an attempt: of what was written and has not changed, the journal cannot tell; so it must be
        what it is."""
        self.of_tensors.settle()
        changed = {(id(change.container), change.key) for change in changes}
        for change in changes:
            if isinstance(change.container, type):
                self.classes.set_by_program(change.container, change.key)
        for (_, name), instance in self.written.items():
            if not any((id(table), name) in changed for table in (instance, *self._tables(instance))):
                self._look(instance, name)
        for table, name, before, _ in self.journal.globals.values():
            if before is not ABSENT and (id(table), name) not in changed:
                self.functions.read_global(table, name)

    def _look(self, instance: Any, name: str) -> None:
        """Note what an attribute is before a write, unless a property takes it."""
        table, found, slot = table_of(instance), find_attribute(type(instance), name), slot_of(instance, name)
        if slot is not None:
            value = read_slot(slot, instance)
            self.absent(instance, name) if value is ABSENT else self.read(instance, name, value)
        elif table is not None and name in table:
            self.read(instance, name, table[name])
        elif found is None:
            self.absent(instance, name)
        elif not hasattr(type(found[1]), "__set__"):
            self.read(instance, name, found[1])

    def _tables(self, instance: Any) -> list[dict[str, Any]]:
        """Where attributes of `instance` may lie."""
        table = table_of(instance)
        return [] if table is None else [table, *(table[kind] for kind in MODULE_TABLES if kind in table)]

    def environment(self, table: Any, key: Any, value: Any) -> None:
        """`table[key]` of the environment was read, or without a key all of it."""
        if self.modules.importing:           # what a module reads when it is loaded no call reads again
            return
        self.lines.setdefault(("environ", key), blame.location(blame.user_frame(2)))
        if key is not None:
            self.facts.setdefault(("environ", key), Fact(
                f"environment variable {key}", "{0}({1})", (table.get, key), "same", value))
        elif (id(table), "environ") not in self.seen:
            self.seen.add((id(table), "environ"))
            self.facts["environ", id(table)] = Fact("the environment", "{0}({1}) == {2}", (dict, table, dict(table)))

    def listens(self, logger: logging.Logger, level: int, enabled: bool) -> None:
        """A logger was asked whether it handles records of a level."""
        self.facts.setdefault(("logger", id(logger), level), Fact(
            f"level {level} of logger {logger.name}", "{0}.isEnabledFor({1})", (logger, level), "same", enabled))

    def told(self, label: str, function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> None:
        """`function(*args)` was asked, which may answer otherwise in a later call."""
        text = f"{{0}}({', '.join(f'{{{1 + i}}}' for i in range(len(args)))})"
        self.lines.setdefault(("told", label), blame.location(blame.user_frame(2)))
        self.facts["told", label] = Fact(label, f"{text} == {{{len(args) + 1}}}", (function, *args, value))

    # Attributes.

    def _path(self, instance: Any, name: str) -> str:
        prefix = self.known[id(instance)][1]
        return f"{prefix}.{name}" if prefix else name

    def entry(self, key: Any, table: dict[str, Any], name: str, value: Any, path: str) -> None:
        """Note `table[name]`, which is `value`."""
        if name in HOOK_TABLES and not value:
            self.facts[key] = Fact(path, f"not {{0}}[{quote(name)}]", (table,), watch=(table, value))
        else:
            self.facts[key] = Fact(path, f"{{0}}[{quote(name)}]", (table,), "same", value, (table,))

    def _member(self, key: Any, instance: Any, table: dict[str, Any], name: str, path: str) -> bool:
        """Note a parameter, buffer or submodule; whether `name` is one."""
        if not isinstance(instance, nn.Module):
            return False
        for kind in MODULE_TABLES:
            members = table.get(kind)
            if members is not None and name in members:
                if not self.journal.written(members, name, members[name]):
                    self.entry(key, members, name, members[name], path)
                    self.classes.read_own(instance, name)
                    self.reach(members[name], path)
                return True
        return False

    def _class_attribute(
        self, key: Any, instance: Any, table: dict[str, Any], name: str, value: Any, path: str,
    ) -> None:
        found = find_attribute(type(instance), name)
        if found is None:
            self._computed(key, instance, name, value, path)
            self.reach(value, path)
            return
        if found[0] is nn.Module:           # torch's own machinery, and `forward` as a mark for "not defined"
            if is_given(name, found[1]):
                self.reach(found[1], f"Module.{name}")
            return
        self.facts[key] = Fact(path, f"{quote(name)} not in {{0}}", (table,), watch=(table,))
        self.classes.attribute(type(instance), name)

    def _before(self, key: Any, instance: Any, table: dict[str, Any], name: str, path: str) -> None:
        """Note what an attribute was before the trace put another value into the table."""
        before = self.journal.before(table, name)
        if before is not ABSENT:
            self.entry(key, table, name, before, path)
            return
        self.facts[key] = Fact(f"absence of {path}", f"{quote(name)} not in {{0}}", (table,), watch=(table,))
        if find_attribute(type(instance), name) is not None:
            self.classes.attribute(type(instance), name)

    def _computed(self, key: Any, instance: Any, name: str, value: Any, path: str) -> None:
        """Made by `__getattr__` or `__getattribute__`: ask the object again, where the answer is plain."""
        if isinstance(value, SIMPLE):
            self.facts[key] = Fact(path, f"{{0}}.{name}", (instance,), "same", value)
            self.reach(value, path)

    def met_once(self, value: Any, path: str) -> bool:
        """Whether `path` is the one way on which the trace came to an object."""
        known = self.known.get(id(value))
        return known is not None and known[0] is value and known[1] == path and id(value) not in self.met_again

    # Values.

    def reach(self, value: Any, path: str) -> None:
        """Make `value`, and what it holds, known. Work is queued: containers nest deeper than Python may recurse."""
        first = not self._queue
        self._queue.append((value, path))
        if not first:
            return
        while self._queue:
            value, path = self._queue[0]
            self._reach(value, path)
            self._queue.popleft()

    def _reach(self, value: Any, path: str) -> None:
        if type(value) in weakref.ProxyTypes:        # which says that it is of the class of the object
            value = value.__dir__.__self__
        if isinstance(value, SIMPLE) and (type(value) in SIMPLE or not is_user_class(type(value))):
            return
        if isinstance(value, type):
            self.classes.alias(value)
        if id(value) in self.known:
            if self.known[id(value)][1] != path:
                self.met_again.add(id(value))
            return
        self.known[id(value)] = (value, path)
        self.hooks.outside.reach(value, path)
        if isinstance(value, torch.Tensor):
            self.tensors[id(value)] = (value, path)
        elif isinstance(value, nn.Module):
            self._module(value, path)
        elif isinstance(value, types.FunctionType):
            self.functions.read(value, path)
        else:
            self.values.read(value, path)
        if isinstance(value, types.ModuleType):
            self.modules.watch(value)
        elif not isinstance(value, type) and is_user_class(type(value)):
            self.instance(value, path)

    def _module(self, module: nn.Module, path: str) -> None:
        table = table_of(module)
        assert table is not None
        for kind in MODULE_TABLES:
            if isinstance(table.get(kind), dict):
                self.journal.watch(table[kind], path)
        self.journal.watch(table, path)
        self.classes.kind(module, path)
        dynamic = type(module).__dict__.get("__getattribute__")
        if dynamic is not None:
            self.hooks.watch(type(module))

    def instance(self, value: Any, path: str) -> None:
        """A plain object: see what is read of it from now on, and note the methods that syntax calls."""
        table = table_of(value)
        if table is not None:
            self.journal.watch(table, path)
        if slots(type(value)) and not isinstance(value, (list, dict, set, deque)):
            self.journal.watch(value, path)
        if not isinstance(value, nn.Module):
            self.classes.kind(value, path)
            self.hooks.watch(type(value))


def slot_of(instance: Any, name: str) -> types.MemberDescriptorType | None:
    """The slot that an attribute of an object lies in."""
    found = find_attribute(type(instance), name)
    return found[1] if found is not None and isinstance(found[1], types.MemberDescriptorType) else None


def table_of(instance: Any) -> dict[str, Any] | None:
    """The instance's own attributes, without passing any hook."""
    try:
        table = object.__getattribute__(instance, "__dict__")
    except AttributeError:
        return None
    return table if isinstance(table, dict) else None
