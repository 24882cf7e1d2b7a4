"""One row of a held tensor, read where it lies.

    x[i]  ->  row(x, i)        x: held, of static rows; i: an element of a static integer tensor

The runner only computes a pointer; the result has no memory of its own. What is carried or returned is a copy of it.
"""

from __future__ import annotations

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Effect, Op, Parameter, ParameterKind
from monograph.ir.types import TensorType
from monograph.ops import families
from monograph.schedule.kernel import is_held

__all__ = ["extract", "is_row"]

ROW = Op(
    "mono.row", (Parameter("stack", ParameterKind.TENSOR), Parameter("index", ParameterKind.TENSOR)),
    effects=frozenset({Effect.RAISES}),
)
INDEX = "aten.index.Tensor"


def is_row(node: Node | None) -> bool:
    return node is not None and node.op is ROW


def extract(graph: Graph) -> None:
    """Put row nodes into `graph`, a copy of the user's."""
    replaced: dict[Value, Value] = {}
    for place, node in enumerate(graph.nodes):
        operands = _operands(node)
        if operands is not None:
            row = graph.nodes[place] = Node(ROW, operands, {}, [node.results[0].type], loc=node.loc)
            replaced[node.results[0]] = row.results[0]
    graph.replace(replaced)


def _operands(node: Node) -> tuple[Value, Value] | None:
    if node.op.name != INDEX or is_held(node.results[0]):
        return None
    stack, indices = node.operands
    if not isinstance(stack, Value) or not isinstance(indices, tuple) or len(indices) != 1:
        return None
    index = indices[0]
    if not isinstance(index, Value) or is_held(index):
        return None
    if index.tensor.numel != 1 or index.tensor.dtype is not torch.int64:
        return None
    kind = stack.type
    is_stack = isinstance(kind, TensorType) and not kind.is_static and all(isinstance(n, int) for n in kind.shape[1:])
    fits = is_stack and stack.tensor.device == index.tensor.device == "cpu" and stack.tensor.dtype in families.DTYPES
    return (stack, index) if fits else None
