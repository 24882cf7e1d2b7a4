"""Gradients that are no scatter after all.

    avg_pool    a sum over the windows that cover a place: the average over a window of the stretched gradient
    adaptive average pooling, nearest upsampling by whole factors: blocks of equal values, sums over blocks
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder

__all__ = ["RULES", "is_plain", "operand"]

FLOATS = (torch.float32, torch.float64)      # on narrow floats torch's kernels round in between


def operand(node: Node, name: str) -> Value:
    value = node.operand(name)
    assert isinstance(value, Value)
    return value


def is_plain(node: Node) -> bool:
    """f32 or f64, static and not empty."""
    type = node.results[0].tensor
    return type.dtype in FLOATS and type.is_static and 0 not in type.shape


def _avg_pool_backward(rank: int, name: str) -> Any:
    """The rule for pooling over the last `rank` dims."""
    def spread(number: Sequence[int]) -> list[int]:
        return list(number) * rank if len(number) == 1 else list(number)

    def rule(b: Builder, node: Node) -> Value | None:
        attributes = node.attributes
        if not is_plain(node) or attributes["ceil_mode"]:
            return None
        kernel, padding = spread(attributes["kernel_size"]), spread(attributes["padding"])
        stride = spread(attributes["stride"]) or kernel
        if any(padding) and not attributes["count_include_pad"]:
            return None
        grad = operand(node, "grad_output")
        sizes: Any = node.results[0].tensor.shape[-rank:]
        outputs: Any = grad.tensor.shape[-rank:]
        lead = grad.tensor.shape[:-rank]
        stretched = _stretched(b, grad, lead, outputs, stride)
        pads: list[int] = []
        for size, out, window, step, pad in reversed(list(zip(sizes, outputs, kernel, stride, padding))):
            pads += [window - 1 - pad, size + pad - out * step]
        stretched = b.call("aten.constant_pad_nd.default", stretched, tuple(pads))
        result = b.call(f"aten.{name}.default", stretched, tuple(kernel), (1,) * rank)
        override = attributes["divisor_override"]
        return result if override is None else b.call("aten.mul.Tensor", result, math.prod(kernel) / override)

    return rule


def _stretched(b: Builder, x: Value, lead: Any, sizes: Sequence[int], stride: Sequence[int]) -> Value:
    """x with `stride - 1` zeros after every element along its last dims."""
    if all(step == 1 for step in stride):
        return x
    parts = [n for size in sizes for n in (size, 1)]
    pads = [n for step in reversed(stride) for n in (0, step - 1, 0, 0)]
    x = b.call("aten.view.default", x, (*lead, *parts))
    x = b.call("aten.constant_pad_nd.default", x, tuple(pads))
    return b.call("aten.reshape.default", x, (*lead, *(size * step for size, step in zip(sizes, stride))))


def _factors(small: Sequence[Any], large: Sequence[Any]) -> list[int] | None:
    """large / small where they divide."""
    if any(size % part for part, size in zip(small, large)):
        return None
    return [size // part for part, size in zip(small, large)]


def _adaptive_pool_backward(rank: int) -> Any:
    def rule(b: Builder, node: Node) -> Value | None:
        grad, shape = operand(node, "grad_output"), node.results[0].tensor.shape
        if not is_plain(node) or 0 in grad.tensor.shape:
            return None
        small = grad.tensor.shape[-rank:]
        factors = _factors(small, shape[-rank:])
        if factors is None:
            return None
        lead = shape[:-rank]
        grad = b.call("aten.div.Tensor", grad, math.prod(factors))
        grad = b.call("aten.view.default", grad, (*lead, *(n for size in small for n in (size, 1))))
        pairs = tuple(n for pair in zip(small, factors) for n in pair)
        return b.call("aten.reshape.default", b.call("aten.expand.default", grad, (*lead, *pairs)), shape)

    return rule


def _upsample_nearest_backward(rank: int) -> Any:
    def rule(b: Builder, node: Node) -> Value | None:
        grad, shape = operand(node, "grad_output"), node.results[0].tensor.shape
        if not is_plain(node):
            return None
        small = shape[-rank:]
        factors = _factors(small, grad.tensor.shape[-rank:])
        given = [value for name, value in node.attributes.items() if name.startswith("scales")]
        if factors is None or any(scale not in (None, float(f)) for scale, f in zip(given, factors)):
            return None
        lead = shape[:-rank]
        pairs = tuple(n for pair in zip(small, factors) for n in pair)
        blocks = b.call("aten.view.default", grad, (*lead, *pairs))
        return b.call("aten.sum.dim_IntList", blocks, tuple(len(lead) + 2 * k + 1 for k in range(rank)))

    return rule


RULES = {
    "aten.avg_pool2d_backward.default": _avg_pool_backward(2, "avg_pool2d"),
    "aten.avg_pool3d_backward.default": _avg_pool_backward(3, "avg_pool3d"),
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_pool_backward(2),
    "aten._adaptive_avg_pool3d_backward.default": _adaptive_pool_backward(3),
    "aten.upsample_nearest1d_backward.default": _upsample_nearest_backward(1),
    "aten.upsample_nearest2d_backward.default": _upsample_nearest_backward(2),
    "aten.upsample_nearest3d_backward.default": _upsample_nearest_backward(3),
}
