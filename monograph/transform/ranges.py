"""Checks that cannot fail: between which numbers the integers of a program lie.

    n = argmax(x);  mono.check(n + 1 < 2**63)      -> nothing, no tensor has so many elements
    while: i = i + 1; mono.check(i < 2**63 - 1)    -> nothing, no loop runs so often

Forward over the blocks, each value with the least and the largest element it may have (`Interval`), None where
nothing is known; doubles are known where they come from integers alone. What a loop carries and adds to itself is
found by how much it grows in an iteration (`Drift`): ITERATIONS is more than all loops of a call can make together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch

from monograph.ir import symbolic
from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.symbolic import Expr
from monograph.ir.types import TensorType
from monograph.transform.known import AND, NOT, OR

__all__ = ["ranges"]

ITERATIONS = 2**50          # of all loops of a call; also elements of a tensor that something was computed for
DEEPEST = 4                 # loops in each other: each is looked at twice
WIDEST = 2.0**1000          # of floats

Number: TypeAlias = "int | float"
Interval: TypeAlias = "tuple[Number, Number]"

INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
SAME = frozenset("""
    aten.alias.default aten.clone.default aten.detach.default aten.expand.default aten.flatten.using_ints
    aten.flip.default aten.lift_fresh_copy.default aten.permute.default aten.reshape.default aten.select.int
    aten.slice.Tensor aten.split.Tensor aten.squeeze.default aten.squeeze.dim aten.transpose.int aten.unbind.int
    aten._unsafe_view.default aten.unsqueeze.default aten.view.default aten.index.Tensor aten.index_select.default
    aten.gather.default aten.amax.default aten.amin.default aten.max.default aten.min.default
""".split())
PLACES = frozenset({"aten.argmax.default", "aten.argmin.default", "aten.nonzero.default", "aten.argsort.default",
                    "aten.count_nonzero.default", "aten.searchsorted.Tensor", "aten.bucketize.Tensor"})
SECOND = frozenset({"aten.topk.default", "aten.sort.default", "aten.sort.stable", "aten.max.dim", "aten.min.dim"})


class Drift(NamedTuple):
    """A value is `base`, a carried one, and at least `least`, at most `most`, plus that often `each` as inner loops
    iterated."""

    base: Value
    least: Number
    most: Number
    each: Interval = (0, 0)


def ranges(graph: Graph) -> bool:
    """Drop checks that hold whatever the inputs are."""
    if not any(node.op.name == "mono.check" for node in graph.walk()):
        return False
    found = _Ranges()
    found.block(graph, 0)
    return _drop(graph, found.holding)


def _drop(graph: Graph, holding: set[Node]) -> bool:
    before = len(graph.nodes)
    graph.nodes[:] = [node for node in graph.nodes if node not in holding]
    inside = [_drop(region, holding) for node in graph.nodes for region in node.regions]
    return len(graph.nodes) < before or any(inside)


class _Ranges:
    def __init__(self) -> None:
        self.known: dict[Value, Interval] = {}
        self.drifts: dict[Value, Drift] = {}
        self.holding: set[Node] = set()

    def of(self, operand: Operand) -> Interval | None:
        if isinstance(operand, bool | int):
            return int(operand), int(operand)
        if isinstance(operand, float):
            return (operand, operand) if abs(operand) < WIDEST else None
        if isinstance(operand, Expr):
            least, most = symbolic.bounds(operand)
            return None if least is None or most is None else (least, most)
        if not isinstance(operand, Value) or not isinstance(operand.type, TensorType):
            return None
        return self.known.get(operand) or _all(operand)

    def set(self, value: Value, interval: Interval | None) -> None:
        """Beyond what its dtype holds, a value wraps, or is rounded to infinity."""
        limits = _all(value) or (-WIDEST, WIDEST)
        if interval is not None and limits[0] <= interval[0] and interval[1] <= limits[1]:
            self.known[value] = interval
        else:
            self.known.pop(value, None)

    def block(self, graph: Graph, depth: int) -> None:
        for node in graph.nodes:
            if "body" in node.op.regions:
                self.loop(node, depth)
            elif node.regions:
                self.branches(node, depth)
            elif node.op.name == "mono.check":
                if self.of(node.operands[0]) == (1, 1):
                    self.holding.add(node)
                else:
                    self.holding.discard(node)
            else:
                self.node(node)

    def node(self, node: Node) -> None:
        for place, value in enumerate(node.results):
            if isinstance(value.type, TensorType) and value.type.dtype in (*INTEGERS, torch.float64):
                self.set(value, self.result(node, place, value))
        if node.op.name in MOVES and len(node.results) == 1:
            self.drift(node)

    def result(self, node: Node, place: int, value: Value) -> Interval | None:
        name = node.op.name
        if name in PLACES or name in SECOND and place == 1:
            return 0, ITERATIONS
        if name in SAME:
            return self.of(node.operands[0])
        if name == "aten._to_copy.default":
            return self.copied(node.operands[0], value)
        rule = RULES.get(name)
        given = [self.of(operand) for operand in (*node.operands, *_numbers(node))]
        if rule is None or None in given or node.attributes.get("alpha", 1) != 1:
            return None
        intervals = [interval for interval in given if interval is not None]
        read = {operand.tensor.dtype for operand in node.inputs if isinstance(operand.type, TensorType)} - {torch.bool}
        doubles = torch.float64 in (*read, value.tensor.dtype)
        if len(read) > 1 or not read <= {torch.int64, torch.float64} or not doubles and any(
                isinstance(end, float) for interval in intervals for end in interval):
            return None                       # torch converts what is of another dtype, and integers may wrap
        if doubles:
            intervals = [(float(least), float(most)) for least, most in intervals]
        return rule(*intervals)

    def copied(self, operand: Operand, value: Value) -> Interval | None:
        """In the dtype of `value`."""
        found = self.of(operand)
        if found is None or value.tensor.dtype is torch.bool:
            return None
        kind = float if value.tensor.dtype.is_floating_point else int
        return kind(found[0]), kind(found[1])

    # -- what moves with a carried value ----------------------------------------------------

    def drift(self, node: Node) -> None:
        """base + [a, b], plus c  ->  base + [a + c, b + c]"""
        left, right = (*node.operands, *_numbers(node))[:2]
        sign = MOVES[node.op.name]
        if sign > 0 and right in self.drifts:
            left, right = right, left
        moved, by = self.drifts.get(left) if isinstance(left, Value) else None, self.of(right)
        if moved is None or by is None or node.attributes.get("alpha", 1) != 1 \
                or node.result.tensor != moved.base.tensor:
            return
        least, most = by if sign > 0 else (-by[1], -by[0])
        self.drifts[node.result] = moved._replace(least=moved.least + least, most=moved.most + most)

    # -- branches and loops ---------------------------------------------------------------------

    def implied(self, value: Value, holds: bool) -> dict[Value, Interval]:
        """Between what the integers lie that a bool was computed from, where it is true, or false.

        x < y  ->  x < max y,  y > min x"""
        node = value.node
        if node is None or value.tensor.shape:
            return {}
        if node.op.name == NOT:
            return self.implied(node.inputs[0], not holds)
        if node.op.name in (AND if holds else OR):
            return {value: fact for part in node.inputs for value, fact in self.implied(part, holds).items()}
        name = node.op.name.split(".")[1]
        if node.op.name not in COMPARISONS or any(part.tensor.dtype is not torch.int64 for part in node.inputs):
            return {}
        left, right = (*node.operands, *_numbers(node))
        if name in ("gt", "ge"):
            left, right = right, left
        if not holds:
            left, right = right, left
        strict = (name in ("lt", "gt")) is holds
        low, high = self.of(left), self.of(right)
        if low is None or high is None or not isinstance(low[0], int) or not isinstance(high[1], int):
            return {}
        facts = {left: (low[0], min(low[1], high[1] - strict)), right: (max(high[0], low[0] + strict), high[1])}
        return {value: fact for value, fact in facts.items() if isinstance(value, Value)}

    def within(self, region: Graph, facts: dict[Value, Interval], depth: int) -> None:
        before = {value: self.known.get(value) for value in facts}
        for value, fact in facts.items():
            self.set(value, fact)
        self.block(region, depth)
        for value, interval in before.items():
            self.set(value, interval)

    def branches(self, node: Node, depth: int) -> None:
        for region, holds in zip(node.regions, (True, False), strict=True):
            self.within(region, self.implied(node.inputs[0], holds), depth)
        for value, *outputs in zip(node.results, *(region.outputs for region in node.regions), strict=True):
            if not isinstance(value.type, TensorType):
                continue
            self.set(value, _hull([self.of(output) for output in outputs]))
            moved = [self.drifts[output] for output in outputs if output in self.drifts]
            if len(moved) == len(outputs) and len({drift.base for drift in moved}) == 1:
                self.drifts[value] = Drift(moved[0].base, min(drift.least for drift in moved),
                                           max(drift.most for drift in moved), _both([drift.each for drift in moved]))

    def loop(self, node: Node, depth: int) -> None:
        condition, body = node.regions
        start = node.inputs
        if depth >= DEEPEST:
            return
        for value in (*condition.inputs, *body.inputs):
            self.known.pop(value, None)
        outer = {value: self.drifts.pop(value) for value in list(self.drifts)}
        self.drifts = {value: Drift(value, 0, 0) for value in body.inputs if _all(value) is not None}
        self.block(body, depth + 1)
        each: dict[Value, Interval] = {}
        carried: list[Interval | None] = []
        for value, first, last in zip(body.inputs, start, body.outputs, strict=True):
            drift = self.drifts.get(last)
            if drift is not None and drift.base is value:
                each[value] = _both([(min(drift.least, 0), max(drift.most, 0)), drift.each], add=True)
                least, most = each[value]
                given = self.of(first)
                carried.append(None if given is None else
                               (given[0] + least * ITERATIONS, given[1] + most * ITERATIONS))
            else:
                carried.append(_hull([self.of(first), self.of(last)]))
        for names in (condition.inputs, body.inputs, node.results[:len(body.inputs)]):
            for value, interval in zip(names, carried, strict=True):
                if isinstance(value.type, TensorType):
                    self.set(value, interval)
        self.block(condition, depth + 1)
        taken = dict(zip(condition.inputs, body.inputs, strict=True))
        going = {taken.get(value, value): fact for value, fact in self.implied(condition.outputs[0], True).items()}
        self.within(body, going, depth + 1)
        self.drifts = outer
        for value, first, result in zip(body.inputs, start, node.results[:len(body.inputs)], strict=True):
            moved = outer.get(first)
            if moved is not None and value in each:
                self.drifts[result] = moved._replace(each=_both([moved.each, each[value]], add=True))


def _numbers(node: Node) -> Sequence[Operand]:
    """The numbers that stand among the attributes of an op."""
    return [node.attributes[name] for name in ("other", "fill_value") if name in node.attributes]


def _all(value: Value) -> Interval | None:
    """All that an integer dtype holds."""
    if not isinstance(value.type, TensorType) or value.type.dtype not in INTEGERS:
        return None
    if value.type.dtype is torch.bool:
        return 0, 1
    limits = torch.iinfo(value.type.dtype)
    return limits.min, limits.max


def _hull(intervals: Sequence[Interval | None]) -> Interval | None:
    found = [interval for interval in intervals if interval is not None]
    if len(found) < len(intervals):
        return None
    return min(least for least, _ in found), max(most for _, most in found)


def _both(intervals: Sequence[Interval], add: bool = False) -> Interval:
    """Their hull, or their sum."""
    least, most = zip(*intervals, strict=True)
    return (sum(least), sum(most)) if add else (min(least), max(most))


# --- what ops give for intervals ----------------------------------------------------------------

def _corners(function: Callable[[Number, Number], Number]) -> Callable[[Interval, Interval], Interval]:
    """Of a function that is monotone in either number while the other one stays."""
    def rule(a: Interval, b: Interval) -> Interval:
        found = [function(x, y) for x in a for y in b]
        return min(found), max(found)
    return rule


def _difference(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _absolute(a: Interval) -> Interval:
    ends = sorted(map(abs, a))
    return (0 if a[0] <= 0 <= a[1] else ends[0]), ends[1]


def _floor(a: Interval, b: Interval) -> Interval | None:
    return _corners(lambda x, y: x // y)(a, b) if b[0] > 0 else None


def _remainder(a: Interval, b: Interval) -> Interval | None:
    return (0, b[1] - 1) if b[0] > 0 and isinstance(b[1], int) else None


def _less(a: Interval, b: Interval) -> Interval:
    return int(a[1] < b[0]), int(a[0] < b[1])


def _less_or_equal(a: Interval, b: Interval) -> Interval:
    return int(a[1] <= b[0]), int(a[0] <= b[1])


def _copied(a: Interval) -> Interval:
    return a


Rule: TypeAlias = "Callable[..., Interval | None]"

BINARY: dict[str, Rule] = {
    "add": _corners(lambda x, y: x + y), "sub": _difference, "mul": _corners(lambda x, y: x * y),
    "floor_divide": _floor, "remainder": _remainder,
    "lt": _less, "le": _less_or_equal, "gt": lambda a, b: _less(b, a), "ge": lambda a, b: _less_or_equal(b, a),
}
RULES: dict[str, Rule] = {
    **{f"aten.{name}.{kind}": rule for name, rule in BINARY.items() for kind in ("Tensor", "Scalar")},
    "aten.floor_divide.default": _floor, "aten.neg.default": lambda a: (-a[1], -a[0]), "aten.abs.default": _absolute,
    "aten.maximum.default": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "aten.minimum.default": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "aten.where.self": lambda _, a, b: _both([a, b]), "aten.full.default": _copied, "mono.scalar": _copied,
}
COMPARISONS = frozenset(f"aten.{name}.{kind}" for name in ("lt", "le", "gt", "ge") for kind in ("Tensor", "Scalar"))
MOVES = {f"aten.{name}.{kind}": sign for name, sign in (("add", 1), ("sub", -1)) for kind in ("Tensor", "Scalar")}
