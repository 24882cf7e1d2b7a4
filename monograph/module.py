"""A compiled nn.Module: the same module in every respect but what a call does.

    compiled = wrap(module, dispatcher)

`compiled` is an instance of a subclass of the module's class and shares its `__dict__`: parameters, buffers,
submodules, hooks and attributes are one set seen from two objects, so state_dict keys, `.to()`, `train()`,
assignments and methods (`generate()` calls the compiled forward) work from either side. The original
stays as it was and runs eagerly; it is `compiled._orig_mod`.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from monograph import tracebacks
from monograph.dispatch import Dispatcher
from monograph.errors import InputError

__all__ = ["dispatcher_of", "original_of", "wrap"]

Rebuild = Callable[[nn.Module, Any], nn.Module]
_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


def wrap(module: nn.Module, dispatcher: Dispatcher, rebuild: Rebuild) -> nn.Module:
    """`rebuild(original, options)` compiles a copy: for deepcopy and pickle."""
    compiled: nn.Module = object.__new__(_subclass(type(module)))
    object.__setattr__(compiled, "__dict__", module.__dict__)
    object.__setattr__(compiled, "_monograph", (dispatcher, module, rebuild))
    return compiled


def dispatcher_of(target: Any) -> Dispatcher | None:
    """The dispatcher of a compiled module, None for any other object."""
    return target._monograph[0] if type(target) in _compiled_classes else None


def original_of(target: Any) -> Any:
    """The module a compiled one was made from."""
    return target._monograph[1]


_compiled_classes: weakref.WeakSet[type] = weakref.WeakSet()


def _subclass(cls: type[nn.Module]) -> type:
    """The compiled counterpart of a module class. It keeps the name, for code that prints or compares it."""
    found = _classes.get(cls)
    if found is None:
        namespace = {
            "__slots__": ("_monograph",),
            "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
            "__call__": _call, "__deepcopy__": _deepcopy, "__reduce_ex__": _reduce,
            "_orig_mod": property(original_of), "recompiles": property(_recompiles),
        }
        try:
            metaclass: Any = type(cls)
            found = metaclass(cls.__name__, (cls,), namespace)
        except TypeError as error:           # a class that refuses to be subclassed
            raise InputError(f"{cls.__name__} cannot have a compiled twin: {error}",
                             hint="compile its forward: model.forward = monograph.compile(model.forward)") from error
        _classes[cls] = found
        _compiled_classes.add(found)
    return found


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    try:
        return self._monograph[0](*args, **kwargs)
    except BaseException as error:
        tracebacks.leave(error)
        raise


def _recompiles(self: Any) -> list[Any]:
    return self._monograph[0].recompiles


def _deepcopy(self: Any, memo: dict[int, Any]) -> nn.Module:
    dispatcher, module, rebuild = self._monograph
    twin = rebuild(copy.deepcopy(module, memo), dispatcher.options)
    memo[id(self)] = twin
    return twin


def _reduce(self: Any, protocol: Any) -> Any:
    dispatcher, module, rebuild = self._monograph
    return rebuild, (module, dispatcher.options)

