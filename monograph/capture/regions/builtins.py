"""Builtins called by name in converted code, for traced arguments.

`replacement(operators, function)` gives what to call instead: the function itself for arguments that are not traced.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.arrays import TracedArray
from monograph.capture.classes import class_of
from monograph.capture.convert.operators import State
from monograph.capture.counted import Counted, TracedList
from monograph.capture.dims import key_of
from monograph.capture.grown import Grown
from monograph.capture.number import TracedNumber
from monograph.capture.regions import protocols
from monograph.capture.regions.iterate import TracedRange, counted, run_counted
from monograph.capture.regions.rolled import Long, long
from monograph.capture.text import Piece, TracedText

if TYPE_CHECKING:
    from monograph.capture.regions.operators import RegionOperators

__all__ = ["EXHAUST", "replacement"]

EXHAUST = (sum, min, max, list, tuple, sorted, set, frozenset, dict)       # they take all of a generator at once

MOST_SORTED = 12        # entries: each pair of them may become a cond

Function = Callable[..., Any]
Rule = Callable[..., Any]


def replacement(operators: RegionOperators, function: Function) -> Function:
    try:
        rule = RULES.get(function)
    except TypeError:            # not hashable
        return function
    if rule is None:
        return function
    return lambda *args, **kwargs: rule(operators, *args, **kwargs)


def number(operators: RegionOperators, value: Any, kind: type) -> Any:
    """`kind(value)`, int or float, where it may be traced; NotImplemented for anything else."""
    if isinstance(value, TracedNumber):
        return value.to(kind)
    if type(value) is TracedArray:
        value = value.tensor
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
        item = value.item()
        return item.to(kind) if isinstance(item, TracedNumber) else kind(item)
    return protocols.converted(value, kind)


def _int(operators: RegionOperators, *args: Any, **kwargs: Any) -> Any:
    found = number(operators, args[0], int) if len(args) == 1 and not kwargs else NotImplemented
    return int(*args, **kwargs) if found is NotImplemented else found


def _float(operators: RegionOperators, *args: Any) -> Any:
    found = number(operators, args[0], float) if len(args) == 1 else NotImplemented
    return float(*args) if found is NotImplemented else found


def _str(operators: RegionOperators, *args: Any, **kwargs: Any) -> Any:
    text = len(args) == 1 and not kwargs and isinstance(args[0], TracedNumber)
    return TracedText((Piece(args[0]),)) if text else str(*args, **kwargs)


def _repr(operators: RegionOperators, value: Any) -> Any:
    return _str(operators, value) if isinstance(value, TracedNumber) else repr(value)


def _bool(operators: RegionOperators, *args: Any) -> Any:
    return operators.truth(args[0]) if len(args) == 1 else bool(*args)


def _len(operators: RegionOperators, value: Any) -> Any:
    if isinstance(value, Grown) and not (value.is_closed and type(value.length) is int):
        return operators.tracer.traced(value.length)
    if isinstance(value, Counted):
        return value.length
    found = protocols.length(operators.tracer, value)
    return len(value) if found is NotImplemented else found


def _range(operators: RegionOperators, *args: Any) -> Any:
    args = tuple(_int(operators, arg) if isinstance(arg, (torch.Tensor, TracedNumber)) else _index(arg) for arg in args)
    if not any(isinstance(arg, TracedNumber) for arg in args):
        return range(*args)
    start, stop, step = {1: (0, *args, 1), 2: (*args, 1)}.get(len(args), args)
    if isinstance(step, TracedNumber):
        step = int(step)
    if step == 0:
        return range(0, 1, 0)                  # Python's own error
    return TracedRange(start, stop, step)


def _index(value: Any) -> Any:
    """What Python takes `value` for where it needs an integer."""
    found = protocols.converted(value, operator.index)
    return value if found is NotImplemented else found


def _tuple(operators: RegionOperators, *args: Any) -> Any:
    """Of a tuple it is that tuple."""
    return args[0] if args and isinstance(args[0], TracedList) and args[0].kind is tuple else tuple(*args)


def _entries(operators: RegionOperators, items: Any) -> Counted | None:
    found = counted(operators.tracer, items)
    return long(items) if found is None else found


def _combined(length: Any, item: Callable[[Any], Any], make: Callable[[], Any]) -> Counted:
    return Long(length, item, make) if type(length) is int else Counted(length, item)


def _enumerate(operators: RegionOperators, items: Any, start: int = 0) -> Any:
    found = _entries(operators, items)
    if found is None:
        return enumerate(items, start)
    return _combined(found.length, lambda index: (start + index, found.item(index)),
                     lambda: enumerate(items, start))


def _reversed(operators: RegionOperators, items: Any) -> Any:
    found = _entries(operators, items)
    if found is None or isinstance(found, Long):
        return reversed(items)
    last = (found.length if type(found.length) is int else operators.tracer.traced(found.length)) - 1
    return _combined(found.length, lambda index: found.item(last - index), lambda: reversed(items))


def _zip(operators: RegionOperators, *items: Any, **options: Any) -> Any:
    found = [each for each in (_entries(operators, entry) for entry in items) if each is not None]
    lengths = [entry.length for entry in found]
    known = [length for length in lengths if type(length) is int]
    if len(found) != len(items) or not found or options or known and known != [lengths[0]] * len(lengths):
        return zip(*items, **options)
    if known:
        return _combined(lengths[0], lambda index: tuple(entry.item(index) for entry in found), lambda: zip(*items))
    same = all(length is lengths[0] or (_size(length) or "") == _size(lengths[0]) for length in lengths)
    return Counted(lengths[0] if same else _extreme(operators, "min", *map(operators.tracer.traced, lengths)),
                   lambda index: tuple(entry.item(index) for entry in found))


def _size(length: Any) -> Any:
    return key_of(length) if isinstance(length, (int, torch.SymInt)) else None


def _sum(operators: RegionOperators, items: Any, start: Any = 0) -> Any:
    """The first entry stands before the loop: what is summed up may be of another kind than `start`."""
    found = counted(operators.tracer, items) if not isinstance(items, torch.Tensor) else None
    if found is None:
        return sum(items, start)
    if found.length == 0:
        return start
    total: list[Any] = [start + found.item(0)]

    def add(entry: Any) -> None:
        total[0] = total[0] + entry

    def put(values: tuple[Any, ...]) -> None:
        total[:] = values

    rest = Counted(operators.tracer.traced(found.length) - 1, lambda index: found.item(index + 1))
    run_counted(operators, rest, add, lambda: None, State(("$total",), lambda: (*total,), put, lambda: (items,)), None)
    return total[0]


def _any(operators: RegionOperators, items: Any) -> Any:
    found: Any = False
    for entry in items:
        found = operators.or_(found, functools.partial(_bool, operators, entry))
        if found is True:
            return True
    return found


def _all(operators: RegionOperators, items: Any) -> Any:
    found: Any = True
    for entry in items:
        found = operators.and_(found, functools.partial(_bool, operators, entry))
    return found


def _extreme(operators: RegionOperators, name: str, *args: Any, **options: Any) -> Any:
    """`min` or `max`: the first of several that no other beats."""
    function: Function = getattr(builtins, name)
    entries = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    key = options.get("key")
    if len(args) == 1 and not isinstance(args[0], (list, tuple)) or not entries or set(options) - {"key"} or \
            not any(isinstance(entry, (TracedNumber, torch.Tensor)) for entry in entries):
        return function(*args, **options)
    best = entries[0]
    for entry in entries[1:]:
        mine, other = (best, entry) if key is None else (key(best), key(entry))
        better = other < mine if name == "min" else other > mine
        best = operators.choose(better, functools.partial(_same, entry), functools.partial(_same, best))
    return best


def _sorted(operators: RegionOperators, items: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """Neighbours that stand wrong change places, as often as it may take."""
    entries = list(items)
    keys = entries if key is None else [key(entry) for entry in entries]
    if not any(isinstance(entry, (TracedNumber, torch.Tensor)) for entry in keys) or len(entries) > MOST_SORTED:
        return sorted(entries, key=key, reverse=reverse)
    pairs = list(zip(keys, entries, strict=True))
    for last in range(len(pairs) - 1, 0, -1):
        for i in range(last):
            left, right = pairs[i], pairs[i + 1]
            wrong = left[0] < right[0] if reverse else right[0] < left[0]
            pairs[i], pairs[i + 1] = operators.choose(wrong, functools.partial(_same, (right, left)),
                                                      functools.partial(_same, (left, right)))
    return [entry for _, entry in pairs]


def _min(operators: RegionOperators, *args: Any, **options: Any) -> Any:
    return _extreme(operators, "min", *args, **options)


def _max(operators: RegionOperators, *args: Any, **options: Any) -> Any:
    return _extreme(operators, "max", *args, **options)


def _isinstance(operators: RegionOperators, value: Any, kinds: Any) -> bool:
    if isinstance(value, (TracedNumber, TracedText, TracedList)):
        return isinstance(class_of(value)(), kinds)
    return isinstance(value, kinds)


def _type(operators: RegionOperators, value: Any) -> Any:
    return class_of(value)


def _same(value: Any) -> Any:
    return value


RULES: dict[Any, Rule] = {
    int: _int, float: _float, bool: _bool, str: _str, repr: _repr,
    len: _len, range: _range, enumerate: _enumerate, reversed: _reversed,
    zip: _zip, sum: _sum, any: _any, all: _all, min: _min, max: _max, sorted: _sorted, isinstance: _isinstance,
    type: _type, tuple: _tuple,
}
