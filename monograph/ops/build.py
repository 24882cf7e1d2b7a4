"""Making nodes: `Builder.call("aten.mul.Tensor", x, 2)` infers the types, inserts, keeps the line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Op
from monograph.ops import infer, table
from monograph.source import SourceLoc

__all__ = ["Builder"]


class Builder:
    """Adds nodes to `graph`, before node `before` (at the end when None), each at line `loc`."""

    def __init__(self, graph: Graph, before: Node | None = None, loc: SourceLoc | None = None) -> None:
        self.graph = graph
        self.before = before
        self.loc = loc if loc is not None or before is None else before.loc
        self._position = 0

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Results of op `name`: one Value, or a tuple where the op has several (or a list).

        Arguments are bound as in torch, in the order of the schema; a slot takes a Value, a number or None.
        """
        op = table.lookup(name)
        operands, attributes = table.bind(op, args, kwargs)
        node = self.insert(Node(op, operands, attributes, infer.result_types(op, operands, attributes), loc=self.loc))
        return node.results[0] if infer.is_single(op) else node.results

    def region(self, name: str, *args: Any, regions: Iterable[Graph], **kwargs: Any) -> tuple[Value, ...]:
        """Results of an op that takes regions."""
        op = table.lookup(name)
        operands, attributes = table.bind(op, args, kwargs)
        blocks = tuple(regions)
        types = infer.result_types(op, operands, attributes, blocks)
        return self.insert(Node(op, operands, attributes, types, regions=blocks, loc=self.loc)).results

    def again(self, node: Node, operands: Iterable[Any]) -> Node:
        """A node like `node` on other operands, types inferred anew."""
        op: Op = node.op
        slots = tuple(operands)
        types = infer.result_types(op, slots, node.attributes, node.regions)
        return self.insert(Node(op, slots, node.attributes, types, regions=node.regions, loc=node.loc or self.loc))

    def insert(self, node: Node) -> Node:
        """Put a finished node where this builder points."""
        nodes = self.graph.nodes
        if self.before is None:
            nodes.append(node)
            return node
        if not (self._position < len(nodes) and nodes[self._position] is self.before):
            self._position = next(i for i, other in enumerate(nodes) if other is self.before)
        nodes.insert(self._position, node)
        self._position += 1
        return node
