"""Hooks of the backward: traced like any code, or called whole where they do more than compute.

    y.register_hook(hook)                           hook(gradient) -> None | gradient
    module.register_full_backward_hook(hook)        hook(module, gradients in, gradients out) -> None | gradients in
    module.register_full_backward_pre_hook(hook)    hook(module, gradients out) -> None | gradients out

A hook that writes to Python state, says something or asks Python for the value of a gradient is one op of `ops.host`
in the backward, which is called with the gradients of each run:

    %grad: f32[3, 4] = host.hook_log.7([%seed])

It may hold on to what was there before the trace, and to nothing that the trace made.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture.layout import contiguous_strides
from monograph.capture.readset_journal import content, unchanged
from monograph.capture.readset_values import SIMPLE
from monograph.capture.recorder import type_of
from monograph.capture.regions.errors import Fork, Unmergeable, Whole
from monograph.ir.graph import Value
from monograph.ir.op import Effect, Op
from monograph.ops import host
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["BackwardHooks"]

Hook = Callable[..., Any]
CONTAINERS = (list, dict, set)


class BackwardHooks:
    """The hooks of one attempt at a trace, numbered as they are registered. `whole`: numbers of those called whole."""

    def __init__(self, tracer: Tracer, whole: set[int]) -> None:
        self.tracer: Tracer = weakref.proxy(tracer)     # no cycle: fakes end with the trace
        self.whole = whole
        self.count = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See the hooks of modules in the forward."""
        with compat.module_hooks(lambda hooks: [self.wrap(hook, 1) for hook in hooks]):
            yield

    def wrap(self, hook: Hook, place: int = 0) -> Hook:
        """What is registered in place of `hook`, whose argument number `place` is what its result stands for."""
        number = self.count
        self.count += 1

        @functools.wraps(hook, updated=())
        def watched(*args: Any) -> Any:
            if not self.in_backward:
                return hook(*args)
            if number in self.whole:
                return self.call_whole(hook, place, args)
            own = [(value, content(value)) for value in carried(hook)
                   if isinstance(value, CONTAINERS) and not self.tracer.existed(value)]
            said = self.tracer.count_messages()
            try:
                result = hook(*args)
            except (errors.MonographError, Fork, Unmergeable):
                raise Whole(number) from None
            if self.tracer.has_written(()) or self.tracer.count_messages() != said:
                raise Whole(number)
            if not all(unchanged(before, content(value)) for value, before in own):
                raise self.refusal(hook, "writes to a container that the call made")
            return result

        return watched

    @property
    def in_backward(self) -> bool:
        return any(binding.kind == "tangent" for binding in self.tracer.bindings)

    def call_whole(self, hook: Hook, place: int, args: tuple[Any, ...]) -> Any:
        """Record a call of `hook`; fakes for what it makes of argument `place`."""
        for value in carried(hook):
            if not self.was_there(value):
                raise self.refusal(hook, f"holds a {type(value).__name__} that the call made")
        leaves, spec = pytree.tree_flatten(args)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        before, shape = pytree.tree_flatten(args[place])
        wanted = [leaf for leaf in before if isinstance(leaf, torch.Tensor)]

        def run(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            values = iter(given)
            filled = [next(values) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            again = pytree.tree_unflatten(filled, spec)
            with compat.whole_torch(False, None):
                result = hook(*again)
            return replaced(hook, again[place], result)

        tracer = self.tracer
        with torch.no_grad(), torch._C.DisableTorchFunction():
            values = tuple(tracer.memory.read(tracer.lift(tensor)) for tensor in tensors)
            op = host.of_function(f"hook_{name_of(hook)}", run, effects=frozenset({Effect.HOST}))
            made = iter(self.place(op, values, wanted))
        return pytree.tree_unflatten([next(made) if isinstance(leaf, torch.Tensor) else leaf for leaf in before], shape)

    def place(self, op: Op, values: tuple[Value, ...], like: list[torch.Tensor]) -> list[torch.Tensor]:
        """Fakes for the results of `op`, which are as `like`."""
        results = self.tracer.node(op, (values,), {}, [type_of(tensor.shape, tensor.dtype) for tensor in like])
        made = []
        for tensor, value in zip(like, results, strict=True):
            with compat.plain_torch():
                made.append(self.tracer.fresh(tensor.shape, contiguous_strides(tuple(tensor.shape)), tensor.dtype))
            self.tracer.memory.add(made[-1], value)
        return made

    def was_there(self, value: Any) -> bool:
        """Whether a value means the same in every later call: guards or its own nature keep it."""
        if isinstance(value, (types.BuiltinFunctionType, types.ModuleType, type)):
            return True
        if isinstance(value, torch.Tensor):
            return not isinstance(value, compat.FakeTensor)
        return isinstance(value, SIMPLE) or self.tracer.existed(value)

    def refusal(self, hook: Hook, what: str) -> errors.UnsupportedError:
        code = getattr(hook, "__code__", None)
        at = None if code is None else SourceLoc(code.co_filename, code.co_firstlineno, code.co_qualname)
        return errors.UnsupportedError(
            f"the hook {name_of(hook)} {what}", loc=at or self.tracer.record.loc,
            hint="let it hold an object that exists before the call")


def replaced(hook: Hook, before: Any, result: Any) -> list[torch.Tensor]:
    """The tensors that stand for those of `before` once `hook` returned `result`, each in memory of its own."""
    if result is None:
        result = before
    elif isinstance(before, tuple) and not isinstance(result, tuple):
        result = (result,)
    if isinstance(before, tuple) and len(result) != len(before):
        raise RuntimeError("Backward hook returned an invalid number of grad_input, "
                           f"got {len(result)}, but expected {len(before)}")
    pairs = zip(before, result) if isinstance(before, tuple) else [(before, result)]
    kept = []
    for old, new in pairs:
        if not isinstance(old, torch.Tensor):
            continue
        if not isinstance(new, torch.Tensor):
            raise errors.InputError(f"the hook {name_of(hook)} returned {type(new).__name__} in place of a gradient")
        if new.shape != old.shape:
            raise RuntimeError(f"hook '{name_of(hook)}' has changed the size of value")
        if new.dtype != old.dtype:
            raise RuntimeError(f"hook '{name_of(hook)}' has changed the type of value "
                               f"(was {old.type()} got {new.type()})")
        kept.append(new.detach().clone(memory_format=torch.contiguous_format))
    return kept


def name_of(hook: Hook) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def carried(hook: Any) -> Iterator[Any]:
    """What a function holds: cells, defaults, the object it is bound to, what is bound to a partial; and so on."""
    pending, seen = [hook], set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.MethodType):
            pending += [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            pending += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, types.FunctionType):
            pending += [held for cell in value.__closure__ or () for held in content(cell)]
            pending += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        elif isinstance(value, tuple):
            pending += value
        else:
            yield value
