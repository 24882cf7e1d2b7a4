"""What is known of a value, or left to the call: True, False, or a bool[] value that tells.

    not_(flag)  all_of(flags)  any_of(flags)     known at once where they can be, else nodes
    behind(node, graph)                          where a node that tells about the results of `node` is recorded
    by_branch(node, then, otherwise)             of the branch of a cond that ran
    add_flags(node, starts)                      carried by a loop
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.source import SourceLoc

__all__ = ["Flag", "add_flags", "all_of", "any_of", "as_value", "behind", "by_branch", "not_"]

Flag = bool | Value


def not_(flag: Flag, builder: Builder) -> Flag:
    return not flag if isinstance(flag, bool) else builder.call("aten.logical_not.default", flag)


def all_of(flags: list[Flag], builder: Builder) -> Flag:
    """Whether all flags hold; no flag holds where there is none."""
    values = [flag for flag in flags if not isinstance(flag, bool)]
    if not flags or any(flag is False for flag in flags):
        return False
    if not values:
        return True
    result = values[0]
    for value in values[1:]:
        result = builder.call("aten.logical_and.default", result, value)
    return result


def any_of(flags: list[Flag], builder: Builder) -> Flag:
    """Whether some flag holds."""
    values = list(dict.fromkeys(flag for flag in flags if isinstance(flag, Value)))
    if any(flag is True for flag in flags) or not values:
        return any(flag is True for flag in flags)
    result = values[0]
    for value in values[1:]:
        result = builder.call("aten.logical_or.default", result, value)
    return result


def behind(node: Node, graph: Graph) -> Builder:
    """Records right behind a node of `graph`."""
    following = next(i for i, other in enumerate(graph.nodes) if other is node) + 1
    return Builder(graph, graph.nodes[following] if following < len(graph.nodes) else None, loc=node.loc)


def by_branch(node: Node, then: Flag, otherwise: Flag, builder: Builder) -> Flag:
    """The flag of the branch that ran: the predicate of a cond tells, or one more result of it. `builder` stands
    behind it."""
    if isinstance(then, bool) and then is otherwise:
        return then
    predicate = node.operands[0]
    assert isinstance(predicate, Value)
    if isinstance(then, bool) and isinstance(otherwise, bool):
        truth: Value = builder.call("aten.ne.Scalar", predicate, 0)
        return truth if then else not_(truth, builder)
    for flag, region in zip((then, otherwise), node.regions, strict=True):
        region.outputs.append(as_value(flag, region, node.loc))
    added = Value(TensorType(torch.bool, ()), node=node, index=len(node.results))
    node.results = (*node.results, added)
    return added


def as_value(flag: Flag, graph: Graph, loc: SourceLoc | None, before: Node | None = None) -> Value:
    """A flag as a value of `graph`, recorded at its end or `before` a node of it."""
    if isinstance(flag, Value):
        return flag
    made: Value = Builder(graph, before, loc=loc).call("aten.full.default", (), flag, dtype=torch.bool)
    return made


def add_flags(node: Node, starts: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Let a loop, which keeps no history yet, carry flags: as its body is given them, and what comes out. The body is
    still to give them on."""
    node.operands = ((*node.inputs, *starts),)
    type = TensorType(torch.bool, ())
    given = [[region.add_input(type) for _ in starts] for region in node.regions]
    first = len(node.results)
    made = [Value(type, node=node, index=first + place) for place in range(len(starts))]
    node.results = (*node.results, *made)
    return given[1], made
