"""What surrounds a call in torch: modes, grad, dispatch keys, levels."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._functorch import maybe_current_level  # 2.13
from torch.autograd import forward_ad
from torch.overrides import _get_current_function_mode_stack, _pop_mode_temporarily  # 2.13
from torch.utils._device import DeviceContext  # 2.13
from torch.utils._python_dispatch import _disable_current_modes  # 2.13

__all__ = [
    "below_autograd", "below_autograd_now", "class_functions", "class_functions_on", "custom_functions",
    "device_modes", "dispatch_mode_depth", "forward_ad_level", "function_mode_depth", "functorch_level",
    "kernels_only", "no_class_functions",
    "no_inference_mode", "no_torch_function", "plain_torch", "set_grad_enabled", "whole_torch", "without_onednn",
    "without_saved_tensor_hooks",
]


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """No dispatch mode, function mode, autocast or autograd around what runs inside."""
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)    # 2.13
    with (_disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad(),     # 2.13
          torch._C._ExcludeDispatchKeyGuard(autocast)):
        yield


def function_mode_depth() -> int:
    """How many TorchFunctionModes are active in this thread."""
    return torch._C._len_torch_function_stack()    # 2.13


def dispatch_mode_depth() -> int:
    """How many TorchDispatchModes are active in this thread."""
    return torch._C._len_torch_dispatch_stack()    # 2.13


def functorch_level() -> int | None:
    """The level of the innermost functorch transform (vmap, grad), None outside of all."""
    return maybe_current_level()


def set_grad_enabled(enabled: bool) -> None:
    """Grad mode of this thread, without the cost of a context manager."""
    torch._C._set_grad_enabled(enabled)    # 2.13


def forward_ad_level() -> int:
    """The innermost level of forward-mode differentiation, -1 outside of all."""
    return forward_ad._current_level    # 2.13


def device_modes() -> int:
    """How many of the active function modes are a default device, which only redirects factories."""
    return sum(isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack())


def _keys(*names: str) -> Any:
    """A set of dispatch keys."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, names[0]))    # 2.13
    for name in names[1:]:
        keys = keys.add(getattr(torch._C.DispatchKey, name))
    return keys


_ABOVE_KERNELS = _keys(
    "AutocastCPU", "ADInplaceOrView", "AutogradFunctionality", "AutogradOther", "AutogradNestedTensor", "Python",
    "PythonTLSSnapshot",
)


def kernels_only() -> Any:
    """Op calls inside go straight to their CPU kernels: no autograd, no autocast, no dispatch modes.

    Like the next two, a guard written in C: an interrupt (Ctrl-C) cannot leave it half entered, as it can a context
    manager written in Python.
    """
    return torch._C._ExcludeDispatchKeyGuard(_ABOVE_KERNELS)    # 2.13


@contextlib.contextmanager
def whole_torch(grad: bool, autocast: torch.dtype | None) -> Iterator[None]:
    """As user code runs, inside of `plain_torch` or `kernels_only`: with autograd where `grad` is, with torch functions
    of subclasses, and with autocast to the dtype that is given; without modes."""
    exclude = torch._C._dispatch_tls_local_exclude_set() - _ABOVE_KERNELS    # 2.13
    include = torch._C._dispatch_tls_local_include_set()    # 2.13
    with (torch._C._ForceDispatchKeyGuard(include, exclude), _disable_current_modes(),    # 2.13
          torch._C._EnableTorchFunction(), torch.set_grad_enabled(grad),    # 2.13
          torch.autocast("cpu", autocast, enabled=autocast is not None, cache_enabled=False),
          contextlib.ExitStack() as stack):
        for _ in range(function_mode_depth()):
            stack.enter_context(_pop_mode_temporarily())
        yield


def below_autograd_now() -> bool:
    """Whether op calls made here skip autograd."""
    return bool(torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradCPU))    # 2.13


def no_torch_function() -> Any:
    """No function modes, no `__torch_function__` of subclasses."""
    return torch._C.DisableTorchFunction()    # 2.13


@contextlib.contextmanager
def no_class_functions() -> Iterator[None]:
    """No `__torch_function__` of subclasses of Tensor."""
    with torch._C.DisableTorchFunctionSubclass():    # 2.13
        yield


def class_functions_on() -> bool:
    """Whether `__torch_function__` of subclasses is asked here."""
    return bool(torch._C._is_torch_function_enabled())    # 2.13


def class_functions() -> Any:
    """`__torch_function__` of subclasses and modes, whatever surrounds this."""
    return torch._C._EnableTorchFunction()    # 2.13


def no_inference_mode() -> Any:
    """Tensors made inside are ordinary ones."""
    return torch._C._InferenceMode(False)    # 2.13


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    """Ops inside choose kernels as if torch had no oneDNN."""
    before = torch._C._get_mkldnn_enabled()    # 2.13
    torch._C._set_mkldnn_enabled(False)    # 2.13
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def below_autograd() -> Any:
    """Op calls inside skip autograd's kernels, so that composite ops reach dispatch modes whole."""
    return torch._C._AutoDispatchBelowAutograd()    # 2.13


@contextlib.contextmanager
def without_saved_tensor_hooks() -> Iterator[None]:
    """Inside, autograd saves tensors as they are, whatever hooks (checkpoint, save_on_cpu) stand around."""
    hooks = torch._C._autograd     # 2.13
    kept = []
    while (top := hooks._top_saved_tensors_default_hooks(True)) is not None:
        kept.append(top)
        hooks._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(kept):
            hooks._push_saved_tensors_default_hooks(pack, unpack)


@contextlib.contextmanager
def custom_functions(applied: Callable[[type, Any, tuple[Any, ...], Callable[[Any], bool]], Any]) -> Iterator[None]:
    """Meanwhile `applied(cls, made, args, fills)` is what `cls.apply(*args)` gives, cls an autograd.Function that made
    `made` of them; `fills(ctx)`: whether its backward gets zeros for gradients that are missing."""
    module = sys.modules["torch.autograd.function"]
    base, node = module._SingleLevelFunction, module.BackwardCFunction    # type: ignore[attr-defined]    # 2.13
    before, bare = base.__dict__.get("apply"), []

    def fill(ctx: Any, value: bool) -> None:
        if not value:
            bare.append(ctx)
        torch._C._FunctionBase.materialize_grads.__set__(ctx, value)    # 2.13

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        made = super(base, cls).apply(*args, **kwargs)
        return applied(cls, made, args, lambda ctx: all(other is not ctx for other in bare))

    base.apply = classmethod(apply)
    outer = node.__dict__.get("materialize_grads")
    node.materialize_grads = property(None, fill)
    try:
        yield
    finally:
        for owner, name, kept in ((base, "apply", before), (node, "materialize_grads", outer)):
            if kept is None:
                delattr(owner, name)
            else:
                setattr(owner, name, kept)
