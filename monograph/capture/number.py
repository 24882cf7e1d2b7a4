"""`.item()` of a traced tensor: a number that only the run knows.

It may be returned, kept in a result or an attribute, and combined by arithmetic with tensors of the
dtype it came from. Whatever else Python does with it asks for its value, and is refused by name.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from monograph.capture import handlers

__all__ = ["TracedNumber", "as_operands", "number_dtype"]

ASK = torch.ops.aten._local_scalar_dense.default

# Functions of tensors that take a number where they take a tensor, and do the same with either.
ARITHMETIC = frozenset("""
    add sub mul div true_divide rsub add_ sub_ mul_ div_ gt lt ge le eq ne __radd__ __rsub__ __rmul__ __rdiv__
    __rtruediv__ __gt__ __lt__ __ge__ __le__ __eq__ __ne__
""".split())


def number_dtype(dtype: torch.dtype) -> torch.dtype | None:
    """The dtype that holds what `.item()` gives; None for complex numbers."""
    if dtype is torch.bool:
        return torch.bool
    if dtype.is_complex:
        return None
    return torch.float64 if dtype.is_floating_point else torch.int64


class TracedNumber:
    """The number in `tensor`, a traced tensor of one element."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def _ask(self, *_: Any, **__: Any) -> NoReturn:
        raise handlers.needs_value(ASK, None)

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __str__ = __repr__ = __format__ = _ask
    __round__ = __trunc__ = __floor__ = __ceil__ = __neg__ = __pos__ = __abs__ = __invert__ = _ask
    __hash__ = _ask

    def _combine(self, other: Any) -> Any:
        """Tensors know what to do; numbers ask."""
        return NotImplemented if isinstance(other, torch.Tensor) else self._ask()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _combine
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _combine
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _combine

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Torch takes a number for a tensor that minds its own business; the function mode comes first."""
        return func(*as_operands(func, args), **(kwargs or {}))


def as_operands(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` with tensors for traced numbers, where that changes nothing; asks for the value elsewhere."""
    numbers = [arg for arg in args if isinstance(arg, TracedNumber)]
    if not numbers:
        return args
    dtypes = {arg.tensor.dtype if isinstance(arg, TracedNumber) else arg.dtype
              for arg in args if isinstance(arg, (TracedNumber, torch.Tensor))}
    if getattr(func, "__name__", "") not in ARITHMETIC or len(dtypes) != 1:
        numbers[0]._ask()
    return tuple(arg.tensor if isinstance(arg, TracedNumber) else arg for arg in args)
