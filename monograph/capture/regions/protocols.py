"""Special methods of the user's own classes that Python calls by itself and whose result may be traced.

    if obj:  not obj  bool(obj)        type(obj).__bool__(obj), else type(obj).__len__(obj) > 0
    len(obj)  x in obj  obj != x       __len__, __contains__, __eq__
    int(obj)  float(obj)  range(obj)   __int__, __float__, __index__

Python itself takes nothing but a bool or an int from them, so that converted code calls the methods in its place
(`answer` and `refused` say which is to be converted for that). Where C calls one (`items[obj]`), or code that stays as
it is, the number is read (`answer`).
"""

from __future__ import annotations

import operator
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from monograph.capture import blame
from monograph.capture.number import TracedNumber
from monograph.capture.regions.errors import Asked

if TYPE_CHECKING:
    from monograph.capture.regions.operators import RegionOperators
    from monograph.capture.tracer import Tracer

__all__ = ["answer", "contains", "converted", "length", "refused", "truth", "unequal"]

HERE = (lambda: 0).__code__.co_filename
METHODS: dict[Any, tuple[str, ...]] = {int: ("__int__", "__index__"), float: ("__float__", "__index__"),
                                       operator.index: ("__index__",)}
PLAIN = frozenset({bool, int, float, str, type(None), list, tuple, dict, set, frozenset, TracedNumber})


def find(value: Any, name: str) -> Any:
    """What the class of `value` has for a special method; None where it has none."""
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return None


def method(value: Any, name: str) -> Callable[..., Any] | None:
    """The function of the user's that Python calls for it."""
    if type(value) in PLAIN:
        return None
    found = find(value, name)
    return found if isinstance(found, FunctionType) and blame.is_user_code(found.__code__) else None


def truth(tracer: Tracer, value: Any) -> Any:
    """`bool(value)`, which may be traced; NotImplemented where Python is to say."""
    found = method(value, "__bool__")
    if found is not None:
        given = found(value)
        return given if _is_traced(given, bool) else bool(_giving(value, given))
    if type(value) in PLAIN or find(value, "__bool__") is not None:
        return NotImplemented
    size = length(tracer, value)
    return size if size is NotImplemented else size > 0


def length(tracer: Tracer, value: Any) -> Any:
    """`len(value)`, likewise."""
    found = method(value, "__len__")
    if found is None:
        return NotImplemented
    given = found(value)
    if not _is_traced(given, int):
        return len(_giving(value, given))
    tracer.check_value((given >= 0).tensor, "ValueError", "__len__() should return >= 0")
    return given


def converted(value: Any, kind: Callable[[Any], Any]) -> Any:
    """`kind(value)`, of int, float or operator.index; likewise."""
    for name in METHODS[kind]:
        found = method(value, name)
        if found is not None:
            given = found(value)
            if not _is_traced(given, float if name == "__float__" else int):
                return kind(_giving(value, given))
            return given.to(float) if kind is float else given
        if type(value) in PLAIN or find(value, name) is not None:
            break
    return NotImplemented


def contains(item: Any, container: Any) -> Any:
    """What `__contains__` says, whatever it is; NotImplemented where there is none of the user's."""
    found = method(container, "__contains__")
    return NotImplemented if found is None else found(container, item)


def unequal(operators: RegionOperators, left: Any, right: Any) -> Any:
    """`left != right` where the user's class has `__eq__` alone; NotImplemented where Python is to say."""
    if not any(method(side, "__eq__") and find(side, "__ne__") is object.__ne__ for side in (left, right)):
        return NotImplemented
    pairs = [(left, right), (right, left)]
    if type(left) is not type(right) and issubclass(type(right), type(left)):
        pairs.reverse()
    for a, b in pairs:
        differs = find(a, "__ne__")
        if differs is object.__ne__:
            same = type(a).__eq__(a, b)
            found = same if same is NotImplemented else operators.not_(same)
        else:
            found = type(a).__ne__(a, b)
        if found is not NotImplemented:
            return found
    return left is not right


def _is_traced(given: Any, kind: type) -> bool:
    return isinstance(given, TracedNumber) and given.kind is kind


def _giving(value: Any, given: Any) -> Any:
    """Like `value`, with special methods that give what one of its own has given: Python says what it makes of it."""
    given = given._ask() if isinstance(given, TracedNumber) else given
    names = ("__bool__", "__len__", "__int__", "__float__", "__index__")
    return type(type(value).__name__, (), dict.fromkeys(names, lambda _: given))()


def answer(tracer: Tracer, value: Any) -> Any:
    """What a special method of the user's, converted, is about to give: to its caller, or to Python for it."""
    if not isinstance(value, TracedNumber):
        return value
    method_frame = sys._getframe(2)
    name, caller = method_frame.f_code.co_name, method_frame.f_back
    if caller is None or caller.f_code.co_filename == HERE or name in caller.f_code.co_names:
        return value                         # called here, or by its name
    frame = blame.asking(caller)
    if frame is not None and tracer.can_convert(frame.f_code):
        raise Asked(frame.f_code, tracer.refusal("a value"))
    return tracer.ask(value.tensor)


def refused(error: BaseException) -> tuple[CodeType, ...]:
    """The code in which Python refused a traced number that a special method gave, if it did."""
    if not isinstance(error, TypeError) or not any(kind in str(error) for kind in ("TracedNumber", "OtherNumber")):
        return ()
    *_, frame = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return (frame.f_code,) if blame.is_user_code(frame.f_code) else ()
