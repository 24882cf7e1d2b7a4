"""Random graphs with nested cond and while over a few static types, to compare a back end with the evaluator."""

from __future__ import annotations

import random

import torch

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder

__all__ = ["inputs_for", "random_regions"]

F32, F64, I64, BOOL = torch.float32, torch.float64, torch.int64, torch.bool
TYPES = [(F32, (4,)), (F32, (3, 4)), (F64, (4,)), (I64, ()), (BOOL, ()), (F32, ()), (I64, (4,)), (F32, (4, 3))]


class Scope:
    """One block under construction; `values` are those it sees, outer ones first."""

    def __init__(self, graph: Graph, rng: random.Random, values: list[Value], depth: int) -> None:
        self.graph, self.random, self.values, self.depth = graph, rng, values, depth
        self.builder = Builder(graph)

    def aten(self, name, *args, **kwargs):
        return self.builder.call(f"aten.{name}", *args, **kwargs)

    def keep(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def pick(self, dtype, shape) -> Value:
        """Some value of a type: one at hand, more likely a late one, or one made from nothing."""
        found = [v for v in self.values if (v.tensor.dtype, v.tensor.shape) == (dtype, shape)]
        if found and self.random.random() < 0.9:
            return self.random.choice(found[-self.random.choice([1, 3, 10]):])
        fill = self.random.choice([0, 1, 2])
        return self.aten("full.default", shape, bool(fill) if dtype is BOOL else fill, dtype=dtype)

    def step(self) -> None:
        roll = self.random.random()
        if self.depth < 3 and roll < 0.16:
            self.cond()
        elif self.depth < 3 and roll < 0.3:
            self.loop()
        else:
            self.random.choice(STEPS)(self)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def inside(self, count: int, types=()) -> Scope:
        region = Graph("region")
        inputs = [region.add_input(TensorType(dtype, shape), "") for dtype, shape in types]
        inner = Scope(region, self.random, [*self.values, *inputs], self.depth + 1)
        inner.inputs = inputs
        inner.steps(count)
        return inner

    def some_types(self):
        return [self.random.choice(TYPES) for _ in range(self.random.randint(1, 3))]

    def predicate(self) -> Value:
        dtype, shape = self.random.choice([(BOOL, ()), (BOOL, ()), (I64, ()), (F32, ())])
        return self.pick(dtype, shape)

    def returned(self, types) -> list[Value]:
        values = [self.pick(dtype, shape) for dtype, shape in types]
        if len(types) > 1 and types[0] == types[1] and self.random.random() < 0.3:
            values[1] = values[0]
        return values

    def cond(self) -> None:
        types = self.some_types()
        regions = []
        for _ in range(2):
            inner = self.inside(self.random.randint(0, 4))
            inner.graph.outputs = inner.returned(types)
            regions.append(inner.graph)
        self.values += self.builder.region("mono.cond", self.predicate(), regions=regions)

    def loop(self) -> None:
        types = [(I64, ()), *self.some_types()]
        start = [self.aten("full.default", (), self.random.randint(0, 3), dtype=I64),
                 *(self.pick(dtype, shape) for dtype, shape in types[1:])]
        condition = self.inside(self.random.randint(0, 1), types)
        limit = condition.aten("lt.Scalar", condition.inputs[0], 3)
        if self.random.random() < 0.4:
            limit = condition.aten("logical_and.default", limit, condition.pick(BOOL, ()))
        condition.graph.outputs = [limit]
        body = self.inside(self.random.randint(1, 5), types)
        last = body.returned(types[1:])
        swap = [v for v in body.inputs[1:] if (v.tensor.dtype, v.tensor.shape) == types[1]]
        if self.random.random() < 0.3:
            last[0] = swap[-1]
        body.graph.outputs = [body.aten("add.Scalar", body.inputs[0], 1), *last]
        self.values += self.builder.region("mono.while", start, regions=[condition.graph, body.graph])


def _unary(s: Scope) -> None:
    dtype, shape = s.random.choice([t for t in TYPES if t[0] in (F32, F64)])
    name = s.random.choice(["tanh.default", "neg.default", "relu.default", "sin.default"])
    s.keep(s.aten(name, s.pick(dtype, shape)))


def _binary(s: Scope) -> None:
    dtype, shape = s.random.choice([t for t in TYPES if t[0] is not BOOL])
    name = s.random.choice(["add.Tensor", "sub.Tensor", "maximum.default"])
    made = s.aten(name, s.pick(dtype, shape), s.pick(dtype, shape))
    s.keep(s.aten("clamp.default", made, -8, 8))


def _compare(s: Scope) -> None:
    dtype, shape = s.random.choice([(F32, ()), (I64, ())])
    s.keep(s.aten(s.random.choice(["lt.Scalar", "ge.Scalar"]), s.pick(dtype, shape), s.random.choice([0, 1, 2])))


def _cast(s: Scope) -> None:
    shape = s.random.choice([(4,), ()])
    wanted = s.random.choice([t for t in TYPES if t[1] == shape])[0]
    given = s.random.choice([t for t in TYPES if t[1] == shape])[0]
    s.keep(s.aten("_to_copy.default", s.pick(given, shape), dtype=wanted))


def _fold(s: Scope) -> None:
    x = s.pick(F32, (3, 4))
    s.keep(s.aten("amax.default", x, (0,)))
    s.keep(s.aten("mean.dim", x, (0, 1)) if s.random.random() < 0.3 else s.aten("amax.default", x, (0, 1)))


def _view(s: Scope) -> None:
    x = s.pick(F32, (3, 4))
    s.keep(s.aten("transpose.int", x, 0, 1))
    s.keep(s.aten("select.int", x, 0, s.random.randrange(3)))
    s.keep(s.aten("select.int", s.pick(F32, (4,)), 0, 1))


def _spread(s: Scope) -> None:
    s.keep(s.aten("expand.default", s.pick(F32, (4,)), (3, 4)))


def _product(s: Scope) -> None:
    made = s.aten("mm.default", s.pick(F32, (4, 3)), s.pick(F32, (3, 4)))
    s.keep(s.aten("tanh.default", s.aten("mm.default", s.pick(F32, (3, 4)), made)))


def _linear(s: Scope) -> None:
    weights = [v for v in s.values if v.name == "weight"]
    if weights:
        s.keep(s.aten("tanh.default", s.aten("linear.default", s.pick(F32, (3, 4)), weights[0])))


def _sorted(s: Scope) -> None:
    values, _ = s.aten("sort.default", s.pick(F32, (4,)), 0)
    s.keep(values)


def _softmax(s: Scope) -> None:
    x = s.pick(F32, (3, 4))
    top = s.aten("exp.default", s.aten("sub.Tensor", x, s.aten("amax.default", x, (-1,), True)))
    s.keep(s.aten("div.Tensor", top, s.aten("sum.dim_IntList", top, (-1,), True)))


STEPS = [_unary, _binary, _binary, _compare, _cast, _fold, _view, _spread, _product, _linear, _sorted, _softmax]


def random_regions(seed: int, steps: int) -> Graph:
    rng = random.Random(seed)
    graph = Graph()
    scope = Scope(graph, rng, [], 0)
    for number, (dtype, shape) in enumerate(TYPES):
        strides = torch.empty(shape, device="meta").stride()
        if shape == (3, 4) and rng.random() < 0.4:
            strides = (1, 3)
        scope.keep(graph.add_input(TensorType(dtype, shape, strides=strides), f"x{number}"))
    weight = TensorType(F32, (4, 4), strides=(4, 1))
    graph.add_input(weight, "weight", Source("parameter", "weight"))
    scope.values.append(graph.inputs[-1])
    scope.steps(steps)
    made = [v for v in scope.values if v.node is not None] or scope.values
    graph.outputs = [rng.choice(made[-8:]) for _ in range(rng.randint(1, 4))]
    return graph


def inputs_for(graph: Graph, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    inputs = []
    for value in graph.inputs:
        kind = value.tensor
        if kind.dtype.is_floating_point:
            made = torch.randn(kind.shape, dtype=kind.dtype)
        else:
            made = torch.randint(0, 4, kind.shape).to(kind.dtype)
        laid = torch.empty_strided(kind.shape, kind.strides, dtype=kind.dtype)
        inputs.append(laid.copy_(made))
    return inputs
