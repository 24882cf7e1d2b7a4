"""Activations and their derivatives, as torch's kernels compute them.

On bf16 and f16 the whole formula is evaluated in f32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import to_dtype, widened

__all__ = ["RULES"]


def _pointwise(formula: Any) -> Any:
    """A rule from `formula(b, *operands in the wide dtype, attributes)`."""
    def rule(b: Builder, node: Node) -> Value | None:
        if not all(isinstance(operand, Value) for operand in node.operands):
            return None
        if not node.results[0].tensor.dtype.is_floating_point:
            return None
        values = [widened(b, operand) for operand in node.operands if isinstance(operand, Value)]
        return to_dtype(b, formula(b, *values, node.attributes), node.results[0].tensor.dtype)

    return rule


def _gelu(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """x / 2 * (1 + erf(x / sqrt 2)), or its tanh approximation"""
    if attributes["approximate"] == "tanh":
        cube = b.call("aten.mul.Tensor", b.call("aten.mul.Tensor", x, x), x)
        inner = b.call("aten.add.Tensor", x, b.call("aten.mul.Tensor", cube, 0.044715))
        inner = b.call("aten.mul.Tensor", inner, math.sqrt(2 / math.pi))
        bend = b.call("aten.tanh.default", inner)
    else:
        bend = b.call("aten.erf.default", b.call("aten.mul.Tensor", x, math.sqrt(0.5)))
    return b.call("aten.mul.Tensor", b.call("aten.mul.Tensor", x, 0.5), b.call("aten.add.Tensor", bend, 1.0))


def _silu(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """x * sigmoid(x)"""
    return b.call("aten.mul.Tensor", x, b.call("aten.sigmoid.default", x))


def _hardtanh(b: Builder, node: Node) -> Value | None:
    """clamp(x, min, max)"""
    if not node.results[0].tensor.dtype.is_floating_point:
        return None
    return b.call("aten.clamp.default", node.operands[0], node.attributes["min_val"], node.attributes["max_val"])


def _hardsigmoid_of(b: Builder, x: Value) -> Value:
    """clamp(x + 3, 0, 6)"""
    return b.call("aten.clamp.default", b.call("aten.add.Tensor", x, 3.0), 0.0, 6.0)


def _hardswish(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """x * clamp(x + 3, 0, 6) / 6"""
    return b.call("aten.div.Tensor", b.call("aten.mul.Tensor", x, _hardsigmoid_of(b, x)), 6.0)


def _hardsigmoid(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """clamp(x + 3, 0, 6) / 6"""
    return b.call("aten.div.Tensor", _hardsigmoid_of(b, x), 6.0)


def _leaky_relu(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """x where x > 0, slope * x elsewhere"""
    slope = b.call("aten.mul.Tensor", x, attributes["negative_slope"])
    return b.call("aten.where.self", b.call("aten.gt.Scalar", x, 0), x, slope)


def _elu(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """scale * x where x > 0, alpha * scale * (exp(x * input_scale) - 1) elsewhere"""
    alpha, scale, inner = attributes["alpha"], attributes["scale"], attributes["input_scale"]
    bent = b.call("aten.expm1.default", x if inner == 1 else b.call("aten.mul.Tensor", x, inner))
    bent = b.call("aten.mul.Tensor", bent, alpha * scale)
    straight = x if scale == 1 else b.call("aten.mul.Tensor", x, scale)
    return b.call("aten.where.self", b.call("aten.gt.Scalar", x, 0), straight, bent)


def _softplus(b: Builder, x: Value, attributes: dict[str, Any]) -> Value:
    """log1p(exp(beta * x)) / beta where beta * x <= threshold, x elsewhere"""
    scaled = b.call("aten.mul.Tensor", x, attributes["beta"])
    soft = b.call("aten.log1p.default", b.call("aten.exp.default", scaled))
    soft = b.call("aten.div.Tensor", soft, attributes["beta"])
    return b.call("aten.where.self", b.call("aten.gt.Scalar", scaled, attributes["threshold"]), x, soft)


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


def _tanh_backward(b: Builder, grad: Value, y: Value, attributes: dict[str, Any]) -> Value:
    """grad * (1 - y * y)"""
    return b.call("aten.mul.Tensor", grad, b.call("aten.rsub.Scalar", b.call("aten.mul.Tensor", y, y), 1))


def _threshold_backward(b: Builder, node: Node) -> Value:
    """0 where x <= threshold, grad elsewhere"""
    grad, x = node.operands
    below = b.call("aten.le.Scalar", x, node.attributes["threshold"])
    return to_dtype(b, b.call("aten.where.ScalarSelf", below, 0, grad), node.results[0].tensor.dtype)


RULES = {
    "aten.gelu.default": _pointwise(_gelu),
    "aten.silu.default": _pointwise(_silu),
    "aten.hardtanh.default": _hardtanh,
    "aten.hardswish.default": _pointwise(_hardswish),
    "aten.hardsigmoid.default": _pointwise(_hardsigmoid),
    "aten.leaky_relu.default": _pointwise(_leaky_relu),
    "aten.elu.default": _pointwise(_elu),
    "aten.softplus.default": _pointwise(_softplus),
    "aten.sigmoid_backward.default": _sigmoid_backward,
    "aten.tanh_backward.default": _pointwise(_tanh_backward),
    "aten.threshold_backward.default": _threshold_backward,
}
