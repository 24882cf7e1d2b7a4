"""Algebraic simplification: rules that never change a bit of the result.

Each rule has its equation beside it. What is exact only for some dtypes says so; nothing here
reassociates floating point, and `x + 0.0` stays, because it turns -0.0 into 0.0.
"""

from __future__ import annotations

import math
from typing import TypeGuard

import torch

from monograph.ir import dtypes
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.transform.rewrite import Rule, rewrite

__all__ = ["RULES", "is_full", "simplify"]


def simplify(graph: Graph) -> bool:
    """Apply `RULES` in one sweep."""
    return rewrite(graph, RULES)


def _same(node: Node, operand: object) -> Value | None:
    """The operand, when the node's result has its dtype, shape and device."""
    if not isinstance(operand, Value) or not isinstance(operand.type, TensorType):
        return None
    old, new = node.results[0].tensor, operand.type
    return operand if (old.dtype, old.shape, old.device) == (new.dtype, new.shape, new.device) else None


def _identity(node: Node, _: Builder) -> Value | None:
    """f(x) -> x, where f keeps values and, as it turns out, dtype and shape too"""
    return _same(node, node.operands[0])


def _permute(node: Node, builder: Builder) -> Value | None:
    """permute(x, 0..n-1) -> x;  permute(permute(x, p), q) -> permute(x, p[q])"""
    source = node.operands[0]
    assert isinstance(source, Value)
    rank = source.tensor.rank
    dims = [dim % rank for dim in node.attributes["dims"]]
    if dims == list(range(rank)):
        return source
    inner = source.node
    if inner is None or inner.op is not node.op:
        return None
    first = [dim % rank for dim in inner.attributes["dims"]]
    composed = tuple(first[dim] for dim in dims)
    if composed == tuple(range(rank)):
        return _same(node, inner.operands[0])
    return builder.call(node.op.name, inner.operands[0], dims=composed)


def _reshape(node: Node, builder: Builder) -> Value | None:
    """view(x, shape of x) -> x;  view(view(x, s), t) -> view(x, t)"""
    source = node.operands[0]
    assert isinstance(source, Value)
    if (same := _same(node, source)) is not None:
        return same
    inner = source.node
    if inner is None or RULES.get(inner.op.name) is not _reshape:
        return None
    return builder.call(node.op.name, inner.operands[0], size=node.results[0].tensor.shape)


def _number(operand: object, value: int) -> bool:
    """-0.0 is no 0: it may change a sign."""
    return isinstance(operand, (int, float)) and operand == value and math.copysign(1, operand) == 1


def _mul(node: Node, _: Builder) -> Value | None:
    """x * 1 -> x"""
    x, y = node.operands
    return _same(node, x) if _number(y, 1) else _same(node, y) if _number(x, 1) else None


def _div(node: Node, _: Builder) -> Value | None:
    """x / 1 -> x"""
    x, y = node.operands
    return _same(node, x) if _number(y, 1) and not node.attributes.get("rounding_mode") else None


def _sub(node: Node, _: Builder) -> Value | None:
    """x - 0 -> x"""
    x, y = node.operands
    return _same(node, x) if _number(y, 0) and node.attributes["alpha"] > 0 else None


def _add(node: Node, _: Builder) -> Value | None:
    """x + 0 -> x for integers"""
    x, y = node.operands
    if not dtypes.is_integer(node.results[0].tensor.dtype):
        return None
    if _number(y, 0):
        return _same(node, x)
    return _same(node, y) if _number(x, 0) and node.attributes["alpha"] == 1 else None


def _pow(node: Node, _: Builder) -> Value | None:
    """x ** 1 -> x"""
    return _same(node, node.operands[0]) if _number(node.attributes.get("exponent"), 1) else None


def _where(node: Node, _: Builder) -> Value | None:
    """where(c, x, x) -> x"""
    x, y = node.operands[1:]
    return _same(node, x) if x is y else None


def _flag(node: Node, builder: Builder) -> Value | None:
    """where(c, x, x) -> x;  where(c, True, False) -> c;  where(c, True, x) -> c or x;  where(c, x, False) -> c and x"""
    if (same := _where(node, builder)) is not None:
        return same
    condition, yes, no = node.operands
    result = node.results[0].tensor
    if result.dtype is not torch.bool or not _is_shaped(result, condition):
        return None
    if _uniform(yes) is True:
        if _uniform(no) is False:
            return _same(node, condition)
        return builder.call("aten.logical_or.default", condition, no) if _is_shaped(result, no) else None
    if _uniform(no) is False:
        return builder.call("aten.logical_and.default", condition, yes) if _is_shaped(result, yes) else None
    if _uniform(yes) is False and _uniform(no) is True:
        return builder.call("aten.logical_not.default", condition)
    return None


def is_full(operand: object) -> TypeGuard[Value]:
    """A constant whose elements are all one number that stands in the graph."""
    return isinstance(operand, Value) and operand.node is not None and operand.node.op.name == "aten.full.default" \
        and isinstance(operand.node.attributes["fill_value"], (bool, int, float))


def _uniform(operand: object) -> bool | None:
    """The bool that all elements of a constant are."""
    return bool(operand.node.attributes["fill_value"]) if is_full(operand) and operand.node is not None else None


def _is_shaped(result: TensorType, operand: object) -> bool:
    return isinstance(operand, Value) and operand.tensor.dtype is result.dtype and operand.tensor.shape == result.shape


def _scalar(node: Node, _: Builder) -> Value | None:
    """scalar(number(x)) -> x"""
    number = node.operands[0]
    if not isinstance(number, Value) or number.node is None or number.node.op.name != "mono.number":
        return None
    return _same(node, number.node.operands[0])


def _involution(node: Node, _: Builder) -> Value | None:
    """f(f(x)) -> x"""
    source = node.operands[0]
    assert isinstance(source, Value)
    inner = source.node
    return _same(node, inner.operands[0]) if inner is not None and inner.op is node.op else None


def _idempotent(node: Node, _: Builder) -> Value | None:
    """f(f(x)) -> f(x)"""
    source = node.operands[0]
    assert isinstance(source, Value)
    inner = source.node
    return _same(node, source) if inner is not None and inner.op is node.op else None


def _single(node: Node, _: Builder) -> Value | None:
    """cat([x]) -> x;  cat([x, empty]) -> x"""
    tensors = node.operands[0]
    assert isinstance(tensors, tuple)
    full = [x for x in tensors if not isinstance(x, Value) or x.tensor.numel != 0]
    return _same(node, full[0]) if len(full) == 1 else None


def _without_product(node: Node, builder: Builder) -> Value | None:
    """addmm(c, a, b, alpha=0) -> beta c, whatever a and b hold; and 0 where beta is 0"""
    start, result, beta = node.operand("self"), node.results[0].tensor, node.attributes["beta"]
    if node.attributes["alpha"] != 0 or not isinstance(start, Value) or isinstance(beta, Value):
        return None
    if beta == 0:
        return builder.call("aten.full.default", result.shape, 0, dtype=result.dtype)
    scaled = start if beta == 1 else builder.call("aten.mul.Scalar", start, beta)
    return builder.call("aten.expand.default", scaled, result.shape)


RULES: dict[str, Rule] = {
    "aten.addmm.default": _without_product,
    "aten.addmv.default": _without_product,
    "aten.clone.default": _identity,
    "aten.alias.default": _identity,
    "aten.detach.default": _identity,
    "aten.lift_fresh.default": _identity,
    "aten.lift_fresh_copy.default": _identity,
    "aten._to_copy.default": _identity,
    "aten.expand.default": _identity,
    "aten.slice.Tensor": _identity,     # steps are positive, so the same shape is the whole
    "aten.permute.default": _permute,
    "aten.view.default": _reshape,
    "aten._unsafe_view.default": _reshape,
    "aten.mul.Tensor": _mul,
    "aten.div.Tensor": _div,
    "aten.sub.Tensor": _sub,
    "aten.add.Tensor": _add,
    "aten.pow.Tensor_Scalar": _pow,
    "aten.where.self": _flag,
    "aten.neg.default": _involution,
    "aten.t.default": _involution,
    "aten.relu.default": _idempotent,
    "aten.abs.default": _idempotent,
    "aten.floor.default": _idempotent,
    "aten.ceil.default": _idempotent,
    "aten.logical_not.default": _involution,
    "aten.cat.default": _single,
    "mono.scalar": _scalar,
}
