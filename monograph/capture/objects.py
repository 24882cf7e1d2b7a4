"""Objects among the arguments that are told by their structure: a cache, which is another object in every `generate()`.

    Objects ::= Step*        each after the one it starts from
    Step    ::= leaf of the arguments | attributes of a Step | entry of a Step (`layers`, 0)

The trace knows objects by identity. Of a plain object, list or dict that it met on one way only, which began at an
argument, nothing is taken for granted but what it read there: facts on it are asked of what the same steps find in a
later call, tensors in it are inputs that are fetched from there, and writes go there. Steps that found several objects
must do so again, and none that the trace knows otherwise; tensors share no memory with others.

    %x: fact on vars(argument.layers[0])['keys']    ->    o1 = vars(l0); o2 = o1['layers']; o3 = o2[0]; o4 = vars(o3)
                                                          f0 = o4['keys']
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from monograph import compat
from monograph.capture.guards import Fact, Text
from monograph.capture.readset_code import HEAP_TYPE, is_user_class
from monograph.capture.readset_journal import content

__all__ = ["NONE", "Objects", "apart", "find_objects", "mentions"]

DEEPEST = 8
PLAIN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, type, torch.Tensor,
         enum.Enum)


@dataclass(frozen=True, slots=True)
class Step:
    """`value` is what the trace found. `entry`: the fact whose place leads there from `start`; without one, leaf
    number `leaf` of the arguments, or the attributes of `start`."""

    value: Any
    label: str
    start: Any = None
    entry: Fact | None = None
    leaf: int = -1


@dataclass
class Objects:
    """`others`: ids of what the trace knows by identity; `fetched`: the tensors met on the way; `bound`: weights."""

    steps: dict[int, Step] = field(default_factory=dict)          # by id of what the trace found
    others: frozenset[int] = frozenset()
    fetched: list[Fact] = field(default_factory=list)

    @property
    def leaves(self) -> frozenset[int]:
        return frozenset(step.leaf for step in self.steps.values() if step.leaf >= 0)

    def positions(self, first: int) -> dict[int, int]:
        """Where each object is in the list that the guard gives, by id."""
        return {key: first + number for number, key in enumerate(self.steps)}

    def concerns(self, fact: Fact) -> bool:
        return bool(self.steps) and any(id(entry) in self.steps for entry in (*fact.objects, fact.want))

    def write(self, text: Text, leaves: Sequence[str]) -> list[str]:
        """Find the objects in a call; the variables that hold them."""
        names: list[str] = []
        for number, (key, step) in enumerate(self.steps.items()):
            name = f"o{number}"
            if step.leaf >= 0:
                text.lines.append(f"{name} = {leaves[step.leaf]}")
            elif step.entry is None:
                text.lines.append(f"{name} = {text.name(attributes)}({text.names[id(step.start)]})")
            else:
                text.lines.append(f"{name} = {text.place(step.entry)}")
            text.require([f"type({name}) is {text.name(type(step.value))}"])
            text.names[key] = name
            names.append(name)
        if names:
            ids = f"{{{', '.join(f'id({name})' for name in names)}}}"
            text.require([f"len({ids}) == {len(names)}", f"{text.name(self.others)}.isdisjoint({ids})"])
        return names

    def keep_apart(self, text: Text, names: Sequence[str], arguments: Any) -> None:
        """The tensors that were fetched, by variable, share no memory: they did not in the trace."""
        if self.fetched:
            mine = f"({', '.join(names[:len(self.fetched)])},)"
            given = [leaf for leaf, value in zip(arguments.leaves, arguments.values)
                     if isinstance(value, torch.Tensor)]
            text.require([f"{text.name(apart)}({mine}, [{', '.join(given)}], {text.name(arguments.bound)})"])

    def moved(self, fact: Fact, found: Mapping[int, Any]) -> Fact:
        """`fact`, stated of the objects of another call."""
        want = found.get(id(fact.want), fact.want)
        return replace(fact, objects=tuple(found.get(id(entry), entry) for entry in fact.objects), want=want)

    def found(self, leaves: Sequence[Any]) -> Mapping[int, Any]:
        """The objects of a call, by id of those of the trace, as far as the steps lead."""
        found: dict[int, Any] = {}
        for key, step in self.steps.items():
            if step.leaf >= 0:
                found[key] = leaves[step.leaf] if step.leaf < len(leaves) else None
            elif step.entry is None:
                found[key] = attributes(found.get(id(step.start)))
            else:
                found[key] = self.moved(step.entry, found).now()
        return found


NONE = Objects()


def attributes(instance: Any) -> Any:
    return object.__getattribute__(instance, "__dict__") if is_plain_object(instance) else None


def is_plain_object(value: Any) -> bool:
    """Whether an object is its attributes, which no code of its class stands before."""
    cls = type(value)
    return is_user_class(cls) and not isinstance(value, (nn.Module, torch.Tensor, type, BaseException)) and all(
        base is object or bool(base.__flags__ & HEAP_TYPE) and not base.__dict__.get("__slots__")
        and "__getattr__" not in base.__dict__ and "__getattribute__" not in base.__dict__
        for base in cls.__mro__) and hasattr(value, "__dict__")


def may_differ(value: Any) -> bool:
    return type(value) in (list, dict) or is_plain_object(value)


def find_objects(facts: Sequence[Fact], leaves: Sequence[Any], met_once: Callable[[Any, str], bool],
                 known: Iterable[Any]) -> Objects:
    """`met_once(value, path)`: whether the trace met it by that path, and by no other; `known`: all that it met."""
    entries: dict[int, list[Fact]] = {}
    for fact in facts:
        if fact.test == "same" and fact.objects and fact.expression[:4] == "{0}[" and fact.expression[-1] == "]":
            entries.setdefault(id(fact.objects[0]), []).append(fact)
    steps: dict[int, Step] = {}
    fetched: list[Fact] = []
    waiting = [Step(leaf, "argument", leaf=number) for number, leaf in enumerate(leaves)
               if is_plain_object(leaf) and met_once(leaf, "argument")]
    for step in waiting:                     # grows
        if id(step.value) in steps:
            continue
        steps[id(step.value)] = step
        if is_plain_object(step.value):
            waiting.append(Step(attributes(step.value), step.label, step.value))
        for fact in entries.get(id(step.value), ()):
            if not met_once(fact.want, fact.label):
                continue
            if isinstance(fact.want, torch.Tensor) and compat.is_plain(fact.want):
                fetched.append(fact)
            elif may_differ(fact.want):
                waiting.append(Step(fact.want, fact.label, step.value, fact))
    mine = {id(fact.want) for fact in fetched} | steps.keys()
    if len(mine) < len(fetched) + len(steps) or any(_compares(fact, mine, steps) for fact in facts):
        return NONE
    others = {id(value) for value in known if id(value) not in steps}
    for value in known:
        if isinstance(value, (dict, set, frozenset)):
            others.update(id(key) for key in content(value) if not isinstance(key, PLAIN))
    return Objects(steps, frozenset(others), fetched)


def _compares(fact: Fact, mine: Collection[int], steps: Collection[int]) -> bool:
    """Whether a fact is about one of `mine` and something else."""
    first = id(fact.objects[0]) if fact.objects else 0
    return any(id(entry) in mine for entry in fact.objects[1:]) or first not in steps and (
        first in mine or id(fact.want) in mine)


def mentions(value: Any, ids: Mapping[int, Any], depth: int = 0) -> bool:
    """Whether an object that the program made holds one of those with `ids`; true also where nobody can tell."""
    if depth and id(value) in ids:
        return True
    if isinstance(value, PLAIN) or depth == 0 and id(value) in ids:
        return False
    if depth > DEEPEST or not isinstance(value, (list, tuple, set, frozenset, dict)) and not is_plain_object(value):
        return True
    held = list(value) if isinstance(value, (list, tuple, set, frozenset, dict)) else []
    held += value.values() if isinstance(value, dict) else []
    held += getattr(value, "__dict__", {}).values()
    return any(mentions(entry, ids, depth + 1) for entry in held)


def apart(fetched: Sequence[torch.Tensor], others: Sequence[torch.Tensor],
          bound: Mapping[int, int] = MappingProxyType({})) -> bool:
    """Whether tensors share no memory with each other, with `others`, or with storages of the ids `bound`, and have no
    attributes of the user's."""
    storages = {compat.storage_id(tensor) for tensor in fetched}
    return len(storages) == len(fetched) and storages.isdisjoint(bound) and storages.isdisjoint(
        compat.storage_id(tensor) for tensor in others) and not any(tensor.__dict__ for tensor in fetched)
