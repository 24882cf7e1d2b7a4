"""Random static graphs over a few shapes: every family of ops, views, templates, library calls."""

from __future__ import annotations

import random

import torch

from monograph.ir.graph import Graph, Source, Value
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.schedule.views import row_major

__all__ = ["inputs_for", "random_graph"]


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.graph = Graph()
        self.builder = Builder(self.graph)
        self.values: list[Value] = []
        self.indices: list[Value] = []

    def source(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, weight: bool = False) -> Value:
        order = list(range(len(shape)))
        if not weight and self.random.random() < 0.3:
            self.random.shuffle(order)
        inner = row_major(tuple(shape[d] for d in order))
        strides = tuple(inner[order.index(d)] for d in range(len(shape)))
        name = f"x{len(self.graph.inputs)}"
        kind = "parameter" if weight else "argument"
        return self.graph.add_input(TensorType(dtype, shape, strides=strides), name, Source(kind, name))

    def pick(self, rank: int | None = None) -> Value:
        found = [v for v in self.values[-12:] if rank is None or v.tensor.rank == rank]
        if found:
            return self.random.choice(found)
        return self.reshaped(self.random.choice(self.values), rank or 2)

    def reshaped(self, value: Value, rank: int) -> Value:
        left, shape = value.tensor.numel, []
        for _ in range(rank - 1):
            size = self.random.choice([d for d in range(1, left + 1) if left % d == 0 and d <= 8])
            shape.append(size)
            left //= size
        shape.append(left)
        self.random.shuffle(shape)
        return self.call("reshape.default", value, tuple(shape))

    def call(self, name: str, *arguments, **attributes):
        return self.builder.call(f"aten.{name}", *arguments, **attributes)

    def step(self) -> None:
        made = self.random.choice(STEPS)(self)
        for value in made if isinstance(made, tuple) else (made,):
            if value.tensor.dtype is torch.float32 and 0 < value.tensor.numel <= 4096:
                self.values.append(value)


def _unary(m):
    return m.call(m.random.choice(["relu.default", "tanh.default", "neg.default", "sigmoid.default"]), m.pick())


def _binary(m):
    a = m.pick()
    same = [v for v in m.values if v.tensor.shape == a.tensor.shape]
    return m.call(m.random.choice(["add.Tensor", "mul.Tensor", "sub.Tensor"]), a, m.random.choice(same))


def _row(m):
    x = m.pick()
    if not x.tensor.rank:
        return m.call("neg.default", x)
    dims = tuple(sorted(m.random.sample(range(x.tensor.rank), m.random.randint(1, x.tensor.rank))))
    if m.random.random() < 0.6:
        dims = (x.tensor.rank - 1,)
    keep = m.random.random() < 0.8
    folded = m.call(m.random.choice(["sum.dim_IntList", "amax.default"]), x, dims, keep)
    if not keep:
        return folded
    centred = m.call("sub.Tensor", x, folded)
    if m.random.random() < 0.5:
        return folded, centred
    squares = m.call("mul.Tensor", centred, centred)
    spread = m.call("sum.dim_IntList", squares, dims, True)
    return m.call("mul.Tensor", centred, m.call("rsqrt.default", m.call("add.Scalar", spread, 1.0)))


def _softmax(m):
    x = m.pick()
    dim = m.random.randrange(-1, max(x.tensor.rank, 1)) if x.tensor.rank else -1
    top = m.call("amax.default", x, (dim,), True)
    raised = m.call("exp.default", m.call("sub.Tensor", x, top))
    return m.call("div.Tensor", raised, m.call("sum.dim_IntList", raised, (dim,), True))


def _scan(m):
    x = m.pick()
    return m.call("cumsum.default", x, m.random.randrange(x.tensor.rank) if x.tensor.rank else 0)


def _view(m):
    x = m.pick()
    kind = m.random.randrange(5)
    rank = x.tensor.rank
    if kind == 0 or not rank:
        return m.reshaped(x, m.random.randint(1, 4))
    if kind == 1:
        order = list(range(rank))
        m.random.shuffle(order)
        return m.call("permute.default", x, tuple(order))
    dim = m.random.randrange(rank)
    size = x.tensor.shape[dim]
    if kind == 2 and size > 1:
        return m.call("slice.Tensor", x, dim, m.random.randrange(size - 1), size)
    if kind == 3 and size % 2 == 0:
        return m.call("split.Tensor", x, size // 2, dim)
    return m.call("unsqueeze.default", x, dim) if rank < 4 else m.call("select.int", x, dim, 0)


def _spread(m):
    x = m.pick()
    rank = x.tensor.rank
    if not rank or x.tensor.numel > 512:
        return m.call("neg.default", x)
    shape = (3, *x.tensor.shape)
    dear = m.call("tanh.default", x)
    return m.call("mul.Tensor", m.call("expand.default", x, shape), m.call("expand.default", dear, shape))


def _cat(m):
    x = m.pick()
    if not x.tensor.rank:
        return x
    dim = m.random.randrange(x.tensor.rank)
    if m.random.random() < 0.5:
        return m.call("constant_pad_nd.default", x, (1, 2), 0.5)
    half = m.call("slice.Tensor", x, dim, x.tensor.shape[dim] // 2, x.tensor.shape[dim])
    return m.call("cat.default", (m.call("neg.default", half) if half.tensor.numel else x, x), dim)


def _gather(m):
    x = m.pick()
    if not x.tensor.rank:
        return x
    dim = m.random.randrange(x.tensor.rank)
    index = m.call("remainder.Scalar", m.random.choice(m.indices), x.tensor.shape[dim])
    return m.call("index_select.default", x, dim, index)


def _constant(m):
    x = m.pick()
    return m.call("add.Tensor", x, m.call("full.default", x.tensor.shape, 1.5, dtype=torch.float32))


def _linear(m):
    x = m.pick()
    if not x.tensor.rank:
        return x
    w = m.source((5, x.tensor.shape[-1]), weight=m.random.random() < 0.7)
    b = m.source((5,), weight=True) if m.random.random() < 0.5 else None
    return m.call("linear.default", x, w, b)


def _product(m):
    x = m.pick(m.random.choice([2, 3]))
    y = m.call("transpose.int", x, -1, -2)
    if x.tensor.rank == 3:
        return m.call("bmm.default", x, y)
    if m.random.random() < 0.5:
        return m.call("addmm.default", m.source((x.tensor.shape[0],)), x, y, beta=0.5, alpha=2.0)
    return m.call("mm.default", x, y)


def _conv(m):
    x = m.pick(4)
    if x.tensor.numel > 1024 or min(x.tensor.shape[2:]) < 2:
        return m.call("neg.default", x)
    c = x.tensor.shape[1]
    if m.random.random() < 0.4:
        x = m.call("constant_pad_nd.default", x, (m.random.randint(0, 2), 1, 0, m.random.randint(0, 2)))
    groups = c if m.random.random() < 0.3 else 1
    w = m.source((c if groups > 1 else 3, c // groups, 2, 2), weight=m.random.random() < 0.7)
    return m.call("convolution.default", x, w, None, (m.random.randint(1, 2), 1), (1, 0), (1, 1), False, (0, 0), groups)


def _attention(m):
    x = m.pick(4)
    if x.tensor.shape[2] > 64:
        return m.call("neg.default", x)
    name = "scaled_dot_product_attention.default"
    return m.call(name, x, x, m.call("neg.default", x), None, 0.0, m.random.random() < 0.5)


def _library(m):
    x = m.pick()
    return m.call("sort.default", x, 0)[0] if x.tensor.rank else x


STEPS = [_unary, _unary, _binary, _binary, _row, _row, _softmax, _scan, _view, _view, _view, _spread, _cat, _gather,
         _constant, _linear, _product, _conv, _attention, _library]


def random_graph(seed: int, steps: int) -> Graph:
    """A graph of about `steps` steps; equal seeds give equal graphs."""
    m = _Maker(seed)
    for shape in ((2, 4, 8), (2, 3, 4, 4), (6, 8), (8,)):
        m.values.append(m.source(shape))
    m.indices = [m.source((5,), torch.int64), m.source((3,), torch.int64)]
    for _ in range(steps):
        m.step()
    count = m.random.randint(1, 4)
    m.graph.outputs = [m.random.choice(m.values[-8:]) for _ in range(count)] + [m.values[-1]]
    return m.graph


def inputs_for(graph: Graph, seed: int = 0) -> list[torch.Tensor]:
    """Values for the inputs of a graph, strided as their types say."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for value in graph.inputs:
        type = value.tensor
        tensor = torch.empty_strided(type.shape, type.strides, dtype=type.dtype)
        if type.dtype.is_floating_point:
            tensor.copy_(torch.randn(type.shape, generator=generator))
        else:
            tensor.copy_(torch.randint(0, 100, type.shape, generator=generator))
        made.append(tensor)
    return made
