"""`while` on a traced value: the body traced until what it carries is known, one `mono.while` recorded.

The variables of the loop, and the entries of containers that its body changes, are leaves (see `leaves`). Storages
of the outside that the body writes are carried too. Each round traces the loop under the assumptions so far;
what contradicts them changes the kinds, until a round confirms them all.

    carried ::= written storages, numbers, whether late leaves have a value, (value, flag per place) of moving leaves
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.classes import same_look, wear
from monograph.capture.convert.operators import UNBOUND, State
from monograph.capture.guards import same
from monograph.capture.identity import Case
from monograph.capture.layout import Layout
from monograph.capture.number import DTYPES, TracedNumber, kind_of
from monograph.capture.readset_journal import unchanged
from monograph.capture.recorder import type_of
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import connect, is_differentiable, known_tensors
from monograph.capture.regions.leaves import (
    At,
    Leaf,
    entries_of,
    flatten,
    flatten_as,
    pieces,
    refilled,
    same_keys,
    unflatten,
)
from monograph.capture.regions.merge import OURS, Sometimes, compact, split
from monograph.capture.regions.objects import refill
from monograph.capture.storage import UNKNOWN, Place, Storage
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.types import TensorType
from monograph.ops import table

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["loop"]

ROUNDS = 12
MISSING = object()

# Predicates that all hold, storage, layout (None: a storage of the loop's own, whose content is carried as a value) and
# the tensor that lies there (None: a new one).
Location = tuple[list[Value], int, Layout | None, Any]

SHARED = "a tensor is written that may be the same as another one in or after a loop"


def loop(tracer: Tracer, test: Callable[[], Any], body: Callable[[], Any], state: State, site: Any
         ) -> None:
    """Record `while test(): body()`; afterwards the variables are those of the last iteration."""
    grad = torch.is_grad_enabled()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        made = _Loop(tracer, test, body, Start(tracer, state, site=site, grad=grad))
    with made.start:
        made.run()


class _Loop:
    def __init__(self, tracer: Tracer, test: Callable[[], Any], body: Callable[[], Any], start: Start) -> None:
        self.tracer = tracer
        self.test = test
        self.body = body
        self.start = start
        self.changed: list[int] = []               # containers that the body changes
        self.written: list[int] = []               # storages of the outside that it writes
        self.leaves: list[Leaf] = []
        self.spec: Any = None
        self.slots: list[tuple[Leaf, int]] = []    # of moving leaves among what the node carries

    def run(self) -> None:
        self._collect()
        for _ in range(ROUNDS):
            with torch.no_grad(), torch._C.DisableTorchFunction():
                inputs = self._enter()
            condition = self._condition(inputs)
            with torch.no_grad(), torch._C.DisableTorchFunction():
                inputs = self._enter()
            body = self.start.body(self.body, "body")
            if body.raised is not None:
                raise Unmergeable("a loop's body always raises")
            with torch.no_grad(), torch._C.DisableTorchFunction():
                if not self._learn(body):
                    self._emit(condition, body, inputs)
                    return
            self.start.bodies.clear()
        raise Unmergeable("what the loop carries does not settle")

    # -- leaves ------------------------------------------------------------------------

    def _collect(self) -> None:
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

    def _set(self, values: list[Any]) -> None:
        """Give the variables and the containers that change new leaves."""
        variables, *rows = unflatten(iter(values), self.spec)
        for value in variables:
            if type(value) is tuple and value:
                self.tracer.identities.choose(value, (), self.start.site, unclear=True)
        self.start.state.set(variables)
        for key, row in zip(self.changed, rows, strict=True):
            container, before = self.start.objects.content[key]
            refill(container, refilled(before, row))

    def _kind(self, kind: str) -> list[Leaf]:
        return [leaf for leaf in (self.leaves if kind == "late" else pieces(self.leaves)) if leaf.kind == kind]

    def _value(self, leaf: Leaf, bound: Any, values: dict[int, Any]) -> Any:
        """A leaf made of what stands for its pieces (by id): as the body, or what follows the loop, sees it."""
        if leaf.kind != "late":
            return values.get(id(leaf), leaf.value)
        made = pytree.tree_unflatten([values.get(id(part), part.value) for part in leaf.parts], leaf.spec)
        return made if leaf.name.startswith(OURS) else Sometimes(self.tracer, bound, made)

    # -- one round ---------------------------------------------------------------------

    def _enter(self) -> list[Value]:
        """Set variables, containers and memory to the start of an iteration; the inputs of the region."""
        start, memory = self.start, self.tracer.memory
        start.reset()
        graph = Graph("body")
        for key in self.written:
            storage = memory.by_id[key]
            storage.become(graph.add_input(_inside(storage.value)))
        values: dict[int, Any] = {}
        for leaf in self._kind("number"):
            values[id(leaf)] = leaf.placeholder = self._number_input(graph, kind_of(leaf.value))
        for leaf in self._kind("late"):
            leaf.bound = self._number_input(graph, bool)
        for leaf in self._kind("moving"):
            values[id(leaf)] = leaf.placeholder = self._moving_input(leaf, graph)
        self._set([self._value(leaf, leaf.bound, values) for leaf in self.leaves])
        start.entry = memory.save()
        return graph.inputs

    def _number_input(self, graph: Graph, kind: Any) -> TracedNumber:
        given: list[Value] = []

        def fill(give: Callable[[Value], None]) -> None:
            given.append(graph.add_input(TensorType(DTYPES[kind], ())))
            give(given[0])

        return self.tracer.number_of(fill, kind)

    def _moving_input(self, leaf: Leaf, graph: Graph) -> torch.Tensor:
        tracer, memory = self.tracer, self.tracer.memory
        layout = self._layout(leaf)
        with compat.plain_torch():
            fake = tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        storage = memory.add(fake, graph.add_input(type_of(layout.sizes, layout.dtype)))
        storage.frozen = self._frozen(leaf)
        leaf.flags = {at: graph.add_input(TensorType(torch.bool, ())) for at in leaf.places}
        places = [Place(leaf.flags[at], memory.by_id[at[0]], place, leaf.objects.get(at))
                  for at, place in leaf.places.items()]
        memory.lies_at(storage, (*places, *self._watched(leaf)), self.start.site)
        self._choose(leaf, fake, places)
        if leaf.follow:
            fake.requires_grad_(True)
        return wear(fake, leaf.value)

    def _frozen(self, leaf: Leaf) -> Any:
        return self.start.frozen(SHARED) if leaf.frozen or leaf.follow or leaf.watched else None

    def _watched(self, leaf: Leaf) -> list[Place]:
        """Storages that a frozen leaf may be a view of, at an unknown place: once they are written it gives up."""
        memory = self.tracer.memory
        return [Place(self._constant(False), memory.by_id[key], memory.by_id[key].layout) for key in leaf.watched]

    def _layout(self, leaf: Leaf) -> Layout:
        return compact(Layout.of(self.tracer.lift(leaf.value)))

    def _condition(self, inputs: list[Value]) -> Body:
        condition = self.start.body(self.test, "condition")
        if condition.raised is not None or condition.written:
            raise Unmergeable("the test of a loop writes to a tensor or raises")
        decided = condition.value
        with torch.no_grad(), torch._C.DisableTorchFunction(), self.start.inside(condition):
            if isinstance(decided, bool):
                decided = self.tracer.number_tensor(decided)
            condition.graph.outputs = [self.tracer.memory.read(decided)]
        _take_inputs(condition.graph, inputs)
        return condition

    # -- learning ----------------------------------------------------------------------

    def _learn(self, body: Body) -> bool:
        """Compare the end of the body with what was assumed; whether another round is needed."""
        news = [key for key in body.written if key not in self.written]
        self.written += news
        changed = [key for key, (_, before) in self.start.objects.content.items()
                   if key not in self.changed and not unchanged(before, body.objects[key])]
        if changed:
            self._grow(changed, body)
            return True
        again = bool(news)
        holders: dict[int, list[Leaf]] = {}
        for leaf, end in zip(self.leaves, self._ends(body), strict=True):
            if leaf.kind == "local":
                continue
            if leaf.kind == "late":
                again |= any([self._learn_piece(part, value, holders)
                              for part, value in zip(leaf.parts, _parts(leaf, end), strict=True)])
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
        self._collect()

    def _ends(self, body: Body) -> list[Any]:
        rows = []
        for key in self.changed:
            before, after = self.start.objects.content[key][1], body.objects[key]
            if not same_keys(before, after):
                raise Unmergeable("a container gets other entries in a loop")
            rows.append(entries_of(after))
        return flatten_as((body.variables, *rows), self.spec)

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
        again = self.start.grad and not leaf.follow and is_differentiable(end, self._given(leaf))
        leaf.follow |= again
        unclear = leaf.follow and tracer.identities.of(found) is not None and self._holder(at[0]) is None
        again |= unclear and not leaf.unclear
        leaf.unclear |= unclear
        self._learn_homes(leaf, found)
        for _, key, place, tensor in self._locations(found):
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
            leaf.homes = None
        if leaf.homes is not None:
            leaf.homes |= homes

    def _homes(self, leaf: Leaf) -> frozenset[int] | None:
        """The storages that a moving leaf may lie in after the loop, its own left out; None where nobody knows."""
        found: set[int] = set()
        pending, seen = [leaf], {id(leaf)}
        while pending:
            entry = pending.pop()
            given = self._given(entry)
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

    def _given(self, leaf: Leaf) -> Any:
        """What a leaf is before the loop; None for a part that is not there yet."""
        return leaf.initial if leaf.is_part else leaf.value

    def _locations(self, tensor: torch.Tensor) -> list[Location]:
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
        return next((leaf for leaf in self._kind("moving") if leaf.placeholder is not None
                     and compat.storage_id(leaf.placeholder) == key), None)

    # -- the node ----------------------------------------------------------------------

    def _emit(self, condition: Body, body: Body, inputs: list[Value]) -> None:
        """Close both regions and record the loop, after which the variables are set."""
        start, tracer = self.start, self.tracer
        ends: dict[int, Any] = {}
        bounds: list[Any] = []
        for leaf, end in zip(self.leaves, self._ends(body), strict=True):
            if leaf.kind == "late":
                bounds.append(split(end)[0])
                ends |= {id(part): value for part, value in zip(leaf.parts, _parts(leaf, end), strict=True)}
            else:
                ends[id(leaf)] = end
        with start.inside(body):
            memory = tracer.memory
            yields = [memory.by_id[key].value for key in self.written]
            yields += [memory.read(tracer.number_tensor(ends[id(leaf)])) for leaf in self._kind("number")]
            yields += [memory.read(tracer.number_tensor(bound)) for bound in bounds]
            for leaf in self._kind("moving"):
                fake = tracer.lift(ends[id(leaf)])
                yields += [tracer.operand(fake, leaf.follow), *self._flags_after(leaf, fake)]
        _take_inputs(body.graph, inputs)
        body.graph.outputs = yields
        start.reset()
        self._record(condition, body)

    def _flags_after(self, leaf: Leaf, end: torch.Tensor) -> list[Value]:
        """For each place of a leaf, whether the tensor it ends with is that one."""
        record = self.tracer.record
        flags: dict[At, Value] = {}
        for where, key, layout, _ in self._locations(end):
            if layout is None or not layout.is_static:
                continue
            holds = self._constant(True) if not where else where[0]
            for predicate in where[1:]:
                holds = record.emit("aten.logical_and.default", holds, predicate, sizes=(), dtype=torch.bool)
            known = flags.get((key, layout.key))
            flags[key, layout.key] = holds if known is None else record.emit(
                "aten.logical_or.default", known, holds, sizes=(), dtype=torch.bool)
        return [flags.get(at) or self._constant(False) for at in leaf.places]

    def _constant(self, value: bool) -> Value:
        return self.tracer.record.full((), value, torch.bool)

    def _record(self, condition: Body, body: Body) -> None:
        tracer, memory = self.tracer, self.tracer.memory
        initial: list[Value] = [memory.by_id[key].value for key in self.written]
        fills: list[Callable[[Value], None]] = [memory.by_id[key].become for key in self.written]
        finals: dict[int, Any] = {}
        for leaf in self._kind("number"):
            given = self._given(leaf)
            kind: Any = kind_of(leaf.value)
            initial.append(memory.read(tracer.number_tensor(kind(0) if given is None else given)))
            finals[id(leaf)] = tracer.number_of(fills.append, kind)
        bounds: dict[int, Any] = {}
        for leaf in self._kind("late"):
            initial.append(memory.read(tracer.number_tensor(split(leaf.value)[0])))
            bounds[id(leaf)] = tracer.number_of(fills.append, bool)
        late: list[Callable[[], None]] = []
        self.slots = []
        for leaf in self._kind("moving"):
            self.slots.append((leaf, len(initial)))
            finals[id(leaf)] = self._leave(leaf, initial, fills, late)
        tracer.record.loc = self.start.loc
        node = Node(table.lookup("mono.while"), (tuple(initial),), {"history": (), "trips": None},
                    [_inside(value) for value in initial], regions=[condition.graph, body.graph], loc=self.start.loc)
        self.start.leave(node)
        for fill, value in zip(fills, node.results, strict=True):
            fill(value)
        given = {initial[slot]: self._given(leaf) for leaf, slot in self.slots if is_differentiable(self._given(leaf))}
        connect(tracer, node, [(finals[id(leaf)], node.results[slot]) for leaf, slot in self.slots if leaf.follow],
                known_tensors(tracer, self.start.memory) | given)
        for join in late:
            join()
        self._set([self._value(leaf, bounds.get(id(leaf)), finals) for leaf in self.leaves])

    def _leave(self, leaf: Leaf, initial: list[Value], fills: list[Callable[[Value], None]],
               late: list[Callable[[], None]]) -> torch.Tensor:
        """A moving leaf after the loop: the value of the last iteration, perhaps one of its places."""
        tracer, memory = self.tracer, self.tracer.memory
        layout = self._layout(leaf)
        with compat.plain_torch():
            made = tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        given = self._given(leaf)
        home: At | None = None
        if given is None:
            initial.append(tracer.record.full(layout.sizes, 0, layout.dtype))
        else:
            given = tracer.lift(given)
            initial.append(memory.read(given))
            home = compat.storage_id(given), Layout.of(given).key
        fills.append(lambda value: tracer.add_result(made, value, self._frozen(leaf)))
        flags: list[Value] = []
        for at in leaf.places:
            initial.append(self._constant(at == home))
            fills.append(flags.append)
        places = list(leaf.places.items())

        def join() -> None:
            found = [Place(flag, memory.by_id[at[0]], place, leaf.objects.get(at))
                     for flag, (at, place) in zip(flags, places, strict=True)]
            memory.lies_at(memory.of(made), (*found, *self._watched(leaf)), self.start.site)
            self._choose(leaf, made, found)
        late.append(join)
        return wear(made, leaf.value)

    def _choose(self, leaf: Leaf, made: torch.Tensor, places: list[Place]) -> None:
        """`made` is the tensor at one of the places that a moving leaf may be, or one of the loop's own."""
        unclear = leaf.frozen or leaf.unclear or bool(leaf.watched) or any(
            place.tensor is None or place.tensor is UNKNOWN for place in places)
        cases: list[Case] = [(((place.predicate, False),), place.tensor) for place in places]
        cases.append((tuple((place.predicate, True) for place in places), made))
        homes = self._homes(leaf) if unclear else None
        self.tracer.identities.choose(made, cases, self.start.site, unclear=unclear, homes=homes)
        if leaf.frozen:
            self.tracer.identities.share(made)


def _parts(leaf: Leaf, end: Any) -> list[Any]:
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


def _inside(value: Value) -> TensorType:
    return TensorType(value.tensor.dtype, value.tensor.shape)


def _take_inputs(graph: Graph, inputs: list[Value]) -> None:
    graph.inputs = inputs
    graph.sources = [Source("argument", "") for _ in inputs]
