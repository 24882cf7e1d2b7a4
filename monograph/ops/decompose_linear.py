"""Products and distances that reach a covered op by rearranging.

    addbmm(c, a, b)  = beta c + alpha sum_i a[i] b[i]     one product with the batch along the inner dim
    cdist(x, y, p)   = (sum_k |x[i, k] - y[j, k]|^p)^(1/p)
    mv(a, v)         = sum_k a[i, k] v[k]
    dot(v, w)        = sum_k v[k] w[k]
    norm(x)          = sqrt(sum x^2)
"""

from __future__ import annotations

import math

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import dims_of

__all__ = ["RULES"]

MATRIX_PRODUCT_FROM = 25        # rows from which torch's kernel computes Euclidean distances by a matrix product


def _operand(node: Node, name: str) -> Value:
    value = node.operand(name)
    assert isinstance(value, Value)
    return value


def _addbmm(b: Builder, node: Node) -> Value | None:
    first, second = _operand(node, "batch1"), _operand(node, "batch2")
    if first.tensor.dtype not in (torch.float32, torch.float64):
        return None        # torch rounds to the narrow dtype after every batch
    batch, rows, inner = first.tensor.shape
    columns = second.tensor.shape[2]
    wide = b.call("aten.reshape.default", b.call("aten.permute.default", first, (1, 0, 2)), (rows, batch * inner))
    tall = b.call("aten.reshape.default", second, (batch * inner, columns))
    attributes = node.attributes
    return b.call("aten.addmm.default", _operand(node, "self"), wide, tall,
                  beta=attributes["beta"], alpha=attributes["alpha"])


def _cdist(b: Builder, node: Node) -> Value | None:
    x, y, p = _operand(node, "x1"), _operand(node, "x2"), float(node.attributes["p"])
    mode = node.attributes["compute_mode"] or 0
    if not x.tensor.is_static or not y.tensor.is_static or 0 in (*x.tensor.shape, *y.tensor.shape):
        return None
    many = any(isinstance(v.tensor.shape[-2], int) and v.tensor.shape[-2] > MATRIX_PRODUCT_FROM for v in (x, y))
    if p == 2 and (mode == 1 or (mode == 0 and many)):
        return None
    left, right = b.call("aten.unsqueeze.default", x, -2), b.call("aten.unsqueeze.default", y, -3)
    distance = b.call("aten.abs.default", b.call("aten.sub.Tensor", left, right))
    if p == 0:
        apart = b.call("aten.ne.Scalar", distance, 0)
        return b.call("aten.sum.dim_IntList", apart, (-1,), dtype=node.results[0].tensor.dtype)
    if p == math.inf:
        return b.call("aten.amax.default", distance, (-1,))
    if p == 1:
        return b.call("aten.sum.dim_IntList", distance, (-1,))
    if p == 2:
        squares = b.call("aten.mul.Tensor", distance, distance)
        return b.call("aten.sqrt.default", b.call("aten.sum.dim_IntList", squares, (-1,)))
    total = b.call("aten.sum.dim_IntList", b.call("aten.pow.Tensor_Scalar", distance, p), (-1,))
    return b.call("aten.pow.Tensor_Scalar", total, 1 / p)


def _is_wide(node: Node) -> bool:
    """torch rounds sums of narrow floats, and those of integers, in ways of its own."""
    return node.results[0].tensor.dtype in (torch.float32, torch.float64)


def _mv(b: Builder, node: Node) -> Value | None:
    if not _is_wide(node):
        return None
    products = b.call("aten.mul.Tensor", _operand(node, "self"), _operand(node, "vec"))
    return b.call("aten.sum.dim_IntList", products, (1,))


def _dot(b: Builder, node: Node) -> Value | None:
    if not _is_wide(node):
        return None
    return b.call("aten.sum.default", b.call("aten.mul.Tensor", _operand(node, "self"), _operand(node, "tensor")))


def _vector_norm(b: Builder, node: Node) -> Value | None:
    x, attributes = _operand(node, "self"), node.attributes
    if not _is_wide(node) or attributes["ord"] != 2 or x.tensor.dtype is not node.results[0].tensor.dtype:
        return None
    squares = b.call("aten.mul.Tensor", x, x)
    total = b.call("aten.sum.dim_IntList", squares, dims_of(x, attributes["dim"]), attributes["keepdim"])
    return b.call("aten.sqrt.default", total)


RULES = {
    "aten.mv.default": _mv,
    "aten.dot.default": _dot,
    "aten.linalg_vector_norm.default": _vector_norm,
    "aten.addbmm.default": _addbmm,
    "aten._cdist_forward.default": _cdist,
}
