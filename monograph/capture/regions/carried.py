"""What a loop carries, learnt from one round of its body after the other.

A round traces the body under what is assumed so far: kinds of leaves, the places that a moving leaf may be, the
containers that change, the storages that are written. What the end of the body contradicts is assumed from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.classes import same_look
from monograph.capture.convert.operators import UNBOUND
from monograph.capture.grown import WRITTEN
from monograph.capture.guards import same
from monograph.capture.layout import Layout, compact
from monograph.capture.number import TracedNumber, kind_of
from monograph.capture.readset_journal import unchanged
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.errors import Unmergeable, forget
from monograph.capture.regions.gradient import is_differentiable
from monograph.capture.regions.leaves import At, Leaf, entries_of, flatten, flatten_as, pieces, same_keys
from monograph.capture.regions.sometimes import Sometimes, split
from monograph.capture.storage import UNKNOWN, Storage
from monograph.ir.graph import Value

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Carried", "parts"]

MISSING = object()

# Predicates that all hold, storage, layout (None: a storage of the loop's own, whose content is carried as a value) and
# the tensor that lies there (None: a new one).
Location = tuple[list[Value], int, Layout | None, Any]


class Carried:
    """The leaves of a loop, the containers that its body changes and the outer storages that it writes."""

    def __init__(self, tracer: Tracer, start: Start) -> None:
        self.tracer = tracer
        self.start = start
        self.changed: list[int] = []               # containers that the body changes
        self.written: list[int] = []               # storages of the outside that it writes
        self.followed: set[int] = set()            # of these, those without a history at first that the body gives one
        self.leaves: list[Leaf] = []
        self.spec: Any = None

    def collect(self) -> None:
        """The leaves of the variables and of the containers that change."""
        content = self.start.objects.content
        entries = tuple(entries_of(content[key][1]) for key in self.changed)
        vector = (self.start.variables, *entries)
        values, self.spec = flatten(vector)
        old = {leaf.name: leaf for leaf in self.leaves}
        old |= {name: Leaf(name, UNBOUND, "local") for name in self.start.state.local}
        self.leaves = [old.get(name) or Leaf(name, value)
                       for name, value in zip(self._names(vector), values, strict=True)]

    def _names(self, vector: tuple[tuple[Any, ...], ...]) -> list[str]:
        """A name for every leaf: that of its variable, or of the place in a container."""
        names: list[str] = []
        owners = [self.start.state.names, *([f"{key}[{i}]" for i in range(len(row))]
                                            for key, row in zip(self.changed, vector[1:], strict=True))]
        for owned, row in zip(owners, vector, strict=True):
            for name, value in zip(owned, row, strict=True):
                names += [name] if type(value) is not tuple else \
                    [f"{name}({i})" for i in range(len(flatten(value)[0]))]
        return names

    def kind(self, kind: str) -> list[Leaf]:
        return [leaf for leaf in (self.leaves if kind == "late" else pieces(self.leaves)) if leaf.kind == kind]

    def given(self, leaf: Leaf) -> Any:
        """What a leaf is before the loop; None for a part that is not there yet."""
        return leaf.initial if leaf.is_part else leaf.value

    def layout(self, leaf: Leaf) -> Layout:
        return compact(Layout.of(self.tracer.lift(leaf.value)))

    def ends(self, body: Body) -> list[Any]:
        rows = []
        for key in self.changed:
            before, after = self.start.objects.content[key][1], body.objects[key]
            if not same_keys(before, after):
                raise Unmergeable("a container gets other entries in a loop")
            rows.append(entries_of(after))
        return flatten_as((body.variables, *rows), self.spec)

    def locations(self, tensor: torch.Tensor) -> list[Location]:
        """Where a tensor may lie at the end of an iteration."""
        return self._places_of(self.tracer.memory.of(tensor), compat.storage_id(tensor), Layout.of(tensor), [], tensor)

    def _places_of(self, storage: Storage, key: int, layout: Layout, where: list[Value], tensor: Any
                   ) -> list[Location]:
        memory = self.tracer.memory
        holder = self._holder(key)
        if holder is not None:
            itself = tensor is holder.placeholder
            return [(where, key, None, None),
                    *(([*where, flag], at[0], holder.places[at], holder.objects[at] if itself else None)
                      for at, flag in holder.flags.items())]
        if any(storage.scope is body.graph for body in self.start.bodies):
            if storage.places and layout.key != storage.layout.key:
                raise Unmergeable("a view of a tensor that lies in one of several places is carried by a loop")
            keys = {id(other): other_key for other_key, other in memory.by_id.items()}
            found: list[Location] = [(where, key, None, None)]
            for place in storage.places:
                there = place.tensor if tensor is storage.base else None
                found += self._places_of(place.storage, keys[id(place.storage)], place.layout,
                                         [*where, place.predicate], there)
            return found
        return [(where, key, layout, tensor)]

    def _holder(self, key: int) -> Leaf | None:
        """The moving leaf whose placeholder lies in a storage."""
        return next((leaf for leaf in self.kind("moving") if leaf.placeholder is not None
                     and compat.storage_id(leaf.placeholder) == key), None)

    def homes(self, leaf: Leaf) -> frozenset[int] | None:
        """The storages that a moving leaf may lie in after the loop, its own left out; None where nobody knows."""
        found: set[int] = set()
        pending, seen = [leaf], {id(leaf)}
        while pending:
            entry = pending.pop()
            given = self.given(entry)
            if entry.homes is None:
                return None
            found |= {at[0] for at in entry.places} | entry.watched
            found |= set() if given is None else self.tracer.identities.homes(given)
            for home in entry.homes:
                holder = self._holder(home)
                if holder is None:
                    found.add(home)
                elif id(holder) not in seen:
                    seen.add(id(holder))
                    pending.append(holder)
        return frozenset(found)

    # -- learning ----------------------------------------------------------------------

    def learn(self, body: Body) -> bool:
        """Compare the end of the body with what was assumed; whether another round is needed."""
        news = [key for key in body.written if key not in self.written]
        self.written += news
        followed = {key for key, base in body.rewritten.items() if self.tracer.followed_by_autograd(base) is None}
        news += followed - self.followed
        self.followed |= followed
        changed = [key for key, (_, before) in self.start.objects.content.items()
                   if key not in self.changed and not unchanged(before, body.objects[key])]
        if changed:
            self._grow(changed, body)
            return True
        again = bool(news)
        holders: dict[int, list[Leaf]] = {}
        for leaf, end in zip(self.leaves, self.ends(body), strict=True):
            if leaf.kind == "local":
                continue
            if leaf.kind == "late":
                again |= any([self._learn_piece(part, value, holders)
                              for part, value in zip(leaf.parts, parts(leaf, end), strict=True)])
            elif leaf.value is UNBOUND or isinstance(leaf.value, Sometimes):
                again |= self._learn_late(leaf, end)
            else:
                again |= self._learn_piece(leaf, end, holders)
        for shared in holders.values():
            for leaf in shared if len(shared) > 1 else ():
                again |= not leaf.frozen
                leaf.frozen = True
        return again

    def _grow(self, changed: list[int], body: Body) -> None:
        for key in changed:
            container, before = self.start.objects.content[key]
            if isinstance(before, set) or not same_keys(before, body.objects[key]):
                raise Unmergeable(f"a {type(container).__name__} gets other entries in a loop")
        self.changed += changed
        self.collect()

    def _learn_late(self, leaf: Leaf, end: Any) -> bool:
        """A variable without a value before the loop (or perhaps without one) may get one in it."""
        if end is leaf.value:
            return False
        _, before = split(leaf.value)
        _, after = split(end)
        if after is UNBOUND:
            raise Unmergeable(f"{leaf.name} loses its value in a loop")
        looks, leaf.spec = pytree.tree_flatten(after)
        initial: list[Any] = [None] * len(looks)
        if before is not UNBOUND:
            initial, spec = pytree.tree_flatten(before)
            if spec != leaf.spec:
                raise Unmergeable(f"{leaf.name} changes its structure in a loop")
        leaf.kind = "late"
        leaf.parts = [Leaf(f"{leaf.name}[{i}]", look, _kind_of_part(look, given), is_part=True, initial=given)
                      for i, (look, given) in enumerate(zip(looks, initial, strict=True))]
        return True

    def _learn_piece(self, leaf: Leaf, end: Any, holders: dict[int, list[Leaf]]) -> bool:
        if isinstance(end, torch.Tensor):
            return self._learn_tensor(leaf, end, holders)
        if kind_of(end) is not None and kind_of(leaf.value) is not None:
            return self._learn_number(leaf, end)
        if not same(leaf.value, end):
            raise Unmergeable(f"{leaf.name} becomes a {type(end).__name__} in a loop")
        return False

    def _learn_number(self, leaf: Leaf, end: Any) -> bool:
        if kind_of(end) is not kind_of(leaf.value):
            raise Unmergeable(f"{leaf.name} is another kind of number after the first iteration")
        if leaf.kind == "number" or same(leaf.value, end):
            return False
        leaf.kind = "number"
        return True

    def _learn_tensor(self, leaf: Leaf, end: torch.Tensor, holders: dict[int, list[Leaf]]) -> bool:
        tracer = self.tracer
        if not isinstance(leaf.value, torch.Tensor):
            raise Unmergeable(f"{leaf.name} is a tensor after the first iteration only")
        given, found = tracer.lift(leaf.value), tracer.lift(end)
        if leaf.kind == "moving" or found is not given:
            self.start.refuse_rewritten(compat.storage_id(found), compat.storage_id(given))
        at, layout = (compat.storage_id(found), Layout.of(found)), Layout.of(given)
        now = at[1]
        if now.dtype != layout.dtype or now.key[0] != layout.key[0] or compact(now).key != compact(layout).key:
            raise Unmergeable(f"{leaf.name} changes its size, dtype or strides in a loop")
        if not same_look(leaf.value, end):
            raise Unmergeable(f"{leaf.name} changes its class or its attributes in a loop")
        if leaf.kind != "moving":
            if found is given:
                return False
            home = compat.storage_id(given), layout.key
            leaf.kind, leaf.places, leaf.objects = "moving", {home: layout}, {home: given}
            return True
        frozen = tracer.memory.of(found).frozen
        again = frozen is not None and frozen[0] is WRITTEN and not leaf.kept
        leaf.kept |= again
        follows = self.start.grad and not leaf.follow and is_differentiable(end, self.given(leaf))
        leaf.follow |= follows
        again |= follows
        unclear = leaf.follow and tracer.identities.of(found) is not None and self._holder(at[0]) is None
        again |= unclear and not leaf.unclear
        leaf.unclear |= unclear
        self._learn_homes(leaf, found)
        for _, key, place, tensor in self.locations(found):
            if place is not None and not place.is_static:
                again |= key not in leaf.watched
                leaf.watched.add(key)
            elif place is not None:
                again |= _add_place(leaf, (key, place.key), place, tensor)
            elif leaf not in holders.setdefault(key, []):
                holders[key].append(leaf)
        return again

    def _learn_homes(self, leaf: Leaf, found: torch.Tensor) -> None:
        try:
            homes = self.tracer.identities.homes(found)
        except Unmergeable:
            forget()
            leaf.homes = None
        if leaf.homes is not None:
            leaf.homes |= homes


def parts(leaf: Leaf, end: Any) -> list[Any]:
    """What a late leaf ends with, part by part."""
    values, spec = pytree.tree_flatten(split(end)[1])
    if spec != leaf.spec:
        raise Unmergeable(f"{leaf.name} changes its structure in a loop")
    return values


def _kind_of_part(look: Any, given: Any) -> str:
    if isinstance(look, torch.Tensor):
        return "moving"
    return "number" if isinstance(look, TracedNumber) or isinstance(given, TracedNumber) else "fixed"


def _add_place(leaf: Leaf, at: At, layout: Layout, tensor: Any) -> bool:
    """Whether that is news of the leaf. Of several tensors at one place it is not known which it is."""
    before = leaf.objects.get(at, MISSING)
    leaf.places.setdefault(at, layout)
    leaf.objects[at] = tensor if before is MISSING or before is tensor else UNKNOWN
    return leaf.objects[at] is not before
