"""Functions that run another code object for a while.

    with Swap() as swap:
        swap.install(old, new)      # every live function, and every one still to be made from a constant of another
        ...
                                    # here all of them run what they ran before

Frames in flight keep the code they run. Another thread may call the functions meanwhile: converted code does there
what the source says. Functions made inside that outlive it get the code object of the source back.
"""

from __future__ import annotations

import gc
import inspect
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from monograph.capture.convert import compile as compiler
from monograph.capture.convert import source
from monograph.capture.convert.syntax import Unconvertible

__all__ = ["Swap", "enclosing", "swapped"]

# Held from entering to leaving: two swaps at once would restore each other's code.
_lock = threading.RLock()


class Swap:
    def __init__(self) -> None:
        # Weakly: a function made inside may hold what is to end with the trace.
        self._before: weakref.WeakKeyDictionary[types.FunctionType, types.CodeType] = weakref.WeakKeyDictionary()
        self._back: dict[int, tuple[types.CodeType, types.CodeType]] = {}     # by id of the new code: it, the old
        self._entered = False
        self._ages: object = None

    def __enter__(self) -> Swap:
        _lock.acquire()
        self._entered = True
        self._ages = _ages()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._restore()
        finally:
            self._entered = False
            _lock.release()

    def install(self, old: types.CodeType, new: types.CodeType) -> bool:
        """Functions that hold `old`, or would make functions that do, get `new` in its place; whether there are any."""
        return bool(self.install_all([(old, new)]))

    def install_all(self, pairs: Sequence[tuple[types.CodeType, types.CodeType]]) -> set[int]:
        """`install` of many at once, for the price of one; ids of those that some function holds."""
        assert self._entered, "install outside of the with block"
        for old, new in pairs:
            for made, origin in _pairs(old, new):
                self._back[id(made)] = (made, origin)
        replacements = {id(old): new for old, new in pairs}
        files = {old.co_filename for old, _ in pairs}
        # A nested function may still be made, from a constant of the function around it.
        nested = any(old.co_flags & inspect.CO_NESTED for old, _ in pairs)
        found = self._exchange(pairs, replacements, files, nested)
        if len(found) < len(replacements) and gc.get_freeze_count():       # frozen ones are hidden from the collector
            gc.unfreeze()
            found |= self._exchange(pairs, replacements, files, nested)
        return found

    def functions(self, code: types.CodeType) -> list[types.FunctionType]:
        """The live functions that were written as `code`, whatever they run now."""
        return [function for function, before in list(self._before.items()) if before is code] or _holders([code])

    def undo(self, new: types.CodeType, old: types.CodeType) -> None:
        """Functions that got `new` in the place of `old` run `old` again."""
        for function in _holders([new]):
            function.__code__ = old

    def _exchange(self, pairs: Sequence[tuple[types.CodeType, types.CodeType]],
                  replacements: dict[int, types.CodeType], files: set[str], nested: bool) -> set[int]:
        found: set[int] = set()
        for function in _functions() if nested else _holders([old for old, _ in pairs]):
            code = function.__code__
            replaced = _replaced(code, replacements, files, found)
            if replaced is not code:
                self._before.setdefault(function, code)
                self._back.setdefault(id(replaced), (replaced, code))
                function.__code__ = replaced
        return found

    def _restore(self) -> None:
        for function, code in list(self._before.items()):
            function.__code__ = code
        if self._back:
            for function in self._made_inside():
                code = self._source(function.__code__)
                if code is not function.__code__ and code.co_freevars == function.__code__.co_freevars:
                    function.__code__ = code
        self._before.clear()
        self._back.clear()

    def _made_inside(self) -> Iterable[types.FunctionType]:
        """Functions made since this was entered, which may run new code; young ones, unless the old were looked at."""
        if self._ages == _ages():
            return [found for age in (0, 1) for found in gc.get_objects(generation=age)
                    if type(found) is types.FunctionType]
        return _holders([made for made, _ in self._back.values()])

    def _source(self, code: types.CodeType) -> types.CodeType:
        known = self._back.get(id(code))
        while known is not None:
            code = known[1]
            known = self._back.get(id(code))
        return code


@contextmanager
def swapped(pairs: Iterable[tuple[types.CodeType, types.CodeType]] = ()) -> Iterator[Swap]:
    """A Swap with some code objects installed."""
    with Swap() as swap:
        swap.install_all(list(pairs))
        yield swap


def enclosing(code: types.CodeType) -> types.CodeType:
    """The user's function that a code object belongs to: around a comprehension, or what was converted into it."""
    origin = compiler.converted_from(code)
    if origin is not None:
        return origin
    if code.co_name not in source.COMPREHENSIONS:
        return code
    for function in _functions():
        if function.__code__.co_filename == code.co_filename:
            found = _around(function.__code__, code)
            if found is not None:
                return enclosing(found)
    raise Unconvertible(f"{code.co_name} at {code.co_filename}:{code.co_firstlineno} is in no function")


def _around(outer: types.CodeType, code: types.CodeType) -> types.CodeType | None:
    """The innermost function in `outer` that `code` stands in."""
    for value in outer.co_consts:
        if isinstance(value, types.CodeType):
            found = value if value is code else _around(value, code)
            if found is not None:
                inside = found is code or found.co_name in source.COMPREHENSIONS
                return outer if inside else found
    return None


def _holders(codes: Sequence[types.CodeType]) -> list[types.FunctionType]:
    """The live functions that run one of some code objects."""
    return [found for found in gc.get_referrers(*codes) if type(found) is types.FunctionType]


def _ages() -> object:
    """Changes once the collector may have taken something made since for old."""
    return gc.get_freeze_count(), *(kind["collections"] for kind in gc.get_stats()[1:])


def _functions() -> list[types.FunctionType]:
    return [candidate for candidate in gc.get_objects() if type(candidate) is types.FunctionType]


def _replaced(code: types.CodeType, replacements: dict[int, types.CodeType], files: set[str], found: set[int],
              ) -> types.CodeType:
    """What stands in the place of `code`, or `code` with replaced constants; `code` itself where nothing changes.
    `found` gets the ids of what is replaced."""
    new = replacements.get(id(code))
    if new is not None:
        found.add(id(code))
        return new
    consts = code.co_consts
    if code.co_filename not in files or not any(isinstance(value, types.CodeType) for value in consts):
        return code
    replaced = tuple(_replaced(value, replacements, files, found) if isinstance(value, types.CodeType) else value
                     for value in consts)
    if all(one is other for one, other in zip(consts, replaced)):
        return code
    return code.replace(co_consts=replaced)


def _pairs(old: types.CodeType, new: types.CodeType) -> list[tuple[types.CodeType, types.CodeType]]:
    """Converted code objects with their originals: of the function, and of those in it that name and line tell."""
    originals: dict[tuple[str, int], list[types.CodeType]] = {}
    for code in _nested(old):
        originals.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    out = [(new, old)]
    for code in _nested(new):
        known = originals.get((code.co_name, code.co_firstlineno), ())
        if len(known) == 1 and known[0].co_argcount == code.co_argcount and code is not known[0]:
            out.append((code, known[0]))
    return out


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield value
            yield from _nested(value)
