"""Folding of batch normalisation into the convolution before it, in eval.

    bn(conv(x, w, b))  ->  conv(x, w * s, (b - mean) * s + beta),   s = gamma / sqrt(var + eps)

on the output channels of w. The new weights are plain nodes on weights, so `fold` moves them to
the prologue, where they follow every change of the originals. Rounding differs from eager within
the usual tolerance of a convolution.
"""

from __future__ import annotations

from collections.abc import Collection

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ops.build import Builder

__all__ = ["fold_conv_bn"]

NORMS = ("aten.native_batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
CONVOLUTION = "aten.convolution.default"


def fold_conv_bn(graph: Graph, *, written: Collection[int] = ()) -> bool:
    """Fold every eligible pair. `written`: numbers of inputs the boundary writes back to, which are no weights."""
    weights = {
        value for position, (value, source) in enumerate(zip(graph.inputs, graph.sources))
        if source.is_weight and position not in written
    }
    users = graph.users()
    outputs = set(graph.outputs)
    mapping: dict[Value, Value] = {}
    for node in list(graph.nodes):
        conv = _convolution_before(node, weights)
        if conv is None or len(users[conv.result]) != 1 or conv.result in outputs or node.results[0] in outputs:
            continue
        if any(result in users or result in outputs for result in node.results[1:]):
            continue
        mapping[node.results[0]] = _folded(graph, node, conv)
    graph.replace(mapping)
    return bool(mapping)


def _convolution_before(node: Node, weights: set[Value]) -> Node | None:
    if node.op.name not in NORMS or node.attributes.get("training", False):
        return None
    source = node.operands[0]
    if not isinstance(source, Value) or source.node is None or source.node.op.name != CONVOLUTION:
        return None
    conv = source.node
    constants = [*node.operands[1:], *conv.operands[1:]]
    if not all(operand is None or operand in weights for operand in constants):
        return None
    statistics = node.operands[3:5]
    if None in statistics or conv.attributes["transposed"] or source.tensor.dtype not in (torch.float32, torch.float64):
        return None
    return conv


def _folded(graph: Graph, norm: Node, conv: Node) -> Value:
    _, gamma, beta, mean, var = norm.operands
    x, weight, bias = conv.operands
    assert isinstance(weight, Value) and isinstance(mean, Value)
    builder = Builder(graph, before=norm, loc=norm.loc)
    call = builder.call
    scale = call("aten.rsqrt.default", call("aten.add.Tensor", var, norm.attributes["eps"]))
    if gamma is not None:
        scale = call("aten.mul.Tensor", scale, gamma)
    channels = mean.tensor.shape[0]
    column = call("aten.view.default", scale, size=(channels,) + (1,) * (weight.tensor.rank - 1))
    shift = call("aten.neg.default", mean) if bias is None else call("aten.sub.Tensor", bias, mean)
    shift = call("aten.mul.Tensor", shift, scale)
    if beta is not None:
        shift = call("aten.add.Tensor", shift, beta)
    return Builder(graph, before=norm, loc=conv.loc).call(
        CONVOLUTION, x, call("aten.mul.Tensor", weight, column), shift, **conv.attributes
    )
