"""numpy on traced tensors: arrays that stand for `x.numpy()` while the program is captured.

    TracedArray ::= tensor  scalar?        the fake whose memory it is; a numpy scalar is a tensor without dims

numpy itself computes, when the program runs: each ufunc, function, method or operator is one call of `functions`, so
that results are numpy's to the last bit. What gives a view gives a view of the fake, so that writes reach everybody.
Only what needs no look at the memory is answered here. `lending` installs what leads to such arrays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture import blame
from monograph.capture.functions import call_whole
from monograph.capture.number import number_dtype

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["TracedArray", "as_tensors", "copied", "lending", "not_lent"]

KEEPS_MEMORY = frozenset({"__array_interface__", "__array_struct__", "ctypes", "data", "base", "flags", "flat"})
WRITES = frozenset({"fill", "sort", "partition", "put", "byteswap", "itemset"})
READ_ONLY = ("a write to memory of which numpy has a view that torch has not", None)


class _View(Exception):
    """What numpy gave lies in the memory of argument `position`: its sizes, strides and offset in elements."""

    def __init__(self, position: int, sizes: Sequence[int], strides: Sequence[int], offset: int) -> None:
        self.position, self.sizes, self.strides, self.offset = position, sizes, strides, offset
        super().__init__(position)


class TracedArray(NDArrayOperatorsMixin):
    """`scalar`: it is a number of numpy, such as np.float32(3)."""

    __slots__ = ("scalar", "tensor", "tracer")
    __array_priority__ = 2000

    def __init__(self, tracer: Tracer, tensor: torch.Tensor, scalar: bool = False) -> None:
        self.tracer = tracer
        self.tensor = tensor
        self.scalar = scalar

    # -- what numpy asks -------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        call = getattr(ufunc, method)
        if method == "at":
            return _write(self.tracer, args[0], lambda target, *rest: call(target, *rest, **kwargs), *args[1:])
        if out is None:
            return _run(self.tracer, call, args, kwargs)
        if len(out) != 1 or not isinstance(out[0], TracedArray):
            raise _refusal("`out=` of numpy takes an array that the program did not make from a tensor")
        _write(self.tracer, out[0], lambda target, *rest: call(*rest, out=target, **kwargs), *args)
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if kwargs.get("out") is not None or function in (np.copyto, np.put, np.place, np.putmask, np.fill_diagonal):
            raise _refusal(f"`{function.__name__}` of numpy writes to an array")
        return _run(self.tracer, function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise _refusal("numpy takes the memory of a traced tensor")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented

    # -- attributes, methods ---------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        return _numpy_dtype(self.tensor.dtype)

    ndim = property(lambda self: self.tensor.dim())
    size = property(lambda self: self.tensor.numel())
    itemsize = property(lambda self: self.tensor.element_size())
    nbytes = property(lambda self: self.size * self.itemsize)
    strides = property(lambda self: tuple(step * self.itemsize for step in self.tensor.stride()))
    __class__ = property(lambda self: self.dtype.type if self.scalar else np.ndarray)     

    def __getattr__(self, name: str) -> Any:
        found = getattr(np.ndarray, name, None)
        if found is None:
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if name in KEEPS_MEMORY:
            raise _refusal(f"`.{name}` of a numpy array made from a traced tensor")
        if not callable(found):
            return _run(self.tracer, lambda array: getattr(array, name), (self,), {})
        if name in WRITES:
            return lambda *args, **kwargs: _write(
                self.tracer, self, lambda target, *rest: getattr(target, name)(*rest, **kwargs), *args)
        return lambda *args, **kwargs: _run(
            self.tracer, lambda array, *rest, **named: getattr(array, name)(*rest, **named), (self, *args), kwargs)

    def item(self, *args: int) -> Any:
        chosen = _run(self.tracer, lambda array: np.asarray(array.item(*args)), (self,), {}) if args else self
        return _number(chosen)

    def tolist(self) -> Any:
        return _number(self) if self.scalar or not self.ndim else self.tensor.tolist()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.tensor.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter([self[position] for position in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        return _run(self.tracer, lambda array, place: array[place], (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        def put(target: Any, place: Any, entry: Any) -> None:
            target[place] = entry
        _write(self.tracer, self, put, index, value)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __index__(self) -> int:
        return self.tensor.__index__()

    def __repr__(self) -> str:
        raise _refusal("repr() of a numpy array made from a traced tensor")

    def __deepcopy__(self, memo: Any) -> Any:
        return _run(self.tracer, np.copy, (self,), {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _refusal("pickling of a numpy array made from a traced tensor")


def _leave_to_torch(name: str) -> Any:
    """A binary operator that leaves tensors on its right to torch, as arrays and numbers of numpy do."""
    inherited = getattr(NDArrayOperatorsMixin, name)

    def operate(self: TracedArray, other: Any) -> Any:
        return NotImplemented if isinstance(other, torch.Tensor) else inherited(self, other)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
    setattr(TracedArray, f"__{_name}__", _leave_to_torch(f"__{_name}__"))


def _number(array: TracedArray) -> Any:
    """`array.item()`: a number of Python's."""
    return array.tensor.item()


def _refusal(what: str) -> errors.UnsupportedError:
    frame = blame.user_frame(2)
    return errors.UnsupportedError(f"{what}: `{blame.expression(frame)}`", loc=blame.location(frame),
                                   why="an array stands for a tensor of the graph, which has no memory yet")


def _numpy_dtype(dtype: torch.dtype) -> Any:
    with compat.plain_torch():
        return torch.empty(0, dtype=dtype).numpy().dtype


# -- calls -------------------------------------------------------------------------------------

TRACED = (TracedArray,)


class _Call:
    """One numpy call on plain arrays in the places of traced ones; which results are arrays, numbers, tensors."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.function = function
        self.constants = leaves
        self.places = [i for i, leaf in enumerate(leaves) if type(leaf) in TRACED or isinstance(leaf, torch.Tensor)]
        self.traced = [leaves[i] for i in self.places]
        self.tensors = [leaf.tensor if type(leaf) is TracedArray else leaf for leaf in self.traced]
        self.forms = [(type(leaf) is TracedArray, type(leaf) is TracedArray and leaf.scalar) for leaf in self.traced]
        self.strides = [tensor.stride() for tensor in self.tensors]
        self.kinds: list[str] | None = None
        self.shares = False              # results are views of a kind that torch has not

    def __call__(self, *tensors: torch.Tensor) -> Any:
        arrays = [self.array(*entry) for entry in zip(tensors, self.forms, self.strides, strict=True)]
        leaves = list(self.constants)
        for place, array in zip(self.places, arrays, strict=True):
            leaves[place] = array
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        results, spec = pytree.tree_flatten(self.function(*args, **kwargs))
        if self.kinds is None:
            self.find_view(results, spec, arrays)
            self.kinds = [_kind(result) for result in results]
        return pytree.tree_unflatten([_as_tensor(result) for result in results], spec)

    def array(self, tensor: torch.Tensor, form: tuple[bool, bool], strides: Any) -> Any:
        """What stands for `tensor`: an array laid out as in eager, a number, or the tensor."""
        if tensor.stride() != strides and tensor.numel() > 1:
            tensor = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
        is_array, scalar = form
        if not is_array:
            return tensor
        return tensor.numpy()[()] if scalar else tensor.numpy()

    def find_view(self, results: Sequence[Any], spec: Any, arrays: Sequence[Any]) -> None:
        """Raise _View where the result lies in the memory of an argument; note views that torch has not."""
        for result in results:
            for position, array in enumerate(arrays):
                if isinstance(result, np.ndarray) and isinstance(array, np.ndarray) and array.size and \
                        np.may_share_memory(result, array):
                    plain = len(results) == 1 and spec.is_leaf() and min(result.strides, default=0) >= 0
                    if not plain or result.dtype != array.dtype:
                        self.shares = True
                        continue
                    size = result.itemsize
                    offset = (result.ctypes.data - array.ctypes.data) // size
                    raise _View(position, result.shape, [step // size for step in result.strides], offset)


def _kind(result: Any) -> str:
    if isinstance(result, np.ndarray):
        return "array"
    return "scalar" if isinstance(result, np.generic) else "other"


def _as_tensor(result: Any) -> Any:
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    if min(result.strides, default=0) < 0 or not result.flags.writeable or not result.flags.owndata:
        result = result.copy(order="K") if min(result.strides, default=0) >= 0 else result.copy(order="C")
    return torch.from_numpy(result)


def _run(tracer: Tracer, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `function` gives, as arrays that are traced."""
    call = _Call(function, args, kwargs)
    tracer.record.loc = blame.location(blame.user_frame(2))
    name = getattr(function, "__name__", "numpy")
    with torch.no_grad(), torch._C.DisableTorchFunction():
        try:
            result = call_whole(tracer, call, name, tuple(call.tensors), {})
        except _View as view:
            source = call.traced[view.position]
            return TracedArray(tracer, _view(source.tensor, view))
    leaves, spec = pytree.tree_flatten(result)
    assert call.kinds is not None
    made = [TracedArray(tracer, leaf, kind == "scalar") if kind != "other" else leaf
            for leaf, kind in zip(leaves, call.kinds, strict=True)]
    if call.shares:                      # they are copies here, right as long as nobody writes
        for tensor in (*call.tensors, *(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))):
            tracer.memory.of(tracer.lift(tensor)).frozen = READ_ONLY
    return pytree.tree_unflatten(made, spec)


def _view(tensor: torch.Tensor, view: _View) -> torch.Tensor:
    """A view of `tensor`, by the plainest op that gives it."""
    sizes, strides = tuple(view.sizes), tuple(view.strides)
    if view.offset == 0:
        if sizes == tuple(tensor.shape) and strides == tensor.stride():
            return tensor.view(sizes)
        if sizes == tuple(tensor.shape)[::-1] and strides == tensor.stride()[::-1]:
            return tensor.permute(*range(tensor.dim() - 1, -1, -1))
        if tensor.is_contiguous() and torch.Size(sizes).numel() == tensor.numel():
            other = tensor.view(sizes)
            if other.stride() == strides:
                return other
    return tensor.as_strided(sizes, strides, tensor.storage_offset() + view.offset)


def _write(tracer: Tracer, target: Any, change: Callable[..., Any], *args: Any) -> None:
    """`change(array, *args)` writes to `target`, in a copy whose content the memory takes."""
    if type(target) is not TracedArray:
        raise _refusal("numpy writes values of traced tensors to an array that the program did not make from one")
    if target.scalar:
        raise TypeError(f"'{target.dtype}' object does not support item assignment")

    def changed(array: Any, *rest: Any) -> Any:
        copy = array.copy(order="K")
        change(copy, *rest)
        return copy

    result = _run(tracer, changed, (target, *args), {})
    with torch.no_grad(), torch._C.DisableTorchFunction():
        target.tensor.copy_(result.tensor)


# -- the way in and out ------------------------------------------------------------------------

def as_tensors(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Arguments of a torch function: numbers of numpy as numbers, arrays as tensors where torch takes them."""
    def change(leaf: Any) -> Any:
        if type(leaf) is not TracedArray:
            return leaf
        if func in TAKES_ARRAYS:
            return leaf.tensor
        if not leaf.scalar:              # as in eager, where numpy may then take over
            raise TypeError(f"{getattr(func, '__name__', func)}(): an argument must be Tensor, not numpy.ndarray")
        dtype = number_dtype(leaf.tensor.dtype)
        if dtype is None:
            raise _refusal("a complex number of numpy goes into a torch function")
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return tracer.item(leaf.tensor.reshape(()).to(dtype, copy=True))
    return pytree.tree_map(change, (args, kwargs)) if _may_hold(args) or _may_hold(kwargs.values()) else (args, kwargs)


def copied(array: torch.Tensor, *, dtype: torch.dtype | None = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> torch.Tensor:
    """`torch.tensor(array)`, of an array that a tensor stands for: torch warns of the tensor."""
    with torch.no_grad():
        made = array.detach().to(device=device, dtype=dtype or array.dtype, copy=True)
    return made.requires_grad_(requires_grad)


def _may_hold(values: Iterable[Any]) -> bool:
    """Whether an array is among these, or perhaps in one of them."""
    for value in values:
        kind = type(value)
        if kind is list or kind is tuple or kind is dict:
            if _may_hold(value.values() if kind is dict else value):
                return True
        elif kind is TracedArray or kind in pytree.SUPPORTED_NODES or isinstance(value, tuple):
            return True
    return False


TAKES_ARRAYS = frozenset({
    torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.__getitem__, torch.Tensor.__setitem__, copied,
})
_originals: dict[int, Any] = {}          # id of what stands in place of a function -> the function


def not_lent(function: Any) -> Any:
    """What `function` stands for while a capture runs; itself for anything else."""
    return _originals.get(id(function), function)


@contextlib.contextmanager
def lending(tracer: Tracer) -> Iterator[None]:
    """Inside, numpy and torch hand traced tensors to each other. Other values, and other threads, see no difference."""
    def from_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda array: array.tensor.view_as(array.tensor) if type(array) is TracedArray else function(array)

    def as_array(function: Callable[..., Any]) -> Callable[..., Any]:
        def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(value, torch.Tensor) and isinstance(value, compat.FakeTensor):
                value = value.numpy()
            if type(value) is TracedArray:
                return _run(value.tracer, function, (value, *args), kwargs)
            return function(value, *args, **kwargs)
        return convert

    def ufunc(self: Any, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            raise _refusal("a numpy function writes to a traced tensor")
        return _run(tracer, getattr(function, method), args, kwargs)

    patches = [(torch, "from_numpy", from_numpy), *((np, name, as_array) for name in
               ("asarray", "array", "ascontiguousarray", "asanyarray"))]
    kept = [(home, name, getattr(home, name)) for home, name, _ in patches]
    outer = compat.FakeTensor.__dict__.get("__array_ufunc__")     # of a trace that this one lies in
    setattr(compat.FakeTensor, "__array_ufunc__", ufunc)          # noqa: B010
    for (home, name, make), (_, _, function) in zip(patches, kept, strict=True):
        stand_in = make(function)
        _originals[id(stand_in)] = not_lent(function)
        setattr(home, name, stand_in)
    try:
        yield
    finally:
        if outer is None:
            delattr(compat.FakeTensor, "__array_ufunc__")
        else:
            setattr(compat.FakeTensor, "__array_ufunc__", outer)  # noqa: B010
        for home, name, function in kept:
            _originals.pop(id(getattr(home, name)), None)
            setattr(home, name, function)
