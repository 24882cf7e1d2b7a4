"""What the traced Python wrote, found by comparing containers before and after, and how to take it back.

    Journal ::= (container, copy of its content, path)*       dicts (attribute tables among them), lists, deques, sets,
                                                          cells, objects with slots
    Change  ::= path[key]: before -> after        where `key` is ORDER, of the keys of a dict

A container enters the journal when the trace first sees it, that is before anything can be
written to it through that reference.
"""

from __future__ import annotations

import operator
import types
from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from monograph.capture.guards import ABSENT, brief, same
from monograph.capture.readset_code import is_user_class

__all__ = ["ORDER", "Change", "Journal", "Keys", "content", "put", "read_slot", "slots", "unchanged"]


ORDER = object()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a dict in order."""

    keys: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """`container[key]` went from `before` to `after`; ABSENT for added or removed keys. For lists, deques, sets and
    cells `key` is None, and both are the whole content."""

    container: Any
    key: Any
    before: Any
    after: Any
    path: str


class Journal:
    def __init__(self) -> None:
        self.entries: dict[int, tuple[Any, Any, str]] = {}
        self.globals: dict[tuple[int, str], tuple[dict[str, Any], str, Any, str]] = {}

    def watch(self, container: Any, path: str) -> None:
        """Remember the content of a dict, list, deque, set or cell as it is now."""
        if id(container) not in self.entries:
            self.entries[id(container)] = (container, content(container), path)

    def watch_global(self, table: dict[str, Any], name: str, path: str) -> None:
        """Remember one entry of a module's globals, which are too many to copy."""
        self.globals.setdefault((id(table), name), (table, name, table.get(name, ABSENT), path))

    def is_watched(self, container: Any) -> bool:
        return id(container) in self.entries

    def written(self, container: Any, key: str, value: Any) -> bool:
        """Whether `container[key]`, which is `value` now, was something else when the trace first saw the container."""
        entry = self.entries.get(id(container))
        return entry is not None and entry[1].get(key, ABSENT) is not value

    def before(self, container: Any, key: str) -> Any:
        """What `container[key]` was then."""
        return self.entries[id(container)][1].get(key, ABSENT)

    def has_written(self, known: Any) -> bool:
        """Whether a container, of those whose ids are not `known`, is not as it was when the trace first saw it."""
        for key, (container, before, _) in list(self.entries.items()):
            if key not in known:
                now = content(container)
                if isinstance(before, dict):
                    if list(before) != list(now) or not all(same(before[name], now[name]) for name in before):
                        return True
                elif not unchanged(before, now):
                    return True
        return False

    def globals_now(self) -> dict[tuple[int, str], Any]:
        return {key: table.get(name, ABSENT) for key, (table, name, _, _) in self.globals.items()}

    def has_written_global(self, then: dict[tuple[int, str], Any], names: Collection[str]) -> bool:
        """Whether a global, but those called `names`, is not what it was `then`, or when the trace first saw it."""
        for key, (table, name, before, _) in self.globals.items():
            now, was = table.get(name, ABSENT), then.get(key, before)
            if name not in names and now is not was and not same(now, was):
                return True
        return False

    def changes(self) -> list[Change]:
        """Every difference between then and now, in the order the containers were met."""
        found: list[Change] = []
        for container, before, path in list(self.entries.values()):
            now = content(container)
            if isinstance(before, dict):
                if len(before) == len(now) and all(map(operator.is_, before, now)) and all(
                        map(operator.is_, before.values(), now.values())):
                    continue
                for key in {**before, **now}:
                    was, value = before.get(key, ABSENT), now.get(key, ABSENT)
                    if was is not value and not same(was, value):
                        name = key if isinstance(key, str) else brief(key)
                        found.append(Change(container, key, was, value, f"{path}.{name}"))
                kept = [key for key in before if key in now]
                if [*kept, *(key for key in now if key not in before)] != list(now):
                    then, order = Keys(tuple(before)), Keys(tuple(now))
                    found.append(Change(container, ORDER, then, order, f"the order of {path}"))
            elif not unchanged(before, now):
                found.append(Change(container, None, before, now, path))
        for table, name, before, path in self.globals.values():
            value = table.get(name, ABSENT)
            if value is not before and not same(value, before):
                found.append(Change(table, name, before, value, path))
        return found

    def rollback(self) -> None:
        """Put every watched container back into the state it was first seen in."""
        for change in self.changes():
            put(change.container, change.key, change.before)
        for container, before, _ in self.entries.values():
            if isinstance(container, dict) and list(before) != list(content(container)):
                put(container, ORDER, Keys(tuple(before)))


def content(container: Any) -> Any:
    if isinstance(container, type):          # but for what the language and its modules keep there
        return {name: value for name, value in container.__dict__.items() if not name.startswith(("__", "_abc_"))}
    if isinstance(container, types.CellType):
        try:
            return (container.cell_contents,)
        except ValueError:
            return ()
    if isinstance(container, dict):
        return dict(OrderedDict.items(container)) if isinstance(container, OrderedDict) else dict.copy(container)
    if isinstance(container, (set, frozenset)):
        return set(container)
    if isinstance(container, deque):
        return list(deque.__iter__(container))
    if isinstance(container, list):
        return list(list.__iter__(container))
    found = {name: read_slot(slot, container) for name, slot in slots(type(container)).items()}
    return {name: value for name, value in found.items() if value is not ABSENT}


def slots(cls: type) -> dict[str, types.MemberDescriptorType]:
    """The slots of a class by name."""
    return {name: raw for entry in reversed(cls.__mro__) if is_user_class(entry)
            for name, raw in vars(entry).items() if isinstance(raw, types.MemberDescriptorType)}


def read_slot(slot: types.MemberDescriptorType, instance: Any) -> Any:
    """What lies in a slot of an object; ABSENT where nothing does."""
    try:
        return slot.__get__(instance, type(instance))
    except AttributeError:
        return ABSENT


def unchanged(before: Any, now: Any) -> bool:
    """Of the content of a container (`content`), at two times."""
    if isinstance(before, set):
        return before == now
    if isinstance(before, dict):
        return list(before) == list(now) and all(same(value, now[key]) for key, value in before.items())
    return len(before) == len(now) and all(map(same, before, now))


def put(container: Any, key: Any, value: Any) -> None:
    """Write one change's `before` or `after` into its container."""
    if isinstance(container, type):
        type.__delattr__(container, key) if value is ABSENT else type.__setattr__(container, key, value)
    elif isinstance(container, types.CellType):
        if value:
            container.cell_contents, = value
        else:
            del container.cell_contents
    elif isinstance(container, dict):
        if key is ORDER:
            entries = {name: container[name] for name in value.keys if name in container}
            for name, entry in entries.items():
                _table(container).__delitem__(container, name)
                _table(container).__setitem__(container, name, entry)
        elif value is not ABSENT:
            _table(container).__setitem__(container, key, value)
        elif key in container:
            _table(container).__delitem__(container, key)
    elif isinstance(container, list):
        list.__setitem__(container, slice(None), value)
    elif isinstance(container, deque):
        deque.clear(container)
        deque.extend(container, value)
    elif isinstance(key, str):
        slot = slots(type(container))[key]
        slot.__delete__(container) if value is ABSENT else slot.__set__(container, value)
    else:
        container.clear()
        container.update(value)


def _table(container: dict[Any, Any]) -> type[dict[Any, Any]]:
    """The built-in whose methods keep the order of a subclass right without running its code."""
    return OrderedDict if isinstance(container, OrderedDict) else dict
