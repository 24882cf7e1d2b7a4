"""Means, variances and norms, and what the other rules share: working in f32 on narrow floats.

    mean(x) = sum(x) / n         rounded once
    var(x)  = sum((x - mean)^2) / (n - correction)
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from monograph.ir import dtypes
from monograph.ir.graph import Node, Value
from monograph.ir.op import Trait
from monograph.ir.symbolic import Dim, maximum, product
from monograph.ops.build import Builder

__all__ = ["NARROW", "RULES", "centred", "dims_of", "over_nothing", "to_dtype", "wide", "widened"]

NARROW = (torch.bfloat16, torch.float16)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype torch's kernels compute in."""
    return torch.float32 if dtype in NARROW else dtype


def to_dtype(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    return x if x.tensor.dtype is dtype else b.call("aten._to_copy.default", x, dtype=dtype)


def widened(b: Builder, x: Value) -> Value:
    return to_dtype(b, x, wide(x.tensor.dtype))


def dims_of(x: Value, dims: int | Iterable[int] | None) -> tuple[int, ...]:
    """Dims as torch means them (None and [] are all), not negative."""
    rank = x.tensor.rank
    chosen = (dims,) if isinstance(dims, int) else tuple(dims or ())
    return tuple(d % max(rank, 1) for d in chosen) if chosen else tuple(range(rank))


def count_of(x: Value, dims: Iterable[int]) -> Dim:
    """How many elements are folded into one."""
    return product(x.tensor.shape[d] for d in dims if x.tensor.rank)


def centred(b: Builder, x: Value, dims: tuple[int, ...]) -> tuple[Value, Value, Value]:
    """mean, x - mean and the sum of its squares; dims kept."""
    mean = b.call("aten.div.Tensor", b.call("aten.sum.dim_IntList", x, dims, True), count_of(x, dims))
    difference = b.call("aten.sub.Tensor", x, mean)
    squares = b.call("aten.sum.dim_IntList", b.call("aten.mul.Tensor", difference, difference), dims, True)
    return mean, difference, squares


# What a fold over no element gives.
IDENTITIES = {"sum": 0, "nansum": 0, "prod": 1, "any": False, "all": True}


def over_nothing(b: Builder, node: Node) -> Value | None:
    """The result of a reduction whose operand has no element: a constant. None for all other nodes."""
    if not node.op.has(Trait.REDUCTION) or 0 not in _operand(node).tensor.shape or len(node.results) != 1:
        return None
    identity = IDENTITIES.get(node.op.name.split(".")[1])
    type = node.results[0].tensor
    return None if identity is None else b.call("aten.full.default", type.shape, identity, dtype=type.dtype)


def _operand(node: Node) -> Value:
    value = node.operands[0]
    assert isinstance(value, Value)
    return value


def _mean(b: Builder, node: Node) -> Value:
    x = _operand(node)
    dims = dims_of(x, node.attributes.get("dim"))
    dtype = node.results[0].tensor.dtype
    total = b.call("aten.sum.dim_IntList", x, dims, node.attributes.get("keepdim", False), dtype=wide(dtype))
    return to_dtype(b, b.call("aten.div.Tensor", total, count_of(x, dims)), dtype)


def _adaptive_avg_pool3d(b: Builder, node: Node) -> Value | None:
    """Windows of equal size where the sizes divide."""
    x = _operand(node)
    pairs = list(zip(x.tensor.shape[-3:], node.attributes["output_size"]))
    windows: list[int] = []
    for size, wanted in pairs:
        if not isinstance(size, int) or not isinstance(wanted, int) or wanted == 0 or size % wanted or size == 0:
            return None
        windows.append(size // wanted)
    return b.call("aten.avg_pool3d.default", x, tuple(windows), tuple(windows))


def _moments(b: Builder, node: Node, root: bool, mean_too: bool) -> Value | tuple[Value, ...] | None:
    x = _operand(node)
    dtype = x.tensor.dtype
    if not dtypes.is_float(dtype):
        return None
    dims = dims_of(x, node.attributes["dim"])
    correction = node.attributes["correction"]
    correction = 1 if correction is None else correction
    mean, _, squares = centred(b, widened(b, x), dims)
    count = count_of(x, dims)
    if isinstance(correction, float) and not correction.is_integer():
        if not isinstance(count, int):
            return None
        freedom: Dim | float = max(count - correction, 0.0)
    else:
        freedom = maximum(count - int(correction), 0)
    result = b.call("aten.div.Tensor", squares, freedom)
    if root:
        result = b.call("aten.sqrt.default", result)
    if not node.attributes["keepdim"]:
        result, mean = (_squeezed(b, value, dims) for value in (result, mean))
    result, mean = to_dtype(b, result, dtype), to_dtype(b, mean, dtype)
    return (result, mean) if mean_too else result


def _squeezed(b: Builder, x: Value, dims: tuple[int, ...]) -> Value:
    return b.call("aten.squeeze.dims", x, dims) if dims else x


def _var(b: Builder, node: Node) -> Value | tuple[Value, ...] | None:
    return _moments(b, node, root=False, mean_too=False)


def _std(b: Builder, node: Node) -> Value | tuple[Value, ...] | None:
    return _moments(b, node, root=True, mean_too=False)


def _var_mean(b: Builder, node: Node) -> Value | tuple[Value, ...] | None:
    return _moments(b, node, root=False, mean_too=True)


def _std_mean(b: Builder, node: Node) -> Value | tuple[Value, ...] | None:
    return _moments(b, node, root=True, mean_too=True)


RULES = {
    "aten.mean.default": _mean,
    "aten.mean.dim": _mean,
    "aten._adaptive_avg_pool3d.default": _adaptive_avg_pool3d,
    "aten.var.correction": _var,
    "aten.std.correction": _std,
    "aten.var_mean.correction": _var_mean,
    "aten.std_mean.correction": _std_mean,
}
