"""The capability table: which composite ops a template takes, how their operands must lie, what it fuses.

    Capability ::= template, roles (role -> operand parameter), packed role, dtypes, epilogue?, in_place?, conditions

What a template finds in its item (`schedule.Template`); all sizes are numbers, all operands `Strided`:

gemm        result[b, m, n] = alpha * sum_k a[b, m, k] * B[b, k, n] + beta * bias[b, m, n]
            operands    a (*batch, m, k) any strides; b (*batch, k, n) any strides, or, when `packed`, a weight's
                        (panels, k, panel): panels of `panel` columns, the last filled up with zeros, one for the
                        whole batch; bias (*batch, m, n) with stride 0 where broadcast, absent if none
            parameters  batch (a tuple of sizes, often empty), m, n, k, packed, panel, alpha, beta
            The anchor's result, flat and row-major, is (*batch, m, n).
conv        2-d convolution, channels last; 1-d has h = kh = 1
            operands    x (n, c, h, w) with stride 1 along c unless c is small; w packed (groups, panels, kh, kw,
                        c / groups, panel); bias (o,), absent if none
            parameters  n, c, h, w, o, oh, ow, kh, kw, stride, padding, dilation (pairs), groups, panel
            The anchor's result has channels-last strides unless the caller asked for others: see the item's layouts.
depthwise   as conv with groups = c = o; w (kh, kw, c) packed
attention   result[b, h, s, e] = sum_t softmax_t(scale * q[b,h,s,:] . k[b,h,t,:] + mask[b,h,s,t]) * v[b, h, t, e]
            operands    q (b, h, s, d), k (b, h / group, t, d), v (b, h / group, t, e), stride 1 along the last dim;
                        mask (b, h, s, t), float (added) or bool (False is minus infinity), stride 0 where broadcast,
                        absent if none
            parameters  b, h, s, t, d, e, group (heads that share keys), scale, causal, lse (is the second result,
                        logsumexp f32[b, h, s], wanted?)

Epilogue nodes see the anchor's result at the same flat element, through order-preserving views only; their outputs
have as many elements. Every output is stored at its layout's strides in the arena or the caller's tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.types import TensorType

__all__ = ["ANCHORS", "Capability", "match", "panel_width"]

FLOATS = frozenset({torch.float32, torch.float64})


def _always(node: Node) -> bool:
    return True


@dataclass(frozen=True)
class Capability:
    """What a template does for one anchor op. `roles` names the operand parameter behind each role."""

    template: str
    roles: dict[str, str] = field(default_factory=dict)
    packed: str | None = None                     # the role whose operand is packed into panels
    epilogue: bool = True
    in_place: bool = True                         # an epilogue operand may share its place with the output
    dtypes: frozenset[torch.dtype] = FLOATS
    accepts: Callable[[Node], bool] = _always     # conditions on attributes and shapes


def _shape(node: Node, parameter: str) -> tuple[int, ...]:
    operand = node.operand(parameter)
    assert isinstance(operand, Value)
    return operand.tensor.shape   # type: ignore[return-value]


def _matrix(node: Node) -> bool:
    """A linear over a weight matrix."""
    return len(_shape(node, "weight")) == 2


def _plain_conv(node: Node) -> bool:
    """1-d or 2-d, not transposed, numeric padding, more than one input channel per group."""
    weight = _shape(node, "weight")
    return (len(weight) in (3, 4) and len(_shape(node, "input")) == len(weight) and not node.attributes["transposed"]
            and not isinstance(node.attributes["padding"], str))


def _plain_attention(node: Node) -> bool:
    """No dropout, four dims, whole groups of heads that share keys, mask of floats or bools."""
    query, key, value = (_shape(node, name) for name in ("query", "key", "value"))
    if node.attributes.get("dropout_p", 0.0) != 0.0:
        return False
    if not len(query) == len(key) == len(value) == 4:
        return False
    mask = node.operand("attn_mask")
    if isinstance(mask, Value) and mask.tensor.dtype not in (node.results[0].tensor.dtype, torch.bool):
        return False
    if any(size == 0 for size in query + key) or not query[0] == key[0] == value[0] or key[1] != value[1]:
        return False
    return query[1] == key[1] or (bool(node.attributes.get("enable_gqa")) and query[1] % key[1] == 0)


GEMM_LINEAR = Capability("gemm", {"a": "input", "b": "weight", "bias": "bias"}, packed="b", accepts=_matrix)
GEMM_MM = Capability("gemm", {"a": "self", "b": "mat2"}, packed="b")
GEMM_ADDMM = Capability("gemm", {"a": "mat1", "b": "mat2", "bias": "self"}, packed="b")
GEMM_BADDBMM = Capability("gemm", {"a": "batch1", "b": "batch2", "bias": "self"}, packed="b")
CONV = Capability("conv", {"x": "input", "w": "weight", "bias": "bias"}, packed="w", accepts=_plain_conv)
ATTENTION = Capability("attention", {"q": "query", "k": "key", "v": "value", "mask": "attn_mask"}, epilogue=False,
                       in_place=False, accepts=_plain_attention)

ANCHORS: dict[str, Capability] = {
    "aten.linear.default": GEMM_LINEAR,
    "aten.mm.default": GEMM_MM,
    "aten.addmm.default": GEMM_ADDMM,
    "aten.bmm.default": GEMM_MM,
    "aten.baddbmm.default": GEMM_BADDBMM,
    "aten.convolution.default": CONV,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": ATTENTION,
    "aten.scaled_dot_product_attention.default": ATTENTION,
}


def match(node: Node) -> Capability | None:
    """The capability that takes `node` as an anchor; None when a library call must."""
    capability = ANCHORS.get(node.op.name)
    if capability is None:
        return None
    result = node.results[0].type
    if not isinstance(result, TensorType) or not result.is_static or result.dtype not in capability.dtypes:
        return None
    tensors = [node.operand(name) for role, name in capability.roles.items() if role != "mask"]
    if any(isinstance(t, Value) and t.tensor.dtype != result.dtype for t in tensors):
        return None
    if result.numel == 0 or any(isinstance(t, Value) and t.tensor.numel == 0 for t in tensors):
        return None
    return capability if capability.accepts(node) else None


PANEL_COST = {3: 1.0, 2: 1.02, 1: 1.5}     # time per column of panels this many vectors wide, measured


def panel_width(columns: int, lanes: int) -> int:
    """Columns per packed panel: as many vectors as take least time, the columns that fill up the last one counted."""
    def cost(vectors: int) -> float:
        width = vectors * lanes
        return -(-columns // width) * width * PANEL_COST[vectors]

    return min(PANEL_COST, key=cost) * lanes
