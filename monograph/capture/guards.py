"""The facts a compiled entry assumed, as one generated function.

    Guard ::= Fact*  structure of the arguments  TensorFacts
    Fact  ::= label: expression is want            the very same object
            | label: expression same want          equal numbers, strings, tuples of such; else the very same object
            | label: expression                    the expression itself is true

An expression is Python text over numbered objects, `{0}['training']`; the objects are dicts, lists,
cells and functions that were read while tracing. `Guard.check(args, kwargs)` returns the leaves of
the call's arguments when every fact still holds, else None; `Guard.failures` says which do not.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.guards_sizes import SizeFacts
    from monograph.capture.objects import Objects

__all__ = ["ABSENT", "Fact", "Free", "Guard", "TensorFacts", "generate", "same", "sharing"]


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
CHUNK = 40          # facts in one condition: a longer `and` chain only slows the compiler of the text down
BY_VALUE = (int, bool, str, bytes, frozenset, range, torch.device, torch.dtype)
NOTHING: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
Free: TypeAlias = Mapping[int, tuple[frozenset[int], frozenset[int]]]
MISSING = (KeyError, AttributeError, IndexError, ValueError, TypeError)   # what a place that went away raises


def same(now: Any, then: Any) -> bool:
    """Whether code that read `then` would do the same with `now`: equal types, equal values, NaN equal to itself."""
    if now is then:
        return True
    kind = type(now)
    if kind is not type(then):
        return False
    if kind is float:
        return (now == then and math.copysign(1, now) == math.copysign(1, then)) or (now != now and then != then)
    if kind is complex:
        return same((now.real, now.imag), (then.real, then.imag))
    if kind is types.MethodType:             # made anew by every `x.method`
        return now.__self__ is then.__self__ and now.__func__ is then.__func__
    if issubclass(kind, np.generic):
        return now.dtype == then.dtype and now.tobytes() == then.tobytes()
    if kind in (tuple, torch.Size):
        return len(now) == len(then) and all(map(same, now, then))
    if kind is slice:
        return same((now.start, now.stop, now.step), (then.start, then.stop, then.step))
    return kind in BY_VALUE and now == then


@dataclass(slots=True, eq=False)
class Fact:
    """Never changed once made: thousands are, and `frozen` would make each take three times as long."""

    label: str
    expression: str
    objects: tuple[Any, ...]
    test: Literal["is", "same", "true"] = "true"
    want: Any = None
    watch: tuple[Any, ...] = ()      # objects that alone decide the fact: see guards_versions

    def now(self) -> Any:
        """The value the expression has at this moment; ABSENT where its place went away."""
        try:
            return evaluator(self.expression, len(self.objects))(*self.objects)
        except MISSING:
            return ABSENT

    def holds(self) -> bool:
        value = self.now()
        if self.test == "is":
            return value is self.want
        return same(value, self.want) if self.test == "same" else value is not ABSENT and bool(value)

    def failure(self) -> str:
        if self.test == "true":
            return f"{self.label} changed"
        now, then = brief(self.now()), brief(self.want)
        if now == then:
            return f"{self.label} is another {type(self.want).__name__}"
        return f"{self.label}: {then} -> {now}"


@functools.lru_cache(maxsize=20_000)
def evaluator(expression: str, count: int) -> Callable[..., Any]:
    """The function of `count` objects that a Fact's expression is: the same few hundred come back in every trace."""
    names = [f"o{i}" for i in range(count)]
    function: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {expression.format(*names)}", {"same": same})
    return function


def brief(value: Any) -> str:
    """A short text for a value in a message."""
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__}{list(value.shape) if compat.is_plain(value) else ''}"
    if isinstance(value, (int, float, str, tuple, type(None), torch.dtype, torch.device, _Absent)):
        text = f"({', '.join(map(brief, value))})" if type(value) is tuple else repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"<{type(value).__name__}>"


class TensorFacts:
    """Class, dtype, device, layout keys, requires_grad, sizes and strides of distinct tensors, checked in one call.
    `free`: of the tensor at a position, dims whose sizes, and those whose strides, are not looked at.

    torch's own check ignores `requires_grad` while grad mode is off, but code that asks for it or has an
    `enable_grad` block still sees it: so grad mode is switched on around the check.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], labels: Sequence[str], free: Free = MappingProxyType({})
                 ) -> None:
        self.labels = list(labels)
        self.free = [free.get(position, NOTHING) for position in range(len(tensors))]
        self.metadata = [metadata(tensor, *free) for tensor, free in zip(tensors, self.free)]
        with torch.enable_grad():
            native = compat.tensor_guards(tensors, free)
        self.native: Callable[..., bool] = native.check if native is not None else self.slow_check
        self.check = self.native if torch.is_grad_enabled() else self.check_with_grad

    def slow_check(self, *tensors: Any) -> bool:
        return all(isinstance(t, torch.Tensor) and metadata(t, *free) == want
                   for t, want, free in zip(tensors, self.metadata, self.free))

    def check_with_grad(self, *tensors: Any) -> bool:
        before = torch.is_grad_enabled()      # the call may come in another mode than the entry was made for
        compat.set_grad_enabled(True)
        try:
            return self.native(*tensors)
        finally:
            compat.set_grad_enabled(before)

    def failures(self, tensors: Sequence[Any]) -> list[str]:
        found = []
        for label, want, tensor, free in zip(self.labels, self.metadata, tensors, self.free):
            now = metadata(tensor, *free) if isinstance(tensor, torch.Tensor) else {"class": type(tensor).__name__}
            for key, value in want.items():
                if now.get(key) != value:
                    found.append(f"{label}: {key} {value} -> {now.get(key)}")
                    break
        return found


def metadata(tensor: torch.Tensor, sizes: Collection[int] = (), strides: Collection[int] = ()) -> dict[str, Any]:
    """What a program assumes of a tensor, `sizes` and `strides` of some dims left out. Of one that no program takes in,
    only what it is: a subclass may run code of its own when asked for more, and a nested tensor has neither sizes nor
    strides."""
    if compat.dispatches(type(tensor)):
        return {"class": type(tensor).__name__}
    with compat.no_class_functions():
        if tensor.is_nested:
            return {"class": "nested Tensor"}
        return {
            "class": type(tensor).__name__,
            "dtype": tensor.dtype,
            "shape": without(tensor.shape, sizes),
            "strides": without(tensor.stride(), strides) if tensor.layout is torch.strided else (),
            "device": tensor.device,
            "requires_grad": tensor.requires_grad,
            "layout": (tensor.layout, tensor.is_conj(), tensor.is_neg(), tensor.is_inference()),
        }


def without(numbers: Sequence[int], left_out: Collection[int]) -> tuple[Any, ...]:
    return tuple(None if axis in left_out else number for axis, number in enumerate(numbers))


def plain_conditions(names: Sequence[str], tensors: Sequence[torch.Tensor], text: Text) -> list[str]:
    """Conditions that the native check needs to hold before it is asked: it ends the process over a tensor without
    strides. `tensors` are the examples, whose classes the named ones must have."""
    plain = [(name, tensor) for name, tensor in zip(names, tensors) if not compat.dispatches(type(tensor))]
    return [f"type({name}) is {text.name(type(tensor))} and not {name}.is_nested" for name, tensor in plain]


def sharing(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """For each tensor the first of the same storage, and its offset there; empty where all are apart."""
    storages = [compat.storage_id(tensor) for tensor in tensors]
    if len(set(storages)) == len(storages):
        return []
    return [(storages.index(key), int(tensor.storage_offset())) for key, tensor in zip(storages, tensors)]


@dataclass
class Guard:
    """`check(args, kwargs)`: the leaves of the arguments, as a list, or None where a fact does not hold."""

    check: Callable[[tuple[Any, ...], dict[str, Any]], list[Any] | None]
    facts: list[Fact]
    explain_arguments: Callable[[tuple[Any, ...], dict[str, Any]], list[str]]
    weights: tuple[torch.Tensor, ...] = ()
    weight_facts: TensorFacts | None = None
    source: str = ""
    lines: dict[int, SourceLoc] = field(default_factory=dict)      # id of a fact -> the user's line that read it
    fetched: list[Fact] = field(default_factory=list)      # places whose tensor is taken from there at every call
    explain_fetched: Callable[[tuple[Any, ...], dict[str, Any]], list[str]] = lambda args, kwargs: []
    objects: Any = None            # `objects.Objects`: those among the arguments that facts speak of

    def of_call(self, facts: Sequence[Fact], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Fact]:
        """`facts`, stated of the objects of a call."""
        if self.objects is None:
            return list(facts)
        found = self.objects.found(pytree.tree_leaves((args, kwargs)))
        return [self.objects.moved(fact, found) for fact in facts]

    def failures(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """The facts that this call violates, in words; where the arguments differ those alone, because thousands of
        other facts take long to look at one by one."""
        found = list(self.explain_arguments(args, kwargs))
        if found:
            return found
        for fact, now in zip(self.facts, self.of_call(self.facts, args, kwargs)):
            if not now.holds():
                loc = self.lines.get(id(fact))
                found.append(now.failure() if loc is None else f"{now.failure()} (read at {loc.short})")
        if self.weight_facts is not None:
            found += self.weight_facts.failures(self.weights)
        found = found or self.explain_fetched(args, kwargs)
        if not found and self.objects is not None and self.check(args, kwargs) is None:
            found.append("which objects among the arguments are the same, or share memory")
        return found


@dataclass
class Text:
    """The text of a generated function and the objects it names; equal objects share a name."""

    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    source: str = ""               # of the function, once it is made

    def name(self, value: Any) -> str:
        found = self.names.get(id(value))
        if found is None:
            found = self.names[id(value)] = f"c{len(self.objects)}"
            self.objects[found] = value
        return found

    def place(self, fact: Fact) -> str:
        return fact.expression.format(*map(self.name, fact.objects))

    def condition(self, fact: Fact) -> str:
        expression = self.place(fact)
        if fact.test == "true":
            return expression
        if fact.want is None or fact.want is True or fact.want is False:
            return f"{expression} is {fact.want}"
        test = f"{expression} is {self.name(fact.want)}"
        if fact.test == "is":
            return test
        return f"({test} or same({expression}, {self.name(fact.want)}))"

    def require(self, conditions: Sequence[str]) -> None:
        pending = iter(conditions)
        while chunk := list(itertools.islice(pending, CHUNK)):
            self.lines.append(f"if not ({' and '.join(chunk)}): return None")

    def function(self, name: str, parameters: str, *, guarded: bool = True) -> Callable[..., Any]:
        """Compile. The objects are globals of the function: default arguments would be copied at every call.

        With `guarded` a place that went away makes the function return None."""
        body = "\n".join(f"        {line}" for line in self.lines) or "        pass"
        text = f"def {name}({parameters}):\n    try:\n{body}\n    except {MISSING_NAMES}:\n        return None\n"
        if not guarded:
            text = f"def {name}({parameters}):\n    if True:\n{body}\n"
        scope = {**self.objects, "same": same}
        exec(compile(text, f"<monograph {name}>", "exec"), scope)
        function: Callable[..., Any] = scope[name]
        self.source = text
        return function


MISSING_NAMES = f"({', '.join(error.__name__ for error in MISSING)})"


def generate(
    facts: Sequence[Fact],
    arguments: Any,
    weights: Sequence[torch.Tensor] = (),
    weight_facts: TensorFacts | None = None,
    weights_hold: Callable[[], bool] | None = None,
    fetched: Sequence[Fact] = (),
    tags: Callable[[], bool] | None = None,
    sizes: SizeFacts | None = None,
    objects: Objects | None = None,
) -> Guard:
    """One check over `facts`, the argument structure (a `guards_arguments.Arguments`) and the metadata of `weights`,
    of which `weight_facts` speak: `weights_hold` checks them.

    The tensors found at the places of `fetched` facts are checked like arguments and follow their leaves. `tags` checks
    facts that are not among `facts`. `sizes` speaks of all these leaves. `objects` among the arguments follow them."""
    text = Text()
    weights_first = arguments.overlap         # arguments are compared with where the weights lie now
    if weights_hold is not None and weights_first:
        text.require([f"{text.name(weights_hold)}()"])
    arguments.write(text)
    held = objects.write(text, arguments.leaves) if objects is not None else []
    names = dict(enumerate([*arguments.leaves, *(f"f{i}" for i in range(len(fetched)))]))
    if sizes is not None and not fetched:
        sizes.write(text, names)
    text.require([text.condition(fact) for fact in facts])
    if tags is not None:
        text.require([f"{text.name(tags)}()"])
    extra = [f"f{i}" for i in range(len(fetched))]
    if fetched:
        first = len(arguments.leaves)
        free = {leaf - first: dims for leaf, dims in sizes.free.items() if leaf >= first} if sizes is not None else {}
        fetched_facts = TensorFacts([fact.want for fact in fetched], [fact.label for fact in fetched], free)
        text.lines += [f"{name} = {text.place(fact)}" for name, fact in zip(extra, fetched)]
        text.require(plain_conditions(extra, [fact.want for fact in fetched], text))
        text.require([f"{text.name(fetched_facts.check)}({', '.join(extra)})"])
        if objects is not None:
            objects.keep_apart(text, extra, arguments)
        if sizes is not None:
            sizes.write(text, names)
    if weights_hold is not None and not weights_first:
        text.require([f"{text.name(weights_hold)}()"])
    text.lines.append(f"return [{', '.join([*arguments.leaves, *extra, *held])}]")
    check = text.function("check", "args, kwargs")
    guard = Guard(check, list(facts), arguments.failures, tuple(weights), weight_facts, text.source, objects=objects)
    if fetched:
        guard.fetched = list(fetched)
        guard.explain_fetched = lambda args, kwargs: _fetched_failures(
            guard.of_call(fetched, args, kwargs), fetched_facts, sizes, args, kwargs)
    return guard


def _fetched_failures(fetched: Sequence[Fact], facts: TensorFacts, sizes: SizeFacts | None, args: tuple[Any, ...],
                      kwargs: dict[str, Any]) -> list[str]:
    now = [fact.now() for fact in fetched]
    found = facts.failures(now)
    if not found and sizes is not None:
        found = sizes.failures([*pytree.tree_leaves((args, kwargs)), *now])
    return found
