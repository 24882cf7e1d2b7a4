"""What fusion asks of a graph, computed once: roles, what each view looks at, who reads what.

The *base* of a value is the first value down its chain of views that is not itself a view; its *path* is that chain,
from the base upwards. Only bases are ever computed; a view is a way to read one.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.schedule import borders, roles, views
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine

__all__ = ["Flow", "Step", "flow", "size"]


def size(value: Value) -> int:
    """Elements of a static tensor value."""
    return math.prod(views.shape_of(value))


@dataclass(frozen=True, slots=True)
class Step:
    """One view on a path: where the result lies over a contiguous operand."""

    node: Node
    position: int         # which result of the node
    affine: Affine
    operand_size: int
    in_order: bool        # flat element i of the result is flat element i of the operand
    covers: bool          # every element of the operand is in the result


@dataclass
class Flow:
    """The facts about a graph. Those of a region begin with the facts about the graphs around it, readers aside: roles,
    bases and paths reach outwards, so a region composes the views and constants of the outer graph as its own."""

    graph: Graph
    nodes: list[Node]                         # by position
    position: dict[Node, int]
    role: dict[Node, Role]
    base: dict[Value, Value]                  # for view results only; others are their own base
    path: dict[Value, tuple[Step, ...]]
    readers: dict[Value, list[Node]]          # base -> nodes that are no views and read it, each once per base
    escapes: set[Value]                       # graph outputs
    own: set[Node]                            # nodes of this graph
    known: set[str]                           # symbols told in this graph or around it
    binders: dict[str, Node]                  # symbol -> the node of this graph whose result tells it

    def base_of(self, value: Value) -> Value:
        return self.base.get(value, value)

    def path_of(self, value: Value) -> tuple[Step, ...]:
        return self.path.get(value, ())

    def in_order(self, value: Value) -> bool:
        """Is flat element i of `value` flat element i of its base?"""
        return all(step.in_order for step in self.path_of(value))

    def producer(self, value: Value) -> Node | None:
        """The node that computes the base of `value`; None for graph inputs."""
        return self.base_of(value).node


def flow(graph: Graph, stored: Collection[Node] = (), outer: Flow | None = None) -> Flow:
    """The facts about `graph`, whose outputs are all results of nodes that are no views. `outer`: those of the graph
    around it.

    Views in `stored` count as work: their results are computed and stored like others.
    """
    role = {} if outer is None else dict(outer.role)
    role.update((node, Role.POINTWISE if node in stored else roles.role(node)) for node in graph.nodes)
    taken = borders.borders(graph.nodes, role, graph.outputs)
    role.update(dict.fromkeys(taken, Role.VIEW))
    base: dict[Value, Value] = {} if outer is None else dict(outer.base)
    path: dict[Value, tuple[Step, ...]] = {} if outer is None else dict(outer.path)
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        if role[node] is Role.VIEW:
            operand = node.inputs[0]
            for k, result in enumerate(node.results):
                base[result] = base.get(operand, operand)
                path[result] = (*path.get(operand, ()), _step(node, k))
            continue
        for value in dict.fromkeys(base.get(value, value) for value in node.reads):
            readers.setdefault(value, []).append(node)
    nodes = graph.nodes if outer is None else [*outer.nodes, *graph.nodes]
    position = {node: i for i, node in enumerate(nodes)}
    known = set() if outer is None else outer.known
    told = {name: value.node for value, names in edit.tellers(graph, known).items() for name in names if value.node}
    known = known.union(told, *(edit.symbols_in(value.type) for value in graph.inputs))
    return Flow(
        graph, nodes, position, role, base, path, readers, set(graph.outputs), set(graph.nodes), known, told,
    )


def _step(node: Node, position: int) -> Step:
    if node.op.name == borders.PAD and any(node.attributes["pad"]):
        return Step(node, position, borders.placeholder(node), size(node.inputs[0]), False, True)
    shape = views.shape_of(node.inputs[0])
    affine = views.through(node, position, views.contiguous(shape))
    assert affine is not None, node
    points = math.prod(shape)
    distinct = math.prod(n for n, stride in zip(affine.shape, affine.strides, strict=True) if stride)
    in_order = affine.numel == points and affine.offset == 0 and views.same_order(affine)
    return Step(node, position, affine, points, in_order, in_order or distinct == points)
