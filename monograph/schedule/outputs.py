"""Graph outputs are tensors of their own.

`own_outputs` appends a copy where an output is no value that an item stores by itself: a graph input, a view, a
constant, a value returned twice; in a region also one of the graph around it. After fusion most of these copies have
joined the kernel that computes the value; `pull_back` removes a copy of a permuted or reshaped value by letting the
value's producer write straight into the output with the strides that make the view come out right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType
from monograph.ops import table
from monograph.schedule import roles, rowat, turning, views
from monograph.schedule.flow import Flow
from monograph.schedule.fuse import Groups
from monograph.schedule.kernel import is_held
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["copy_of", "own_outputs", "pull_back"]


def copy_of(value: Value, type: TensorType | None = None) -> Node:
    """A node (of no graph yet) whose result is a copy of `value`."""
    op = table.lookup("aten.clone.default")
    operands, attributes = table.bind(op, (value,), {})
    return Node(op, operands, attributes, [type or replace(value.tensor, strides=None)],
                loc=value.node.loc if value.node else None)


def own_outputs(graph: Graph, stays: Sequence[Value | None] = ()) -> Graph:
    """`graph` itself, or one that shares its nodes and has copies for the outputs that need them.

    An output that is the value at its place in `stays` is left alone.
    """
    nodes, outputs = list(graph.nodes), list[Value]()
    seen: set[Value] = set()
    own = set(nodes)
    for position, value in enumerate(graph.outputs):
        kept = position < len(stays) and value is stays[position]
        if not is_held(value) and not kept and _needs_copy(value, own, seen):
            nodes.append(copy_of(value, value.tensor))
            value = nodes[-1].result
        seen.add(value)
        outputs.append(value)
    return replace(graph, nodes=nodes, outputs=outputs)


def _needs_copy(value: Value, own: set[Node], seen: set[Value]) -> bool:
    if value.node not in own or value in seen or rowat.is_row(value.node):
        return True
    return roles.role(value.node) in (Role.VIEW, Role.CONSTANT)


def pull_back(flow: Flow, groups: Groups) -> dict[Value, tuple[Value, tuple[int, ...]]]:
    """Removes groups that only copy a value out: copied output -> the value that takes its place, and its strides."""
    moved: dict[Value, tuple[Value, tuple[int, ...]]] = {}
    taken: set[Value] = set(flow.escapes)
    for output in flow.graph.outputs:
        node = output.node
        group = groups.of.get(node) if node is not None else None
        if node is None or group is None or len(group.nodes) != 1 or node.op.name != "aten.clone.default":
            continue
        if is_held(output):
            continue
        operand = node.inputs[0]
        base = flow.base_of(operand)
        if rowat.is_row(base.node):
            continue
        if base.node is None or base.node not in groups.of or base in taken or base.tensor.dtype != output.tensor.dtype:
            continue
        strides = turning.undo(flow.path_of(operand), Affine(shape_of(output), views.strides_seen(output)))
        if strides is not None:
            moved[output] = (base, strides)
            taken.add(base)
            groups.drop(group)
    return moved
