"""`while` on a traced value: the body traced until what it carries is known, one `mono.while` recorded.

The variables of the loop, and the entries of containers that its body changes, are leaves (see `leaves`). Storages
of the outside that the body writes are carried too. Each round traces the loop under the assumptions so far, until
one confirms them all (see `carried`).

    carried ::= written storages, numbers, whether late leaves have a value, (value, flag per place) of moving leaves
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.classes import wear
from monograph.capture.convert.operators import State
from monograph.capture.grown import WRITTEN, Grown
from monograph.capture.identity import Case
from monograph.capture.layout import Layout
from monograph.capture.number import DTYPES, TracedNumber, kind_of
from monograph.capture.recorder import type_of
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.carried import Carried, parts
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import connect, is_differentiable, known_tensors
from monograph.capture.regions.leaves import At, Leaf, refilled, unflatten
from monograph.capture.regions.objects import refill
from monograph.capture.regions.sometimes import OURS, split
from monograph.capture.storage import UNKNOWN, Place
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.types import TensorType
from monograph.ops import table

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["loop"]

ROUNDS = 12
SHARED = "a tensor is written that may be the same as another one in or after a loop"


def loop(tracer: Tracer, test: Callable[[], Any], body: Callable[[], Any], state: State, site: Any,
         lists: Sequence[Grown] = ()) -> bool:
    """Record `while test(): body()`; afterwards the variables are those of the last iteration.

    Nothing is recorded, and False given, where one of `lists` has no buffers yet for what the body appends to it."""
    grad = torch.is_grad_enabled()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        made = _Loop(tracer, test, body, Start(tracer, state, site=site, grad=grad), lists)
    with made.start:
        return made.run()


class _Loop:
    def __init__(self, tracer: Tracer, test: Callable[[], Any], body: Callable[[], Any], start: Start,
                 lists: Sequence[Grown]) -> None:
        self.tracer = tracer
        self.test = test
        self.body = body
        self.start = start
        self.lists = lists
        self.carried = Carried(tracer, start)

    def run(self) -> bool:
        self.carried.collect()
        for _ in range(ROUNDS):
            with torch.no_grad(), torch._C.DisableTorchFunction():
                inputs = self._enter()
            condition = self._condition(inputs)
            with torch.no_grad(), torch._C.DisableTorchFunction():
                inputs = self._enter()
            for found in self.lists:
                found.begin_round()
            body = self.start.body(self.body, "body")
            if body.raised is not None:
                raise Unmergeable("a loop's body always raises")
            for found in self.lists:
                found.end_round(body.written)
            with torch.no_grad(), torch._C.DisableTorchFunction():
                if any(found.looks is not None and not found.buffers for found in self.lists):
                    self.start.reset()
                    return False
                if not self.carried.learn(body):
                    self._emit(condition, body, inputs)
                    return True
            self.start.bodies.clear()
        raise Unmergeable("what the loop carries does not settle")

    def _set(self, values: list[Any]) -> None:
        """Give the variables and the containers that change new leaves."""
        variables, *rows = unflatten(iter(values), self.carried.spec)
        for value in variables:
            if type(value) is tuple and value:
                self.tracer.identities.choose(value, (), self.start.site, unclear=True)
        self.start.state.set(variables)
        for key, row in zip(self.carried.changed, rows, strict=True):
            container, before = self.start.objects.content[key]
            refill(container, refilled(before, row))

    def _value(self, leaf: Leaf, bound: Any, values: dict[int, Any]) -> Any:
        """A leaf made of what stands for its pieces (by id): as the body, or what follows the loop, sees it."""
        if leaf.kind != "late":
            return values.get(id(leaf), leaf.value)
        made = pytree.tree_unflatten([values.get(id(part), part.value) for part in leaf.parts], leaf.spec)
        return made if leaf.name.startswith(OURS) else self.start.perhaps(leaf.name, bound, made)

    # -- one round ---------------------------------------------------------------------

    def _enter(self) -> list[Value]:
        """Set variables, containers and memory to the start of an iteration; the inputs of the region."""
        start, memory = self.start, self.tracer.memory
        start.reset()
        graph = Graph("body")
        for key in self.carried.written:
            storage = memory.by_id[key]
            storage.become(graph.add_input(_inside(storage.value)))
            if key in self.carried.followed:
                start.follow(storage.base)
        values: dict[int, Any] = {}
        for leaf in self.carried.kind("number"):
            values[id(leaf)] = leaf.placeholder = self._number_input(graph, kind_of(leaf.value))
        for leaf in self.carried.kind("late"):
            leaf.bound = self._number_input(graph, bool)
        for leaf in self.carried.kind("moving"):
            values[id(leaf)] = leaf.placeholder = self._moving_input(leaf, graph)
        self._set([self._value(leaf, leaf.bound, values) for leaf in self.carried.leaves])
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
        layout = self.carried.layout(leaf)
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
        if leaf.kept:
            return self.start.frozen(WRITTEN)
        return self.start.frozen(SHARED) if leaf.frozen or leaf.follow or leaf.watched else None

    def _watched(self, leaf: Leaf) -> list[Place]:
        """Storages that a frozen leaf may be a view of, at an unknown place: once they are written it gives up."""
        memory = self.tracer.memory
        return [Place(self._constant(False), memory.by_id[key], memory.by_id[key].layout) for key in leaf.watched]

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

    # -- the node ----------------------------------------------------------------------

    def _emit(self, condition: Body, body: Body, inputs: list[Value]) -> None:
        """Close both regions and record the loop, after which the variables are set."""
        start, tracer = self.start, self.tracer
        ends: dict[int, Any] = {}
        bounds: list[Any] = []
        for leaf, end in zip(self.carried.leaves, self.carried.ends(body), strict=True):
            if leaf.kind == "late":
                bounds.append(split(end)[0])
                ends |= {id(part): value for part, value in zip(leaf.parts, parts(leaf, end), strict=True)}
            else:
                ends[id(leaf)] = end
        yields = [start.left(body, key) for key in self.carried.written]
        with start.inside(body):
            memory = tracer.memory
            yields += [memory.read(tracer.number_tensor(ends[id(leaf)])) for leaf in self.carried.kind("number")]
            yields += [memory.read(tracer.number_tensor(bound)) for bound in bounds]
            for leaf in self.carried.kind("moving"):
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
        for where, key, layout, _ in self.carried.locations(end):
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
        initial: list[Value] = [memory.by_id[key].value for key in self.carried.written]
        fills: list[Callable[[Value], None]] = [memory.by_id[key].become for key in self.carried.written]
        finals: dict[int, Any] = {}
        for leaf in self.carried.kind("number"):
            given = self.carried.given(leaf)
            kind: Any = kind_of(leaf.value)
            initial.append(memory.read(tracer.number_tensor(kind(0) if given is None else given)))
            finals[id(leaf)] = tracer.number_of(fills.append, kind)
        bounds: dict[int, Any] = {}
        for leaf in self.carried.kind("late"):
            initial.append(memory.read(tracer.number_tensor(split(leaf.value)[0])))
            bounds[id(leaf)] = tracer.number_of(fills.append, bool)
        late: list[Callable[[], None]] = []
        slots: list[tuple[Leaf, int]] = []         # of moving leaves among what the node carries
        for leaf in self.carried.kind("moving"):
            slots.append((leaf, len(initial)))
            finals[id(leaf)] = self._leave(leaf, initial, fills, late)
        tracer.record.loc = self.start.loc
        node = Node(table.lookup("mono.while"), (tuple(initial),), {"history": (), "trips": None},
                    [_inside(value) for value in initial], regions=[condition.graph, body.graph], loc=self.start.loc)
        self.start.leave(node)
        for fill, value in zip(fills, node.results, strict=True):
            fill(value)
        given = {initial[slot]: self.carried.given(leaf) for leaf, slot in slots}
        given = {value: tensor for value, tensor in given.items() if is_differentiable(tensor)}
        connect(tracer, self.start, [body], node,
                [(finals[id(leaf)], node.results[slot]) for leaf, slot in slots if leaf.follow],
                known_tensors(tracer, self.start.memory) | given)
        for join in late:
            join()
        self._set([self._value(leaf, bounds.get(id(leaf)), finals) for leaf in self.carried.leaves])

    def _leave(self, leaf: Leaf, initial: list[Value], fills: list[Callable[[Value], None]],
               late: list[Callable[[], None]]) -> torch.Tensor:
        """A moving leaf after the loop: the value of the last iteration, perhaps one of its places."""
        tracer, memory = self.tracer, self.tracer.memory
        layout = self.carried.layout(leaf)
        with compat.plain_torch():
            made = tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        given = self.carried.given(leaf)
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
        homes = self.carried.homes(leaf) if unclear else None
        self.tracer.identities.choose(made, cases, self.start.site, unclear=unclear, homes=homes)
        if leaf.frozen or leaf.kept:
            self.tracer.identities.share(made)


def _inside(value: Value) -> TensorType:
    return TensorType(value.tensor.dtype, value.tensor.shape)


def _take_inputs(graph: Graph, inputs: list[Value]) -> None:
    graph.inputs = inputs
    graph.sources = [Source("argument", "") for _ in inputs]
