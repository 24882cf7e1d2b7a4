"""How often a kernel would compute its values.

Inside a kernel nothing is stored except its outputs: a value read at several positions, or by a larger result through
a broadcast, is computed again for each. `affordable` refuses that for values that are dear; rows computed once
per row (a reduction, or what a broadcast along the inner dims repeats) are hoisted by lowering and cost once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from monograph.ir.graph import Node, Value
from monograph.ir.sized import example
from monograph.schedule import roles, views
from monograph.schedule.flow import Flow, size
from monograph.schedule.roles import Role
from monograph.schedule.views import shape_of

__all__ = ["affordable"]

Context = tuple[int, ...]       # through which moving reads a point of the kernel reaches a value
HERE: Context = ()
MANY = 8                        # ways to reach one value beyond which nobody would write it so
SLACK = 16                      # a dear value may be computed for every 16th point of the kernel
FEW = 4096                      # so few evaluations cost less than another kernel


def affordable(flow: Flow, nodes: Sequence[Node], outputs: Collection[Value]) -> bool:
    """Is no dear value among `nodes` (in order) computed more often than it is worth?"""
    inside = set(nodes)
    points = max(_points(value) for value in outputs)
    reached: dict[Node, dict[Context, int]] = {node: {} for node in nodes}
    for value in outputs:
        assert value.node is not None
        reached[value.node][HERE] = _points(value)
    for node in reversed(nodes):
        contexts = reached[node]
        own = _points(node.results[0])
        dear = roles.is_heavy(node) and flow.role[node] is not Role.REDUCTION
        if len(contexts) > MANY or (dear and sum(contexts.values()) > max(own, points // SLACK, FEW)):
            return False
        for value in node.inputs:
            producer = flow.base_of(value).node
            if producer not in inside or producer is None:
                continue
            for context, times in _pass_on(flow, node, value, contexts).items():
                known = reached[producer].get(context, 0)
                reached[producer][context] = max(known, times)
    return True


def _pass_on(flow: Flow, node: Node, value: Value, contexts: dict[Context, int]) -> dict[Context, int]:
    """The contexts in which `node` reads the base of `value`."""
    role = flow.role[node]
    if role in (Role.REDUCTION, Role.SCAN):
        contexts = {HERE: _points(value)}
    elif role is Role.POINTWISE and _points(value) == _points(node.results[0]):
        pass
    elif role is Role.POINTWISE:
        spread = _spread(value, node.results[0])
        return {(id(value), *context): max(1, int(times * spread)) for context, times in contexts.items()}
    elif role is Role.GATHER:
        contexts = {(id(node), *context): times for context, times in contexts.items()}
    else:
        contexts = {(id(node), *context): min(times, _points(value)) for context, times in contexts.items()}
    if flow.in_order(value):
        return contexts
    return {(id(value), *context): times for context, times in contexts.items()}


def _spread(value: Value, result: Value) -> float:
    """Which share of the points of `result` reads `value` anew: a broadcast along the innermost dims is hoisted."""
    shape = shape_of(value)
    whole = shape_of(result)
    affine = views.broadcast(views.contiguous(shape), whole)
    inner = len(whole)
    while inner and (affine.strides[inner - 1] == 0 or whole[inner - 1] == 1):
        inner -= 1
    return example(math.prod(whole[:inner])) / max(1, example(math.prod(whole)))


def _points(value: Value) -> int:
    """Elements of a value; of one of any size, an example."""
    return example(size(value))
