"""Random graphs with nested cond and while, to compare a back end with the evaluator.

They compute with a few static types; where `dynamic`, also with numbers and with vectors of sizes that values decide.
"""

from __future__ import annotations

import random

import torch

from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import table
from monograph.ops.build import Builder

__all__ = ["inputs_for", "random_regions"]

F32, F64, I64, BOOL = torch.float32, torch.float64, torch.int64, torch.bool
VECTOR, NUMBER = "vector", "number"
TYPES = [(F32, (4,)), (F32, (3, 4)), (F64, (4,)), (I64, ()), (BOOL, ()), (F32, ()), (I64, (4,)), (F32, (4, 3))]


class Scope:
    """One block under construction; `values` are those it sees, outer ones first."""

    def __init__(
        self, graph: Graph, top: Graph, rng: random.Random, values: list[Value], depth: int, dynamic: bool
    ) -> None:
        self.graph, self.top, self.random, self.values, self.depth = graph, top, rng, values, depth
        self.dynamic = dynamic
        self.builder = Builder(graph)

    def symbol(self, lo: int = 0) -> Symbol:
        made = Symbol(f"s{len(self.top.symbols)}", lo)
        self.top.symbols[made.name] = made
        return made

    def typed(self, name, types, *args, regions=(), **kwargs):
        """Results of an op whose types are given."""
        op = table.lookup(name)
        operands, attributes = table.bind(op, args, kwargs)
        return self.builder.insert(Node(op, operands, attributes, types, regions=regions)).results

    def vector(self) -> Value:
        """A float vector of a size that only a call knows."""
        found = [v for v in self.values if isinstance(v.type, TensorType) and not v.type.is_static]
        if found and self.random.random() < 0.8:
            return self.random.choice(found[-3:])
        x = self.pick(F32, (4,))
        mask = self.aten("gt.Scalar", x, self.random.choice([-9, 0, 9]))
        return self.keep(self.typed("aten.masked_select.default", [TensorType(F32, (self.symbol(),))], x, mask)[0])

    def number(self) -> Value:
        found = [v for v in self.values if isinstance(v.type, ScalarType) and v.type.symbol is not None]
        if found and self.random.random() < 0.8:
            return self.random.choice(found[-3:])
        x = self.aten("clamp.default", self.pick(I64, ()), 0, 4)
        symbol = self.symbol()
        return self.keep(self.typed("mono.number", [ScalarType("int", symbol.name)], x, symbol=symbol.name)[0])

    def aten(self, name, *args, **kwargs):
        return self.builder.call(f"aten.{name}", *args, **kwargs)

    def keep(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def pick(self, dtype, shape) -> Value:
        """Some value of a type: one at hand, more likely a late one, or one made from nothing."""
        tensors = [v for v in self.values if isinstance(v.type, TensorType)]
        found = [v for v in tensors if (v.tensor.dtype, v.tensor.shape) == (dtype, shape)]
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
        elif self.dynamic and roll < 0.6:
            self.random.choice(DYNAMIC)(self)
        else:
            self.random.choice(STEPS)(self)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def inside(self, count: int, types=()) -> Scope:
        region = Graph("region")
        inputs = [region.add_input(self.type(kind), "") for kind in types]
        inner = Scope(region, self.top, self.random, [*self.values, *inputs], self.depth + 1, self.dynamic)
        inner.inputs = inputs
        inner.steps(count)
        return inner

    def type(self, kind):
        if kind == VECTOR:
            return TensorType(F32, (self.symbol(),))
        return ScalarType("int", self.symbol().name) if kind == NUMBER else TensorType(*kind)

    def some_types(self):
        kinds = [*TYPES, *([VECTOR, NUMBER] * 3 if self.dynamic else [])]
        return [self.random.choice(kinds) for _ in range(self.random.randint(1, 3))]

    def some(self, kind) -> Value:
        return self.vector() if kind == VECTOR else self.number() if kind == NUMBER else self.pick(*kind)

    def predicate(self) -> Value:
        if self.dynamic and self.random.random() < 0.2:
            return self.number()
        dtype, shape = self.random.choice([(BOOL, ()), (BOOL, ()), (I64, ()), (F32, ())])
        return self.pick(dtype, shape)

    def returned(self, types) -> list[Value]:
        values = [self.some(kind) for kind in types]
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
        results = [self.type(kind) for kind in types]
        self.values += self.typed("mono.cond", results, self.predicate(), regions=regions)

    def loop(self) -> None:
        types = [(I64, ()), *self.some_types()]
        start = [self.aten("full.default", (), self.random.randint(0, 3), dtype=I64), *map(self.some, types[1:])]
        condition = self.inside(self.random.randint(0, 1), types)
        limit = condition.aten("lt.Scalar", condition.inputs[0], 3)
        if self.random.random() < 0.4:
            limit = condition.aten("logical_and.default", limit, condition.pick(BOOL, ()))
        condition.graph.outputs = [limit]
        body = self.inside(self.random.randint(1, 5), types)
        last = body.returned(types[1:])
        swap = [v for v, kind in zip(body.inputs[1:], types[1:]) if kind == types[1]]
        if self.random.random() < 0.3:
            last[0] = swap[-1]
        body.graph.outputs = [body.aten("add.Scalar", body.inputs[0], 1), *last]
        results = [v.type for v in body.inputs]
        history, trips = (), None
        if self.dynamic and self.random.random() < 0.4:
            history = tuple(k for k, kind in enumerate(types) if kind not in (VECTOR, NUMBER))
            count = self.symbol()
            trips = count.name
            results += [ScalarType("int", trips), *(TensorType(types[k][0], (count, *types[k][1])) for k in history)]
        regions = [condition.graph, body.graph]
        made = self.typed("mono.while", results, start, regions=regions, history=history, trips=trips)
        self.values += made[:len(types) + (trips is not None)]
        for stack in made[len(types) + 1:]:
            self.keep(self.aten("sum.default", stack, dtype=F32))


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


def _grow(s: Scope) -> None:
    parts = (s.vector(), s.random.choice([s.pick(F32, (4,)), s.vector()]))
    s.keep(s.typed("aten.cat.default", [TensorType(F32, (s.symbol(),))], parts, 0)[0])


def _along(s: Scope) -> None:
    s.keep(s.aten(s.random.choice(["sin.default", "neg.default"]), s.vector()))


def _folded(s: Scope) -> None:
    s.keep(s.aten("clamp.default", s.aten("sum.default", s.vector()), -8, 8))


def _cut(s: Scope) -> None:
    """A view of memory that later steps may write to."""
    end = s.number()
    size = s.top.symbols[end.type.symbol]
    s.keep(s.typed("aten.slice.Tensor", [TensorType(F32, (size,))], s.pick(F32, (4,)), 0, 0, size)[0])


def _filled(s: Scope) -> None:
    end = s.number()
    size = s.top.symbols[end.type.symbol]
    s.keep(s.typed("aten.full.default", [TensorType(F32, (size,))], (size,), 1.5, dtype=F32)[0])
    s.keep(s.typed("mono.scalar", [TensorType(I64, ())], size + s.random.randint(0, 1))[0])


def _scaled(s: Scope) -> None:
    end = s.number()
    s.keep(s.aten("mul.Scalar", s.pick(F32, (4,)), s.top.symbols[end.type.symbol]))


DYNAMIC = [_grow, _along, _folded, _folded, _cut, _filled, _scaled]
STEPS = [_unary, _binary, _binary, _compare, _cast, _fold, _view, _spread, _product, _linear, _sorted, _softmax]


def random_regions(seed: int, steps: int, dynamic: bool = False) -> Graph:
    rng = random.Random(seed)
    graph = Graph()
    scope = Scope(graph, graph, rng, [], 0, dynamic)
    for number, (dtype, shape) in enumerate(TYPES):
        strides = torch.empty(shape, device="meta").stride()
        if shape == (3, 4) and rng.random() < 0.4:
            strides = (1, 3)
        scope.keep(graph.add_input(TensorType(dtype, shape, strides=strides), f"x{number}"))
    if dynamic:
        scope.keep(graph.add_input(TensorType(F32, (scope.symbol(),), strides=(1,)), "vector"))
        scope.keep(graph.add_input(ScalarType("int", scope.symbol().name), "number"))
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
        if isinstance(value.type, ScalarType):
            inputs.append(seed % 5)
            continue
        if not value.tensor.is_static:
            inputs.append(torch.randn(seed * 3))
            continue
        kind = value.tensor
        if kind.dtype.is_floating_point:
            made = torch.randn(kind.shape, dtype=kind.dtype)
        else:
            made = torch.randint(0, 4, kind.shape).to(kind.dtype)
        laid = torch.empty_strided(kind.shape, kind.strides, dtype=kind.dtype)
        inputs.append(laid.copy_(made))
    return inputs
