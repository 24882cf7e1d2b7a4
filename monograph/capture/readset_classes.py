"""Facts on classes: what instances find there, what syntax asks of them, and what code finds that has the class itself.

    of a class     ::= bases  special  met as a value: all  hidden
    special            names in double underscores, which syntax asks for: those there, and that there are no more
    all                every name and that there are no more; numbers, texts and containers with their content
    hidden             what instances have of their own, or modules as members: no descriptor may come before it

Each of these is one fact. What a class has is reached, so that a function's globals are known, once a reached function
spells the name: nobody else can ask for it but `getattr`, which is heard (`readset_functions`).
"""

from __future__ import annotations

import enum
import gc
import types
from collections.abc import Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from monograph.capture.conversions import original
from monograph.capture.guards import ABSENT, Fact
from monograph.capture.guards_entries import ANY, entries, is_ours
from monograph.capture.readset_code import find_attribute, is_user_class, is_user_file, quote
from monograph.capture.readset_values import SIMPLE

if TYPE_CHECKING:
    from monograph.capture.readset import ReadSet

__all__ = ["ClassReads"]

UNSEEN = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__",
                    "__annotations__", "__slotnames__", "__abstractmethods__", "__parameters__", "__signature__"})
HOOKED = ("__getattribute__", "__setattr__", "__delattr__")
CONSTRUCTORS = ("__new__", "__init__", "__post_init__", "__call__", "__enter__", "__exit__")
DATA = (*SIMPLE, list, dict, set, tuple, torch.Tensor)
DERIVATIVES = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")     # torch calls them, no code names them


class ClassReads:
    """The part of a ReadSet that looks at classes."""

    def __init__(self, reads: ReadSet) -> None:
        self.reads = reads
        self.facts = reads.facts
        self.tables: dict[type, dict[str, Any]] = {}
        self.wanted: dict[type, dict[str, Any]] = {}      # what the fact on the names of a class says
        self.met: set[type] = set()          # as values
        self.open: set[type] = set()         # they and their bases
        self.aliased: set[type] = set()      # those that code may have under any name
        self.asked: set[tuple[type, str]] = set()      # of instances that the program has made
        self.kinds: set[type] = set()        # of instances met
        self.hidden: dict[type, dict[str, Any]] = {}
        self.spelled: set[str] = set()       # by functions that were reached
        self.unreached: dict[str, list[tuple[type, Any]]] = {}     # what classes have under names not spelled so far

    def table(self, cls: type) -> dict[str, Any]:
        """The dict behind the read-only `__dict__` of a class."""
        found = self.tables.get(cls)
        if found is None:
            found = self.tables[cls] = plain_table(cls.__dict__)
        return found

    # Instances.

    def kind(self, value: Any, path: str) -> None:
        """The class of an object, and where it finds attributes: both can be assigned."""
        kind = type(value)
        self.facts["kind", id(value)] = Fact(f"class of {path or 'the module'}", "type({0})", (value,), "is", kind,
                                             () if issubclass(kind, (dict, type)) else (value,))
        if kind in self.kinds:
            return
        self.kinds.add(kind)
        for entry in filter(is_user_class, kind.__mro__):
            self.reads.journal.watch(entry, entry.__name__)
        self.bases(kind)
        for entry in filter(is_user_class, kind.__mro__):
            self._special(entry)
            self._reach_special(kind, entry)

    def told(self, cls: type) -> None:
        """Code of the user's was told the class of an object that was there before."""
        if cls in self.kinds and cls not in self.aliased and get_ident() == self.reads.hooks.thread:
            self._open(cls)

    def _special(self, cls: type) -> None:
        """Note what syntax asks of instances of a class, present or not."""
        if cls in self.wanted:
            return
        own = dict(cls.__dict__)
        own |= {name: self.reads.hooks.in_class(cls, name) for name in HOOKED}
        wanted = self.wanted[cls] = {name: raw for name, raw in own.items()
                                     if name[:2] == "__" and raw is not ABSENT and is_special(name, raw)}
        self.facts["names", cls] = entries(cls.__name__, cls.__dict__, wanted, (self.table(cls),), is_special)

    def _reach_special(self, kind: type, cls: type) -> None:
        """The functions that syntax calls; what a module does when it is made is over."""
        made = issubclass(kind, nn.Module)
        for name, raw in self.wanted[cls].items():
            if isinstance(raw, types.FunctionType) and name[:2] == "__" and not (made and name in CONSTRUCTORS[:3]):
                self.reads.reach(raw, f"{cls.__name__}.{name}")
                self.by_super(kind, cls, raw)

    def read_own(self, instance: Any, name: str) -> None:
        """An instance has `name` of its own: no class of it may have a descriptor that comes first."""
        kind = type(instance)
        names = self.hidden.get(kind)
        if names is None:
            names = self.hidden[kind] = {}
            for cls in filter(is_user_class, kind.__mro__):
                self.facts["hidden", kind, cls] = Fact(
                    f"attributes of {cls.__name__} that instances have of their own", "{1}({0}, {2})",
                    (cls.__dict__, hides_none, names), watch=(self.table(cls),))
        names[name] = None

    def before(self, kind: type, name: str) -> None:
        """An attribute is about to be read for which code may run."""
        found = find_attribute(kind, name) if name[:2] != "__" else None
        if found is not None and is_user_class(found[0]) and (
                isinstance(found[1], property) or is_user_class(type(found[1]))):
            self.attribute(kind, name)

    def made(self, kind: type) -> None:
        """The program has made an instance of a class."""
        if kind not in self.kinds:
            self.kinds.add(kind)
            for entry in filter(is_user_class, kind.__mro__):
                self._special(entry)
                self._reach_special(kind, entry)

    def read_of_made(self, instance: Any, name: str) -> None:
        """An attribute of an object that the program has made was read: its class was there before."""
        kind = type(instance)
        if (kind, name) not in self.asked:
            self.asked.add((kind, name))
            self.made(kind)
            found = find_attribute(kind, name)
            if found is not None and is_user_class(found[0]):
                self.attribute(kind, name)

    # Classes themselves.

    def alias(self, cls: type) -> None:
        """A class that is met not as a global or in a closure: code may find in it whatever it spells."""
        self.read(cls)
        self._open(cls)

    def _open(self, cls: type) -> None:
        if not is_user_class(cls) or issubclass(cls, torch.Tensor):
            return
        for entry in filter(is_user_class, cls.__mro__):
            if entry not in self.aliased:
                self.aliased.add(entry)
                self._all(entry)
                found_by_instances = (types.FunctionType, property) if issubclass(entry, nn.Module) else ()
                for name, raw in self.wanted[entry].items():
                    if raw is not ANY and name[:2] != "__" and not isinstance(raw, found_by_instances):
                        self.unreached.setdefault(name, []).append((entry, raw))
                        if name in self.spelled:
                            self._found(name)

    def spell(self, names: frozenset[str]) -> None:
        """Functions that were reached spell these names."""
        new = names - self.spelled
        self.spelled |= new
        for name in self.unreached.keys() & new:
            self._found(name)

    def _found(self, name: str) -> None:
        for cls, raw in self.unreached.pop(name):
            self.reads.reach(raw, f"{cls.__name__}.{name}")
            self.by_super(cls, cls, raw)

    def read(self, cls: type) -> None:
        """A class that the program knows: it may make instances, and find numbers, texts and containers in it."""
        if cls in self.met:
            return
        self.met.add(cls)
        if not is_user_class(cls):
            return
        if issubclass(cls, torch.Tensor):       # its fakes are of another class, not watched
            self.attribute(cls, "__torch_function__")
            for entry in filter(is_user_class, cls.__mro__):
                for name in entry.__dict__.keys() - UNSEEN:
                    self.attribute(cls, name)
            return
        self.bases(cls)
        for entry in filter(is_user_class, cls.__mro__):
            self._all(entry)
        for name in DERIVATIVES if issubclass(cls, torch.autograd.Function) else CONSTRUCTORS:
            found = find_attribute(cls, name)
            if found is not None and is_user_class(found[0]):
                self.attribute(cls, name)
        if is_user_class(type(cls)):         # of the class of a class it is an instance
            self.kind(cls, cls.__name__)
        if not issubclass(cls, (nn.Module, torch.autograd.Function)) and any(map(self._has_methods, cls.__mro__)):
            self.reads.hooks.watch(cls)

    def _all(self, cls: type) -> None:
        if cls in self.open:
            return
        self.open.add(cls)
        self.reads.journal.watch(cls, cls.__name__)
        self._special(cls)
        wanted = self.wanted[cls]
        self.facts["names", cls] = entries(cls.__name__, cls.__dict__, wanted, (self.table(cls),), is_definition)
        for name, raw in list(cls.__dict__.items()):
            if name[:2] == "__":
                continue
            if isinstance(raw, DATA):
                self._defined(cls, name, raw)
                wanted[name] = ANY
                continue
            wanted[name] = raw
        if issubclass(cls, enum.Enum):
            for name, member in cls.__members__.items():
                self.reads.reach(member, f"{cls.__name__}.{name}")

    def _has_methods(self, cls: type) -> bool:
        """Whether code of the user's may run when instances read what a class has."""
        found = [raw for name, raw in self.wanted.get(cls, {}).items() if name[:2] != "__"]
        return any(hasattr(type(raw), "__get__") and not isinstance(raw, (staticmethod, classmethod)) for raw in found)

    def set_by_program(self, cls: type, name: str) -> None:
        """What the program sets in a class is as it was when a call begins only if it is read."""
        if cls in self.wanted:
            self.wanted[cls][name] = ANY

    def attribute(self, cls: type, name: str) -> None:
        """The attribute `name` of a class, found along its bases."""
        key = ("class", cls, name)
        if key in self.facts:
            return
        self.bases(cls)
        found = find_attribute(cls, name)
        if found is None:
            self._of_metaclass(key, cls, name)
            return
        owner, raw = found[0], self.reads.hooks.in_class(found[0], name)
        if raw is ABSENT:                    # the trace's own, which gives what the bases have
            return
        nearer = cls.__mro__[:cls.__mro__.index(owner)]
        if nearer:
            self.facts["nearer", cls, name] = self._without(f"{owner.__name__}.{name}", nearer, name)
        self._defined(owner, name, raw, key)
        self.by_super(cls, owner, raw)

    def _without(self, label: str, classes: tuple[type, ...], name: str) -> Fact:
        """None of these classes has the name."""
        text = " and ".join(f"{quote(name)} not in {{{i}}}" for i in range(len(classes))) or "True"
        return Fact(label, text, tuple(cls.__dict__ for cls in classes), watch=tuple(map(self.table, classes)))

    def _defined(self, owner: type, name: str, raw: Any, key: Any = None) -> None:
        """Note what a class itself has under a name."""
        label = f"{owner.__name__}.{name}"
        self.facts[key or ("class", owner, name)] = Fact(
            label, f"{{0}}[{quote(name)}]", (owner.__dict__,), "same", raw, (self.table(owner),))
        self.reads.reach(raw, label)

    def by_super(self, cls: type, owner: type, raw: Any) -> None:
        """What a method of `owner`, called on a `cls`, may find by `super()`: the next class that has the name."""
        for code in codes_of(raw):
            if "super" not in code.co_names:
                continue
            further = cls.__mro__[cls.__mro__.index(owner) + 1:]
            for name in code.co_names:
                if ("super", cls, owner, name) in self.facts:
                    continue
                following = next((entry for entry in further
                                  if self.reads.hooks.in_class(entry, name) is not ABSENT), None)
                if following is None:
                    continue
                self.facts["super", cls, owner, name] = self._without(
                    f"{following.__name__}.{name}", further[:further.index(following)], name)
                if is_user_class(following):
                    found = self.reads.hooks.in_class(following, name)
                    self._defined(following, name, found)
                    self.by_super(cls, following, found)

    def _of_metaclass(self, key: Any, cls: type, name: str) -> None:
        """What the class of a class computes for it."""
        found = find_attribute(type(cls), name)
        if found is not None and is_user_class(found[0]):
            value = getattr(cls, name, ABSENT)
            if isinstance(value, SIMPLE):
                self.facts[key] = Fact(f"{cls.__name__}.{name}", f"{{0}}.{name}", (cls,), "same", value)
            self.reads.reach(found[1], f"{cls.__name__}.{name}")

    def bases(self, cls: type) -> None:
        if ("bases", cls) not in self.facts and is_user_class(cls):
            self.facts["bases", cls] = Fact(f"bases of {cls.__name__}", "{0}.__mro__", (cls,), "same", cls.__mro__,
                                            (cls,))

    # What users replace of torch's own.

    def of_torch(self) -> None:
        """What a module does when it is called, and the methods of tensors."""
        for cls, counts in ((nn.Module, is_special), (torch.Tensor, is_given)):
            wanted = {name: raw for name in list(cls.__dict__) if isinstance(
                raw := self.reads.hooks.in_class(cls, name), types.FunctionType) and not is_ours(raw)}
            self.facts["names", cls] = entries(cls.__name__, cls.__dict__, wanted, (self.table(cls),), counts)
        for name, raw in wanted.items():
            if is_given(name, raw):
                self.reads.reach(raw, f"{cls.__name__}.{name}")


def is_special(name: str, raw: Any) -> bool:
    """Whether syntax, or Python itself, asks a class for it."""
    return name[:2] == "__" and name[-2:] == "__" and name not in UNSEEN and not isinstance(raw, DATA[:-1])


def is_definition(name: str, raw: Any) -> bool:
    return is_special(name, raw) if name[:2] == "__" else not name.startswith("_abc_")


def is_given(name: str, raw: Any) -> bool:
    """Whether it is a function of the user's."""
    return isinstance(raw, types.FunctionType) and is_user_file(original(raw.__code__).co_filename)


def hides_none(table: Any, names: dict[str, Any]) -> bool:
    """Whether a class has no descriptor under these names that comes before what instances have."""
    return not any(hasattr(type(table[name]), "__set__") for name in names.keys() & table.keys())


def codes_of(raw: Any) -> Iterator[types.CodeType]:
    """The code of what a class holds: a function, what decorators of Python's own hold."""
    for function in (raw, *(getattr(raw, part, None) for part in ("__func__", "__wrapped__", "fget", "fset", "func"))):
        if isinstance(function, types.FunctionType):
            yield original(function.__code__)


def plain_table(table: Any) -> dict[str, Any]:
    """The dict behind the read-only `__dict__` of a class; a dict as it is."""
    return table if isinstance(table, dict) else next(
        entry for entry in gc.get_referents(table) if isinstance(entry, dict))
