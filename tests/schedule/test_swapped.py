"""Transpositions of tensors of unknown size move behind what does not mind them."""

import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.ir import symbolic
from monograph.ir.graph import Graph
from monograph.ir.symbolic import Symbol
from monograph.ir.types import TensorType
from monograph.ir.verifier import verify
from monograph.ops.build import Builder
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse
from monograph.schedule.swapped import sink


def names(graph):
    return [node.op.name.split(".")[1] for node in graph.nodes]


def agree(graph, *sizes):
    """The same results before and after, for each assignment of sizes; True where something moved."""
    calls = []
    for env in sizes:
        inputs = [torch.randn([symbolic.evaluate(dim, env) for dim in value.tensor.shape]) for value in graph.inputs]
        calls.append((inputs, evaluate(graph, inputs)))
    moved = sink(graph)
    verify(graph)
    for inputs, wanted in calls:
        for got, want in zip(evaluate(graph, inputs), wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)     # sums go another way
    return moved


SIZES = ({"b": 1, "s": 1}, {"b": 2, "s": 5}, {"b": 3, "s": 0})


def test_what_turns_heads_is_done_before_the_heads_are_turned():
    graph = parse("""
graph {
    symbol b: 0..
    symbol s: 0..
    input %q: f32[b, s, 3, 8, strides=[24*s, 24, 8, 1]]
    input %c: f32[1, s, 8, strides=[8*s, 8, 1]]
    %t: f32[b, 3, s, 8] = aten.transpose.int(%q, dim0=1, dim1=2)
    %u: f32[1, 1, s, 8] = aten.unsqueeze.default(%c, dim=1)
    %m: f32[b, 3, s, 8] = aten.mul.Tensor(%t, %u)
    %h: f32[b, 3, s, 4] = aten.slice.Tensor(%t, dim=3, start=4, end=9223372036854775807)
    %n: f32[b, 3, s, 4] = aten.neg.default(%h)
    %l: f32[b, 3, s, 4] = aten.slice.Tensor(%t, dim=3, start=0, end=4)
    %r: f32[b, 3, s, 8] = aten.cat.default([%n, %l], dim=-1)
    %y: f32[b, 3, s, 8] = aten.add.Tensor(%m, %r)
    %z: f32[b, 3, s, 1] = aten.amax.default(%y, dim=[-1], keepdim=True)
    %d: f32[b, 3, s, 8] = aten.sub.Tensor(%y, %z)
    %k: f32[b, s, 3, 8] = aten.transpose.int(%d, dim0=1, dim1=2)
    return %k
}
""")
    assert agree(graph, *SIZES)
    assert names(graph) == ["unsqueeze", "transpose", "mul", "slice", "neg", "slice", "cat", "add", "amax", "sub"]


def test_what_minds_the_order_of_dims_stays():
    graph = parse("""
graph {
    symbol b: 0..
    symbol s: 0..
    input %x: f32[b, s, strides=[s, 1]]
    input %y: f32[s, b, strides=[b, 1]]
    %t: f32[s, b] = aten.transpose.int(%x, dim0=0, dim1=1)
    %c: f32[s, b] = aten.cumsum.default(%t, dim=0)
    %a: f32[s, b] = aten.add.Tensor(%t, %y)
    %m: f32[s] = aten.amax.default(%t, dim=[1])
    return %c, %a, %m
}
""")
    assert not agree(graph, {"b": 2, "s": 5})


def random_graph(seed):
    chance = random.Random(seed)
    graph = Graph()
    b, s = (graph.symbols.setdefault(name, Symbol(name, 0)) for name in "bs")
    shapes = [(b, s, 2, 4), (b, 2, s, 4), (1, s, 1, 4), (s, 4), (2, 1, 4), (s, 2, 4)]
    values = [graph.add_input(TensorType(torch.float32, shape), f"x{n}") for n, shape in enumerate(shapes)]
    builder = Builder(graph)

    def fits(x, y):
        pairs = zip(reversed(x.tensor.shape), reversed(y.tensor.shape))
        return all(m == n or 1 in (m, n) for m, n in pairs)

    for _ in range(chance.randint(3, 12)):
        x = chance.choice(values[-6:] if chance.random() < 0.7 else values)
        rank = x.tensor.rank
        kind = chance.choice(["turn", "turn", "one", "two", "two", "cut", "join", "fold", "permute"])
        if kind == "turn":
            i, j = chance.sample(range(-rank, rank), 2)
            values.append(builder.call("aten.transpose.int", x, i, j))
        elif kind == "permute":
            values.append(builder.call("aten.permute.default", x, chance.sample(range(rank), rank)))
        elif kind == "one":
            values.append(builder.call(chance.choice(["aten.neg.default", "aten.abs.default"]), x))
        elif kind == "two":
            others = [y for y in values if fits(x, y)]
            values.append(builder.call(chance.choice(["aten.sub.Tensor", "aten.maximum.default"]), x,
                                       chance.choice(others)))
        elif kind == "cut" and 4 in x.tensor.shape:
            values.append(builder.call("aten.slice.Tensor", x, x.tensor.shape.index(4) - rank, 1, 3))
        elif kind == "join":
            values.append(builder.call("aten.cat.default", (x, x), chance.randrange(-rank, rank)))
        elif kind == "fold":
            values.append(builder.call("aten.sum.dim_IntList", x, [chance.randrange(rank)], chance.random() < 0.6))
    graph.outputs = [value for value in values[-3:] if value.node is not None]
    return graph


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_random_graphs_compute_the_same(seed):
    agree(random_graph(seed), *SIZES)
