"""Softmax and the norms.

    softmax(x)   = exp(x - max x) / sum exp(x - max x)
    norm(x)      = (x - mean) * rstd * weight + bias       over rows (layer), groups (group) or all but channels (batch)

On bf16 and f16 everything is computed in f32 and rounded once at the end, as torch's kernels do.
"""

from __future__ import annotations

from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.symbolic import Dim, product
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import centred, dims_of, to_dtype, wide, widened

__all__ = ["RULES"]


def _softmax(b: Builder, node: Node) -> Value | None:
    x = _input(node)
    if 0 in x.tensor.shape:
        return None
    wider, dims = widened(b, x), (node.attributes["dim"],)
    e = b.call("aten.exp.default", b.call("aten.sub.Tensor", wider, b.call("aten.amax.default", wider, dims, True)))
    result = b.call("aten.div.Tensor", e, b.call("aten.sum.dim_IntList", e, dims, True))
    return to_dtype(b, result, node.results[0].tensor.dtype)


def _log_softmax(b: Builder, node: Node) -> Value | None:
    x = _input(node)
    if 0 in x.tensor.shape:
        return None
    wider, dims = widened(b, x), (node.attributes["dim"],)
    shifted = b.call("aten.sub.Tensor", wider, b.call("aten.amax.default", wider, dims, True))
    total = b.call("aten.sum.dim_IntList", b.call("aten.exp.default", shifted), dims, True)
    last = dims_of(x, dims) == (x.tensor.rank - 1,)
    if last and x.tensor.dtype is node.results[0].tensor.dtype:
        # Along the last dim torch's kernel keeps the sum and its logarithm in the dtype of x.
        total = _rounded(b, b.call("aten.log.default", _rounded(b, total, x.tensor.dtype)), x.tensor.dtype)
    else:
        total = b.call("aten.log.default", total)
    return to_dtype(b, b.call("aten.sub.Tensor", shifted, total), node.results[0].tensor.dtype)


def _rounded(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    """`x` rounded to `dtype`, still in its own."""
    return to_dtype(b, to_dtype(b, x, dtype), x.tensor.dtype)


def _softmax_backward(b: Builder, node: Node) -> Value:
    """(grad - sum(grad * y)) * y"""
    grad, y = (widened(b, _value(node, name)) for name in ("grad_output", "output"))
    product_ = b.call("aten.mul.Tensor", grad, y)
    total = b.call("aten.sum.dim_IntList", product_, (node.attributes["dim"],), True)
    result = b.call("aten.mul.Tensor", b.call("aten.sub.Tensor", grad, total), y)
    return to_dtype(b, result, node.results[0].tensor.dtype)


def _log_softmax_backward(b: Builder, node: Node) -> Value:
    """grad - exp(y) * sum(grad)"""
    grad, y = (widened(b, _value(node, name)) for name in ("grad_output", "output"))
    total = b.call("aten.sum.dim_IntList", grad, (node.attributes["dim"],), True)
    result = b.call("aten.sub.Tensor", grad, b.call("aten.mul.Tensor", b.call("aten.exp.default", y), total))
    return to_dtype(b, result, node.results[0].tensor.dtype)


def _input(node: Node) -> Value:
    value = node.operands[0]
    assert isinstance(value, Value)
    return value


def _value(node: Node, name: str) -> Value:
    value = node.operand(name)
    assert isinstance(value, Value)
    return value


def _optional(node: Node, name: str) -> Value | None:
    value = node.operand(name)
    return value if isinstance(value, Value) else None


def _rstd(b: Builder, squares: Value, count: Dim, eps: float) -> Value:
    variance = b.call("aten.div.Tensor", squares, count)
    return b.call("aten.rsqrt.default", b.call("aten.add.Tensor", variance, eps))


def _affine(b: Builder, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """x * weight + bias in the wide dtype."""
    if weight is not None:
        x = b.call("aten.mul.Tensor", x, to_dtype(b, weight, x.tensor.dtype))
    if bias is not None:
        x = b.call("aten.add.Tensor", x, to_dtype(b, bias, x.tensor.dtype))
    return x


def _typed(b: Builder, values: tuple[Value, ...], node: Node) -> tuple[Value, ...]:
    """Each value in the dtype of the result it stands for."""
    return tuple(to_dtype(b, value, result.tensor.dtype) for value, result in zip(values, node.results))


def _layer_norm(b: Builder, node: Node) -> tuple[Value, ...] | None:
    x = _input(node)
    rank = x.tensor.rank
    dims = tuple(range(rank - len(node.attributes["normalized_shape"]), rank))
    count = product(x.tensor.shape[d] for d in dims)
    if 0 in x.tensor.shape:
        return None
    mean, difference, squares = centred(b, widened(b, x), dims)
    rstd = _rstd(b, squares, count, node.attributes["eps"])
    normal = b.call("aten.mul.Tensor", difference, rstd)
    return _typed(b, (_affine(b, normal, _optional(node, "weight"), _optional(node, "bias")), mean, rstd), node)


def _layer_norm_backward(b: Builder, node: Node) -> tuple[Value | None, ...] | None:
    """With x' = (x - mean) * rstd and g = grad * weight:

    d x      = rstd * (g - mean(g) - x' * mean(g * x'))     over the normalised dims
    d weight = sum(grad * x'),  d bias = sum(grad)           over the others
    """
    x = _value(node, "input")
    rank, normal_rank = x.tensor.rank, len(node.attributes["normalized_shape"])
    if 0 in x.tensor.shape:
        return None
    inner, outer = tuple(range(rank - normal_rank, rank)), tuple(range(rank - normal_rank))
    grad, mean, rstd = (widened(b, _value(node, name)) for name in ("grad_out", "mean", "rstd"))
    normal = b.call("aten.mul.Tensor", b.call("aten.sub.Tensor", widened(b, x), mean), rstd)
    weight = _optional(node, "weight")
    wanted: list[Value | None] = [None, None, None]
    if node.attributes["output_mask"][0]:
        g = _affine(b, grad, weight, None)
        count = product(x.tensor.shape[d] for d in inner)
        first, second = (
            b.call("aten.div.Tensor", b.call("aten.sum.dim_IntList", term, inner, True), count)
            for term in (g, b.call("aten.mul.Tensor", g, normal)))
        centre = b.call("aten.sub.Tensor", g, first)
        along = b.call("aten.mul.Tensor", normal, second)
        wanted[0] = b.call("aten.mul.Tensor", rstd, b.call("aten.sub.Tensor", centre, along))
    if node.attributes["output_mask"][1] and weight is not None:
        wanted[1] = _summed(b, b.call("aten.mul.Tensor", grad, normal), outer)
    if node.attributes["output_mask"][2] and _optional(node, "bias") is not None:
        wanted[2] = _summed(b, grad, outer)
    return tuple(value and to_dtype(b, value, result.tensor.dtype) for value, result in zip(wanted, node.results))


def _summed(b: Builder, x: Value, dims: tuple[int, ...]) -> Value:
    return b.call("aten.sum.dim_IntList", x, dims) if dims else x


def _rms_norm(b: Builder, node: Node) -> tuple[Value, ...] | None:
    """x * rsqrt(mean(x * x) + eps) * weight, rstd"""
    x = _input(node)
    rank = x.tensor.rank
    dims = tuple(range(rank - len(node.attributes["normalized_shape"]), rank))
    if 0 in x.tensor.shape:
        return None
    eps = node.attributes["eps"]
    if eps is None:
        eps = torch.finfo(x.tensor.dtype).eps
    wider = widened(b, x)
    squares = b.call("aten.sum.dim_IntList", b.call("aten.mul.Tensor", wider, wider), dims, True)
    rstd = _rstd(b, squares, product(x.tensor.shape[d] for d in dims), eps)
    normal = b.call("aten.mul.Tensor", wider, rstd)
    return _typed(b, (_affine(b, normal, _optional(node, "weight"), None), rstd), node)


def _group_norm(b: Builder, node: Node) -> tuple[Value, ...] | None:
    x = _input(node)
    batch, channels, inner, groups = (node.attributes[name] for name in ("N", "C", "HxW", "group"))
    count = channels // groups * inner
    if 0 in x.tensor.shape:
        return None
    grouped = b.call("aten.view.default", widened(b, x), (batch, groups, count))
    mean, difference, squares = centred(b, grouped, (2,))
    rstd = _rstd(b, squares, count, node.attributes["eps"])
    normal = b.call("aten.view.default", b.call("aten.mul.Tensor", difference, rstd), x.tensor.shape)
    weight, bias = (_per_channel(b, _optional(node, name), x.tensor.rank) for name in ("weight", "bias"))
    flat = [b.call("aten.view.default", value, (batch, groups)) for value in (mean, rstd)]
    return _typed(b, (_affine(b, normal, weight, bias), *flat), node)


def _per_channel(b: Builder, x: Value | None, rank: int) -> Value | None:
    """A vector over dim 1 of a tensor of `rank` dims."""
    if x is None or rank == 2:
        return x
    return b.call("aten.view.default", x, (x.tensor.shape[0], *[1] * (rank - 2)))


def _batch_norm_inference(b: Builder, node: Node) -> tuple[Value, ...] | None:
    """x * alpha + beta with alpha = weight / sqrt(var + eps), beta = bias - mean * alpha"""
    x = _input(node)
    if x.tensor.rank < 2:
        return None
    dtype = wide(x.tensor.dtype)
    mean, variance = (to_dtype(b, _value(node, name), dtype) for name in ("running_mean", "running_var"))
    spread = b.call("aten.sqrt.default", b.call("aten.add.Tensor", variance, node.attributes["eps"]))
    alpha = b.call("aten.reciprocal.default", spread)
    weight, bias = _optional(node, "weight"), _optional(node, "bias")
    if weight is not None:
        alpha = b.call("aten.mul.Tensor", alpha, to_dtype(b, weight, dtype))
    beta = b.call("aten.neg.default", b.call("aten.mul.Tensor", mean, alpha))
    if bias is not None:
        beta = b.call("aten.add.Tensor", to_dtype(b, bias, dtype), beta)
    rank = x.tensor.rank
    out = _affine(b, widened(b, x), _per_channel(b, alpha, rank), _per_channel(b, beta, rank))
    nothing = [_empty(b, result) for result in node.results[1:]]
    return to_dtype(b, out, node.results[0].tensor.dtype), *nothing


def _empty(b: Builder, like: Value) -> Value:
    return b.call("aten.full.default", like.tensor.shape, 0.0, dtype=like.tensor.dtype)


def _batch_norm_training(b: Builder, node: Node) -> tuple[Value, ...] | None:
    """out, mean, rstd of the batch, and the running statistics moved towards them where the op returns them"""
    x = _input(node)
    if not node.attributes["training"] or x.tensor.rank < 2 or 0 in x.tensor.shape:
        return None
    rank = x.tensor.rank
    dims = tuple(d for d in range(rank) if d != 1)
    count = product(x.tensor.shape[d] for d in dims)
    mean, difference, squares = centred(b, widened(b, x), dims)
    rstd = _rstd(b, squares, count, node.attributes["eps"])
    weight, bias = (_per_channel(b, _optional(node, name), rank) for name in ("weight", "bias"))
    kept = (_optional(node, "weight") or x).tensor.dtype
    if kept is not mean.tensor.dtype:      # torch normalises by the statistics rounded to the dtype of the weights
        difference = b.call("aten.sub.Tensor", widened(b, x), _rounded(b, mean, kept))
        out = _affine(b, b.call("aten.mul.Tensor", difference, _rounded(b, rstd, kept)), weight, bias)
    else:
        out = _affine(b, b.call("aten.mul.Tensor", difference, rstd), weight, bias)
    channels = (x.tensor.shape[1],)
    flat_mean, flat_rstd, flat_squares = (
        b.call("aten.view.default", value, channels) for value in (mean, rstd, squares))
    results = [out, flat_mean, flat_rstd]
    if len(node.results) == 5:
        unbiased = b.call("aten.div.Tensor", flat_squares, count - 1)
        results.append(_moved(b, node, "running_mean", flat_mean))
        results.append(_moved(b, node, "running_var", unbiased))
    return _typed(b, tuple(results), node)


def _moved(b: Builder, node: Node, name: str, batch: Value) -> Value:
    """momentum * batch + (1 - momentum) * running"""
    momentum: Any = node.attributes["momentum"]
    running = to_dtype(b, _value(node, name), batch.tensor.dtype)
    new = b.call("aten.mul.Tensor", batch, momentum)
    return b.call("aten.add.Tensor", new, b.call("aten.mul.Tensor", running, 1 - momentum))


def _statistics_functional(b: Builder, node: Node) -> tuple[Value, ...] | None:
    """In inference the running statistics are used and come back as they are."""
    if node.attributes["training"]:
        return _batch_norm_training(b, node)
    inference = _batch_norm_inference(b, node)
    return inference and (*inference[:3], _value(node, "running_mean"), _value(node, "running_var"))


RULES = {
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten._softmax_backward_data.default": _softmax_backward,
    "aten._log_softmax_backward_data.default": _log_softmax_backward,
    "aten.native_layer_norm.default": _layer_norm,
    "aten.native_layer_norm_backward.default": _layer_norm_backward,
    "aten._fused_rms_norm.default": _rms_norm,
    "aten.native_group_norm.default": _group_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm_inference,
    "aten._native_batch_norm_legit.no_stats": _batch_norm_training,
    "aten._native_batch_norm_legit_functional.default": _statistics_functional,
}
