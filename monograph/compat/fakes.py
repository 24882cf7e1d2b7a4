"""Fake tensors and the symbolic sizes of theirs."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import (  # 2.13
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import (  # 2.13
    GuardOnDataDependentSymNode,
    ShapeEnv,
    SLoc,
    ValueRangesSLoc,
)
from torch.utils._sympy.numbers import int_oo  # 2.13
from torch.utils._sympy.value_ranges import ValueRanges  # 2.13

from monograph.compat.modes import plain_torch

__all__ = [
    "FakeTensor", "FakeTensorMode", "NEEDS_VALUE", "NO_DATA", "NO_FAKE_KERNEL", "dims_of",
    "fake_attributes", "fake_from_storage", "fake_sized", "fake_strided", "fake_tensor_mode", "fake_view",
    "is_backed", "listing_fakes", "put_class_entry", "quiet_fakes", "run_fake", "says_modified", "size_expression",
    "size_hint", "size_replacements", "symbolic_fake_mode", "symbolic_size",
]


def fake_tensor_mode() -> Any:
    """Tensors without data that remember their device."""
    return FakeTensorMode(allow_non_fake_inputs=True)


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


NEEDS_VALUE = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)    # 2.13
"""What fake tensors raise when a result depends on a tensor's values."""

NO_DATA = "its data is not allocated yet"    # 2.13
"""In the message of the RuntimeError of kernels that read a fake tensor's memory."""

_MODIFIED = ("modified by an inplace operation",    # 2.13
             "operator aten::size does not exist")      # 2.13: it wants to name the tensor, whose place is a symbol


def says_modified(error: BaseException) -> bool:
    """Whether a RuntimeError is that of a backward whose saved tensors were written since."""
    return any(text in str(error) for text in _MODIFIED)

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

    # For torch's log. To tell its own frames it imports all of its compiler, with what that reads of the world.
    def _get_user_frame(self) -> None:    # 2.13
        return None

    def _log_create_unbacked_symbol(self, *args: Any, **kwargs: Any) -> None:    # 2.13
        pass

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


_DICT: Any = vars(torch.Tensor)["__dict__"]
_make_subclass = torch.Tensor._make_subclass    # 2.13
_CPU = torch.device("cpu")


@functools.cache
def _fresh() -> dict[str, Any] | None:
    """What a new fake CPU tensor has for attributes, but for its mode; None where they are not the same for all."""
    mode = fake_tensor_mode()
    with plain_torch():
        found = dict(_DICT.__get__(FakeTensor(mode, torch.empty((), device="meta"), _CPU)))    # 2.13
    same = found.pop("fake_mode", None) is mode and all(value is None or value == _CPU for value in found.values())
    return found if same and "_fake_device" in found else None


def _fake(mode: Any, meta: torch.Tensor) -> torch.Tensor:
    """`FakeTensor(mode, meta, cpu)`, which sets attribute after attribute, in a fraction of its time."""
    fresh = _fresh()
    if fresh is None:
        return FakeTensor(mode, meta, _CPU)    # 2.13
    made = _make_subclass(FakeTensor, meta, False, dispatch_device=True, device_for_backend_keys=_CPU)    # 2.13
    if mode._allow_unsafe_data_ptr_access:    # 2.13
        torch._C._set_warn_deprecated_on_mutable_data_ptr(made)    # 2.13
    else:
        torch._C._set_throw_on_mutable_data_ptr(made)    # 2.13
    _DICT.__get__(made).update(fresh, fake_mode=mode)
    return made


def fake_sized(mode: Any, sizes: Any, strides: Any, offset: int, dtype: torch.dtype) -> torch.Tensor:
    """A fake CPU tensor at an offset of a storage of its own."""
    meta = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    if offset:
        flat = torch.empty(meta.untyped_storage().nbytes() // dtype.itemsize + offset, dtype=dtype, device="meta")
        meta = torch.empty(0, dtype=dtype, device="meta").set_(flat.untyped_storage(), offset, sizes, strides)
    return _fake(mode, meta)


def fake_from_storage(mode: Any, storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """A fake CPU tensor over a meta storage, with the dtype, sizes, strides and offset of `like`."""
    meta = torch.empty(0, dtype=like.dtype, device="meta")
    meta.set_(storage, like.storage_offset(), like.shape, like.stride())
    if like.is_conj():
        torch._C._set_conj(meta, True)    # 2.13
    if like.is_neg():
        torch._C._set_neg(meta, True)    # 2.13
    return _fake(mode, meta)


def fake_strided(mode: Any, sizes: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
    """A fake CPU tensor in a storage of its own."""
    meta = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    return _fake(mode, meta)


def fake_view(mode: Any, tensor: torch.Tensor, layout: Any) -> torch.Tensor:
    """A fake over the storage of another one; `layout` has sizes, strides, offset, dtype, conj, neg."""
    meta = torch.empty(0, dtype=layout.dtype, device="meta")
    meta.set_(tensor.untyped_storage(), layout.offset, layout.sizes, layout.strides)
    if layout.conj:
        torch._C._set_conj(meta, True)    # 2.13
    if layout.neg:
        torch._C._set_neg(meta, True)    # 2.13
    return _fake(mode, meta)


def run_fake(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """One op on fake tensors, from inside a dispatch handler."""
    return mode.__torch_dispatch__(func, (), args, kwargs)


@contextlib.contextmanager
def quiet_fakes() -> Iterator[None]:
    """Fake kernels that fail inside write nothing to the log; their exceptions tell."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")    # 2.13
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
