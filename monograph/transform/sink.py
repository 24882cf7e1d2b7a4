"""Views and constants move into the regions that read them, where they cost nothing and kernels take them in.

Outside, they would have to be written to memory before the region is entered. `cse` and `hoist` move the other way:
this pass comes last.
"""

from __future__ import annotations

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ops.effects import is_pure

__all__ = ["sink"]


def sink(graph: Graph) -> bool:
    """Copy views and constants that regions read from the blocks around them into those regions."""
    changed = False
    for node in graph.nodes:
        for region in node.regions:
            changed |= _fill(region)
            changed |= sink(region)
    return changed


def _fill(region: Graph) -> bool:
    """Copies, in the order of what they need, of all that `region` reads through views and constants."""
    needed: dict[Node, None] = {}
    copied: dict[Value, Value] = {}

    def collect(value: Value) -> None:
        node = value.node
        if node is None or node in needed or not _is_free(node):
            return
        for operand in node.inputs:
            collect(operand)
        needed[node] = None

    for value in region.free_values():
        collect(value)
    copies = [edit.copy_node(node, copied) for node in needed]
    region.replace(copied)      # before the copies stand in it: they read what is outside
    region.nodes[:0] = copies
    return bool(copies)


def _is_free(node: Node) -> bool:
    return is_pure(node) and not node.regions and (node.op.has(Trait.VIEW) or node.op.has(Trait.FACTORY))
