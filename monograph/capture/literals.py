"""`torch.tensor([a, b])` where some of the numbers are traced: the tensor stacked from them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.number import TracedNumber, kind_of

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["BUILDERS", "built"]

BUILDERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray})


def built(tracer: Tracer, data: Any, dtype: torch.dtype | None = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False) -> torch.Tensor | None:
    """What torch makes of nested sequences; None where no number in them is traced, or torch is to refuse them."""
    leaves = list(_leaves(data))
    if not isinstance(data, (list, tuple)) and not isinstance(data, TracedNumber) or requires_grad:
        return None
    if not any(isinstance(leaf, (TracedNumber, compat.FakeTensor)) for leaf in leaves):
        return None
    if not all(kind_of(leaf) or isinstance(leaf, torch.Tensor) and not leaf.dim() for leaf in leaves):
        return None
    wanted = functools.reduce(torch.promote_types, map(_dtype, leaves)) if dtype is None else dtype
    try:
        return _stacked(tracer, data, wanted)
    except _Ragged:
        return None


class _Ragged(Exception):
    """The parts have different shapes."""


def _leaves(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        for entry in data:
            yield from _leaves(entry)
    else:
        yield data


def _dtype(leaf: Any) -> torch.dtype:
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype
    return {bool: torch.bool, int: torch.int64}.get(kind_of(leaf) or float, torch.get_default_dtype())


def _stacked(tracer: Tracer, data: Any, dtype: torch.dtype) -> torch.Tensor:
    """A fresh tensor."""
    if isinstance(data, (list, tuple)):
        if not data:
            return torch.empty(0, dtype=dtype)
        parts = [_stacked(tracer, entry, dtype) for entry in data]
        if any(part.shape != parts[0].shape for part in parts):
            raise _Ragged
        return torch.stack(parts)
    if isinstance(data, torch.Tensor):
        return data.detach().to(dtype, copy=True)
    return tracer.number_tensor(data).to(dtype, copy=True)
