"""Derivatives of activations whose kernels round between the steps."""

from __future__ import annotations

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import to_dtype, widened

__all__ = ["RULES"]


def _sigmoid_backward(b: Builder, node: Node) -> Value | None:
    """grad * (1 - y) * y; in f16 every step is rounded, in bf16 only the last"""
    grad, y = node.operands
    dtype = node.results[0].tensor.dtype
    if not isinstance(grad, Value) or not isinstance(y, Value) or not dtype.is_floating_point:
        return None
    if dtype is not torch.float16:
        grad, y = widened(b, grad), widened(b, y)
    result = b.call("aten.mul.Tensor", b.call("aten.mul.Tensor", grad, b.call("aten.rsub.Scalar", y, 1)), y)
    return to_dtype(b, result, dtype)


RULES = {"aten.sigmoid_backward.default": _sigmoid_backward}
