"""`if` on a traced value: both branches traced, one `mono.cond` recorded, their ends merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture import blame
from monograph.capture.checks import REPLAY
from monograph.capture.convert.operators import UNBOUND, State
from monograph.capture.readset_journal import unchanged
from monograph.capture.regions.body import Body, Start
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import connect, known_tensors
from monograph.capture.regions.merge import Merge
from monograph.capture.regions.objects import refill
from monograph.capture.text import TracedText
from monograph.capture.views import static_recipes
from monograph.errors import exception_class
from monograph.ir.graph import Node, Value
from monograph.ops import table

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["cond"]


def cond(tracer: Tracer, predicate: torch.Tensor, then: Callable[[], Any], otherwise: Callable[[], Any],
         state: State, site: Any) -> Any:
    """Run one of two thunks by `predicate` (bool[], traced); what the thunks give is merged and returned."""
    grad = torch.is_grad_enabled()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        test = tracer.memory.read(predicate)
        start = Start(tracer, state, site=site, grad=grad)
    with start:
        bodies = []
        for thunk, name in ((then, "then"), (otherwise, "otherwise")):
            start.reset()
            bodies.append(start.body(thunk, name))
        start.reset()
        if any(body.raised is not None for body in bodies):
            return _raise(tracer, predicate, bodies[0], bodies[1], then, otherwise)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            return _Cond(tracer, start, bodies[0], bodies[1], test).run()


def _raise(tracer: Tracer, predicate: torch.Tensor, first: Body, second: Body, then: Callable[[], Any],
           otherwise: Callable[[], Any]) -> Any:
    """A branch ends in `raise`: it becomes a check, after which the program goes on as on the other path."""
    if first.raised is not None and second.raised is not None:
        raise Unmergeable("both branches raise")
    body, rest = (first, otherwise) if first.raised is not None else (second, then)
    if any(not node.op.is_pure for node in body.graph.walk()):
        raise Unmergeable("a branch has other effects before it raises")
    if blame.may_be_caught():
        raise Unmergeable("an exception raised in a branch may be caught")
    assert body.raised is not None
    error, message = checked_exception(body.raised)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        ok = torch.logical_not(predicate) if body is first else predicate
        tracer.record.loc = blame.raise_location(body.raised)
        tracer.check_value(ok, error, message)
    return rest()


def checked_exception(error: Exception) -> tuple[str, str | None]:
    """The `error` and `message` of a `mono.check` that raises such an exception."""
    if any(isinstance(entry, TracedText) for entry in error.args):
        return REPLAY, None
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}:{kind.__qualname__}"
    arguments = error.args
    if "<locals>" in name or len(arguments) > 1 or not all(type(entry) is str for entry in arguments) \
            or vars(error) or exception_class(name) is not kind:
        raise Unmergeable(f"a branch raises a {kind.__name__} that can be made in no other call")
    return name, arguments[0] if arguments else None


class _Cond:
    def __init__(self, tracer: Tracer, start: Start, then: Body, otherwise: Body, test: Value) -> None:
        self.tracer = tracer
        self.start = start
        self.test = test
        self.bodies = (then, otherwise)
        self.merge = Merge(tracer, start, then, otherwise, test)

    def run(self) -> Any:
        then, otherwise = self.bodies
        names = self.start.state.names
        self._round(look=True)
        self.merge.settle()
        variables, value, objects = self._round(look=False)
        for body in self.bodies:             # tensors of the outside that nothing read before their merge
            body.memory = {**self.start.memory, **body.memory}
        written = sorted({*then.written, *otherwise.written})
        for key in written:
            self._write(key)
        self._emit()
        for container, content in objects:
            refill(container, content)
        assert len(variables) == len(names)
        self.start.state.set(variables)
        return value

    def _round(self, *, look: bool) -> tuple[tuple[Any, ...], Any, list[tuple[Any, Any]]]:
        then, otherwise = self.bodies
        merge = self.merge.merge
        variables = tuple(
            UNBOUND if name in self.start.state.dead else merge(a, b, name, look=look)
            for a, b, name in zip(then.variables, otherwise.variables, self.start.state.names, strict=True))
        value = merge(then.value, otherwise.value, "the value", look=look)
        objects = []
        for key, (container, before) in self.start.objects.content.items():
            a, b = then.objects[key], otherwise.objects[key]
            if not (unchanged(a, before) and unchanged(b, before)):
                objects.append((container, self._content(container, a, b, look=look)))
        return variables, value, objects

    def _content(self, container: Any, a: Any, b: Any, *, look: bool) -> Any:
        what = f"a {type(container).__name__} that a branch changes"
        if unchanged(a, b):
            return a
        if isinstance(a, dict):
            if list(a) != list(b):
                raise Unmergeable(f"{what} has other keys on each path")
            return {key: self.merge.merge(a[key], b[key], f"[{key!r}]", look=look) for key in a}
        if isinstance(a, set) or len(a) != len(b):
            raise Unmergeable(f"{what} has other entries on each path")
        return type(a)(self.merge.merge(x, y, what, look=look) for x, y in zip(a, b, strict=True))

    def _write(self, key: int) -> None:
        """A storage of the outside that a branch wrote."""
        storage = self.tracer.memory.by_id[key]
        layouts = {body.memory[key][0].key for body in self.bodies}
        if layouts != {storage.layout.key}:
            raise Unmergeable("a tensor grows on one path only")
        self.merge.slot(*(self.start.left(body, key) for body in self.bodies), storage.become)

    def _emit(self) -> None:
        tracer, merge = self.tracer, self.merge
        then, otherwise = self.bodies
        then.graph.outputs = [slot[0] for slot in merge.slots]
        otherwise.graph.outputs = [slot[1] for slot in merge.slots]
        tracer.record.loc = self.start.loc
        types = [type or value.type for value, _, _, type in merge.slots]
        node = Node(table.lookup("mono.cond"), (self.test,), {}, types,
                    regions=[body.graph for body in self.bodies], loc=self.start.loc)
        self.start.leave(node)
        for key in self.start.memory:
            storage = tracer.memory.by_id[key]
            for body in self.bodies:
                for layout, step in static_recipes(body.memory[key][4]).items():
                    if layout not in storage.recipes:
                        storage.remember(step)
        for (_, _, fill, _), value in zip(merge.slots, node.results, strict=True):
            fill(value)
        connect(tracer, self.start, self.bodies, node, [(made, node.results[slot]) for made, slot in merge.followed],
                known_tensors(tracer, self.start.memory), merge.saved())
        for join in merge.late:
            join()
        merge.slots.clear()                  # what is to be done knows of the merge, and keeps it and the trace
        merge.late.clear()
