"""Every private torch name we use, with the versions it was seen on: here, of `fakes`, and of `modes`.

One function or constant per name; where torch lacks it the import fails here, by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
import torch._refs.nn.functional  # 2.13, fills the table below
from torch import _tensor_str
from torch._decomp import decomposition_table  # 2.13
from torch._higher_order_ops.scan import generic_scan  # 2.13
from torch._prims_common import suggest_memory_format  # 2.13
from torch._subclasses.fake_tensor import DynamicOutputShapeException  # 2.13
from torch.multiprocessing.reductions import StorageWeakRef  # 2.13
from torch.nn.modules import module as _module
from torch.optim.optimizer import register_optimizer_step_post_hook  # 2.13, public

from monograph.compat.fakes import (
    NEEDS_VALUE,
    NO_DATA,
    NO_FAKE_KERNEL,
    FakeTensor,
    FakeTensorMode,
    dims_of,
    fake_attributes,
    fake_from_storage,
    fake_sized,
    fake_strided,
    fake_tensor_mode,
    fake_view,
    is_backed,
    listing_fakes,
    put_class_entry,
    quiet_fakes,
    run_fake,
    says_modified,
    size_expression,
    size_hint,
    size_replacements,
    symbolic_fake_mode,
    symbolic_size,
)
from monograph.compat.modes import (
    below_autograd,
    below_autograd_now,
    class_functions,
    class_functions_on,
    custom_functions,
    device_modes,
    dispatch_mode_depth,
    forward_ad_level,
    function_mode_depth,
    functorch_level,
    kernels_only,
    no_class_functions,
    no_inference_mode,
    no_torch_function,
    plain_torch,
    set_grad_enabled,
    whole_torch,
    without_onednn,
    without_saved_tensor_hooks,
)

__all__ = [
    "BatchNorm", "DENSE_ONLY", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "HigherOrderOperator",
    "NEEDS_VALUE", "NO_DATA", "NO_FAKE_KERNEL", "OPS", "PAD_SEQUENCE", "PLAIN_TENSORS", "QUANTIZED", "READ_VERSION",
    "SYMBOLIC_OPERATOR", "after_optimizer_step", "base_requires_grad", "below_autograd", "below_autograd_now",
    "checking_with", "class_functions", "class_functions_on", "composite_kernel", "composite_kernel_of",
    "current_backward_sequence", "custom_functions", "decomposition",
    "device_modes", "dims_of", "dispatch_keys", "dispatch_mode_depth", "dispatches",
    "eager_definition", "empty_strided", "empty_strided_cpu", "fake_attributes", "fake_from_storage", "fake_sized",
    "fake_strided", "fake_tensor_mode", "fake_view", "forward_ad_level", "function_mode_depth", "functorch_level",
    "global_module_hooks", "gradient_edge", "has_symbols", "impl_address", "is_backed", "is_barred", "is_composite",
    "is_functorch_tensor", "is_plain", "is_plain_class", "is_static_input", "is_view", "kernels_only",
    "last_sequence", "listing_fakes", "llvmlite_library", "module_hooks", "negative_view", "no_array_of",
    "no_class_functions", "no_inference_mode", "no_torch_function", "overload", "plain_torch", "print_options",
    "put_class_entry", "quiet_fakes", "replace_tensor_text", "run_fake", "says_modified", "schema_arguments",
    "set_grad_enabled", "set_version", "size_expression", "size_hint", "size_replacements", "standing",
    "storage_address", "storage_id", "storage_reference", "storage_size", "storage_users", "suggest_memory_format",
    "symbolic_fake_mode", "symbolic_size", "tensor_guards", "tensor_users", "version", "whole_torch",
    "without_onednn", "without_saved_tensor_hooks",
]


def global_module_hooks() -> dict[str, Any]:
    """The hook tables that every nn.Module call consults, by name."""
    names = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
             "_global_backward_pre_hooks")     # 2.13
    return {name.removeprefix("_global_"): getattr(_module, name) for name in names}


BatchNorm: Any = torch.nn.modules.batchnorm._BatchNorm    # 2.13
"""The class whose forward all batch norms share."""

READ_VERSION: Any = torch.Tensor._version.__get__    # type: ignore[attr-defined]    # 2.13
"""What a function mode hears when the count of in-place writes is read."""

PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def is_plain_class(kind: type) -> bool:
    """Whether ops take a tensor of this class as they take a plain one, and give plain ones. A subclass of Parameter
    that says nothing of ops does."""
    return kind in PLAIN_TENSORS or (
        issubclass(kind, torch.nn.Parameter) and not dispatches(kind)
        and kind.__torch_function__ is torch.nn.Parameter.__torch_function__)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether sizes and strides may be asked for without running code of a subclass or failing."""
    return is_plain_class(type(tensor)) and tensor.layout is torch.strided and not tensor.is_nested


def tensor_guards(tensors: Any, free: Mapping[int, tuple[Collection[int], Collection[int]]]) -> Any:
    """An object whose `check(*tensors)` compares class, dtype, device, sizes, strides; None where torch lacks it.

    `free`: of a tensor the dims whose size, and those whose stride, is not looked at."""
    guards = getattr(torch._C._dynamo.guards, "TensorGuards", None)   # 2.13
    if guards is None or not all(is_plain(tensor) for tensor in tensors):
        return None
    sizes = [list(tensor.size()) for tensor in tensors]
    strides = [list(tensor.stride()) for tensor in tensors]
    for position, (free_sizes, free_strides) in free.items():
        sizes[position] = [None if axis in free_sizes else size for axis, size in enumerate(sizes[position])]
        strides[position] = [None if axis in free_strides else step for axis, step in enumerate(strides[position])]
    return guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)


def storage_id(tensor: torch.Tensor) -> int:
    """The identity of a tensor's storage while it lives."""
    return tensor.untyped_storage()._cdata    # 2.13


def tensor_users(tensor: torch.Tensor) -> int:
    """How often a tensor is held, by Python (once) and by autograd and its kin."""
    return int(tensor._use_count())    # 2.13


def storage_users(storage: torch.UntypedStorage) -> int:
    """How many tensors, and objects such as this one, hold a storage."""
    return int(torch._C._storage_Use_Count(storage._cdata))    # 2.13


def has_symbols(tensor: torch.Tensor) -> bool:
    """Whether a size, a stride or the offset of a tensor is a symbol."""
    return bool(tensor._has_symbolic_sizes_strides)    # 2.13


def is_view(tensor: torch.Tensor) -> bool:
    """Whether autograd knows a tensor as a view of another one."""
    return bool(tensor._is_view())    # 2.13


def storage_size(tensor: torch.Tensor) -> int:
    """The bytes behind a tensor."""
    return tensor.untyped_storage().nbytes()


def storage_reference(tensor: torch.Tensor) -> Any:
    """A weak reference to a tensor's storage; `expired()` when nobody holds it."""
    return StorageWeakRef(tensor.untyped_storage())    # 2.13


def impl_address(tensor: torch.Tensor) -> int:
    """Address of the C++ tensor behind a Python one."""
    return tensor._cdata    # 2.13


def storage_address(tensor: torch.Tensor) -> int:
    """Address of the C++ storage object of a tensor."""
    return tensor.untyped_storage()._cdata    # 2.13


def dispatch_keys(tensor: torch.Tensor) -> int:
    """The dispatch key set of a tensor as its bits."""
    return torch._C._dispatch_keys(tensor).raw_repr()    # 2.13


def version(tensor: torch.Tensor) -> int:
    """How often the tensor was written in place; -1 for inference tensors, which do not count."""
    return -1 if tensor.is_inference() else tensor._version    # 2.13


_fast_empty: Any = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None)    # 2.13


def empty_strided(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """An uninitialised CPU tensor, whatever modes are active."""
    return torch.empty_strided(size, stride, dtype=dtype, device="cpu")


empty_strided_cpu = empty_strided if _fast_empty is None else _fast_empty
"""`empty_strided` without argument parsing or dispatch."""


@contextlib.contextmanager
def module_hooks(wrap: Callable[[Any], list[Any]]) -> Iterator[None]:
    """`wrap(hooks)` instead of the full backward hooks, and pre-hooks, of every module that is called meanwhile."""
    module = sys.modules["torch.nn.modules.module"]
    plain = module.BackwardHook    # type: ignore[attr-defined]    # 2.13

    def wrapped(owner: Any, hooks: Any, pre_hooks: Any) -> Any:
        return plain(owner, wrap(hooks), wrap(pre_hooks))

    module.BackwardHook = wrapped    # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.BackwardHook = plain    # type: ignore[attr-defined]


OPS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)    # 2.13


def dispatches(kind: type) -> bool:
    """Whether a subclass of Tensor, other than a fake, says by code of its own what ops do on it."""
    own = getattr(kind, "__torch_dispatch__", None)
    return not issubclass(kind, FakeTensor) and own not in (torch._C._disabled_torch_dispatch_impl, None)    # 2.13


def opens(kind: type) -> bool:
    """Whether a subclass of Tensor that dispatches says what it holds, and how it is made of that."""
    return dispatches(kind) and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def no_array_of(tensor: torch.Tensor) -> Exception | None:
    """What `tensor.numpy()` raises whatever the tensor holds."""
    grad = torch.is_grad_enabled()
    with plain_torch(), torch.set_grad_enabled(grad):
        like = torch.empty(1 if not tensor.is_neg() else 2, dtype=tensor.dtype)
        like = like.conj() if tensor.is_conj() else torch._neg_view(like) if tensor.is_neg() else like
        if tensor.requires_grad:
            like.requires_grad_()
        try:
            like.numpy()
        except (RuntimeError, TypeError) as error:
            return error
    return None


HigherOrderOperator = torch._ops.HigherOrderOperator    # 2.13


def eager_definition(func: Any) -> Any:
    """What a higher-order op does in eager, by ops and Python."""
    if func.name() == "scan":            # its kernel refuses to run under a mode
        return lambda combine, init, xs, others: generic_scan(combine, init, xs, additional_inputs=others)
    return func.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd]    # 2.13


QUANTIZED = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})


def overload(name: str) -> Any:
    """The torch overload called `namespace.packet.overload`; KeyError where torch has none."""
    try:
        namespace, packet, overload_name = name.split(".")
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload_name)
    except (AttributeError, ValueError) as error:
        raise KeyError(name) from error


def schema_arguments(overload: Any) -> list[Any]:
    """The parameters of an overload: each has `name`, `type`, `kwarg_only`."""
    return overload._schema.arguments    # 2.13


def after_optimizer_step(hook: Any) -> Any:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimiser; returns a handle."""
    return register_optimizer_step_post_hook(hook)


SYMBOLIC_OPERATOR = "binary_magic_impl"    # 2.13: the function behind the operators of SymInt

PAD_SEQUENCE = torch._C._nn.pad_sequence    # 2.13

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd    # 2.13


def is_composite(func: Any) -> bool:
    """Whether torch defines the op by other ops alone."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE))    # 2.13


def composite_kernel(func: Any, args: Any, kwargs: Any) -> Any:
    """Run torch's own definition of a composite op, as eager does (not a Python decomposition registered for it)."""
    return func._op_dk(_COMPOSITE, *args, **kwargs)    # 2.13


def gradient_edge(tensor: torch.Tensor) -> Any:
    """The autograd node that receives the gradient of a tensor that requires grad; of a leaf, its accumulator."""
    with torch._C.DisableTorchFunction():
        return torch.autograd.graph.get_gradient_edge(tensor).node    # 2.13


def is_barred(tensor: torch.Tensor) -> bool:
    """Whether autograd lets nobody write to the tensor in place: a leaf that requires grad, or a view of one, one of
    several that an op gave, or one made without grad."""
    if tensor.is_leaf and tensor.requires_grad:
        return True
    base = tensor._base    # 2.13
    if base is None:
        return False
    default = torch._C._autograd.CreationMeta.DEFAULT    # 2.13
    return base.is_leaf and base.requires_grad or torch._C._autograd._get_creation_meta(tensor) != default    # 2.13


def base_requires_grad(tensor: torch.Tensor) -> bool:
    """Whether a view that is made of a tensor without grad requires grad all the same."""
    base = tensor._base    # 2.13
    return (tensor if base is None else base).requires_grad


def standing(tensor: torch.Tensor) -> tuple[bool, bool, bool]:
    """What decides which writes, and which changes of its history, autograd refuses a tensor."""
    return tensor.is_leaf, is_view(tensor), is_barred(tensor)


def is_functorch_tensor(tensor: torch.Tensor) -> bool:
    """Whether a transform of torch.func wraps the tensor."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))    # 2.13


def last_sequence() -> int:
    """The number autograd gave to the node it made last in this thread."""
    return torch._C._autograd._get_sequence_nr() - 1    # 2.13


def current_backward_sequence() -> int | None:
    """The number of the node whose backward is running, None outside of one."""
    node = torch._C._current_autograd_node()    # 2.13
    return None if node is None else node._sequence_nr()


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Set the count of in-place writes."""
    torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))    # 2.13


def llvmlite_library() -> Any:
    """A handle of our own on llvmlite's shared library, whose calls skip llvmlite's global lock; None without one.

    llvmlite 0.44-0.50: `binding.ffi.lib._lib_handle` is the CDLL. A second CDLL of the same name shares the library
    but has function objects, and so argument types, of its own.
    """
    from llvmlite.binding import ffi  # noqa: PLC0415 (optional where only compiled programs run)

    handle = getattr(ffi.lib, "_lib_handle", None)
    name = getattr(handle, "_name", None)
    if name is None:
        return None
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def is_static_input(tensor: torch.Tensor) -> bool:
    """Whether Dynamo took the tensor from an attribute of a module."""
    return hasattr(tensor, "_dynamo_static_input_type")    # 2.13


def negative_view(tensor: torch.Tensor) -> torch.Tensor:
    """The lazy negative of a tensor's memory."""
    return torch._neg_view(tensor)    # 2.13


def decomposition(func: Any) -> Any:
    """torch's Python decomposition of an overload, or its composite kernel; None where it has neither."""
    found = decomposition_table.get(func)     # 2.13
    if found is None and is_composite(func):
        return functools.partial(composite_kernel_of, func)
    return found


def composite_kernel_of(func: Any, *args: Any, **kwargs: Any) -> Any:
    """`composite_kernel` with the arguments spelt as in a call."""
    return composite_kernel(func, args, kwargs)


@contextlib.contextmanager
def checking_with(replacement: Callable[[Callable[..., None]], Callable[..., None]]) -> Iterator[None]:
    """`torch._check` and its kin end in `replacement(what they end in)`, of error class, condition, message."""
    before = torch._check_with    # 2.13
    torch._check_with = replacement(before)    # type: ignore[assignment]
    try:
        yield
    finally:
        torch._check_with = before


# Kernels below the public API that read their operands' memory as if it were contiguous. 2.13
DENSE_ONLY = frozenset({
    "aten._embedding_bag.default", "aten._embedding_bag_forward_only.default", "aten._pdist_forward.default",
    "aten._cdist_forward.default",
})


def print_options() -> dict[str, object]:
    """How torch writes tensors: what `torch.set_printoptions` sets."""
    return dict(vars(_tensor_str.PRINT_OPTS))       # 2.13


def replace_tensor_text(replace: Callable[[Any, str, Any], None], heard: Callable[[], None]) -> None:
    """By `replace(module, name, function)`, let `heard()` be called whenever a tensor is written as text."""
    before = _tensor_str._str                       # 2.13

    def text(*args: Any, **kwargs: Any) -> str:
        heard()
        return before(*args, **kwargs)

    replace(_tensor_str, "_str", text)
