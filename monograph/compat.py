"""Every private torch name we use, with the versions it was seen on.

One function or constant per name; where torch lacks it the import fails here, by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._C._functorch import maybe_current_level  # 2.13
from torch._subclasses.fake_tensor import FakeTensorMode  # 2.13
from torch.nn.modules import module as _module
from torch.overrides import _get_current_function_mode_stack  # 2.13
from torch.utils._device import DeviceContext  # 2.13
from torch.utils._python_dispatch import _disable_current_modes  # 2.13

__all__ = [
    "device_modes", "dispatch_mode_depth", "fake_tensor_mode", "function_mode_depth", "functorch_level",
    "global_module_hooks", "plain_torch", "storage_id", "tensor_guards",
]


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """No dispatch mode, function mode or autograd around what runs inside."""
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():   # 2.13
        yield


def fake_tensor_mode() -> Any:
    """Tensors without data that remember their device."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def function_mode_depth() -> int:
    """How many TorchFunctionModes are active in this thread."""
    return torch._C._len_torch_function_stack()    # 2.13


def dispatch_mode_depth() -> int:
    """How many TorchDispatchModes are active in this thread."""
    return torch._C._len_torch_dispatch_stack()    # 2.13


def functorch_level() -> int | None:
    """The level of the innermost functorch transform (vmap, grad), None outside of all."""
    return maybe_current_level()


def device_modes() -> int:
    """How many of the active function modes are a default device, which only redirects factories."""
    return sum(isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack())


def global_module_hooks() -> dict[str, Any]:
    """The hook tables that every nn.Module call consults, by name."""
    names = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
             "_global_backward_pre_hooks")     # 2.13
    return {name.removeprefix("_global_"): getattr(_module, name) for name in names}


def tensor_guards(tensors: Any) -> Any:
    """An object whose `check(*tensors)` compares class, dtype, device, sizes, strides; None where torch lacks it."""
    guards = getattr(torch._C._dynamo.guards, "TensorGuards", None)   # 2.13
    if guards is None or not all(tensor.layout is torch.strided for tensor in tensors):
        return None
    sizes = [list(tensor.size()) for tensor in tensors]
    strides = [list(tensor.stride()) for tensor in tensors]
    return guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)


def storage_id(tensor: torch.Tensor) -> int:
    """The identity of a tensor's storage while it lives."""
    return tensor.untyped_storage()._cdata    # 2.13
