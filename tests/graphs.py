"""Random small graphs for property tests: pointwise, broadcast, view, reduction and matrix ops over f32 and i64."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder

__all__ = ["SHAPES", "graphs", "node", "tensors"]

SHAPES = [(3, 4), (4,), (3, 1), (1,), (), (2, 3, 4), (0, 4)]
UNARY = ["neg", "abs", "relu", "exp", "tanh", "sigmoid", "clone", "detach", "alias"]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]
NUMBERS = [0, 1, 2, -1, 0.0, 1.0, 0.5, -0.0]


@st.composite
def graphs(draw: st.DrawFn, *, size: int = 12) -> Graph:
    """A graph of up to `size` ops whose inputs are arguments and parameters, with one to three outputs."""
    graph = Graph()
    values: list[Value] = []
    for number in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(SHAPES))
        kind = draw(st.sampled_from(["argument", "parameter"]))
        values.append(graph.add_input(TensorType(torch.float32, shape), f"x{number}", Source(kind, f"x{number}")))
    builder = Builder(graph)
    for _ in range(draw(st.integers(1, size))):
        values.append(draw(node(builder, values)))
    graph.outputs = [draw(st.sampled_from(values[-4:])) for _ in range(draw(st.integers(1, 3)))]
    return graph


@st.composite
def node(draw: st.DrawFn, builder: Builder, values: list[Value]) -> Value:
    x = draw(st.sampled_from(values))
    shape = x.tensor.shape
    kind = draw(st.sampled_from(["unary", "binary", "number", "view", "reduce", "permute", "expand", "softmax", "cat"]))
    if kind == "binary":
        partners = [y for y in values if _broadcast(shape, y.tensor.shape)]
        name = draw(st.sampled_from(BINARY))
        name = f"aten.{name}.Tensor" if name in ("add", "sub", "mul") else f"aten.{name}.default"
        return builder.call(name, x, draw(st.sampled_from(partners)))
    if kind == "number":
        name = draw(st.sampled_from(["add", "sub", "mul"]))
        return builder.call(f"aten.{name}.Tensor", x, draw(st.sampled_from(NUMBERS)))
    if kind == "view":
        sizes = draw(st.sampled_from([(-1,), (*shape, 1), (1, *shape)])) if x.tensor.numel else shape
        sizes = (x.tensor.numel,) if sizes == (-1,) else sizes
        return builder.call("aten.view.default", x, sizes)
    if kind == "reduce" and shape and x.tensor.numel:
        dim = draw(st.integers(0, len(shape) - 1))
        name = draw(st.sampled_from(["sum.dim_IntList", "mean.dim", "amax.default"]))
        return builder.call(f"aten.{name}", x, [dim], draw(st.booleans()))
    if kind == "permute":
        return builder.call("aten.permute.default", x, draw(st.permutations(range(len(shape)))))
    if kind == "expand":
        return builder.call("aten.expand.default", x, (2, *shape)) if len(shape) < 3 else x
    if kind == "softmax" and shape:
        return builder.call("aten._softmax.default", x, len(shape) - 1, False)
    if kind == "cat" and shape:
        return builder.call("aten.cat.default", (x, x), 0)
    return builder.call(f"aten.{draw(st.sampled_from(UNARY))}.default", x)


def _broadcast(a: tuple, b: tuple) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b)))


def tensors(graph: Graph, seed: int = 0) -> list[torch.Tensor]:
    """Inputs for a graph, of order 1."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(value.tensor.shape, generator=generator) for value in graph.inputs]
