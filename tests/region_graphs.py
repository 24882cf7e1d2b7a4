"""Random graphs with nested `mono.cond` and `mono.while`, for property tests of passes and of compiled programs.

    regions(size, depth, checks) -> Graph     inputs: f32 tensors (arguments and parameters), i64[] n, bool[] p
    inputs_for(graph, seed)                   inputs of order 1; numbers 0..4

Loops count up to at most four and keep what they carry bounded by tanh, so that values stay of order 1 where the
program lets them. Bodies read outer values, carry what they do not change, swap, share and ignore carries, keep
histories, draw their branches from the same predicate twice: what passes look for. With `checks` some `mono.check`
stand anywhere, which may fail.
"""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.symbolic import Symbol
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from tests.graphs import SHAPES, node

__all__ = ["inputs_for", "regions"]

F32, I64, BOOL = torch.float32, torch.int64, torch.bool
COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]


@st.composite
def regions(draw: st.DrawFn, *, size: int = 6, depth: int = 2, checks: bool = False) -> Graph:
    """A graph of about `size` nodes per block, regions nested up to `depth` deep, one to three outputs."""
    graph = Graph()
    for position in range(draw(st.integers(1, 2))):
        shape = draw(st.sampled_from(SHAPES))
        kind = draw(st.sampled_from(["argument", "parameter"]))
        graph.add_input(TensorType(F32, shape), f"x{position}", Source(kind, f"x{position}"))
    graph.add_input(TensorType(I64, ()), "n", Source("argument", "n"))
    graph.add_input(TensorType(BOOL, ()), "p", Source("argument", "p"))
    maker = _Maker(draw, graph, checks)
    values = maker.block(Builder(graph), list(graph.inputs), size, depth)
    if not any(found.regions for found in graph.nodes):
        values += maker.cond(Builder(graph), values, size, depth)
    made = [value for found in graph.nodes if found.regions for value in found.results if value in values]
    graph.outputs = [draw(st.sampled_from([*values[-3:], *made])) for _ in range(draw(st.integers(1, 3)))]
    return graph


def inputs_for(graph: Graph, seed: int = 0) -> list[torch.Tensor]:
    """Values for the inputs that a caller gives."""
    generator = torch.Generator().manual_seed(seed)
    given = []
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        dtype, shape = value.tensor.dtype, value.tensor.shape
        made = torch.randn(shape, generator=generator) if dtype is F32 else \
            torch.randint(0, 5 if dtype is I64 else 2, shape, generator=generator).to(dtype)
        if source.kind != "derived":
            given.append(made)
    return given


class _Maker:
    """Draws blocks. `values` is what a block may read; methods return it with what they added at the end."""

    def __init__(self, draw: st.DrawFn, root: Graph, checks: bool) -> None:
        self.draw = draw
        self.root = root
        self.checks = checks

    def pick(self, values: list[Value], dtype: torch.dtype) -> Value:
        """One of the values of `dtype`, late ones more often. Every block has an i64[] and a bool[]."""
        fitting = [value for value in values if value.tensor.dtype is dtype]
        return self.draw(st.sampled_from(fitting[-6:] + fitting))

    def block(self, builder: Builder, values: list[Value], size: int, depth: int) -> list[Value]:
        kinds = ["tensor", "tensor", "number", "flag"] + ["cond", "while"] * (depth > 0) + ["check"] * self.checks
        values = list(values)
        for _ in range(self.draw(st.integers(1, max(size, 1)))):
            kind = self.draw(st.sampled_from(kinds))
            values += getattr(self, kind if kind != "while" else "loop")(builder, values, size, depth)
        return values

    def tensor(self, builder: Builder, values: list[Value], *_: int) -> list[Value]:
        floats = [value for value in values if value.tensor.dtype is F32]
        if self.draw(st.integers(0, 5)) == 0:
            choice = self.pick(values, BOOL)
            return [builder.call("aten.where.ScalarOther", choice, self.pick(values, F32), 0.5)]
        return [self.draw(node(builder, floats))]

    def number(self, builder: Builder, values: list[Value], *_: int) -> list[Value]:
        kind = self.draw(st.sampled_from(["number", "number", "pair", "constant", "remainder"]))
        if kind == "constant":
            return [builder.call("aten.full.default", [], self.draw(st.integers(0, 3)), dtype=I64)]
        n = self.pick(values, I64)
        if kind == "remainder":
            return [builder.call("aten.remainder.Scalar", n, self.draw(st.integers(1, 3)))]
        other = self.pick(values, I64) if kind == "pair" else self.draw(st.integers(-1, 2))
        return [builder.call(f"aten.{self.draw(st.sampled_from(['add', 'sub', 'mul']))}.Tensor", n, other)]

    def flag(self, builder: Builder, values: list[Value], *_: int) -> list[Value]:
        kind = self.draw(st.sampled_from(["number", "pair", "tensor", "not", "and", "or"]))
        compare = self.draw(st.sampled_from(COMPARE))
        if kind == "number":
            return [builder.call(f"aten.{compare}.Scalar", self.pick(values, I64), self.draw(st.integers(0, 3)))]
        if kind == "pair":
            return [builder.call(f"aten.{compare}.Tensor", self.pick(values, I64), self.pick(values, I64))]
        if kind == "tensor":
            total = builder.call("aten.sum.default", self.pick(values, F32))
            return [builder.call(f"aten.{compare}.Scalar", total, 0.5)]
        if kind == "not":
            return [builder.call("aten.logical_not.default", self.pick(values, BOOL))]
        return [builder.call(f"aten.logical_{kind}.default", self.pick(values, BOOL), self.pick(values, BOOL))]

    def check(self, builder: Builder, values: list[Value], *_: int) -> list[Value]:
        error = self.draw(st.sampled_from(["ValueError", "KeyError"]))
        builder.call("mono.check", self.pick(values, BOOL), error=error, message="no")
        return []

    def cond(self, builder: Builder, values: list[Value], size: int, depth: int) -> list[Value]:
        then, otherwise = Graph("then"), Graph("otherwise")
        mine = self.block(Builder(then), values, size - 2, depth - 1)
        other = self.block(Builder(otherwise), values, size - 2, depth - 1)
        for _ in range(self.draw(st.integers(1, 3))):
            value = self.draw(st.sampled_from(mine[-4:] + mine))
            partners = [partner for partner in other if partner.type == value.type]
            if partners:
                then.outputs.append(value)
                otherwise.outputs.append(self.draw(st.sampled_from(partners[-2:] + partners)))
        return list(builder.region("mono.cond", self.pick(values, BOOL), regions=(then, otherwise)))

    def loop(self, builder: Builder, values: list[Value], size: int, depth: int) -> list[Value]:
        start = self.draw(st.sampled_from([0, 0, 1, None]))
        counter = builder.call("aten.full.default", [], start, dtype=I64) if start is not None else \
            builder.call("aten.clamp.default", self.pick(values, I64), 0, None)
        carried = [counter, *(self.draw(st.sampled_from(values)) for _ in range(self.draw(st.integers(0, 3))))]
        bound = self.draw(st.integers(0, 4)) if self.draw(st.booleans()) else \
            builder.call("aten.clamp.default", self.pick(values, I64), None, 4)
        regions = (self.condition(carried, values, bound), self.body(carried, values, size, depth))
        history = tuple(k for k in range(len(carried)) if self.draw(st.integers(0, 4)) == 0)
        if not history:
            return list(builder.region("mono.while", carried, regions=regions))
        trips = f"t{len(self.root.symbols)}"
        self.root.symbols[trips] = Symbol(trips)
        results = builder.region("mono.while", carried, regions=regions, history=history, trips=trips)
        made = list(results[:len(carried)])
        made.append(builder.call("mono.scalar", results[len(carried)]))
        for stack in results[len(carried) + 1:]:
            if stack.tensor.dtype is F32:
                made.append(builder.call("aten.sum.dim_IntList", stack, [0]))
        return made

    def condition(self, carried: list[Value], values: list[Value], bound: Value | int) -> Graph:
        region = Graph("condition")
        taken = [region.add_input(TensorType(v.tensor.dtype, v.tensor.shape), f"c{k}") for k, v in enumerate(carried)]
        builder = Builder(region)
        if isinstance(bound, int):
            going = builder.call("aten.lt.Scalar", taken[0], bound)
        else:
            going = builder.call("aten.lt.Tensor", taken[0], bound)
        if self.draw(st.integers(0, 3)) == 0:
            (more,) = self.flag(builder, [*values, *taken])
            going = builder.call("aten.logical_and.default", going, more)
        region.outputs = [going]
        return region

    def body(self, carried: list[Value], values: list[Value], size: int, depth: int) -> Graph:
        region = Graph("body")
        taken = [region.add_input(TensorType(v.tensor.dtype, v.tensor.shape), f"b{k}") for k, v in enumerate(carried)]
        builder = Builder(region)
        inner = self.block(builder, [*values, *taken], size - 2, depth - 1)
        step = self.draw(st.integers(1, 2))
        region.outputs = [builder.call("aten.add.Tensor", taken[0], step)]
        for value in taken[1:]:
            fitting = [other for other in inner if _same(other, value)]
            new = self.draw(st.sampled_from([value, *fitting[-3:], *fitting]))
            if new.node is not None and new.tensor.dtype is F32 and self.draw(st.integers(0, 3)):
                new = builder.call("aten.tanh.default", new)
            region.outputs.append(new)
        return region


def _same(a: Value, b: Value) -> bool:
    return (a.tensor.dtype, a.tensor.shape) == (b.tensor.dtype, b.tensor.shape)
