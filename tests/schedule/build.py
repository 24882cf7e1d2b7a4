"""A short way to write graphs for tests: `make(f32(2, 8), weight=...)` style inputs and op calls by short name."""

from __future__ import annotations

from typing import Any

import torch

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.schedule import plan
from monograph.schedule.kernel import Schedule
from monograph.schedule.views import row_major
from tests.schedule.simulate import Lanes

__all__ = ["Maker", "ops"]


class Maker:
    """Builds a graph: `m.input(2, 8)`, `m.weight(8, 8)`, `m.op("mul.Tensor", x, y)`, `m.plan(out, ...)`."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.builder = Builder(self.graph)

    def input(self, *shape: int, dtype: torch.dtype = torch.float32, kind: str = "argument") -> Value:
        name = f"x{len(self.graph.inputs)}"
        return self.graph.add_input(TensorType(dtype, shape, strides=row_major(shape)), name, Source(kind, name))

    def weight(self, *shape: int) -> Value:
        return self.input(*shape, kind="parameter")

    def op(self, name: str, *arguments: Any, **attributes: Any) -> Any:
        return self.builder.call(f"aten.{name}", *arguments, **attributes)

    def softmax(self, x: Value, dim: int = -1) -> Value:
        raised = self.op("exp.default", self.op("sub.Tensor", x, self.op("amax.default", x, (dim,), True)))
        return self.op("div.Tensor", raised, self.op("sum.dim_IntList", raised, (dim,), True))

    def outputs(self, *values: Value) -> Graph:
        self.graph.outputs = list(values)
        return self.graph

    def plan(self, *values: Value) -> Schedule:
        return plan(self.outputs(*values), target=Lanes())


def ops(schedule: Schedule) -> list[list[str]]:
    """The ops of each item, without their overloads."""
    return [[node.op.name.split(".")[1] for node in item.nodes] for item in schedule.items]
