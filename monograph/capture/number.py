"""Python numbers that only the run knows: `.item()` of a traced tensor, and arithmetic on such numbers.

    TracedNumber ::= tensor without dims: i64 (int), f64 (float) or bool

Operators of Python give traced numbers again, by Python's rules. A tensor takes one where it takes a
number (`as_operands`). Whoever asks for the value itself (`bool(n)`, `float(n)`, an index) is answered by
the tracer: see `tracer.Tracer.ask`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.blame import is_of_torch, is_ours, reads_attribute
from monograph.capture.long_integers import (
    EXACT,
    ORDERS,
    is_long,
    keep_double,
    keep_floor,
    keep_negation,
    keep_product,
    keep_sum,
    orders_doubles,
    quotient,
)

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["TracedNumber", "as_operands", "number_dtype", "takes_float"]

KINDS: dict[torch.dtype, type] = {torch.int64: int, torch.float64: float, torch.bool: bool}
DTYPES = {kind: dtype for dtype, kind in KINDS.items()}
REDUCED = (torch.bfloat16, torch.float16)

# Functions of one tensor and one number that do the same with a tensor in the number's place.
ARITHMETIC = frozenset("""
    add sub mul div true_divide rsub add_ sub_ mul_ div_ gt lt ge le eq ne pow fmod remainder floor_divide
    __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __radd__ __rsub__ __rmul__ __rdiv__ __rtruediv__
    __rfloordiv__ __rmod__ __rpow__ __iadd__ __isub__ __imul__ __itruediv__ __gt__ __lt__ __ge__ __le__ __eq__ __ne__
    greater less greater_equal less_equal not_equal multiply subtract divide
""".split())
# Functions that compute one new tensor with numbers that they do not take as tensors.
WITH_FLOATS = frozenset("""
    full full_like new_full clamp clip clamp_min clamp_max where add sub linspace logspace lerp masked_fill addcmul
    addcdiv addmm addmv addbmm baddbmm addr leaky_relu elu celu threshold hardtanh softplus nan_to_num hardshrink
    softshrink
""".split())
COMPARES = frozenset("gt lt ge le eq ne __gt__ __lt__ __ge__ __le__ __eq__ __ne__ greater less greater_equal "
                     "less_equal not_equal".split())


def number_dtype(dtype: torch.dtype) -> torch.dtype | None:
    """The dtype that holds what `.item()` gives; None for complex numbers and u64, which may take more than i64 has."""
    if dtype is torch.bool:
        return torch.bool
    if dtype.is_complex or dtype is torch.uint64:
        return None
    return torch.float64 if dtype.is_floating_point else torch.int64


def kind_of(value: Any) -> type | None:
    """int, float or bool, of a number traced or not, or a size; None for anything else."""
    if isinstance(value, TracedNumber):
        return value.kind
    if isinstance(value, torch.SymInt):
        return int
    return type(value) if type(value) in DTYPES else None


class Integer(int, torch.SymInt):        # type: ignore[misc]
    """What a traced integer says it is."""


class TracedNumber:
    """The number in `tensor`, a traced i64[], f64[] or bool[] that nobody writes to."""

    __slots__ = ("tensor", "tracer")

    def __new__(cls, tracer: Tracer, tensor: torch.Tensor) -> TracedNumber:
        """Torch would refuse an integer with `__torch_function__` where it takes several (`torch.zeros(n, 3)`)."""
        return object.__new__(TracedNumber if tensor.dtype is torch.int64 else OtherNumber)

    def __init__(self, tracer: Tracer, tensor: torch.Tensor) -> None:
        self.tracer = tracer
        self.tensor = tensor

    @property
    def kind(self) -> type:
        return KINDS[self.tensor.dtype]

    @property
    def __class__(self) -> type:         # type: ignore[override]
        """What isinstance asks for. Torch calls `__index__` of what is neither a number nor a SymInt. What a SymInt is
        to do with it is left to this class."""
        frame = sys._getframe(1)
        if is_ours(frame.f_code) or frame.f_code.co_name == compat.SYMBOLIC_OPERATOR:
            return TracedNumber
        if self.kind is int:
            return int if reads_attribute(frame, "__class__") else Integer
        return TracedNumber if is_of_torch(frame.f_code) else self.kind

    def _ask(self, *_: Any, **__: Any) -> Any:
        return self.tracer.ask(self.tensor)

    __index__ = _ask

    def __bool__(self) -> bool:
        return bool(self.tracer.ask(self.truth().tensor))

    def __float__(self) -> float:
        return float(self._ask())

    def __int__(self) -> int:
        return int(self._ask())

    def __complex__(self) -> complex:
        return complex(self._ask())

    def __str__(self) -> str:
        return str(self._ask())

    def __repr__(self) -> str:
        return repr(self._ask())

    def __format__(self, spec: str) -> str:
        return format(self._ask(), spec)

    def __hash__(self) -> int:
        """Whoever hashes a number may keep it, as a key, beyond the trace: it must be the number itself."""
        return hash(self.tracer.plain(self.tensor))

    @property
    def real(self) -> TracedNumber:
        return self.to(int) if self.kind is bool else self

    def __getattr__(self, name: str) -> Any:
        """What an int or a float has besides its operators (`imag`, `is_integer`, ...): of the number itself."""
        if name.startswith("_") or not hasattr(self.kind, name):
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'", name=name, obj=self)
        return getattr(self._ask(), name)

    def __copy__(self) -> TracedNumber:
        return self

    def __deepcopy__(self, memo: Any) -> TracedNumber:
        return self

    # -- arithmetic --------------------------------------------------------------------

    def of(self, compute: Callable[..., torch.Tensor], *operands: Any) -> TracedNumber:
        """`compute` on the tensors of `operands`, numbers traced or not."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return TracedNumber(self.tracer, compute(*map(self.tracer.number_tensor, operands)))

    def truth(self) -> TracedNumber:
        return self if self.kind is bool else self.of(lambda x: x != 0, self)

    def to(self, kind: type) -> TracedNumber:
        """`int(n)`, `float(n)` or `bool(n)`."""
        if kind is self.kind:
            return self
        if kind is bool:
            return self.truth()
        if kind is int and self.kind is float:
            return self._rounded(torch.trunc)
        return self.of(lambda x: x.to(DTYPES[kind]), self)

    def _other(self, other: Any) -> bool:
        return kind_of(other) is not None

    def _binary(self, other: Any, compute: Callable[..., torch.Tensor], swap: bool = False) -> Any:
        if not self._other(other):
            return NotImplemented
        if is_long(other) or not self._is_exact(other, compute):
            return self._beyond(other, compute, swap)
        left, right = (other, self) if swap else (self, other)
        wanted = float if float in (kind_of(left), kind_of(right)) else int
        return self.of(lambda a, b: compute(a.to(DTYPES[wanted]), b.to(DTYPES[wanted])), left, right)

    def _beyond(self, other: int, compute: Callable[..., Any], swap: bool) -> Any:
        """With an integer of more than 64 bits: an order is known, of anything else the value decides."""
        if self.kind is float and float(other) == other:
            return self._binary(float(other), compute, swap)
        if self.kind is not float and compute in ORDERS:
            return compute(0, other)
        function = EXACT.get(compute, compute)
        return function(other, self._ask()) if swap else function(self._ask(), other)

    def _is_exact(self, other: Any, compute: Callable[..., Any]) -> bool:
        """Python compares integers with floats, and divides integers, exactly, torch by their doubles: False where a
        number of Python's has none, and a call in which a traced one has none runs in Python."""
        floats = (self.kind, kind_of(other)).count(float)
        if not (compute in ORDERS and floats == 1 and not orders_doubles(other) or compute is quotient and not floats):
            return True
        for number in (self, other):
            if isinstance(number, TracedNumber) and number.kind is int:
                keep_double(number)
        return type(other) is not int or float(other) == other

    def _kept(self, keep: Callable[..., None], other: Any, compute: Callable[..., torch.Tensor], swap: bool) -> Any:
        """Of integers: a call in which it takes more than 64 bits runs in Python, which `keep` sees to."""
        kinds = (self.kind, kind_of(other))
        if None not in kinds and float not in kinds and kinds != (bool, bool) and not is_long(other):
            keep(self, compute, *((other, self) if swap else (self, other)))
        return self._binary(other, compute, swap)

    def _sum(self, other: Any, compute: Callable[..., torch.Tensor], swap: bool = False) -> Any:
        return self._kept(keep_sum, other, compute, swap)

    def _product(self, other: Any, compute: Callable[..., torch.Tensor], swap: bool = False) -> Any:
        if bool in (self.kind, kind_of(other)):
            return self._binary(other, compute, swap)
        return self._kept(keep_product, other, compute, swap)

    def _divide(self, other: Any, compute: Callable[..., torch.Tensor], swap: bool, message: str) -> Any:
        """Python's divisions raise where torch gives inf or raises otherwise."""
        if not self._other(other):
            return NotImplemented
        divisor = self if swap else other
        if isinstance(divisor, TracedNumber):
            self.tracer.check_value(divisor.truth().tensor, "ZeroDivisionError", message)
        elif divisor == 0:
            raise ZeroDivisionError(message)
        if compute is torch.floor_divide:
            return self._kept(keep_floor, other, compute, swap)
        return self._binary(other, compute, swap)

    def _is_float(self, other: Any) -> bool:
        return float in (self.kind, kind_of(other))

    def __add__(self, other: Any) -> Any:
        return self._sum(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._sum(other, operator.add, True)

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._sum(other, operator.sub, True)

    def __mul__(self, other: Any) -> Any:
        if type(other) is list and len(other) == 1 and isinstance(other[0], torch.Tensor):      # perhaps `Repeated`
            return other * self.tracer.size(self)
        return self._product(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self * other if type(other) is list else self._product(other, operator.mul, True)

    def _true_division(self, other: Any, swap: bool) -> Any:
        message = "float division by zero" if self._is_float(other) else "division by zero"
        return self._divide(other, quotient, swap, message)

    def __truediv__(self, other: Any) -> Any:
        return self._true_division(other, False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._true_division(other, True)

    def _floor_division(self, other: Any, swap: bool) -> Any:
        message = "float floor division by zero" if self._is_float(other) else "integer division or modulo by zero"
        return self._divide(other, torch.floor_divide, swap, message)

    def __floordiv__(self, other: Any) -> Any:
        return self._floor_division(other, False)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._floor_division(other, True)

    def _modulo(self, other: Any, swap: bool) -> Any:
        message = "float modulo" if self._is_float(other) else "integer modulo by zero"
        return self._divide(other, torch.remainder, swap, message)

    def __mod__(self, other: Any) -> Any:
        return self._modulo(other, False)

    def __rmod__(self, other: Any) -> Any:
        return self._modulo(other, True)

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if self._other(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if self._other(other) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and other >= 0 or type(other) is float and self.kind is float and other.is_integer():
            return self._product(other, torch.pow)
        return self._power(self, other) if self._other(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return self._power(other, self) if self._other(other) else NotImplemented

    def _power(self, base: Any, exponent: Any) -> Any:
        """A float, unless both are integers: then the value decides, as it does for what is complex (which raises)."""
        if float in (kind_of(base), kind_of(exponent)):
            return self.tracer.call(operator.pow, float, base, exponent)
        return (base._ask() if base is self else base) ** (exponent._ask() if exponent is self else exponent)

    def __neg__(self) -> TracedNumber:
        return self._negated(torch.neg)

    def _negated(self, compute: Callable[[torch.Tensor], torch.Tensor]) -> TracedNumber:
        if self.kind is int:
            keep_negation(self)
        return self.of(compute, +self)

    def __pos__(self) -> TracedNumber:
        return self if self.kind is not bool else self.to(int)

    def __abs__(self) -> TracedNumber:
        return self._negated(torch.abs)

    def __invert__(self) -> Any:
        return ~self._ask() if self.kind is float else self.of(torch.bitwise_not, +self)

    def _bits(self, other: Any, compute: Callable[..., torch.Tensor], swap: bool = False) -> Any:
        kinds = (self.kind, kind_of(other))
        if not self._other(other) or float in kinds:
            return NotImplemented
        if kinds == (bool, bool):
            return self.of(compute, *((other, self) if swap else (self, other)))
        return self._binary(other, compute, swap)

    def __and__(self, other: Any) -> Any:
        return self._bits(other, torch.bitwise_and)

    def __or__(self, other: Any) -> Any:
        return self._bits(other, torch.bitwise_or)

    def __xor__(self, other: Any) -> Any:
        return self._bits(other, torch.bitwise_xor)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _shift(self, other: Any, function: Callable[[Any, Any], Any], swap: bool) -> Any:
        if not self._other(other):
            return NotImplemented
        return function(other, self._ask()) if swap else function(self._ask(), other)

    def __lshift__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other < 63 and self.kind is not float:
            return self * (1 << other)
        return self._shift(other, operator.lshift, False)

    def __rlshift__(self, other: Any) -> Any:
        return self._shift(other, operator.lshift, True)

    def __rshift__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other < 63 and self.kind is not float:
            return self // (1 << other)
        return self._shift(other, operator.rshift, False)

    def __rrshift__(self, other: Any) -> Any:
        return self._shift(other, operator.rshift, True)

    # -- comparison --------------------------------------------------------------------

    def __eq__(self, other: Any) -> Any:
        return self._binary(other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._binary(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._binary(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._binary(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._binary(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._binary(other, operator.ge)

    # -- rounding ----------------------------------------------------------------------

    def _rounded(self, compute: Callable[[torch.Tensor], torch.Tensor]) -> TracedNumber:
        """As an integer: what is none (nan, infinity) and what 64 bits do not hold is for Python to say."""
        if self.kind is not float:
            return +self
        self.tracer.only_if(self.of(lambda x: x.abs() < 2.0 ** 63, self).tensor)
        return self.of(lambda x: compute(x).long(), self)

    def __round__(self, digits: Any = None) -> Any:
        if digits is None:
            return self._rounded(torch.round)
        return self.tracer.call(round, self.kind if self.kind is float else int, self, digits)

    def __trunc__(self) -> TracedNumber:
        return self._rounded(torch.trunc)

    def __floor__(self) -> TracedNumber:
        return self._rounded(torch.floor)

    def __ceil__(self) -> TracedNumber:
        return self._rounded(torch.ceil)

    def is_integer(self) -> Any:
        return self.of(lambda x: x == x.trunc(), self.to(float))


class OtherNumber(TracedNumber):
    """A traced f64[] or bool[]."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Torch takes a number for a tensor that minds its own business; the function mode comes first."""
        number = next(x for x in _flat((args, kwargs or {})) if isinstance(x, TracedNumber))
        args, kwargs = as_operands(number.tracer, func, args, kwargs or {})
        return func(*args, **kwargs)


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _flat(entry)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    elif isinstance(value, slice):
        yield from _flat((value.start, value.stop, value.step))
    else:
        yield value


def has_number(values: Iterable[Any]) -> bool:
    """Whether a traced number is among the arguments of a function, or in a list, tuple, dict or slice of them."""
    for value in values:
        if isinstance(value, torch.Tensor):      # most are: soon told, and without asking for its class
            continue
        if isinstance(value, TracedNumber) or isinstance(value, (list, tuple)) and has_number(value):
            return True
        if isinstance(value, dict) and has_number(value.values()):
            return True
        if isinstance(value, slice) and has_number((value.start, value.stop, value.step)):
            return True
    return False


def takes_float(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether `func` does with a float as with a constant, and one among its arguments is traced."""
    name = getattr(func, "__name__", "")
    return name in WITH_FLOATS and (name not in ARITHMETIC or len(kwargs) > 0) and any(
        isinstance(x, TracedNumber) and x.kind is float for x in _flat((args, kwargs)))


def as_operands(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a torch function with tensors for traced numbers, where that changes nothing.

    What is left is asked for: an integer as a size, anything else by its value.
    """
    if not has_number(args) and not has_number(kwargs.values()):
        return args, kwargs
    name = getattr(func, "__name__", "")
    if name == "fill_" and len(args) == 2 and args[0].is_floating_point() and isinstance(args[1], TracedNumber):
        return (args[0], args[1].tensor), kwargs
    if name in ARITHMETIC and len(args) == 2:
        left, right = args
        if isinstance(left, torch.Tensor) and isinstance(right, TracedNumber):
            return _beside(tracer, name, left, right), kwargs
        if isinstance(right, torch.Tensor) and isinstance(left, TracedNumber):
            right, left = _beside(tracer, name, right, left)
            return (left, right), kwargs
    return _plain(args), _plain(kwargs)


def _beside(tracer: Tracer, name: str, tensor: torch.Tensor, number: TracedNumber) -> tuple[Any, Any]:
    """`tensor` and the number as a tensor that promotes as a Python number does."""
    with torch._C.DisableTorchFunction():
        dtype = torch.result_type(tensor, number.kind(1))
        if dtype in REDUCED:                # torch computes with the number unrounded, as it does with f32[]
            if not tensor.dim():
                return tensor, number._ask()
            dtype = torch.float32
        operand = number.tensor if number.tensor.dtype == dtype else number.of(lambda x: x.to(dtype), number).tensor
    return tensor, operand


def _plain(value: Any) -> Any:
    if isinstance(value, TracedNumber):
        return value.tracer.size(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_plain(entry) for entry in value)
    if type(value) is dict:
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, slice):
        return slice(_plain(value.start), _plain(value.stop), _plain(value.step))
    return value
