"""One branch or iteration: user code traced into a graph of its own, from a saved state.

    Body ::= graph  variables after  objects after  memory after  storages written  exception raised

Bodies of one statement start from the same state: storages, Python objects, variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture import blame
from monograph.capture.convert.operators import State
from monograph.capture.dynamic import site_of
from monograph.capture.layout import Layout
from monograph.capture.regions.errors import Unmergeable, caught, made, swallowed
from monograph.capture.regions.gradient import look_inside
from monograph.capture.regions.objects import Objects
from monograph.capture.regions.rewritten import Rewritten, become_followed, put_back
from monograph.capture.regions.sometimes import Sometimes
from monograph.ir.edit import symbols_in
from monograph.ir.graph import Graph, Node, Value
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Body", "Start"]


@dataclass(eq=False)
class Body:
    graph: Graph
    value: Any = None                         # what the thunk gave
    variables: tuple[Any, ...] = ()
    objects: dict[int, Any] = field(default_factory=dict)
    memory: dict[int, Any] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)       # storages of the outside
    raised: Exception | None = None
    rewritten: dict[int, torch.Tensor] = field(default_factory=dict)   # bases of those that got another history
    unfollowed: set[int] = field(default_factory=set)                  # those of which the history ends in the body
    saved: list[torch.Tensor] = field(default_factory=list)            # of the outside, what eager's backward keeps
    saved_inside: set[int] = field(default_factory=set)                # storages made inside that it keeps


class Start:
    """The state in which a statement begins. Use `with start:` around everything that traces its bodies."""

    def __init__(self, tracer: Tracer, state: State, *, site: Any, grad: bool) -> None:
        self.tracer = tracer
        self.state = state
        self.loc: SourceLoc | None = blame.location(blame.user_frame())
        tracer.draws.settle()                # what seeds the first draw of a body stands before the statement
        self.variables = state.get()
        self.objects = Objects((*self.variables, *state.read()), tracer.watched())
        self.globals = tracer.globals_now()
        tracer.memory.forget_dead()
        self.memory = self.entry = tracer.memory.save()      # `entry`: what the body begins with
        self.site = site
        self.grad = grad
        self.messages = tracer.count_messages()
        self.draws = dict(tracer.draws.known)
        self.local = set(tracer.sizes.local)
        self.places = set(tracer.index_sites)
        self.bodies: list[Body] = []
        self.lent: list[torch.Tensor] = []       # tensors that the next body begins with having a history

    def __enter__(self) -> Start:
        self.tracer.memory.starts.append(self.memory)
        return self

    def __exit__(self, *_: object) -> None:
        tracer = self.tracer
        tracer.memory.starts.pop()
        tracer.draws.leave_region(self.draws)

    def reset(self, variables: tuple[Any, ...] | None = None) -> None:
        """Back to the state of the beginning, but for the variables when given."""
        self.objects.restore()
        self.state.set(self.variables if variables is None else variables)
        self.tracer.memory.load(self.memory)
        self.entry = self.memory
        while self.lent:
            put_back(self.tracer, self.lent.pop(), None)
        self.forget()

    def follow(self, base: torch.Tensor) -> None:
        """`base`, without a history, has one where the next body begins."""
        become_followed(self.tracer, base)
        self.lent.append(base)

    def forget(self) -> None:
        """Under autograd a body reads whole storages, whose tensors autograd knows, no view that was read before."""
        if self.grad:
            for key in self.memory:
                self.tracer.memory.by_id[key].cache = {}

    def body(self, thunk: Callable[[], Any], name: str) -> Body:
        """Trace `thunk`. A `raise` of the user's own ends the body."""
        if not self.grad:
            return self._body(thunk, name)
        rewritten = Rewritten(self.tracer)
        sequence = compat.last_sequence()
        self.tracer.rewritten.append(rewritten)
        try:
            body = self._body(thunk, name)
        finally:
            self.tracer.rewritten.pop()
        body.rewritten, body.unfollowed = rewritten.bases(), rewritten.unfollowed()
        look_inside(self.tracer, body, sequence, repeats=name == "body")
        rewritten.restore((body.value, body.variables, list(body.objects.values())))
        return body

    def _body(self, thunk: Callable[[], Any], name: str) -> Body:
        tracer = self.tracer
        body = Body(Graph(name))
        tracer.memory.sites[id(body.graph)] = self.site
        before, refused = swallowed(), made()
        with self.recording(body):
            try:
                body.value = thunk()
            except Exception as error:
                if swallowed() is before and not is_users_own(error):      # perhaps no call takes this path
                    raise Unmergeable(f"{type(error).__name__} on one path: {error}") from error
                body.raised = error
        lost = swallowed()
        if lost is not None and lost is not before:
            raise lost
        handled = caught(refused)
        if handled is not None:
            raise Unmergeable(f"{type(handled).__name__} on one path: {handled}") from handled
        if tracer.count_messages() != self.messages:
            raise Unmergeable("something is printed, warned or logged on one path only")
        if self.objects.has_advanced():
            raise Unmergeable("an iterator is advanced in a branch or loop")
        altered = self.objects.altered()
        if altered is not None:
            raise Unmergeable(f"{altered} changes in a branch or loop")
        if tracer.has_written_global(self.globals, self.state.names):
            raise Unmergeable("a function that a branch calls writes a global")
        if tracer.has_written(self.objects.content):
            raise Unmergeable("an object that no variable leads to is written on one path only")
        body.variables = self.state.get()
        body.objects = self.objects.now()
        body.memory = tracer.memory.save()
        body.written = [key for key, saved in self.memory.items()        # what entered meanwhile began as `saved`
                        if body.memory[key][2] != self.entry.get(key, saved)[2]]
        self.bodies.append(body)
        return body

    @contextmanager
    def recording(self, body: Body) -> Iterator[None]:
        """Record into a body what reads no memory."""
        tracer = self.tracer
        outer, tracer.record.graph = tracer.record.graph, body.graph
        tracer.memory.scopes.append(body.graph)
        try:
            with tracer.sizes.scope():
                yield
        finally:
            tracer.memory.scopes.pop()
            tracer.record.graph = outer

    @contextmanager
    def inside(self, body: Body) -> Iterator[None]:
        """Record more at the end of a body, where memory is as the body left it."""
        tracer = self.tracer
        before = tracer.memory.save()
        tracer.memory.load(body.memory)
        try:
            with self.recording(body):
                yield
        finally:
            body.memory = tracer.memory.save()
            tracer.memory.load(before)

    def refuse_rewritten(self, *storages: int) -> None:
        """Unmergeable where one of several tensors that a variable may be gets a history in a body."""
        if any(key in body.rewritten for body in self.bodies for key in storages):
            raise Unmergeable("a tensor that may be another one gets a history")

    def left(self, body: Body, key: int) -> Value:
        """What a body leaves in a storage of the outside. Where it has no history there but has on another path, no
        gradient flows to what it was computed from."""
        value: Value = body.memory[key][1]
        if not any(key in other.rewritten for other in self.bodies):
            return value
        tracer = self.tracer
        follows = key not in body.unfollowed if key in body.rewritten else \
            tracer.followed_by_autograd(tracer.memory.by_id[key].base) is not None
        if follows:
            return value
        with self.inside(body):
            return tracer.record.emit("aten.detach.default", value, sizes=value.tensor.shape, dtype=value.tensor.dtype)

    def frozen(self, why: str) -> tuple[str, Any]:
        """What `Storage.frozen` is for a tensor that this statement leaves."""
        return why, self.site

    def leave(self, node: Node) -> None:
        """Record the statement, whose results are seen outside: none has a size that only its bodies know."""
        self.refuse_sizes(symbols_in(tuple(value.type for value in node.results)))
        self.tracer.record.graph.append(node)

    def refuse_sizes(self, symbols: Collection[str]) -> None:
        """Unmergeable where what is seen outside has a size or place that only the bodies of this statement know."""
        inside = self.tracer.sizes.local - self.local
        if inside and not inside.isdisjoint(symbols):
            raise Unmergeable("the size of what a branch or loop leaves depends on values in it")

    def perhaps(self, name: str, bound: Any, value: Any) -> Sometimes:
        """The variable `name`, where it may have no value. Only the function that it belongs to asks whether it has."""
        if name in self.state.held:
            raise Unmergeable(f"{name}, which a nested function reads, has no value on some path")
        return Sometimes(self.tracer, bound, value)

    def refuse_place(self, layout: Layout) -> None:
        """Unmergeable where what is seen outside lies at a place that only the bodies of this statement know."""
        site = site_of(self.tracer, layout, self.places)
        if site is not None:
            raise Unmergeable("a branch or loop leaves a view at a place that only the run knows", site)

    def is_fresh(self, tensor: torch.Tensor) -> bool:
        """Whether the storage of a tensor was made by one of the bodies."""
        storage = self.tracer.memory.of(tensor)
        return any(storage.scope is body.graph for body in self.bodies)


def is_users_own(error: Exception) -> bool:
    """Whether `error` comes from a `raise` or `assert` of the user's code rather than from something it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    return blame.is_user_code(code) and blame.raises_at(code, trace.tb_lasti)
