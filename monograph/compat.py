"""Every private torch name we use, with the versions it was seen on.

One function or constant per name; where torch lacks it the import fails here, by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import sympy
import torch
import torch._refs.nn.functional  # 2.13, fills the table below
from torch import _tensor_str
from torch._C._functorch import maybe_current_level  # 2.13
from torch._decomp import decomposition_table  # 2.13
from torch._higher_order_ops.scan import generic_scan  # 2.13
from torch._prims_common import suggest_memory_format  # 2.13
from torch._subclasses.fake_tensor import (  # 2.13
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.autograd import forward_ad
from torch.fx.experimental.symbolic_shapes import (  # 2.13
    GuardOnDataDependentSymNode,
    ShapeEnv,
    SLoc,
    ValueRangesSLoc,
)
from torch.multiprocessing.reductions import StorageWeakRef  # 2.13
from torch.nn.modules import module as _module
from torch.optim.optimizer import register_optimizer_step_post_hook  # 2.13, public
from torch.overrides import _get_current_function_mode_stack, _pop_mode_temporarily  # 2.13
from torch.utils._device import DeviceContext  # 2.13
from torch.utils._python_dispatch import _disable_current_modes  # 2.13
from torch.utils._sympy.numbers import int_oo  # 2.13
from torch.utils._sympy.value_ranges import ValueRanges  # 2.13

__all__ = [
    "print_options", "replace_tensor_text",
    "BatchNorm", "OPS", "is_functorch_tensor", "below_autograd_now", "dispatches", "whole_torch", "DENSE_ONLY",
    "DynamicOutputShapeException", "FakeTensor", "NEEDS_VALUE", "NO_DATA", "NO_FAKE_KERNEL", "PLAIN_TENSORS",
    "after_optimizer_step", "below_autograd", "class_functions", "composite_kernel",
    "current_backward_sequence", "decomposition",
    "device_modes", "dispatch_keys", "dispatch_mode_depth", "empty_strided", "empty_strided_cpu",
    "fake_attributes", "fake_from_storage", "fake_sized", "fake_strided", "fake_tensor_mode", "fake_view",
    "forward_ad_level",
    "function_mode_depth", "functorch_level", "global_module_hooks", "gradient_edge", "impl_address", "is_backed",
    "is_composite", "is_plain", "is_plain_class", "is_static_input", "kernels_only", "last_sequence",
    "llvmlite_library",
    "module_hooks", "no_class_functions", "no_inference_mode",
    "no_torch_function", "overload", "plain_torch", "put_class_entry", "quiet_fakes", "run_fake",
    "schema_arguments", "set_grad_enabled", "set_version", "dims_of", "size_expression", "size_hint",
    "size_replacements", "storage_address", "storage_id",
    "storage_reference", "storage_size", "suggest_memory_format", "symbolic_fake_mode",
    "listing_fakes", "symbolic_size", "tensor_guards", "version", "without_onednn", "without_saved_tensor_hooks",
]


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """No dispatch mode, function mode, autocast or autograd around what runs inside."""
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)    # 2.13
    with (_disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad(),     # 2.13
          torch._C._ExcludeDispatchKeyGuard(autocast)):
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


def set_grad_enabled(enabled: bool) -> None:
    """Grad mode of this thread, without the cost of a context manager."""
    torch._C._set_grad_enabled(enabled)    # 2.13


def forward_ad_level() -> int:
    """The innermost level of forward-mode differentiation, -1 outside of all."""
    return forward_ad._current_level    # 2.13


def device_modes() -> int:
    """How many of the active function modes are a default device, which only redirects factories."""
    return sum(isinstance(mode, DeviceContext) for mode in _get_current_function_mode_stack())


def global_module_hooks() -> dict[str, Any]:
    """The hook tables that every nn.Module call consults, by name."""
    names = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
             "_global_backward_pre_hooks")     # 2.13
    return {name.removeprefix("_global_"): getattr(_module, name) for name in names}


BatchNorm: Any = torch.nn.modules.batchnorm._BatchNorm    # 2.13
"""The class whose forward all batch norms share."""

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


def put_class_entry(cls: type, name: str, value: Any) -> None:
    """`cls.name = value`, None to delete it, for a name that assignment takes for the class's own (`__class__`)."""
    table = next(entry for entry in gc.get_referents(cls.__dict__) if type(entry) is dict)
    if value is None:
        del table[name]
    else:
        table[name] = value
    cls.__doc__ = cls.__doc__            # Python forgets what it knows of the class's attributes


@functools.cache
def fake_attributes() -> frozenset[str]:
    """What every fake tensor has among its attributes."""
    with plain_torch():
        return frozenset([*vars(fake_strided(fake_tensor_mode(), (), (), torch.float32)), "_is_param"])    # 2.13


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


def class_functions() -> Any:
    """`__torch_function__` of subclasses and modes, whatever surrounds this."""
    return torch._C._EnableTorchFunction()    # 2.13


def no_inference_mode() -> Any:
    """Tensors made inside are ordinary ones."""
    return torch._C._InferenceMode(False)    # 2.13


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


NEEDS_VALUE = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)    # 2.13
"""What fake tensors raise when a result depends on a tensor's values."""

NO_DATA = "its data is not allocated yet"    # 2.13
"""In the message of the RuntimeError of kernels that read a fake tensor's memory."""

NO_FAKE_KERNEL = UnsupportedOperatorException    # 2.13


class _Sizes(ShapeEnv):
    """torch's record of what was asked about sizes. `asked(condition)` hears of every answer that holds for this call
    only, as a sympy condition."""

    def __init__(self, asked: Callable[[Any], None], general: bool) -> None:
        super().__init__(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=True, duck_shape=False)    # 2.13
        self.asked = asked
        self.dims: dict[Any, Any] = {}         # sympy expression -> what the compiler writes for it
        self.own: set[Any] = set()             # symbols that stay as they are, whatever is asked about them
        self.general = general
        self.answers: dict[Any, Any] = {}

    # torch brings what it knows up to date with every new answer, which takes longer than asking once more.
    @property
    def _resimplify_floor_div_axioms(self) -> bool:    # 2.13
        return False

    @_resimplify_floor_div_axioms.setter
    def _resimplify_floor_div_axioms(self, value: bool) -> None:
        pass

    def _log_guard(self, prefix: str, g: Any, forcing_spec: bool) -> None:    # 2.13
        if prefix in ("eval", "runtime_assert"):
            self.asked(g)

    def evaluate_sym_node(self, sym_node: Any, size_oblivious: bool = False,    # 2.13
                          fallback_value: bool | None = None) -> Any:
        """An answer stays what it is: torch forgets all of them with every new one.

        Where torch has one that does for every size, symbols of `own` need no other."""
        question = sym_node.expr, size_oblivious, fallback_value, self._suppress_guards_tls()    # 2.13
        if question not in self.answers:
            self.answers[question] = self._answer(sym_node, size_oblivious, fallback_value)
        return self.answers[question]

    def _answer(self, sym_node: Any, size_oblivious: bool, fallback_value: bool | None) -> Any:
        if self.general and fallback_value is not None and not self.own.isdisjoint(sym_node.expr.free_symbols):
            known = self._maybe_evaluate_static(sym_node.expr)
            return fallback_value if known is None else known
        return super().evaluate_sym_node(sym_node, size_oblivious, fallback_value)

    def _set_replacement(self, a: Any, tgt: Any, msg: str) -> None:    # 2.13
        if self.own.isdisjoint({a, *tgt.free_symbols}):
            super()._set_replacement(a, tgt, msg)

    def _get_sloc(self, framework_loc: str | None = None) -> Any:    # 2.13, looks through the stack
        return SLoc("", "")


def symbolic_fake_mode(asked: Callable[[Any], None], cached: bool, general: bool) -> Any:
    """Tensors without data whose sizes may be symbols; `asked` hears what is taken for granted of these.

    `cached`: torch remembers results of ops, which costs more than it gives where there are symbols.
    `general`: of `own` symbols nothing is taken for granted where torch can do without."""
    mode = FakeTensorMode(shape_env=_Sizes(asked, general))
    mode.cache_enabled = mode.cache_enabled and cached    # 2.13
    return mode


@contextlib.contextmanager
def listing_fakes(mode: Any, answer: Callable[[Any], Any]) -> Iterator[None]:
    """Inside, `answer` is asked first what `x.tolist()` is, of fakes of `mode`; it may say NotImplemented."""
    before = FakeTensor.tolist    # 2.13

    def tolist(self: Any) -> Any:
        found = answer(self) if self.fake_mode is mode else NotImplemented
        return before(self) if found is NotImplemented else found

    FakeTensor.tolist = tolist
    try:
        yield
    finally:
        FakeTensor.tolist = before


def symbolic_size(mode: Any, name: str, value: int, lo: int, hi: int | None, dim: Any, own: bool = False) -> Any:
    """A SymInt called `name`, which in this call is `value`; the compiler writes `dim` for it.

    `own`: torch replaces neither it by others nor others by it, whatever it hears of them."""
    sizes, symbol = mode.shape_env, sympy.Symbol(name, positive=lo > 0 or None, nonnegative=True, integer=True)
    if own:
        sizes.own.add(symbol)
        mode.cache_enabled = False             # torch's memory of results knows nothing of what was asked
    sizes.backed_var_to_val[symbol] = sympy.Integer(value)    # 2.13
    sizes.var_to_sources[symbol] = []
    sizes.var_to_range[symbol] = ValueRanges(lo, int_oo if hi is None else hi)
    sizes.var_to_range_sloc[symbol] = ValueRangesSLoc(SLoc("", ""), SLoc("", ""))
    sizes.dims[symbol] = dim
    return sizes.create_symintnode(symbol, hint=value)


def size_expression(size: Any) -> tuple[Any, dict[Any, Any]]:
    """The sympy expression of a SymInt, and what the compiler writes for those met so far."""
    return size.node.expr, size.node.shape_env.dims


def dims_of(mode: Any) -> dict[Any, Any]:
    """What the compiler writes for the sizes met so far."""
    return mode.shape_env.dims


def size_replacements(mode: Any) -> dict[str, Any]:
    """Symbols that turned out to be given by others, or to be one number, with the sympy expressions of these."""
    sizes = mode.shape_env
    return {symbol.name: sizes.replace(symbol) for symbol in list(sizes.replacements)}    # 2.13


def is_backed(size: Any) -> bool:
    """Whether a SymInt is a size of the arguments, rather than one that values decide."""
    return bool(size.node.has_hint())    # 2.13


def size_hint(size: Any) -> int:
    """What a backed SymInt is in this call, asked without anybody noticing."""
    return int(size.node.hint)    # 2.13


def fake_sized(mode: Any, sizes: Any, strides: Any, offset: int, dtype: torch.dtype) -> torch.Tensor:
    """A fake CPU tensor at an offset of a storage of its own."""
    meta = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    if offset:
        flat = torch.empty(meta.untyped_storage().nbytes() // dtype.itemsize + offset, dtype=dtype, device="meta")
        meta = torch.empty(0, dtype=dtype, device="meta").set_(flat.untyped_storage(), offset, sizes, strides)
    return FakeTensor(mode, meta, torch.device("cpu"))    # 2.13


def fake_from_storage(mode: Any, storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """A fake CPU tensor over a meta storage, with the dtype, sizes, strides and offset of `like`."""
    meta = torch.empty(0, dtype=like.dtype, device="meta")
    meta.set_(storage, like.storage_offset(), like.shape, like.stride())
    if like.is_conj():
        torch._C._set_conj(meta, True)    # 2.13
    if like.is_neg():
        torch._C._set_neg(meta, True)    # 2.13
    return FakeTensor(mode, meta, torch.device("cpu"))    # 2.13


def fake_strided(mode: Any, sizes: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
    """A fake CPU tensor in a storage of its own."""
    meta = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    return FakeTensor(mode, meta, torch.device("cpu"))    # 2.13


def fake_view(mode: Any, tensor: torch.Tensor, layout: Any) -> torch.Tensor:
    """A fake over the storage of another one; `layout` has sizes, strides, offset, dtype, conj, neg."""
    meta = torch.empty(0, dtype=layout.dtype, device="meta")
    meta.set_(tensor.untyped_storage(), layout.offset, layout.sizes, layout.strides)
    if layout.conj:
        torch._C._set_conj(meta, True)    # 2.13
    if layout.neg:
        torch._C._set_neg(meta, True)    # 2.13
    return FakeTensor(mode, meta, torch.device("cpu"))    # 2.13


def run_fake(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """One op on fake tensors, from inside a dispatch handler."""
    return mode.__torch_dispatch__(func, (), args, kwargs)


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
def quiet_fakes() -> Iterator[None]:
    """Fake kernels that fail inside write nothing to the log; their exceptions tell."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")    # 2.13
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextlib.contextmanager
def checking_with(replacement: Callable[[Callable[..., None]], Callable[..., None]]) -> Iterator[None]:
    """`torch._check` and its kin end in `replacement(what they end in)`, of error class, condition, message."""
    before = torch._check_with    # 2.13
    torch._check_with = replacement(before)    # type: ignore[assignment]
    try:
        yield
    finally:
        torch._check_with = before


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
