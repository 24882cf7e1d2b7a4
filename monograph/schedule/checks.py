"""Checks that raise from Python become branches around the raise, so that a call that raises nothing stays native.

    check(x)  ->  cond(<x is fine>) {then {} otherwise {check(x)}}

`RULES` says, by op, for which operands that is done, and how the program tells that nothing would be raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops import table
from monograph.ops.build import Builder
from monograph.schedule.kernel import is_held

__all__ = ["RULES", "guard", "is_guarded"]

MOST_ELEMENTS = 8       # compared one by one

Fits = Callable[[Node, TensorType], bool]
Fine = Callable[[Builder, Node, Value], Value]


def is_guarded(node: Node) -> bool:
    """Does the node only run to raise?"""
    if node.op.name not in RULES or not isinstance(node.operands[0], Value) or is_held(node.operands[0]):
        return False
    fits, _ = RULES[node.op.name]
    return fits(node, node.operands[0].tensor)


def guard(graph: Graph, node: Node) -> Node | None:
    """Put a cond in the place of a check in `graph`, a copy of the user's; None where it stays."""
    if not is_guarded(node):
        return None
    builder = Builder(graph, before=node)
    _, fine = RULES[node.op.name]
    predicate = fine(builder, node, node.inputs[0])
    raises = Graph("otherwise", nodes=[node])
    cond = Node(table.lookup("mono.cond"), (predicate,), {}, (), regions=(Graph("then"), raises), loc=node.loc)
    builder.insert(cond)
    graph.nodes.remove(node)
    return cond


def _few(node: Node, x: TensorType) -> bool:
    numbers = node.attributes["value"]
    return x.numel == len(numbers) and 0 < len(numbers) <= MOST_ELEMENTS and not x.dtype.is_complex


def _same(builder: Builder, node: Node, x: Value) -> Value:
    """Are the elements of `x` the numbers expected: NaN is itself, the two zeros differ?"""
    numbers = node.attributes["value"]
    flat: Value = builder.call("aten.reshape.default", x, (len(numbers),))
    same = [_is(builder, builder.call("aten.select.int", flat, 0, k), number) for k, number in enumerate(numbers)]
    return reduce(lambda a, b: builder.call("aten.logical_and.default", a, b), same)


def _is(builder: Builder, x: Value, number: float) -> Value:
    made: Value
    if isinstance(number, float) and math.isnan(number):
        made = builder.call("aten.isnan.default", x)
        return made
    made = builder.call("aten.eq.Scalar", x, number)
    if isinstance(number, float) and number == 0:
        sign = builder.call("aten.signbit.default", x)
        sign = sign if math.copysign(1, number) < 0 else builder.call("aten.logical_not.default", sign)
        made = builder.call("aten.logical_and.default", made, sign)
    return made


def _no_errors(builder: Builder, node: Node, info: Value) -> Value:
    made: Value = builder.call("aten.logical_not.default", builder.call("aten.any.default", info))
    return made


RULES: dict[str, tuple[Fits, Fine]] = {
    "mono.check": (lambda node, ok: ok.numel == 1, lambda builder, node, ok: ok),
    "mono.expect": (_few, _same),
    "aten._linalg_check_errors.default": (lambda node, info: True, _no_errors),
}
