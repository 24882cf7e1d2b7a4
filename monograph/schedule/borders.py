"""Borders of zeros around images that convolutions take over.

A constant_pad_nd of zeros along the spatial dims, read by nothing but convolutions of the template, is never computed:
the template's own padding begins earlier, and reaches as far as its result needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from monograph.ir import edit
from monograph.ir.graph import Node, Value
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["borders", "image", "placeholder"]

PAD = "aten.constant_pad_nd.default"


def borders(nodes: Sequence[Node], role: Mapping[Node, Role], outputs: Collection[Value]) -> set[Node]:
    """The pads among `nodes` that convolutions take over."""
    found = {node for node in nodes if node.op.name == PAD and _is_border(node) and node.results[0] not in outputs}
    if not found:
        return found
    for node in nodes:
        for value in node.reads:
            if value.node in found and not (role[node] is Role.TEMPLATE and _reads_image(node, value)):
                found.discard(value.node)
    return found


def _is_border(node: Node) -> bool:
    pad, rank = node.attributes["pad"], node.results[0].tensor.rank
    if any(map(edit.symbols_in, pad)):
        return False
    return any(pad) and min(pad) >= 0 and not node.attributes["value"] and len(pad) <= 2 * (rank - 2)


def _reads_image(node: Node, value: Value) -> bool:
    """Is `node` a convolution, and `value` its image and nothing else?"""
    names = [parameter.name for parameter in node.op.operand_parameters]
    return names[:2] == ["input", "weight"] and "groups" in node.attributes and \
        [slot is value for slot in node.operands].count(True) == 1 and node.operands[0] is value


def image(value: Value, role: Mapping[Node, Role]) -> tuple[Value, tuple[int, ...]]:
    """What a convolution of `value` reads, and how many zeros come before it along each spatial dim."""
    before = [0] * (value.tensor.rank - 2)
    node = value.node
    if node is None or node.op.name != PAD or role.get(node) is not Role.VIEW:
        return value, tuple(before)
    for k, amount in enumerate(node.attributes["pad"][::2]):
        before[-1 - k] = amount
    return node.inputs[0], tuple(before)


def placeholder(node: Node) -> Affine:
    """No strides tell where the result of a border lies; this map is like none that could be undone."""
    shape = shape_of(node.results[0])
    return Affine(shape, (0,) * len(shape))
