"""The classes that user code sees while a trace runs: those that its values have in eager.

    class_of(fake) = torch.Tensor | nn.Parameter | a subclass of Tensor       class_of(number) = int | float | bool
    class_of(text) = str    class_of(array) = np.ndarray | numpy's scalar     class_of(size) = int

`isinstance(x, C)` and `x.__class__` ask the value, which answers here; `type(x)` cannot be answered by what it is asked
of, so in the globals of the user's functions the name `type` means `Type` while they are traced (`readset_hooks`).

A tensor of a subclass C has a fake of a class of its own, below C and FakeTensor: it has C's methods, and ops on it ask
`C.__torch_function__` first, as in eager (`call`). Below that, where ops are recorded, it is a fake like any other.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, cast

import torch

from monograph import compat, errors
from monograph.capture.arrays import TracedArray
from monograph.capture.blame import is_user_code
from monograph.capture.counted import TracedList
from monograph.capture.guards import same
from monograph.capture.number import TracedNumber
from monograph.capture.plain_ints import KINDS
from monograph.capture.text import TracedText

__all__ = ["Type", "attributes_of", "call", "class_of", "dress", "overriding", "same_look", "told_classes",
           "wear"]

Tensor = torch.Tensor


def class_of(value: Any) -> type:
    """As `type` of the value that eager has in this place."""
    kind = type(value)
    if issubclass(kind, compat.FakeTensor):
        return _class_of_fake(value)
    if issubclass(kind, (TracedNumber, TracedList)):
        return value.kind                # type: ignore[no-any-return]
    if issubclass(kind, TracedText):
        return str
    if issubclass(kind, TracedArray):
        return value.__class__           # type: ignore[no-any-return]
    return KINDS.get(kind, kind)


def _class_of_fake(fake: Any) -> type:
    behind = getattr(type(fake), "stands_for", None)
    return behind or (torch.nn.Parameter if getattr(fake, "_is_param", False) else Tensor)


class _Asked(type):
    """The class of `Type`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            kind = class_of(*args)
            if Type.told is not None:
                Type.told(kind)
            return kind
        if len(args) != 3:
            return type(*args, **kwargs)
        name, bases, members = args
        module = sys._getframe(1).f_globals.get("__name__")      # of the frame that makes it, as Python has it
        return type(name, bases, {"__module__": module, **members} if module else members, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type)


class Type(type, metaclass=_Asked):
    """Stands for `type` in user code. `told(cls)` is called with what it answers."""

    told: Callable[[type], None] | None = None


# -- subclasses of Tensor ----------------------------------------------------------------


@functools.cache
def _fake_class(kind: type) -> type:
    """The class of fakes of tensors of class `kind`."""
    members = {"stands_for": kind, "__module__": kind.__module__}
    return type(kind)(kind.__name__, (kind, compat.FakeTensor), members)       # type: ignore[no-any-return]


def dress(fake: torch.Tensor, kind: type) -> torch.Tensor:
    """Let a fake be one of a tensor of class `kind`."""
    fake_class: Any = compat.FakeTensor
    if kind is not Tensor:
        fake_class, behind = _fake_class(kind), cast(Any, kind)
        fake_class.__torch_function__ = behind.__torch_function__      # it may be replaced; torch made it none of ours
    object.__dict__["__class__"].__set__(fake, fake_class)
    return fake


def attributes_of(fake: torch.Tensor) -> dict[str, Any]:
    """What the user's code set on a tensor of the trace."""
    return {name: value for name, value in vars(fake).items() if name not in compat.fake_attributes()}


def same_look(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether a tensor may be `a` or `b` without user code telling by its class or by what is set on it."""
    (kind, mine), (other, others) = _look(a), _look(b)
    return kind is other and mine.keys() == others.keys() and all(same(mine[name], others[name]) for name in mine)


def wear(made: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Let a fake that stands for `like` look like it."""
    kind, attributes = _look(like)
    if kind is not Tensor:
        dress(made, kind)
    vars(made).update(attributes)
    return made


def _look(tensor: torch.Tensor) -> tuple[type, dict[str, Any]]:
    kind = class_of(tensor)
    return (Tensor if compat.is_plain_class(kind) else kind,
            attributes_of(tensor) if isinstance(tensor, compat.FakeTensor) else {})


def overriding(types: Sequence[type]) -> tuple[type, ...]:
    """Of the classes that torch asks about an op, those of the user's that have a say in it."""
    if not compat.class_functions_on():
        return ()
    behind = (getattr(kind, "stands_for", kind) for kind in types)
    return tuple(kind for kind in behind if issubclass(kind, Tensor) and not issubclass(kind, compat.FakeTensor))


def call(kinds: tuple[type, ...], func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Ask the classes in their order, as torch does."""
    for kind in kinds:
        answer = kind.__torch_function__(func, kinds, args, kwargs)       # type: ignore[attr-defined]
        if answer is not NotImplemented:
            return answer
    raise TypeError(f"no implementation found for '{torch.overrides.resolve_name(func)}' on types that implement "
                    f"__torch_function__: {list(kinds)}")


def _as_subclass(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """`tensor.as_subclass(cls)`"""
    if compat.dispatches(cls):
        raise errors.UnsupportedError(f"a tensor becomes a {cls.__name__}", why="its class says what ops do on it")
    with compat.no_class_functions():
        alias = torch.ops.aten.alias.default(tensor)
    if not isinstance(alias, compat.FakeTensor):         # in a thread that traces nothing
        return PLAIN["as_subclass"](tensor, cls)
    return dress(alias, cls)


def _make_subclass(cls: type, data: torch.Tensor, require_grad: bool = False, **options: Any) -> torch.Tensor:
    """`torch.Tensor._make_subclass(cls, data)`"""
    if not isinstance(data, compat.FakeTensor) or issubclass(cls, (compat.FakeTensor, torch.nn.Parameter)):
        return PLAIN["_make_subclass"](cls, data, require_grad, **options)
    return _as_subclass(data.detach(), cls).requires_grad_(require_grad)


ATTRIBUTES: Any = vars(Tensor)["__dict__"]
PLAIN = {"as_subclass": Tensor.as_subclass, "_make_subclass": Tensor._make_subclass}
OURS: dict[str, Any] = {"as_subclass": _as_subclass, "_make_subclass": staticmethod(_make_subclass)}


@contextmanager
def told_classes() -> Iterator[None]:
    """Inside, fakes tell user code the class of what they stand for, and tensors become ones of other classes."""
    def told(fake: torch.Tensor) -> type:
        return _class_of_fake(fake) if is_user_code(sys._getframe(1).f_code) else type(fake)

    def seen(fake: torch.Tensor) -> Any:
        mine = is_user_code(sys._getframe(1).f_code)
        return MappingProxyType(attributes_of(fake)) if mine else ATTRIBUTES.__get__(fake)

    before = "__class__" in compat.FakeTensor.__dict__       # of a trace that this one lies in
    if not before:
        compat.put_class_entry(compat.FakeTensor, "__class__", property(told))
        compat.put_class_entry(compat.FakeTensor, "__dict__", property(seen))
        for name, function in OURS.items():
            setattr(Tensor, name, function)
    try:
        yield
    finally:
        if not before:
            compat.put_class_entry(compat.FakeTensor, "__class__", None)
            compat.put_class_entry(compat.FakeTensor, "__dict__", None)
            for name in OURS:
                delattr(Tensor, name)
