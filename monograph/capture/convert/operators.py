"""What converted code calls where the source had control flow.

    if_(test, then, otherwise, state)             if test: ... else: ...
    while_(test, body, state, stop)               while test: ...
    for_(items, assign, body, state, stop)        for target in items: ...
    and_(first, *rest)  or_(first, *rest)         `rest` are thunks
    truth(value)                                  bool(value), of an operand of `and`, `or` and chains that only decide
    not_(value)  choose(test, then, otherwise)    `a if test else b`, both thunks
    is_(left, right)                              left is right
    seeker(value)                                 value: something that may look for an object, such as `names.index`
    contains(item, container)                     item in container
    equal(left, right)                            left == right
    unequal(left, right)                          left != right
    assert_(test, message)                        `message` is a thunk or None
    formatted(value, conversion, format)          a replacement field of an f-string, as in format(str(value), "5")
    joined(*texts)                                the f-string of such fields and literals
    taken(shape, subject)                         shape(subject): the parts that a pattern takes a subject into
    answer(value)                                 what a method such as __bool__ gives to Python
    builtin(function)                             what to call in place of a builtin such as int, range, len
    generated(function, lazy, eager, items)       what to hand to `function` for `(e for t in items if c)`: a generator,
                                                  lazy(items), or the same as a list by for_ and if_, eager(items)
    search(function, lazy, loop, items)           function(e for t in items if c) where `function` may be any or all:
                                                  loop(items) is the bool, by for_ and if_, stopping where they do
    whole(function, args, kwargs)                 function(*args, **kwargs), of one that the program may call as it is

`State` is the variables that a statement may assign: `get()` gives their values, UNBOUND for a variable that has
none, `set(values)` binds (or deletes) them. `read()` gives the values of the variables it only reads, of globals
without modules, functions and classes. `stop()` is true once the body broke out of the loop or returned; None where
it cannot. A name that starts with `$` is not the user's: `$value` and `$returned` are what a `return` gave and
whether there was one.

`Operators` does what Python does. A capture enters a subclass of it that builds regions where a
value is traced; code converted for one capture may run in other threads meanwhile, so that each thread has
its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["OPERATORS", "UNBOUND", "Operators", "Perhaps", "State", "entered"]

Thunk = Callable[[], Any]


class _Unbound:
    """The value of a variable that has none."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()
CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


class Perhaps:
    """What a variable is bound to that has a value on some paths only: made by a capture, read by `SUPPORT.local`."""

    def read(self, message: str) -> Any:
        """The value, where there is one; where there is none, UnboundLocalError(message), perhaps in the program."""
        raise NotImplementedError


@dataclass(slots=True)
class State:
    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    set: Callable[[tuple[Any, ...]], None]
    read: Callable[[], tuple[Any, ...]]
    dead: frozenset[str] = frozenset()       # names that nobody reads after the statement
    local: frozenset[str] = frozenset()      # those among them that every iteration of a loop sets before it reads them
    grown: frozenset[str] = frozenset()      # names of what a loop may append to
    held: frozenset[str] = frozenset()       # names that nested functions and comprehensions read as they are


class Operators:
    def if_(self, test: Any, then: Thunk, otherwise: Thunk, state: State) -> None:
        if test:
            then()
        else:
            otherwise()

    def while_(self, test: Thunk, body: Thunk, state: State, stop: Thunk | None) -> None:
        while not (stop is not None and stop()) and test():
            body()

    def for_(self, items: Iterable[Any], assign: Callable[[Any], None], body: Thunk, state: State,
             stop: Thunk | None) -> None:
        for item in items:
            assign(item)
            body()
            if stop is not None and stop():
                break

    def grow(self) -> list[Any]:
        """The list that a comprehension is to fill, and at its end `grown` what it is."""
        return []

    def grown(self, made: list[Any]) -> Any:
        return made

    def and_(self, first: Any, *rest: Thunk) -> Any:
        value = first
        for thunk in rest:
            if not value:
                return value
            value = thunk()
        return value

    def or_(self, first: Any, *rest: Thunk) -> Any:
        value = first
        for thunk in rest:
            if value:
                return value
            value = thunk()
        return value

    def not_(self, value: Any) -> Any:
        return not value

    def truth(self, value: Any) -> Any:
        return self.not_(self.not_(value))

    def choose(self, test: Any, then: Thunk, otherwise: Thunk) -> Any:
        return then() if test else otherwise()

    def is_(self, left: Any, right: Any) -> Any:
        return left is right

    def seeker(self, value: Any) -> Any:
        return value

    def contains(self, item: Any, container: Any) -> Any:
        return item in container

    def equal(self, left: Any, right: Any) -> Any:
        return left == right

    def unequal(self, left: Any, right: Any) -> Any:
        return left != right

    def answer(self, value: Any) -> Any:
        return value

    def assert_(self, test: Any, message: Thunk | None) -> None:
        if not test:
            raise AssertionError(*(() if message is None else (message(),)))

    def formatted(self, value: Any, conversion: int, spec: str) -> Any:
        return format(CONVERSIONS[conversion](value), spec)

    def joined(self, *texts: Any) -> Any:
        return "".join(texts)

    def taken(self, shape: Callable[[Any], tuple[Any, ...] | None], subject: Any) -> tuple[Any, ...] | None:
        return shape(subject)

    def builtin(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def generated(self, function: Callable[..., Any], lazy: Callable[[Any], Any], eager: Callable[[Any], list[Any]],
                  items: Any) -> Any:
        return lazy(items)

    def search(self, function: Callable[..., Any], lazy: Callable[[Any], Any], loop: Callable[[Any], bool],
               items: Any) -> Any:
        return function(lazy(items))

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)


class _Current(threading.local):
    operators: Operators = Operators()


_current = _Current()


@contextmanager
def entered(operators: Operators) -> Iterator[None]:
    """Converted code of this thread calls `operators` inside."""
    before, _current.operators = _current.operators, operators
    try:
        yield
    finally:
        _current.operators = before


class _Operators:
    """The operators of the thread that asks: `OPERATORS.if_` is that thread's `if_`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_current.operators, name)


OPERATORS = _Operators()
