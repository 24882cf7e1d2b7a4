"""Random graphs over a symbolic number of rows: ops that keep rows apart, and some that do not."""

from __future__ import annotations

import random

import torch

from monograph.ir import symbolic
from monograph.ir.graph import Graph, Source, Value
from monograph.ir.symbolic import Symbol
from monograph.ir.types import TensorType
from monograph.ops.build import Builder

__all__ = ["inputs_for", "random_rows"]

F32 = torch.float32


class Maker:
    def __init__(self, seed: int, least: int) -> None:
        self.random = random.Random(seed)
        self.graph = Graph()
        self.size = self.graph.symbols["s"] = Symbol("s", least)
        self.before = self.random.choice([(), (), (1,), (2,), (Symbol("b", least),), (Symbol("b", least), 2)])
        self.count = symbolic.product((*self.before, self.size))
        if self.before and isinstance(self.before[0], Symbol):
            self.graph.symbols["b"] = self.before[0]
        self.builder = Builder(self.graph)
        self.values: list[Value] = []

    def aten(self, name, *args, **kwargs):
        return self.builder.call(f"aten.{name}", *args, **kwargs)

    def keep(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def pick(self, *shape) -> Value:
        found = [v for v in self.values if v.tensor.shape == shape and v.tensor.dtype is F32]
        if found and self.random.random() < 0.9:
            return self.random.choice(found[-4:])
        return self.aten("full.default", shape, 0.5, dtype=F32)

    @property
    def shapes(self):
        return [self.rows(4), self.rows(3, 4), (3 * self.count, 4), self.rows(), self.rows(4, 3)]

    def rows(self, *rest):
        return (*self.before, self.size, *rest)

    @property
    def lead(self):
        return len(self.before) + 1

    def any(self) -> Value:
        return self.pick(*self.random.choice(self.shapes))


def _unary(m: Maker) -> None:
    m.keep(m.aten(m.random.choice(["tanh.default", "sin.default", "relu.default"]), m.any()))


def _binary(m: Maker) -> None:
    x = m.any()
    y = m.pick(*x.tensor.shape)
    if m.random.random() < 0.4:
        y = m.pick(*((x.tensor.shape[-1],) if x.tensor.shape[-1] in (3, 4) else ()))
    m.keep(m.aten("clamp.default", m.aten(m.random.choice(["add.Tensor", "sub.Tensor"]), x, y), -4, 4))


def _fold(m: Maker) -> None:
    x, d = m.pick(*m.rows(3, 4)), m.lead
    dims = m.random.choice([(d,), (d + 1,), (d, d + 1), (-1,), (0,), (0, 1)])
    m.keep(m.aten("amax.default", x, dims, m.random.random() < 0.5))
    m.keep(m.aten("sub.Tensor", x, m.aten("sum.dim_IntList", x, (-1,), True)))


def _scan(m: Maker) -> None:
    m.keep(m.aten("cumsum.default", m.aten("tanh.default", m.pick(*m.rows(3, 4))), m.random.choice([0, 1, 2, -1])))


def _view(m: Maker) -> None:
    flat, x, d = 3 * m.count, m.pick(*m.rows(3, 4)), m.lead
    rest = tuple(range(2, x.tensor.rank))
    m.keep(m.random.choice([
        lambda: m.aten("view.default", x, (flat, 4)), lambda: m.aten("transpose.int", x, d, d + 1),
        lambda: m.aten("permute.default", x, (1, 0, *rest)), lambda: m.aten("select.int", x, d, 2),
        lambda: m.aten("view.default", m.pick(flat, 4), m.rows(3, 4)),
        lambda: m.aten("unsqueeze.default", m.pick(*m.rows()), d),
        lambda: m.aten("slice.Tensor", x, d, 1, 3), lambda: m.aten("expand.default", m.pick(4), m.rows(4)),
        lambda: m.aten("permute.default", x, (*range(d), d + 1, d)),
        lambda: m.aten("select.int", m.aten("unsqueeze.default", x, 0), 0, 0),
        lambda: _turned(m, x),
    ])())


def _turned(m: Maker, x: Value) -> Value:
    """Something done to rows whose last symbol is not where rows have it, with one value for all of the first dims."""
    d = m.lead
    turned = m.aten("transpose.int", m.aten("clamp.default", x, -4, 4), d - 1, d)
    one = m.aten("unsqueeze.default", m.pick(m.size, 4), 0)
    return m.aten("transpose.int", m.aten("mul.Tensor", turned, m.aten("tanh.default", one)), d - 1, d)


def _product(m: Maker) -> None:
    n = m.count
    weight = next(v for v in m.graph.inputs if v.name == "w")

    def flat(*rest):
        return m.aten("view.default", m.pick(*m.rows(*rest)), (n, *rest))

    m.keep(m.random.choice([
        lambda: m.aten("linear.default", m.pick(*m.rows(3, 4)), weight),
        lambda: m.aten("mm.default", m.pick(3 * n, 4), weight),
        lambda: m.aten("bmm.default", flat(3, 4), flat(4, 3)),
        lambda: m.aten("mm.default", m.aten("t.default", flat(4)), flat(4)),
        lambda: m.aten("addmm.default", m.pick(4), flat(4), weight),
    ])())


def _joined(m: Maker) -> None:
    x, d = m.pick(*m.rows(3, 4)), m.lead
    m.keep(m.aten("cat.default", (x, m.aten("neg.default", x)), m.random.choice([d, d + 1])))
    m.keep(m.aten("flip.default", x, (m.random.choice([0, d - 1, d, d + 1]),)))


def _gathered(m: Maker) -> None:
    indices = next(v for v in m.graph.inputs if v.name == "i")
    weight = next(v for v in m.graph.inputs if v.name == "w")
    m.keep(m.aten("embedding.default", weight, indices))
    one = m.aten("full.default", (2,), 1)
    m.keep(m.aten("index_select.default", m.pick(*m.rows(3, 4)), m.lead + m.random.choice([0, 1]), one))


def _counted(m: Maker) -> None:
    m.keep(m.aten("mul.Scalar", m.any(), m.size))
    m.keep(m.aten("sum.default", m.any()))
    x = m.any()
    m.keep(m.aten("sort.default", x, 0)[0])


STEPS = [_unary, _binary, _binary, _fold, _scan, _view, _view, _product, _joined, _gathered, _counted]


def random_rows(seed: int, steps: int, least: int = 0) -> Graph:
    m = Maker(seed, least)
    for shape in m.shapes:
        m.keep(m.graph.add_input(TensorType(F32, shape, strides=None), f"x{len(m.values)}"))
    m.graph.add_input(TensorType(torch.int64, m.rows(), strides=None), "i")
    m.keep(m.graph.add_input(TensorType(F32, (4, 4), strides=(4, 1)), "w", Source("parameter", "w")))
    m.keep(m.graph.add_input(TensorType(F32, (4,), strides=(1,)), "b", Source("parameter", "b")))
    for _ in range(steps):
        m.random.choice(STEPS)(m)
    made = [v for v in m.values if v.node is not None]
    m.graph.outputs = [m.random.choice(made[-8:]) for _ in range(m.random.randint(1, 4))]
    return m.graph


def inputs_for(graph: Graph, size: int) -> list[torch.Tensor]:
    torch.manual_seed(size)
    inputs = []
    for value in graph.inputs:
        shape = [symbolic.evaluate(dim, {"s": size, "b": 2}) for dim in value.tensor.shape]
        if value.tensor.dtype is F32:
            inputs.append(torch.randn(shape))
        else:
            inputs.append(torch.randint(0, 4, shape))
    return inputs
