"""One state from the ends of two branches.

    number, number of one kind   a result of the cond
    the same object              itself
    tensors made in the branches, in pairs    a result in a storage of its own; views of one another stay such
    any other two tensors        a tensor that lies in one of two places (`storage.Place`)
    lists, tuples, dicts of one structure     entry by entry
    a variable without a value on one path    `Sometimes`: its value and whether it has one
    anything else                Unmergeable

Merging takes two rounds over the same variables: the first sees which storages meet which, the second makes
the tensors. `slots` are the values the branches end with and what to do with each result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.classes import same_look, wear
from monograph.capture.convert.operators import UNBOUND
from monograph.capture.dims import key_of
from monograph.capture.dynamic import site_of
from monograph.capture.guards import same
from monograph.capture.identity import Case, Condition
from monograph.capture.layout import Layout, compact
from monograph.capture.number import TracedNumber, kind_of
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.differing import SHARED, Differing
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.exports import Exports
from monograph.capture.regions.gradient import is_differentiable
from monograph.capture.regions.sometimes import OURS, Sometimes, split
from monograph.capture.storage import Place, Storage
from monograph.capture.tree import opened
from monograph.ir.edit import symbols_in
from monograph.ir.graph import Value
from monograph.ir.types import Type

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Merge"]

Pair = tuple[int, int]


class Merge:
    """Of `then` and `otherwise`, which began at `start`; `predicate` is true where `then` ran."""

    def __init__(self, tracer: Tracer, start: Start, then: Body, otherwise: Body, predicate: Value) -> None:
        self.tracer = tracer
        self.start = start
        self.bodies = (then, otherwise)
        self.predicate = predicate
        self.slots: list[tuple[Value, Value, Callable[[Value], None], Type | None]] = []
        self.pairs: dict[Pair, set[Any]] = {}            # storages that meet, and the layouts at which
        self.meetings: dict[Pair, set[Pair]] = {}        # and the ids of the tensors that do
        self.kinds: dict[Pair, str] = {}
        self.made: dict[Pair, torch.Tensor] = {}         # by the ids of the two tensors
        self.containers: dict[Pair, Any] = {}            # by the ids of the two containers
        self.faces: tuple[dict[int, int], dict[int, int]] = ({}, {})         # which tensor meets which
        self.conditions: dict[tuple[Value, int], Value] = {}       # known in a branch -> afterwards
        self.shared: set[tuple[int, int]] = set()        # side and id of tensors that meet several
        self.partners: tuple[dict[int, int], dict[int, int]] = ({}, {})      # which container meets which
        self.followed: list[tuple[torch.Tensor, int]] = []     # results that require grad, and their slots
        self.kept: list[torch.Tensor] = []               # results that eager keeps for the backward
        self.late: list[Callable[[], None]] = []         # to do once all results are there
        slots = self.slots                   # not `self`: no cycle keeps fakes alive
        self.exports = Exports(tracer, start, self.bodies, lambda *slot: slots.append((*slot, None)), self.late)
        self.differing = Differing(tracer, start, self.bodies, predicate, lambda *slot: slots.append(slot))
        self.told: set[Pair] = set()                     # ids of tensors that meet and differ in size
        self.keep: list[Any] = []

    def inside(self, side: int) -> AbstractContextManager[None]:
        return self.start.inside(self.bodies[side])

    # -- values ------------------------------------------------------------------------

    def merge(self, a: Any, b: Any, name: str, *, look: bool) -> Any:
        """The value of `name` after the statement; with `look` only see what meets what."""
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            if a is b or self.tracer.lift(a) is self.tracer.lift(b):
                return a
            return self._look(a, b, name) if look else self._tensor(a, b)
        if same(a, b):
            return a
        if any(x is UNBOUND or isinstance(x, Sometimes) for x in (a, b)):
            return self._sometimes(a, b, name, look=look)
        if kind_of(a) is not None and kind_of(b) is not None:
            return a if look else self._number(a, b, name)
        if type(a) is type(b) and not pytree.tree_is_leaf(a):
            known = self.containers.get((id(a), id(b)))
            return self._container(a, b, name, look=look) if known is None or look else known
        raise Unmergeable(f"{name} is a {type(a).__name__} on one path and a {type(b).__name__} on the other")

    def _container(self, a: Any, b: Any, name: str, *, look: bool) -> Any:
        """A container with the entries of two, made in the branches; whoever holds both holds this one."""
        left, spec = opened(a, lambda x: x is not a)
        right, other = opened(b, lambda x: x is not b)
        if spec != other:
            raise Unmergeable(f"{name} has other entries on each path")
        self._pair(a, b, name)
        made = pytree.tree_unflatten([self.merge(x, y, name, look=look) for x, y in zip(left, right, strict=True)],
                                     spec)
        if not look:
            self.containers[id(a), id(b)] = made
            if isinstance(made, tuple) and made:
                self._choose(made, a, b)
        return made

    def _pair(self, a: Any, b: Any, name: str) -> None:
        """Unmergeable where two containers cannot become one: it would matter to who holds one of them alone."""
        if isinstance(a, tuple) and isinstance(b, (tuple, type(None))):
            return
        self.keep.append((a, b))
        outer = self.start.objects.content
        for side, (mine, others) in enumerate(((a, b), (b, a))):
            if mine is not None and (id(mine) in outer
                                     or self.partners[side].setdefault(id(mine), id(others)) != id(others)):
                raise Unmergeable(f"{name} is another {type(mine).__name__} on each path")

    def _sometimes(self, a: Any, b: Any, name: str, *, look: bool) -> Any:
        """A variable that has no value on some path. Names of our own are read where they have one only."""
        (is_a, x), (is_b, y) = split(a), split(b)
        if x is UNBOUND or y is UNBOUND:
            value = self._one_sided(x if y is UNBOUND else y, 0 if y is UNBOUND else 1, look=look)
        else:
            value = self.merge(x, y, name, look=look)
        if name.startswith(OURS):
            return value
        bound = self.merge(is_a, is_b, name, look=look)
        return value if bound is True else self.start.perhaps(name, bound, value)

    def _one_sided(self, value: Any, side: int, *, look: bool) -> Any:
        """What one branch left, for those who know that it ran."""
        if pytree.tree_is_leaf(value) or id(value) in self.start.objects.content:
            if look and isinstance(value, torch.Tensor):
                self._meet(value, side, None)
            return value if look else self._one_sided_leaf(value, side)
        known = self.containers.get((id(value), id(None)))
        if known is not None and not look:
            return known
        self._pair(*((value, None) if side == 0 else (None, value)), "a variable")
        entries, spec = opened(value, lambda x: x is not value)
        made = pytree.tree_unflatten([self._one_sided(entry, side, look=look) for entry in entries], spec)
        if not look:
            self.containers[id(value), id(None)] = made
        return made

    def _one_sided_leaf(self, leaf: Any, side: int) -> Any:
        if isinstance(leaf, TracedNumber) or isinstance(leaf, torch.SymInt) and self.differing.local((key_of(leaf),)):
            zero = (kind_of(leaf) or int)(0)
            return self._number(leaf, zero, "") if side == 0 else self._number(zero, leaf, "")
        if not isinstance(leaf, torch.Tensor):
            return leaf
        key, layout = self._where(leaf)
        if not self.exports.is_fresh(key, side):
            self.start.refuse_place(layout)
            return leaf
        known = self.made.get((id(leaf), id(None)))
        if known is None:
            self.keep.append(leaf)
            if self.differing.local(layout.key[0]) and not is_differentiable(leaf):
                told = known = self.differing.one_sided(layout, self._read(leaf, side), side)
                self.late.append(lambda: self._watch(told, {side: key}, alone=True))
            elif self.start.grad and is_differentiable(leaf):
                with self.start.recording(self.bodies[1 - side]):
                    zeros = self.tracer.record.full(layout.sizes, 0, layout.dtype)
                mine = self._read(leaf, side)
                pair = (mine, zeros) if side == 0 else (zeros, mine)
                known = self._result(layout, *pair, True, True)
            else:
                base = self.exports.export(key, side)[1]        # itself, which may turn out to be an outer tensor
                known = base if leaf is self.tracer.memory.by_id[key].base else self._view(base, layout)
            self.made[id(leaf), id(None)] = known if known is leaf else wear(known, leaf)
            if known is not leaf and not self._is_its_own(leaf, side):
                self._choose(known, *((leaf, None) if side == 0 else (None, leaf)))
        return known

    def _number(self, a: Any, b: Any, name: str) -> TracedNumber:
        kind = kind_of(a)
        if kind is None or kind is not kind_of(b):
            raise Unmergeable(f"{name} is a {type(a).__name__} on one path and a {type(b).__name__} on the other")
        return self.tracer.number_of(lambda fill: self.slot(self._read_number(a, 0), self._read_number(b, 1), fill),
                                     kind)

    def _read_number(self, number: Any, side: int) -> Value:
        with self.inside(side):
            return self.tracer.memory.read(self.tracer.number_tensor(number))

    def slot(self, a: Value, b: Value, fill: Callable[[Value], None], type: Type | None = None) -> None:
        """A result; `type`: where it is none of its branches' own."""
        self.slots.append((a, b, fill, type))

    # -- tensors -----------------------------------------------------------------------

    def _where(self, tensor: torch.Tensor) -> tuple[int, Layout]:
        tensor = self.tracer.lift(tensor)
        return compat.storage_id(tensor), Layout.of(tensor)

    def _look(self, a: torch.Tensor, b: torch.Tensor, name: str) -> torch.Tensor:
        (p, at), (q, bt) = self._where(a), self._where(b)
        if not same_look(a, b):
            raise Unmergeable(f"{name} has another class or other attributes on each path")
        self.start.refuse_rewritten(p, q)
        self._meet(a, 0, b)
        self._meet(b, 1, a)
        if not self.start.grad and is_differentiable(a, b):
            raise Unmergeable(f"{name} has a history on one path only")
        if at.dtype != bt.dtype or len(at.sizes) != len(bt.sizes) or (
                is_differentiable(a, b) and not self.differing.alike(at.key[0], bt.key[0])):
            raise Unmergeable(f"{name} is {at.dtype}{list(at.sizes)} on one path and {bt.dtype}{list(bt.sizes)} "
                              "on the other")
        if not self.differing.alike(at.key[0], bt.key[0]):
            self.differing.layout(at, bt)
            self.told.add((id(a), id(b)))
        elif at.key[1] != bt.key[1] or (at.conj, at.neg) != (bt.conj, bt.neg) or at.conj or at.neg:
            raise Unmergeable(f"{name} has strides {list(at.strides)} on one path and {list(bt.strides)} on the other")
        self.pairs.setdefault((p, q), set()).add((at.key, bt.key))
        self.meetings.setdefault((p, q), set()).add((id(a), id(b)))
        return a

    def _meet(self, tensor: Any, side: int, other: Any) -> None:
        if self.faces[side].setdefault(id(tensor), id(other)) != id(other):
            self.shared.add((side, id(tensor)))

    def settle(self) -> None:
        """Between the rounds: which storages made in the branches are one storage afterwards."""
        partners: tuple[dict[int, set[int]], ...] = ({}, {})
        for p, q in self.pairs:
            partners[0].setdefault(p, set()).add(q)
            partners[1].setdefault(q, set()).add(p)
        memory = self.tracer.memory.by_id
        for (p, q), layouts in self.pairs.items():
            made = self.exports.is_fresh(p, 0) and self.exports.is_fresh(q, 1)
            paired = (made and len(partners[0][p]) == len(partners[1][q]) == 1
                      and not memory[p].places and not memory[q].places)
            if paired and len(layouts) == len(self.meetings[p, q]) == 1:
                self.kinds[p, q] = "value"
            elif paired and all(a == b for a, b in layouts) and memory[p].layout.key == memory[q].layout.key:
                self.kinds[p, q] = "storage"

    def _tensor(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        known = self.made.get((id(a), id(b)))
        if known is not None:
            return known
        self.keep.append((a, b))
        (p, at), (q, bt) = self._where(a), self._where(b)
        kind = self.kinds.get((p, q))
        if (id(a), id(b)) in self.told:
            made = self.differing.tensor(at, self._read(a, 0), bt, self._read(b, 1), own=kind == "value")
            if kind != "value":
                self.late.append(lambda: self._watch(made, {0: p, 1: q}, alone=True))
        elif kind == "value":
            made = self._result(at, self._read(a, 0, b), self._read(b, 1, a), is_differentiable(a, b))
            if p in self.bodies[0].saved_inside or q in self.bodies[1].saved_inside:
                self.kept.append(made)
        elif self.start.grad and is_differentiable(a, b):
            made = self._result(at, self._read(a, 0, b), self._read(b, 1, a), True, True)
            self.late.append(lambda: self._watch(made, {0: p, 1: q}))
        elif kind == "storage":
            made = self._view(self.exports.export(p, 0, q)[1], at)
        else:
            made = self._either(a, b, p, at, q, bt)
        self.made[id(a), id(b)] = wear(made, a)
        if not (self._is_its_own(a, 0) and self._is_its_own(b, 1)):
            self._choose(made, a, b)
        return made

    def _is_its_own(self, tensor: torch.Tensor, side: int) -> bool:
        """Whether a branch made a tensor, and one variable holds it."""
        return (self.exports.is_fresh(self._where(tensor)[0], side) and (side, id(tensor)) not in self.shared
                and self.tracer.identities.of(tensor) is None)

    def _choose(self, made: Any, *ends: Any) -> None:
        """`made` is, of what the branches leave (None: nothing), the object of the one that ran."""
        def cases() -> list[Case]:
            return [case for side, end in enumerate(ends) if end is not None
                    for case in self._cases(end, side, ((self.predicate, bool(side)),))]

        self.tracer.identities.admit()
        cases()                              # which makes results of their conditions
        self.late.append(lambda: self.tracer.identities.choose(made, cases(), self.start.site))

    def _cases(self, end: Any, side: int, ran: tuple[Condition, ...]) -> list[Case]:
        """The objects that `end` may be where the branch ran; the conditions of choices in it become results."""
        choice = self.tracer.identities.of(end)
        if choice is None or choice.scope is not self.bodies[side].graph:
            return [(ran, end)]
        if choice.unclear:
            raise Unmergeable("it is not known which tensor a branch chose", choice.site)
        found: list[Case] = []
        for conditions, part in choice.cases:
            held = ran + tuple((self._exported(value, side), negated) for value, negated in conditions)
            found += [(held, part)] if part is end else self._cases(part, side, held)
        return found

    def _exported(self, condition: Value, side: int) -> Value:
        """A condition known in one branch, as it is known afterwards: a result of the cond, once there is one."""
        known = self.conditions.get((condition, side))
        if known is not None:
            return known
        self.conditions[condition, side] = condition
        with self.start.recording(self.bodies[1 - side]):
            never = self.tracer.record.full((), False, torch.bool)

        def fill(value: Value) -> None:
            self.conditions[condition, side] = value

        self.slot(*((condition, never) if side == 0 else (never, condition)), fill)
        return condition

    def _read(self, tensor: torch.Tensor, side: int, other: Any = None) -> Value:
        """The value a branch leaves; where only the other's requires grad, none flows to this one's."""
        with self.inside(side):
            follow = self.start.grad and is_differentiable(tensor, other)
            return self.tracer.operand(self.tracer.lift(tensor), follow)

    def _fresh(self, layout: Layout) -> torch.Tensor:
        with compat.plain_torch():
            return self.tracer.fresh(layout.sizes, layout.strides, layout.dtype)

    def _result(self, layout: Layout, a: Value, b: Value, follow: bool = False, shared: bool = False
                ) -> torch.Tensor:
        """A tensor of its own with what the branches leave; autograd is to `follow` it."""
        made = self._fresh(compact(layout))
        if follow and self.start.grad:
            self.followed.append((made, len(self.slots)))
        frozen = self.start.frozen(SHARED) if shared else None
        self.slot(a, b, lambda value: self.tracer.add_result(made, value, frozen))
        return made

    def saved(self) -> list[torch.Tensor]:
        """What comes out of the branches and eager keeps for their backward."""
        return self.kept + [base for (key, side), (_, base) in self.exports.known.items()
                            if key in self.bodies[side].saved_inside]

    def _watch(self, made: torch.Tensor, storages: dict[int, int], *, alone: bool = False) -> None:
        """Give up once one of the storages that a result may be a view of, by side, is written; `alone`: also one that
        a branch has made and is another result's as well."""
        memory = self.tracer.memory
        exports = self.exports
        seen = [exports.known.get((key, side), (memory.by_id[key],))[0] for side, key in storages.items()
                if alone or (key, side) in exports.known or not exports.is_fresh(key, side)]
        never = self.tracer.record.full((), False, torch.bool)
        seen += [place.storage for key in storages.values() for place in memory.by_id[key].places
                 if all(place.storage.scope is not body.graph for body in self.bodies)]
        memory.lies_at(memory.of(made), tuple(Place(never, storage, storage.layout) for storage in seen),
                       self.start.site)

    def _view(self, base: torch.Tensor, layout: Layout) -> torch.Tensor:
        """A view of what a branch leaves, at a place that is known outside of it."""
        site = site_of(self.tracer, layout)
        if site is not None:
            raise Unmergeable("a branch leaves a view at a place that only the run knows", site)
        self.start.refuse_sizes(symbols_in(layout.key[:3]))
        args = (base, layout.sizes, layout.strides, layout.offset)
        with compat.plain_torch():
            view: torch.Tensor = compat.run_fake(self.tracer.mode, torch.ops.aten.as_strided.default, args, {})
        return view

    def _either(self, a: torch.Tensor, b: torch.Tensor, p: int, at: Layout, q: int, bt: Layout) -> torch.Tensor:
        """A tensor that is `a` on one path and `b` on the other, and may be written through if it is known where."""
        made = self._result(at, self._read(a, 0), self._read(b, 1), shared=not (at.is_backed and bt.is_backed))
        places = [(self.exports.export(p, 0)[0], at), (self.exports.export(q, 1)[0], bt)]

        def join() -> None:
            memory = self.tracer.memory
            negative = self._negative()
            (left, left_layout), (right, right_layout) = places
            memory.lies_at(memory.of(made), (
                Place(self.predicate, left, left_layout, self._outer(a, p, 0, left)),
                Place(negative, right, right_layout, self._outer(b, q, 1, right))), self.start.site)
        self.late.append(join)
        return made

    def _outer(self, tensor: torch.Tensor, storage: int, side: int, seen: Storage) -> torch.Tensor | None:
        """A tensor that a branch leaves as it is known afterwards, `seen` being its storage then."""
        if not self.exports.is_fresh(storage, side):
            return self.tracer.lift(tensor)
        return seen.base if tensor is self.tracer.memory.by_id[storage].base else None

    def _negative(self) -> Value:
        return self.tracer.record.emit("aten.logical_not.default", self.predicate, sizes=(), dtype=torch.bool)
