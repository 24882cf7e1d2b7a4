"""The negative log likelihood and its gradient.

    nll_loss           -weight[c] * x[c] at the target c, 0 where it is the ignored class
    its gradient       -weight[c] * grad / total at the target, 0 elsewhere

A target that is no class raises IndexError, as in torch, through the check of the gather.
"""

from __future__ import annotations

import torch

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder
from monograph.ops.decompose_backward import is_plain, operand

__all__ = ["RULES"]

NONE, MEAN = 0, 1       # the `reduction` argument; 2 is the sum


def _nll_loss(b: Builder, node: Node) -> tuple[Value, ...] | None:
    x, target, weight = operand(node, "self"), operand(node, "target"), node.operand("weight")
    if not is_plain(node) or not x.tensor.is_static or 0 in x.tensor.shape:
        return None
    shape, dtype, reduction = x.tensor.shape, x.tensor.dtype, node.attributes["reduction"]
    channel = 0 if len(shape) == 1 else 1
    counted = b.call("aten.ne.Scalar", target, node.attributes["ignore_index"])
    zero = b.call("aten.full.default", (), 0, dtype=torch.int64)
    place = b.call("aten.where.self", counted, target, zero)
    # A negative index would count from the end.
    beyond = b.call("aten.full.default", (), shape[channel], dtype=torch.int64)
    place = b.call("aten.where.self", b.call("aten.lt.Scalar", place, 0), beyond, place)
    indices: list[Value] = []
    batch = [d for d in range(len(shape)) if d != channel]
    for d in range(len(shape)):
        if d == channel:
            indices.append(place)
            continue
        count = b.call("aten.arange.start_step", 0, shape[d], 1, dtype=torch.int64)
        indices.append(b.call("aten.view.default", count, tuple(shape[e] if e == d else 1 for e in batch)))
    loss = b.call("aten.neg.default", b.call("aten.index.Tensor", x, tuple(indices)))
    weights = None
    if isinstance(weight, Value):
        weights = b.call("aten.index.Tensor", weight, (place,))
        loss = b.call("aten.mul.Tensor", loss, weights)
    nothing = b.call("aten.full.default", (), 0.0, dtype=dtype)
    loss = b.call("aten.where.self", counted, loss, nothing)
    if reduction == NONE:
        return loss, nothing
    if weights is None:
        total = b.call("aten._to_copy.default", b.call("aten.sum.default", counted), dtype=dtype)
    else:
        total = b.call("aten.sum.default", b.call("aten.where.self", counted, weights, nothing))
    loss = b.call("aten.sum.default", loss)
    return (b.call("aten.div.Tensor", loss, total) if reduction == MEAN else loss), total


def _nll_loss_backward(b: Builder, node: Node) -> Value | None:
    if not is_plain(node):
        return None
    shape = node.results[0].tensor.shape
    channel = 0 if len(shape) == 1 else 1
    target, grad, weight = operand(node, "target"), operand(node, "grad_output"), node.operand("weight")
    along = tuple(shape[channel] if d == channel else 1 for d in range(len(shape)))
    classes = b.call("aten.arange.start_step", 0, shape[channel], 1, dtype=torch.int64)
    targets = b.call("aten.reshape.default", target, tuple(1 if d == channel else n for d, n in enumerate(shape)))
    hit = b.call("aten.eq.Tensor", targets, b.call("aten.view.default", classes, along))
    counted = b.call("aten.ne.Scalar", targets, node.attributes["ignore_index"])
    hit = b.call("aten.logical_and.default", hit, counted)
    if node.attributes["reduction"] == MEAN:
        grad = b.call("aten.div.Tensor", grad, operand(node, "total_weight"))
    elif grad.tensor.rank:
        grad = b.call("aten.reshape.default", grad, tuple(targets.tensor.shape))
    grad = b.call("aten.neg.default", grad)
    if isinstance(weight, Value):
        grad = b.call("aten.mul.Tensor", grad, b.call("aten.view.default", weight, along))
    zeros = b.call("aten.full.default", (), 0.0, dtype=node.results[0].tensor.dtype)
    chosen = b.call("aten.where.self", hit, grad, zeros)
    return b.call("aten.expand.default", chosen, shape) if chosen.tensor.shape != shape else chosen


RULES = {
    "aten.nll_loss_forward.default": _nll_loss,
    "aten.nll_loss2d_forward.default": _nll_loss,
    "aten.nll_loss_backward.default": _nll_loss_backward,
    "aten.nll_loss2d_backward.default": _nll_loss_backward,
}
