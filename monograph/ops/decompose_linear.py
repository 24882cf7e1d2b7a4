"""Products and distances that reach a covered op by rearranging.

    addbmm(c, a, b)  = beta c + alpha sum_i a[i] b[i]     one product with the batch along the inner dim
    cdist(x, y, p)   = (sum_k |x[i, k] - y[j, k]|^p)^(1/p)
"""

from __future__ import annotations

import math

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder

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


RULES = {
    "aten.addbmm.default": _addbmm,
    "aten._cdist_forward.default": _cdist,
}
