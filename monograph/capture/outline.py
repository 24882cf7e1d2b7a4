"""Functions that the program calls whole, because no region can stand for what they do with values.

    def runs(kinds: i64[n]):                         lists whose lengths values decide, `itertools.groupby`, keys of
        return [key for key, _ in groupby(kinds.tolist())]           dicts, iterators that a branch advances

    %a: i64[host0], ... = host.runs.3([%kinds])      the function itself, called by the program with its own arguments

Before a second condition, or a number, is read from the call, the innermost of the functions that are running is taken
that may be called so (`ask`): it computes with integers alone, and with nothing but its arguments. The trace starts
again with `shim` in the place of its code (`Conversions.outline`). That it gives fresh tensors and numbers and writes
nowhere is seen when it is learnt (`functions.call_whole`) and at every run: a run that does otherwise raises WrongPath.
One that cannot be called so is converted and traced as before.
"""

from __future__ import annotations

import dis
import inspect
import operator
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture import blame
from monograph.capture.conversions import original
from monograph.capture.convert import syntax
from monograph.capture.convert.operators import OPERATORS, Operators, entered
from monograph.capture.convert.source import COMPREHENSIONS
from monograph.capture.functions import call_whole
from monograph.capture.number import TracedNumber
from monograph.capture.readset_values import SIMPLE
from monograph.capture.regions.errors import Outline
from monograph.ops.own import LEARNT, RAISES

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["ask", "behind", "call", "shim"]

LARGEST = 1 << 20        # elements of the arguments: they are copied at every run
WRITES = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"})
RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
NAMESPACES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


# -- which -----------------------------------------------------------------------------------------

def ask(tracer: Tracer, is_condition: bool = False) -> None:
    """A value is about to be read: raise Outline where a function that is running may be called whole instead. It may
    read one condition: that makes two programs at most."""
    code = _found(tracer, _running())
    if code is not None and is_condition:
        tracer.conditions[code] += 1
    if code is not None and (not is_condition or tracer.conditions[code] > 1):
        raise Outline(code)


def behind(tracer: Tracer | None, error: BaseException) -> types.CodeType | None:
    """The function that may be called whole among those that `error`, raised while tracing, passed through."""
    if tracer is None:
        return None
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    first = next((at for at, frame in enumerate(frames) if _is_trace(frame)), len(frames))
    return _found(tracer, reversed(frames[first:]))


def _found(tracer: Tracer, frames: Iterable[types.FrameType]) -> types.CodeType | None:
    plan = tracer.plan
    if plan is None or plan.read_numbers or plan.conversions.waiting or tracer.backward_hooks.in_backward:
        return None
    for code, frame in _functions(frames):
        if code in plan.outlined:
            continue
        if not _may_be(code):
            plan.outlined[code] = "its code"
        else:
            return code if _computes_with_integers(tracer, code, frame.f_locals) else None
    return None


def _running() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and not _is_trace(frame):
        yield frame
        frame = frame.f_back


def _is_trace(frame: types.FrameType) -> bool:
    """Whether a frame is the driver's around a trace."""
    return frame.f_code.co_name == "_trace" and blame.is_ours(frame.f_code)


def _functions(frames: Iterable[types.FrameType]) -> list[tuple[types.CodeType, types.FrameType]]:
    """The user's functions that run in `frames`, each with its frame; without the outermost, which is traced."""
    found: dict[types.CodeType, types.FrameType] = {}
    for frame in frames:
        if blame.is_user_code(frame.f_code) and frame.f_code.co_name not in COMPREHENSIONS:
            code = original(frame.f_code)
            found.pop(code, None)
            found[code] = frame
    return list(found.items())[:-1]


def _may_be(code: types.CodeType) -> bool:
    """Whether a function holds nothing besides its arguments, ends when it returns and sets no attribute."""
    return not (code.co_flags & RUNS_LATER or set(code.co_freevars) - {"__class__"}
                or any(instruction.opname in WRITES for instruction in dis.get_instructions(code)
                       if instruction.argval not in code.co_cellvars))


def _computes_with_integers(tracer: Tracer, code: types.CodeType, variables: dict[str, Any]) -> bool:
    """By the arguments of `code`, among its variables."""
    given = [variables.get(name) for name in _arguments(code)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        given += (given.pop() or {}).values()
    return _why_not(tracer, given) is None


def _arguments(code: types.CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


def _why_not(tracer: Tracer, given: Sequence[Any]) -> str | None:
    """What among the arguments of a function forbids to call it whole."""
    size = 0
    for leaf in pytree.tree_leaves(tuple(given), is_leaf=lambda value: type(value) is not tuple):
        if type(leaf) in (list, dict):
            why = _why_not(tracer, leaf if isinstance(leaf, list) else list(leaf.values()))
            if why is not None:
                return why
        elif isinstance(leaf, torch.Tensor):
            if leaf.is_floating_point() or leaf.is_complex() or not isinstance(leaf, compat.FakeTensor):
                return "a tensor of floats, or one of its own"
            if tracer.sizes.varies(leaf):
                return "sizes that vary"
            size += leaf.numel()
        elif isinstance(leaf, torch.Size) and not all(type(entry) is int for entry in leaf):
            return "sizes that vary"
        elif isinstance(leaf, (list, dict, set)) or not (
                isinstance(leaf, (TracedNumber, *SIMPLE, *NAMESPACES)) or tracer.existed(leaf)):
            return f"a {type(leaf).__name__}"
    return None if size <= LARGEST else "large arguments"


# -- in its place ----------------------------------------------------------------------------------

TEXT = """
def factory({free}):
    def shim(*args, **kwargs):
        if 0:
            {free}
        return {operators!r}.whole({function!r}, args, kwargs)
"""
FUNCTION_MARK = "\0monograph.function"


def shim(function: types.FunctionType, code: types.CodeType) -> types.CodeType:
    """What `function` is to run in the place of `code`, as which it was written: it hands over that and its
    arguments."""
    own = code.replace()            # whoever looks for functions that run `code` is not to find this one
    written = types.FunctionType(own, function.__globals__, function.__name__, function.__defaults__,
                                 function.__closure__)
    written.__kwdefaults__ = function.__kwdefaults__
    marks = {syntax.OPERATORS_MARK: OPERATORS, FUNCTION_MARK: written}
    text = TEXT.format(free=", ".join(code.co_freevars), operators=syntax.OPERATORS_MARK, function=FUNCTION_MARK)
    module = compile(text.replace("        if 0:\n            \n", ""), __file__, "exec", dont_inherit=True)
    factory = next(value for value in module.co_consts if isinstance(value, types.CodeType))
    made = next(value for value in factory.co_consts if isinstance(value, types.CodeType))
    return made.replace(co_consts=tuple(marks.get(value, value) if isinstance(value, str) else value
                                        for value in made.co_consts))


# -- the call --------------------------------------------------------------------------------------

class _Unfit(Exception):
    """A run of a function was none that may be left to the program."""


def call(tracer: Tracer, function: types.FunctionType, args: Any, kwargs: Any) -> Any:
    """Record a call of `function`; raises Outline with the reason where that cannot be."""
    why = _why_not(tracer, (*args, *kwargs.values()))
    if tracer.in_region:
        why = "it is called in a branch or loop"
    elif tracer.has_written(()):
        why = "Python objects were written before"
    if why is None:
        said, whole = tracer.count_messages(), _Whole(function)
        tracer.record.loc = blame.location(blame.user_frame(2))
        try:
            answer = call_whole(tracer, whole, function.__name__, args, kwargs, effects=RAISES)
        except Exception as error:       # what the function raises, it raises again as it is traced
            why = f"{type(error).__name__}: {error}"
        else:
            whole.learnt = True
            if not tracer.has_written(()) and tracer.count_messages() == said:
                return answer
            why = "it writes to Python objects, or prints"
    raise Outline(function.__code__, why)


class _Whole:
    """`function` with what it does looked at. `learnt`: the trace is over, what it gives is known."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.learnt = False
        self.shape: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given, spec = pytree.tree_flatten((args, kwargs))
        copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in given]
        versions, state = _versions(copies), torch.default_generator.get_state()
        again = pytree.tree_unflatten(copies, spec)
        with entered(Operators()), _Watch(copies) as watch:
            result = self.function(*again[0], **again[1])
        acts = (watch.outside or _versions(copies) != versions or not _same(pytree.tree_flatten(again), (copies, spec))
                or not _containers(result).isdisjoint(_containers(again))
                or not torch.equal(state, torch.default_generator.get_state()))
        if acts or not self._gives_new(result, copies):
            if not self.learnt:
                raise _Unfit("it does more than compute new integers from its arguments")
            raise errors.WrongPath(LEARNT, (self.function.__name__,))
        return result

    def _gives_new(self, result: Any, given: Sequence[Any]) -> bool:
        """Whether that is what it gave before, in memory of its own."""
        leaves, spec = pytree.tree_flatten(result)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        homes = [compat.storage_id(leaf) for leaf in (*given, *tensors)
                 if isinstance(leaf, torch.Tensor) and leaf.numel()]
        shape = spec, [type(leaf) if isinstance(leaf, (torch.Tensor, bool, int, float)) else leaf for leaf in leaves]
        if self.shape is None:
            self.shape = shape
        return (self.shape == shape and len(set(homes)) == len(homes) and bool(leaves)
                and not any(tensor.requires_grad for tensor in tensors)
                and all(isinstance(leaf, (torch.Tensor, bool, int, float)) for leaf in leaves))


def _same(after: tuple[list[Any], Any], before: tuple[list[Any], Any]) -> bool:
    return after[1] == before[1] and all(map(operator.is_, after[0], before[0]))


def _containers(value: Any) -> set[int]:
    """The lists and dicts of a structure, by id."""
    if not isinstance(value, (list, tuple, dict)):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    return set().union(*map(_containers, inner), () if isinstance(value, tuple) else (id(value),))


def _versions(leaves: Sequence[Any]) -> list[int]:
    return [leaf._version for leaf in leaves if isinstance(leaf, torch.Tensor)]


class _Watch(TorchFunctionMode):
    """Whether torch functions take tensors that are neither `given` nor made inside."""

    def __init__(self, given: Sequence[Any]) -> None:
        super().__init__()
        self.made = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]       # kept: ids stay theirs
        self.homes = set(map(compat.storage_id, self.made))
        self.outside = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.outside |= any(isinstance(leaf, torch.Tensor) and compat.storage_id(leaf) not in self.homes
                            for leaf in pytree.tree_leaves((args, kwargs)))
        result = func(*args, **kwargs)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.made.append(leaf)
                self.homes.add(compat.storage_id(leaf))
        return result
