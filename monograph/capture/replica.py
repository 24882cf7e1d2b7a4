"""Results that are more than containers around tensors: any objects, made again at every call.

    Replica ::= pickle of the object graph, in which these stand for themselves:
                    leaf     what the program gives: tensors, numbers, sizes, numpy arrays
                    held     what the call does not make: classes, modules, what was there before the trace, objects
                             of other classes than the user's behind which nothing traced lies

An object of the user's is made by the `__new__` of the class of C behind its own, and filled without running the user's
code: that made it once. Of functions the closure, the defaults and the attributes are made again. Objects of C follow
their own `__reduce_ex__`; what has none is refused by name where something traced lies behind it.
"""

from __future__ import annotations

import enum
import gc
import io
import pickle
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture.arrays import TracedArray
from monograph.capture.classes import attributes_of, class_of
from monograph.capture.conversions import original
from monograph.capture.counted import TracedList
from monograph.capture.dims import SYMBOLIC
from monograph.capture.guards import ABSENT
from monograph.capture.iterators import OneWay
from monograph.capture.number import TracedNumber
from monograph.capture.readset_code import HEAP_TYPE, is_user_class
from monograph.capture.readset_journal import read_slot

__all__ = ["ATOMS", "Replica", "Within", "is_container", "is_dressed", "is_size"]

ATOMS = (int, float, bool, complex, str, bytes, type(None), type(Ellipsis))
CLOSED = (type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType, torch.dtype, torch.device)
CONTAINERS = (dict, list, tuple, set, frozenset, OrderedDict, defaultdict, deque, types.CellType)
VIEWS: dict[type, Callable[[Any], Any]] = {type({}.keys()): dict.keys, type({}.values()): dict.values,
                                           type({}.items()): dict.items}
PROTOCOL = 4


def is_size(value: Any) -> bool:
    return type(value) is torch.Size


def is_dressed(value: Any) -> bool:
    """Whether it is a tensor of the program's that has a class of its own or attributes."""
    return isinstance(value, compat.FakeTensor) and (
        class_of(value) not in compat.PLAIN_TENSORS or bool(attributes_of(value)))


def _is_closed(value: Any) -> bool:
    """Whether nothing of the call's lies behind it; the compiler's own objects hold all there is in a trace."""
    return isinstance(value, (*ATOMS, *CLOSED, torch.Tensor)) or type(value).__module__.startswith("monograph.")


def is_container(value: Any) -> bool:
    """Whether each call makes one of its own, whatever it holds."""
    kind = type(value)
    return (kind in CONTAINERS or (kind is types.FunctionType and value.__closure__ is not None)
            or (is_user_class(kind) and not isinstance(value, (torch.nn.Module, enum.Enum)) and _base(kind) in FILLED))


class Within:
    """What lies behind an object. `is_traced`: of a tensor; `existed`: of an object, whether it was there before."""

    def __init__(self, is_traced: Callable[[Any], bool], existed: Callable[[Any], bool]) -> None:
        self.is_traced = is_traced
        self.existed = existed
        self.without: dict[int, Any] = {}        # by id: objects behind which nothing traced lies

    def is_leaf(self, value: Any) -> bool:
        kind = type(value)
        if issubclass(kind, (TracedNumber, TracedArray, TracedList)) or kind in SYMBOLIC:
            return True
        return is_size(value) and any(type(size) in SYMBOLIC for size in value)

    def _is_traced(self, value: Any) -> bool:
        return self.is_leaf(value) or (isinstance(value, torch.Tensor) and self.is_traced(value))

    def reaches(self, value: Any) -> bool:
        """Whether something traced can be reached from `value`."""
        pending, seen = [value], {}
        while pending:
            entry = pending.pop()
            if self._is_traced(entry):
                return True
            if isinstance(entry, type) and any(map(self._is_traced, _attributes_and_cells(entry))):
                return True
            if id(entry) in seen or id(entry) in self.without or _is_closed(entry):
                continue
            seen[id(entry)] = entry
            if not self.existed(entry):
                pending += self._behind(entry)
        self.without |= seen
        return False

    def _behind(self, value: Any) -> list[Any]:
        if isinstance(value, types.FunctionType):          # all but its globals
            return [value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value)]
        found = gc.get_referents(value)
        if isinstance(value, torch.nn.Module):             # of weights: those that the program makes
            return [entry for entry in found if not isinstance(entry, torch.Tensor)
                    or isinstance(entry, compat.FakeTensor)]
        return found


def _attributes_and_cells(cls: type) -> list[Any]:
    """What a class of the user's has, and what its methods took from around it."""
    found = [] if is_of_c(cls) else list(vars(cls).values())
    closures = [value.__closure__ for value in found if isinstance(value, types.FunctionType)]
    return found + [entry for closure in closures for cell in closure or () for entry in _cell_content(cell) or ()]


@dataclass
class Replica:
    """`unflatten(leaves)` makes the objects again."""

    data: bytes
    held: list[Any]
    converts: list[Callable[[Any], Any] | None]        # what a caller gets in place of each leaf

    @classmethod
    def of(cls, result: Any, within: Within) -> tuple[list[Any], Replica]:
        """The leaves of `result`, and how it is made around them."""
        file = io.BytesIO()
        pickler = _Pickler(file, within)
        try:
            pickler.dump(result)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise errors.UnsupportedError(
                f"a result, or what the call keeps, holds traced values within {_described(pickler.last)}",
                why="objects of this kind cannot be made again at every call",
                hint="return the values themselves, or make the object after the call") from error
        return pickler.leaves, cls(file.getvalue(), pickler.held, pickler.converts)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        given = [leaf if convert is None else convert(leaf) for leaf, convert in zip(leaves, self.converts)]
        return _Unpickler(io.BytesIO(self.data), given, self.held).load()


def _described(value: Any) -> str:
    name = getattr(value, "__qualname__", "")
    return f"a {type(value).__name__}" + (f" ({name})" if isinstance(name, str) and name else "")


@dataclass(eq=False)
class _Undressed:
    """A tensor of the program's without its class and attributes."""

    tensor: torch.Tensor


@dataclass(eq=False)
class _Held:
    """`value` itself, whatever lies behind it."""

    value: Any


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, within: Within) -> None:
        super().__init__(file, PROTOCOL)
        self.within = within
        self.leaves: list[Any] = []
        self.converts: list[Callable[[Any], Any] | None] = []
        self.held: list[Any] = []
        self.numbers: dict[int, int] = {}       # by id: of a leaf its place, of what is held -1 less its place
        self.alive: list[Any] = []              # no id in `numbers` or in the memo comes back
        self.last: Any = None                   # what is pickled now

    def persistent_id(self, value: Any) -> int | None:
        kind = type(value)
        if kind in ATOMS:
            return None
        if kind is _Undressed:
            return self._leaf(value.tensor, value.tensor)
        if kind is _Held:
            return self._hold(value.value)
        if kind is TracedArray:
            return self._leaf(value, value.tensor, _as_number if value.scalar else _as_array)
        if self.within.is_leaf(value) or isinstance(value, torch.Tensor):
            is_object = is_dressed(value) and not self.within.existed(value)
            return None if is_object else self._leaf(value, value)
        if isinstance(value, type) and self.within.reaches(value):
            self.last = value
            raise pickle.PicklingError("a class that the call makes")
        if isinstance(value, CLOSED) or self.within.existed(value) or not (
                is_container(value) or self.within.reaches(value)):
            return self._hold(value)
        self.last = value
        return None

    def _leaf(self, value: Any, leaf: Any, convert: Callable[[Any], Any] | None = None) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.leaves)
            self.alive.append(value)
            self.leaves.append(leaf)
            self.converts.append(convert)
        return self.numbers[id(value)]

    def _hold(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.held.append(OneWay.behind(value))
            self.alive.append(value)
            self.numbers[id(value)] = -len(self.held)
        return self.numbers[id(value)]

    def reducer_override(self, value: Any) -> Any:
        reduced = _reduced(value)
        self.alive.append(reduced)
        return reduced


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, leaves: Sequence[Any], held: Sequence[Any]) -> None:
        super().__init__(file)
        self.leaves = leaves
        self.held = held

    def persistent_load(self, number: int) -> Any:
        return self.leaves[number] if number >= 0 else self.held[-1 - number]


# -- how an object is made: function, arguments, state, None, None, what takes the object and the state ----------------


def _reduced(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return _dressed, (_Undressed(value), class_of(value)), attributes_of(value), None, None, _give_attributes
    if kind is types.FunctionType:
        names = value.__name__, value.__qualname__, value.__module__, value.__doc__
        return (_function, (_Held(_code(value)), _Held(value.__globals__), *names, value.__closure__),
                (value.__defaults__, value.__kwdefaults__, dict(vars(value)), value.__annotations__),
                None, None, _give_defaults)
    if kind is types.CellType:
        return types.CellType, (), _cell_content(value), None, None, _give_content
    if kind is types.MappingProxyType:
        return kind, tuple(gc.get_referents(value))
    if kind in VIEWS:
        return VIEWS[kind], tuple(gc.get_referents(value))
    base = _base(kind)
    if base is kind or base not in FILLED and not issubclass(base, BaseException):
        return NotImplemented
    return _object(value, kind, base)


def _base(cls: type) -> type:
    """The class of C behind a class of the user's."""
    return next(entry for entry in cls.__mro__ if is_of_c(entry))


def is_of_c(cls: type) -> bool:
    """No class statement made it."""
    new = cls.__dict__.get("__new__")
    return not cls.__flags__ & HEAP_TYPE or (isinstance(new, types.BuiltinFunctionType) and new.__self__ is cls)


def _dressed(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    return tensor if type(tensor) is cls else tensor.as_subclass(cls)


def _give_attributes(value: Any, attributes: dict[str, Any]) -> None:
    vars(value).update(attributes)


def _code(function: types.FunctionType) -> types.CodeType:
    """The user's own, where the closure of a converted function fits."""
    code = original(function.__code__)
    return code if code.co_freevars == function.__code__.co_freevars else function.__code__


def _function(code: types.CodeType, globals: dict[str, Any], name: str, qualname: str, module: str, doc: str | None,
              closure: tuple[Any, ...] | None) -> types.FunctionType:
    made = types.FunctionType(code, globals, name, None, closure)
    made.__qualname__, made.__module__, made.__doc__ = qualname, module, doc
    return made


def _give_defaults(function: types.FunctionType, state: tuple[Any, ...]) -> None:
    function.__defaults__, function.__kwdefaults__, attributes, function.__annotations__ = state
    vars(function).update(attributes)


def _cell_content(cell: types.CellType) -> tuple[Any, ...] | None:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return None


def _give_content(cell: types.CellType, content: tuple[Any, ...]) -> None:
    cell.cell_contents, = content


def _object(value: Any, cls: type, base: type) -> tuple[Any, ...]:
    """One of the user's: made by the `__new__` of `base`, a class of C, and filled."""
    content = FILLED.get(base, lambda entry: entry.args)(value) if base is not object else ()
    found = {name: entry for name, slot in _slots(cls).items() if (entry := read_slot(slot, value)) is not ABSENT}
    attributes = getattr(value, "__dict__", None)
    state = dict(attributes) if isinstance(attributes, dict) else {}, found
    if base in MUTABLE:
        return _new, (base, cls), (base, content, *state), None, None, _fill
    return _new, (base, cls, *content), (base, None, *state), None, None, _fill


def _new(base: type, cls: type, *content: Any) -> Any:
    return base.__new__(cls, *content)


def _fill(value: Any, state: tuple[Any, ...]) -> None:
    base, content, attributes, found = state
    if content is not None:
        MUTABLE[base](value, content)
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    for name, entry in found.items():
        _slots(type(value))[name].__set__(value, entry)


def _slots(cls: type) -> dict[str, types.MemberDescriptorType]:
    return {name: raw for entry in reversed(cls.__mro__) if not is_of_c(entry)
            for name, raw in vars(entry).items() if isinstance(raw, types.MemberDescriptorType)}


def _refill_default(value: defaultdict[Any, Any], content: tuple[Any, dict[Any, Any]]) -> None:
    value.default_factory = content[0]
    dict.update(value, content[1])


def _refill_ordered(value: OrderedDict[Any, Any], content: dict[Any, Any]) -> None:
    for key, entry in content.items():
        OrderedDict.__setitem__(value, key, entry)


# By class of C: the content of an object, without running code of the user's.
FILLED: dict[type, Callable[[Any], Any]] = {
    object: lambda value: (),
    dict: lambda value: dict(dict.items(value)),
    OrderedDict: lambda value: dict(OrderedDict.items(value)),
    defaultdict: lambda value: (value.default_factory, dict(dict.items(value))),
    list: lambda value: list(list.__iter__(value)),
    set: lambda value: list(set.__iter__(value)),
    tuple: lambda value: (tuple(tuple.__iter__(value)),),
    frozenset: lambda value: (list(frozenset.__iter__(value)),),
    int: lambda value: (int.__int__(value),),
    float: lambda value: (float.__float__(value),),
    str: lambda value: (str.__str__(value),),
}
MUTABLE: dict[type, Callable[[Any, Any], None]] = {
    dict: dict.update, OrderedDict: _refill_ordered, defaultdict: _refill_default, list: list.extend, set: set.update}


def _as_array(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()


def _as_number(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()[()]
