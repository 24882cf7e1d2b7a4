"""The public functions: compile, disable, capture.

    compile(target) --call--> Dispatcher --no entry fits--> build:
        capture -> transform -> schedule -> codegen -> runtime          (monograph.build, monograph.backend)

What comes back behaves like the target: a function keeps name, signature and binding, a module stays a
module (monograph.module), a bound method stays bound.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from monograph import config, module, tracebacks
from monograph.build import build, capture_call
from monograph.capture.captured import Captured
from monograph.capture.functions import Allowed
from monograph.config import Options
from monograph.dispatch import Dispatcher, Recompile, TraceFailed, check_arguments, known
from monograph.errors import InputError
from monograph.torch_backend import forget_warnings
from monograph.varying import mark_dynamic

__all__ = [
    "CompiledFunction", "allow_in_graph", "capture", "compile", "disable", "dispatcher_of", "mark_dynamic", "refresh",
    "reset",
]


class CompiledFunction:
    """A function or bound method that runs compiled. `recompiles` tells why it was compiled more than once."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self._dispatcher = Dispatcher(function, options, build, getattr(function, "__qualname__", "function"))
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._dispatcher(*args, **kwargs)
        except BaseException as error:
            tracebacks.leave(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As an attribute of a class it binds like a function."""
        return self if instance is None else functools.partial(self, instance)

    @property
    def recompiles(self) -> list[Recompile]:
        return self._dispatcher.recompiles

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return self          # functions are not copied either

    def __reduce__(self) -> Any:
        return _compile_with, (self._dispatcher.function, self._dispatcher.options)

    def __repr__(self) -> str:
        return f"<compiled {self._dispatcher.function!r}>"


def compile(
    target: Any = None,
    *,
    fullgraph: bool = True,
    dynamic: bool | None = None,
    mode: str = "default",
    backend: str = "llvm",
    weights: str = "watched",
) -> Any:
    """Compile a function, an nn.Module or a bound method; without a target, a decorator that does so.

    fullgraph   True: what cannot be captured as one graph is an error that says where and why;
                False: such a call runs eagerly, with one warning
    dynamic     None: a size of an argument that was another one in an earlier call is a symbol of the next program,
                which takes any size from 2 on; True: all sizes from 2 on are, from the first call; False: none is.
                Sizes that the program needs as numbers stay numbers; see also `mark_dynamic`
    mode        "default", "max-autotune" or "low-memory" (which compile alike at present); torch.compile's other
                modes are accepted
    backend     "llvm", or "reference": the captured graph op by op in torch
    weights     "watched": folded and packed copies of weights follow every change; "live": there are none;
                "frozen": they are made once

    Nothing is compiled before the first call. Raises InputError for an option or target that makes no sense.
    """
    options = Options.make(fullgraph=fullgraph, dynamic=dynamic, mode=mode, backend=backend, weights=weights)
    if target is None:
        return functools.partial(_compile_with, options=options)
    return _compile_with(target, options)


def _compile_with(target: Any, options: Options) -> Any:
    if config.is_disabled():
        return target
    if isinstance(target, CompiledFunction):
        target = target._dispatcher.function
    if module.dispatcher_of(target) is not None:
        target = module.original_of(target)
    if isinstance(target, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise InputError("a TorchScript program cannot be compiled", hint="compile the Python it was made from")
    if isinstance(target, nn.Module):
        dispatcher = Dispatcher(target, options, build, type(target).__name__)
        return module.wrap(target, dispatcher, _compile_with)
    if inspect.isclass(target):
        raise InputError(f"{target.__name__} is a class", hint="compile an instance of it, or one of its methods")
    if not callable(target):
        raise InputError(f"cannot compile {type(target).__name__}", hint="give a function, an nn.Module or a method")
    return CompiledFunction(target, options)


def allow_in_graph(function: Callable[..., Any]) -> Allowed:
    """A function that captures call as a whole, without looking into it; a decorator.

    For pure functions of tensors, numbers and constants: it is called once while capturing and once in every run, on
    plain tensors, and must give what its arguments alone decide. Gradients go through what autograd records in it, for
    which the backward calls it again. Sizes of results may differ between calls: each set of them is captured on its
    own. What it returns must not lie in the memory of an argument.
    """
    return Allowed(function)


def disable(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as plain Python: a compiled function or module gives back what it was made from."""
    dispatcher = dispatcher_of(function)
    return function if dispatcher is None else dispatcher.function


def refresh(compiled: Any) -> None:
    """Make folded and packed copies of weights again at the next call: after a change that `weights="watched"` cannot
    see (a few elements written through `.data`, numpy or an inference tensor), or any change with "frozen"."""
    dispatcher = dispatcher_of(compiled)
    if dispatcher is None:
        raise InputError(f"{type(compiled).__name__} is not compiled")
    for entry in dispatcher.entries:
        for half in entry.report.halves.values():
            if half.executable is not None:
                half.executable.refresh()


def reset() -> None:
    """Forget every compiled version, refusal and warning, as if nothing had been called yet."""
    forget_warnings()
    for dispatcher in list(known):
        dispatcher.reset()


def dispatcher_of(target: Any) -> Dispatcher | None:
    """The dispatcher behind anything `compile` returned, None for other objects."""
    if isinstance(target, functools.partial):
        target = target.func
    return target._dispatcher if isinstance(target, CompiledFunction) else module.dispatcher_of(target)


def capture(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Captured:
    """The graph of `function(*args, **kwargs)`; `print` it. Nothing is optimised or compiled."""
    try:
        return _capture(disable(function), args, kwargs)
    except BaseException as error:
        tracebacks.leave(error)
        raise


def _capture(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
    check_arguments(args, kwargs)
    try:
        return capture_call(function, args, kwargs, Options.make()).captured
    except TraceFailed as failed:
        error = failed.error
    tracebacks.leave(error, of_program=True)
    raise error
