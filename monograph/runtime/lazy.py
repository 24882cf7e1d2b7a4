"""Lazy conjugates and negatives: bits on a tensor that native code does not see."""

from __future__ import annotations

import torch

__all__ = ["resolved"]


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as memory holds it, the bits carried out on a copy that has its strides."""
    if not (tensor.is_conj() or tensor.is_neg()):
        return tensor
    if not tensor.numel():
        return tensor.resolve_conj().resolve_neg()
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    flat = tensor.detach().as_strided((extent,), (1,)).resolve_conj().resolve_neg()
    return flat.as_strided(tensor.shape, tensor.stride(), 0)
