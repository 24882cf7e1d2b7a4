"""Which object a value is that a branch or loop chose.

    Choice    ::= case*  site  unclear            unclear: nobody knows which
    case      ::= condition*  object              what it is when all the conditions hold
    condition ::= (predicate: bool[], negated)

`z is x` of a tensor is answered by comparing what both may be; Python itself, which sees the object that stands for
`z`, would say no. So the functions that ask for identity are converted once a trace has made a choice (`asks`), and the
answer is a traced bool. Where nothing can be converted, or the choice does not know its objects (`unclear`), the
statement that chose takes the path of the call, on which objects are what they are in eager.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.blame import is_user_code
from monograph.capture.convert.expressions import SEEKERS
from monograph.capture.regions.errors import Unmergeable
from monograph.ir.graph import Value

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Case", "Choice", "Condition", "Identities", "asks"]

Condition = tuple[Value, bool]
Case = tuple[tuple[Condition, ...], Any]

SEQUENCES = (list, tuple, deque)
LARGEST = 64            # cases of one comparison

GENERATED = "__create_fn__.<locals>."        # of functions that `dataclasses` writes: they compare classes and marks

_asks: dict[CodeType, bool] = {}


@dataclass(eq=False, slots=True)
class Choice:
    value: Any                       # the object that stands for it while tracing
    cases: tuple[Case, ...]
    site: Any
    scope: Any = None                # the region in which the predicates are known; None: the whole program
    unclear: bool = False
    homes: frozenset[int] | None = None     # of an unclear one: the storages that it may lie in, besides its own


def asks(code: CodeType) -> bool:
    """Whether a function, or one defined in it, may compare objects by identity, but with constants."""
    known = _asks.get(code)
    if known is None and getattr(code, "co_qualname", "").startswith(GENERATED):      # None before Python 3.11
        known = _asks[code] = False
    if known is None:
        before = ""
        known = not SEEKERS.isdisjoint(code.co_names)
        for instruction in dis.get_instructions(code):
            known = known or instruction.opname == "IS_OP" and before != "LOAD_CONST"
            before = instruction.opname
        known = _asks[code] = known or any(asks(inner) for inner in code.co_consts if isinstance(inner, CodeType))
    return known


class Identities:
    """The choices of one trace. `exact`: none is to be made, a statement that would make one forks."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.choices: dict[int, Choice] = {}         # by id of the object that stands for it
        self.shared: dict[int, Any] = {}
        self.hidden: dict[int, Any] = {}
        self.exact = False

    def choose(self, value: Any, cases: Iterable[Case], site: Any, *, unclear: bool = False,
               homes: frozenset[int] | None = None) -> None:
        """`value` stands for one of several objects."""
        self.admit()
        scopes = self.tracer.memory.scopes
        self.choices[id(value)] = Choice(value, tuple(cases), site, scopes[-1] if scopes else None, unclear,
                                         homes)

    def share(self, value: Any) -> None:
        """`value`, which a loop chose, may be the same tensor as another one that it chose."""
        self.shared[id(value)] = value

    def hide(self, value: Any) -> None:
        """`value` may be a tensor that others know, and nobody knows which."""
        self.hidden[id(value)] = value

    def refuse_two(self, values: Iterable[Any]) -> None:
        """Unmergeable where two of these, which are seen, may be one tensor, or one may be another that is seen, and
        nobody knows when."""
        seen: dict[Any, Any] = {}
        for value in values:
            if id(value) in self.hidden:
                raise Unmergeable("a result may be another tensor", self.choices[id(value)].site)
            if id(value) in self.shared:
                site = self.choices[id(value)].site
                if seen.setdefault(site, value) is not value:
                    raise Unmergeable("two results of a loop may be one tensor", site)

    def admit(self) -> None:
        """A choice is about to be made."""
        if self.exact:
            raise Unmergeable("Python asks which object a tensor is that a branch or loop chooses")

    def of(self, value: Any) -> Choice | None:
        found = self.choices.get(id(value))
        return found if found is not None and found.value is value else None

    def known(self, value: Any) -> Any:
        """`value`, where it is one object; Unmergeable where it may be several, and Python wants to know which."""
        choice = self.of(value)
        if choice is not None:
            raise Unmergeable("Python asks which object a tensor is that a branch or loop chose", choice.site)
        return value

    def same(self, left: Any, right: Any) -> bool | Value:
        """Whether two values are one object: known, or what the program computes."""
        if left is right:
            return True
        mine, others = self.cases(left), self.cases(right)
        met = [first + second for first, a in mine for second, b in others if self._key(a) == self._key(b)]
        if not all(met):
            return True
        if len(met) > LARGEST:
            choice = self.of(left) or self.of(right)
            assert choice is not None
            raise Unmergeable("a tensor may be one of many", choice.site)
        return self._reduce("aten.logical_or.default", [self.all(conditions) for conditions in met]) if met else False

    def cases(self, value: Any) -> list[Case]:
        """The objects that a value may be, each with the conditions under which it is; Unmergeable if nobody knows."""
        found: list[Case] = []
        pending: list[Case] = [((), value)]
        scopes = self.tracer.memory.scopes
        while pending:
            conditions, entry = pending.pop()
            choice = self.of(entry)
            if choice is None:
                found.append((conditions, entry))
                continue
            if choice.unclear or choice.scope is not None and choice.scope not in scopes:
                raise Unmergeable("it is not known which tensor a branch or loop chose", choice.site)
            for held, part in choice.cases:           # `part is entry`: none of the others, an object of its own
                (found if part is entry else pending).append((conditions + held, part))
        return found

    def homes(self, value: torch.Tensor) -> frozenset[int]:
        """The storages that a tensor may lie in; Unmergeable if nobody knows."""
        found: set[int] = set()
        pending: list[Any] = [value]
        while pending:
            entry = pending.pop()
            choice = self.of(entry)
            found.add(compat.storage_id(self.tracer.lift(entry)))
            if choice is None:
                continue
            if choice.unclear and choice.homes is None:
                raise Unmergeable("it is not known which tensor a branch or loop chose", choice.site)
            found |= choice.homes or frozenset()
            pending += [part for _, part in choice.cases if part is not entry and isinstance(part, torch.Tensor)]
        return frozenset(found)

    def _key(self, value: Any) -> int:
        """What tells an object from others: the fake of a real tensor stands for it."""
        entry = self.tracer.by_fake.get(id(value))
        return id(value) if entry is None else id(entry.real)

    def all(self, conditions: tuple[Condition, ...]) -> Value:
        """Whether all conditions hold."""
        emit = self.tracer.record.emit
        values = [emit("aten.logical_not.default", value, sizes=(), dtype=torch.bool) if negated else value
                  for value, negated in conditions]
        return self._reduce("aten.logical_and.default", values)

    def _reduce(self, name: str, values: list[Value]) -> Value:
        result = values[0]
        for value in values[1:]:
            result = self.tracer.record.emit(name, result, value, sizes=(), dtype=torch.bool)
        return result

    # -- where Python looks ------------------------------------------------------------

    def is_(self, left: Any, right: Any) -> Any:
        """`left is right`: Python's answer or a traced bool."""
        if left is right or not (_has_identity(left) and _has_identity(right)):
            return left is right
        with torch.no_grad(), torch._C.DisableTorchFunction():
            found = self.same(left, right)
            if isinstance(found, bool):
                return found
            with compat.plain_torch():
                fake = self.tracer.fresh((), (), torch.bool)
            self.tracer.add_result(fake, found)
            return self.tracer.item(fake)

    def seeker(self, function: Any) -> Any:
        """What to call in place of a function that may look for an object."""
        if function is operator.is_:
            return self.is_
        if function is id:
            return lambda value: id(self.known(value))
        owner = getattr(function, "__self__", None)
        if not isinstance(owner, SEQUENCES) or type(function).__name__ != "builtin_function_or_method":
            return function

        def sought(*args: Any) -> Any:
            for value in (*owner, *args):
                self.known(value)
            return function(*args)

        return sought

    @contextmanager
    def hashing(self) -> Iterator[None]:
        """A tensor that a branch chose is no key of the user's: what is found by it depends on which one it is."""
        before = compat.FakeTensor.__hash__

        def __hash__(tensor: Any) -> int:
            if id(tensor) in self.choices and is_user_code(sys._getframe(1).f_code):
                self.known(tensor)
            return id(tensor)

        compat.FakeTensor.__hash__ = __hash__        # type: ignore[method-assign]
        try:
            yield
        finally:
            compat.FakeTensor.__hash__ = before      # type: ignore[method-assign]


def _has_identity(value: Any) -> bool:
    """Whether a value may stand for several objects."""
    return isinstance(value, (torch.Tensor, tuple))
