"""What converted code calls while it is traced: Python where Python can decide, a region of the graph otherwise."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from monograph import compat
from monograph.capture import blame, outline
from monograph.capture.arrays import TracedArray
from monograph.capture.checks import REPLAY
from monograph.capture.classes import class_of
from monograph.capture.convert.operators import Operators, State
from monograph.capture.counted import Counted
from monograph.capture.grown import Grown
from monograph.capture.number import TracedNumber
from monograph.capture.regions import builtins, growing, iterate, protocols, rolled
from monograph.capture.regions.cond import cond
from monograph.capture.regions.errors import Fork, Unmergeable, forget
from monograph.capture.regions.loop import loop
from monograph.capture.text import Piece, TracedText, joined

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["RegionOperators"]

Thunk = Callable[[], Any]
NOTHING = State((), lambda: (), lambda values: None, lambda: ())


class RegionOperators(Operators):
    def __init__(self, tracer: Tracer, forks: dict[Any, int]) -> None:
        self.tracer = tracer
        self.growing: list[list[Any]] = []              # lists of the comprehensions that are running
        self.lists: list[Grown] = []                    # those that the loops being traced grow
        self.forks = forks          # statements that no region can stand for; of a loop, how many iterations it cannot

    # -- deciding ----------------------------------------------------------------------

    def decide(self, value: Any) -> bool | torch.Tensor:
        """The truth of a value: Python's, or a traced bool[]."""
        if isinstance(value, TracedNumber):
            value = value.truth().tensor
        if type(value) is TracedArray:
            value = value.tensor
        if isinstance(value, Grown):
            return self.decide(self.tracer.traced(value.length) > 0)
        if not isinstance(value, torch.Tensor):
            found = protocols.truth(self.tracer, value)
            return bool(value) if found is NotImplemented else self.decide(found)
        if value.numel() != 1:
            return bool(value)                   # torch raises
        tracer = self.tracer
        with torch._C.DisableTorchFunction(), torch.no_grad():
            fake = tracer.lift(value)
            known = tracer.known(fake)
            if known is not None:
                with compat.plain_torch():
                    return bool(known.item())
            truth = fake if fake.dtype is torch.bool else fake != 0
            return truth if not truth.dim() else truth.reshape(())

    def branch(self, predicate: torch.Tensor, then: Thunk, otherwise: Thunk, state: State) -> Any:
        """`then()` or `otherwise()`; a fork where a region will not do."""
        site = blame.site("if")
        if site in self.forks:
            return then() if self.read(predicate, site) else otherwise()
        try:
            return cond(self.tracer, predicate, then, otherwise, state, site)
        except Unmergeable as why:
            if self.tracer.in_region:
                raise                            # the statement around it forks
            self.fork(why.site or site, why)

    def fork(self, site: Any, why: Unmergeable, most: int = 2) -> NoReturn:
        """Trace again; at `site` take the path of this call."""
        forget()
        raise Fork(site, str(why), most) from None

    def read(self, predicate: torch.Tensor, site: Any) -> bool:
        """The truth of `predicate` in this call, at a statement that forks."""
        if not self.tracer.paths.can_read(predicate):
            raise self.tracer.refusal(f"`{blame.expression(blame.user_frame(2))}` decides what a region cannot hold")
        outline.ask(self.tracer, is_condition=True)
        with compat.plain_torch():
            return bool(self.tracer.paths.read(predicate).item())

    # -- statements --------------------------------------------------------------------

    def if_(self, test: Any, then: Thunk, otherwise: Thunk, state: State) -> None:
        decided = self.decide(test)
        if isinstance(decided, bool):
            then() if decided else otherwise()
        else:
            self.branch(decided, then, otherwise, state)

    def while_(self, test: Thunk, body: Thunk, state: State, stop: Thunk | None, trips: Any = None,
               roll: bool = False) -> None:
        """`trips`: how often the loop runs at most, where that is known before. `roll`: where no region can stand
        for the loop, it is written out."""
        def go_on() -> Any:
            return test() if stop is None else self.and_(self.not_(stop()), test)

        site = blame.site("while")
        for trip in itertools.count() if not roll else ():
            if trip < self.forks.get(site, 0):
                decided = self.decide(go_on())
                if isinstance(decided, torch.Tensor):
                    decided = self.read(decided, site)
            else:
                try:
                    decided = self.peek(go_on, state)
                except Unmergeable as why:
                    if self.tracer.in_region:
                        raise
                    self.fork(site, why)
            if isinstance(decided, torch.Tensor):
                break
            if not decided:
                return
            body()
        try:
            record = functools.partial(loop, self.tracer, lambda: self.decide(go_on()), body, state, site)
            growing.run(self, record, state, site, trips, early=stop is not None)
        except Unmergeable as why:
            if self.tracer.in_region and not roll:
                raise
            self.fork((None if roll else why.site) or site, why, most=1 if roll else 2)

    def peek(self, test: Thunk, state: State) -> bool | torch.Tensor:
        """What a loop's test says now, leaving no trace of having asked when it is for the run to say."""
        return iterate.peek(self.tracer, lambda: self.decide(test()), state)

    def for_(self, items: Iterable[Any], assign: Callable[[Any], None], body: Thunk, state: State,
             stop: Thunk | None) -> None:
        counted = iterate.counted(self.tracer, items)
        if counted is not None:
            iterate.run_counted(self, counted, assign, body, state, stop)
            return
        many = rolled.long(items)
        if many is not None and self._rolls(many, assign, body, state, stop):
            return
        if stop is None:
            for item in items:
                assign(item)
                body()
            return
        iterate.run_stoppable(self, iter(items), assign, body, state, stop)

    def _rolls(self, items: Counted, assign: Callable[[Any], None], body: Thunk, state: State,
               stop: Thunk | None) -> bool:
        """Whether a long loop is one of the program, after the iterations that are to be written out."""
        written = self.forks.get(blame.site("while"), 0)
        if written >= items.length:
            return False

        def rest(start: int) -> None:
            iterate.run_counted(self, items, assign, body, state, stop, start=start, roll=True)

        if stop is None:
            for index in range(written):
                assign(items.item(index))
                body()
            rest(written)
        else:
            entries = map(items.item, range(items.length))
            iterate.run_stoppable(self, entries, assign, body, state, stop, rest, written)
        return True

    def grow(self) -> list[Any]:
        self.growing.append([])
        return self.growing[-1]

    def grown(self, made: list[Any]) -> Any:
        given = made.given if isinstance(made, Grown) else made
        while self.growing.pop() is not given:       # those of comprehensions that raised
            pass
        return made

    # -- expressions -------------------------------------------------------------------

    def and_(self, first: Any, *rest: Thunk) -> Any:
        if not rest:
            return first
        decided = self.decide(first)
        if isinstance(decided, bool):
            return self.and_(rest[0](), *rest[1:]) if decided else first
        return self.branch(decided, lambda: self.and_(rest[0](), *rest[1:]), lambda: first, NOTHING)

    def or_(self, first: Any, *rest: Thunk) -> Any:
        if not rest:
            return first
        decided = self.decide(first)
        if isinstance(decided, bool):
            return first if decided else self.or_(rest[0](), *rest[1:])
        return self.branch(decided, lambda: first, lambda: self.or_(rest[0](), *rest[1:]), NOTHING)

    def not_(self, value: Any) -> Any:
        decided = self.decide(value)
        if isinstance(decided, bool):
            return not decided
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return self.tracer.item(torch.logical_not(decided))

    def truth(self, value: Any) -> Any:
        decided = self.decide(value)
        if isinstance(decided, bool):
            return decided
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return self.tracer.item(decided.clone() if isinstance(value, torch.Tensor) else decided)    # as it is now

    def choose(self, test: Any, then: Thunk, otherwise: Thunk) -> Any:
        decided = self.decide(test)
        if isinstance(decided, bool):
            return then() if decided else otherwise()
        return self.branch(decided, then, otherwise, NOTHING)

    def is_(self, left: Any, right: Any) -> Any:
        return self.tracer.identities.is_(left, right)

    def seeker(self, value: Any) -> Any:
        if value is operator.is_not:
            return lambda left, right: self.not_(self.is_(left, right))
        return self.tracer.identities.seeker(value)

    def contains(self, item: Any, container: Any) -> Any:
        if type(container) in (list, tuple) and any(self.compares(x) for x in (item, *container)):
            found: Any = False
            for entry in container:
                found = self.or_(found, functools.partial(self.alike, entry, item))
                if found is True:
                    return True
            return found
        if isinstance(container, torch.Tensor):
            return self.tracer.item((container == item).any())
        found = protocols.contains(item, container)
        return item in container if found is NotImplemented else self.truth(found)

    def equal(self, left: Any, right: Any) -> Any:
        if type(left) is type(right) and type(left) in (list, tuple) and any(map(self.compares, (*left, *right))):
            if len(left) != len(right):
                return False
            result: Any = True
            for a, b in zip(left, right, strict=True):
                result = self.and_(result, functools.partial(self.alike, a, b))
            return result
        return left == right

    def alike(self, a: Any, b: Any) -> Any:
        return self.truth(self.or_(self.is_(a, b), functools.partial(self.equal, a, b)))

    def compares(self, value: Any) -> bool:
        """Whether comparing it may give what is traced."""
        return isinstance(value, (torch.Tensor, TracedNumber)) or protocols.method(value, "__eq__") is not None

    def assert_(self, test: Any, message: Thunk | None) -> None:
        decided = self.decide(test)
        if isinstance(decided, bool):
            return super().assert_(decided, message)
        if blame.may_be_caught():
            return super().assert_(self.tracer.ask(decided), message)
        text = None if message is None else message()
        self.tracer.record.loc = blame.location(blame.user_frame())
        if isinstance(text, TracedText):
            self.tracer.check_value(decided, REPLAY, None)
        else:
            self.tracer.check_value(decided, "AssertionError", text if text is None else str(text))

    def unequal(self, left: Any, right: Any) -> Any:
        if type(left) is type(right) and type(left) in (list, tuple) and any(map(self.compares, (*left, *right))):
            return self.not_(self.equal(left, right))
        found = protocols.unequal(self, left, right)
        return left != right if found is NotImplemented else found

    def answer(self, value: Any) -> Any:
        return protocols.answer(self.tracer, value)

    def generated(self, function: Callable[..., Any], lazy: Callable[[Any], Any], eager: Callable[[Any], list[Any]],
                  items: Any) -> Any:
        return eager(items) if function in builtins.EXHAUST else lazy(items)

    def search(self, function: Callable[..., Any], lazy: Callable[[Any], Any], loop: Callable[[Any], bool],
               items: Any) -> Any:
        return loop(items) if function in (any, all) else function(lazy(items))

    def formatted(self, value: Any, conversion: int, spec: Any) -> Any:
        if isinstance(value, torch.Tensor) and conversion == -1 and not value.dim():
            value = value.item()                     # as torch formats it
        if isinstance(value, TracedNumber):
            return TracedText((Piece(value, conversion, str(spec)),))
        if isinstance(value, compat.FakeTensor) and not value.requires_grad and (conversion != -1 or not str(spec)):
            with torch._C.DisableTorchFunction():
                return TracedText((Piece(value.clone(), conversion, str(spec)),))      # as it is now
        if isinstance(value, TracedText):
            if conversion in (-1, ord("s")) and not spec:
                return value
            value = str(value)
        return super().formatted(value, conversion, str(spec))

    def joined(self, *texts: Any) -> Any:
        return joined(texts)

    def taken(self, shape: Callable[[Any], tuple[Any, ...] | None], subject: Any) -> tuple[Any, ...] | None:
        if not isinstance(subject, (TracedNumber, TracedText)):
            return shape(subject)
        seen = StandIn(subject, class_of(subject))
        parts = shape(seen)
        return parts and tuple(subject if part is seen else part for part in parts)

    def builtin(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return builtins.replacement(self, function)

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with torch._C.DisableTorchFunction():
            return outline.call(self.tracer, function, args, kwargs)


class StandIn:
    """A traced value as a class pattern is to see it: of the class that it has in eager, with its attributes."""

    __slots__ = ("_kind", "_value")

    def __init__(self, value: Any, kind: type) -> None:
        self._value = value
        self._kind = kind

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)
