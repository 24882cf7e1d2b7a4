"""Graph text: what is printed reads back as the same graph."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monograph.errors import VerificationError
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.op import NO_DEFAULT, Op, Parameter, ParameterKind
from monograph.ir.parser import parse, parse_type
from monograph.ir.symbolic import Symbol, maximum
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import text
from monograph.source import SourceLoc

KINDS = ParameterKind
OPS = {op.name: op for op in (
    Op("test.mix.default", (
        Parameter("x", KINDS.TENSOR), Parameter("alpha", KINDS.ATTRIBUTE, 1), Parameter("y", KINDS.OPTIONAL, None),
        Parameter("parts", KINDS.TENSORS, ()), Parameter("beta", KINDS.ATTRIBUTE, NO_DEFAULT),
    )),
    Op("test.leaf.default", (Parameter("value", KINDS.ATTRIBUTE, None),)),
    Op("test.fork", (Parameter("x", KINDS.TENSOR),), regions=("then", "otherwise")),
)}
S, T = Symbol("s0", 2, 64), Symbol("t", 1)


def content(graph):
    """Everything a graph says, as plain data."""
    numbers = {}

    def value(v):
        return numbers.setdefault(v, (len(numbers), v.name, v.type))

    def operand(x):
        if isinstance(x, Value):
            return value(x)
        return tuple(map(operand, x)) if isinstance(x, tuple) else (type(x), repr(x))

    def node(n):
        return (n.op.name, operand(n.operands), {k: operand(v) for k, v in n.attributes.items()},
                [content_of(r) for r in n.regions], [value(r) for r in n.results], n.loc)

    def content_of(g):
        return (g.name, [value(v) for v in g.inputs], g.sources, [node(n) for n in g.nodes],
                [value(v) for v in g.outputs], {k: (s.lo, s.hi) for k, s in g.symbols.items()},
                g.prologue and content(g.prologue))

    return content_of(graph)


names = st.sampled_from(["", "", "x", "y", "hidden_states", "a.b", "_1"])
dims = st.sampled_from([0, 1, 2, 128, S, T, 2 * S + 1, S * T, S // 3, (S + T) % 4, maximum(S, T), -1 * S + 70])
shapes = st.lists(dims, max_size=3).map(tuple)
types = st.one_of(
    st.builds(lambda d, s, where, strides: TensorType(d, s, where, s if strides else None),
              st.sampled_from([torch.float32, torch.bool, torch.bfloat16, torch.complex64, torch.qint8]),
              shapes, st.sampled_from(["cpu", "cuda:1"]), st.booleans()),
    st.builds(ScalarType, st.sampled_from(["int", "float", "bool"]), st.sampled_from([None, "s0"])),
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-2**63, 2**63), st.floats(), st.complex_numbers(), st.text(max_size=6),
    st.sampled_from([torch.float32, torch.uint16, torch.qint8, torch.device("cpu"), torch.device("cuda", 1),
                     torch.strided, torch.sparse_coo, torch.channels_last, torch.preserve_format, S, 2 * S - T]),
)
attributes = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
locs = st.one_of(st.none(), st.builds(
    SourceLoc, st.sampled_from(["/a/b/model.py", "/a/c/model.py", "<stdin>", "my file.py"]), st.integers(1, 999),
    st.sampled_from(["", "forward", "<lambda>"])))
sources = st.builds(Source, st.sampled_from(["argument", "parameter", "saved"]),
                    st.sampled_from(["args[0]", "kwargs['mask']", "fc.weight", "", 'odd " #x', "x"]))


@st.composite
def graphs(draw, depth=1, outer=(), top=True):
    graph = Graph(draw(st.sampled_from(["graph", "main", "then", "odd name"])))
    if top:
        graph.symbols = {"s0": S, "t": T}
        for _ in range(draw(st.integers(0, 3))):
            graph.add_input(draw(types), draw(names), draw(sources))
    visible = [*outer, *graph.inputs]
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["leaf", "mix", "fork"])) if visible else "leaf"
        results = draw(st.lists(types, max_size=2))
        value = st.sampled_from(visible) if visible else st.none()
        if kind == "leaf":
            node = Node(OPS["test.leaf.default"], (), {"value": draw(attributes)}, results, loc=draw(locs))
        elif kind == "mix":
            entry = st.one_of(value, st.none(), st.integers(-3, 3), st.just(S + 1), st.floats(allow_nan=False))
            operands = (draw(value), draw(entry), tuple(draw(st.lists(entry, max_size=3))))
            given = {"alpha": draw(attributes), "beta": draw(attributes)}
            node = Node(OPS["test.mix.default"], operands, given, results, loc=draw(locs))
        elif depth:
            regions = [draw(graphs(depth - 1, tuple(visible), top=False)) for _ in range(2)]
            node = Node(OPS["test.fork"], (draw(value),), {}, results, regions=regions, loc=draw(locs))
        else:
            continue
        for result in node.results:
            result.name = draw(names)
        graph.append(node)
        visible += node.results
    graph.outputs = draw(st.lists(st.sampled_from(visible), max_size=3)) if visible else []
    if top and draw(st.booleans()):
        graph.prologue = draw(graphs(depth=0, top=True))
        graph.prologue.symbols = {}
    return graph


@given(graphs())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_graph_reads_back(graph):
    again = parse(str(graph), OPS.__getitem__)
    assert content(again) == content(graph)
    assert str(again) == str(graph)


def test_written_by_hand_with_types_left_out():
    graph = text.parse("""
        graph {
            symbol n: 1..
            input %x: f32[n, 8]                      # free comment
            input %w: f32[8] = parameter fc.weight

            # a line of comment
            %y = aten.add.Tensor(%x, %w, alpha=2)    # model.py:41 in forward
            %v, %i = aten.max.dim(%y, -1, keepdim=True)
            %z = aten.cat.default([%v, %y], dim=1)
            return %z, %i
        }""")
    assert str(graph) == """\
graph {
    symbol n: 1..
    input %x: f32[n, 8]
    input %w: f32[8] = parameter fc.weight
    %y: f32[n, 8] = aten.add.Tensor(%x, %w, alpha=2)    # model.py:41 in forward
    %v: f32[n, 1], %i: i64[n, 1] = aten.max.dim(%y, dim=-1, keepdim=True)
    %z: f32[n, 9] = aten.cat.default([%v, %y], dim=1)
    return %z, %i
}"""
    assert graph.nodes[0].loc == SourceLoc("model.py", 41, "forward")
    assert graph.nodes[1].attributes == {"dim": -1, "keepdim": True}
    assert graph.sources == [Source("argument", "x"), Source("parameter", "fc.weight")]


def test_types_read_back():
    for written in ("f32[]", "bool[2, n*2, strides=[2, 1]]", "i64[3, device=cuda:0]", "int(n)", "bool", "qint8[1]"):
        assert str(parse_type(written, {"n": Symbol("n")})) == written.replace("n*2", "2*n")


def test_numbers_keep_their_kind():
    def read(literal):
        written = "graph { \n test.leaf.default(value=" + literal + ") \n return \n }"
        (node,) = parse(written, OPS.__getitem__, lambda *_: []).nodes
        return node.attributes["value"]

    assert type(read("1")) is int and type(read("1.0")) is float and read("True") is True
    assert math.copysign(1, read("-0.0")) == -1 and math.isnan(read("nan")) and read("-inf") == -math.inf
    assert read("(1)") == 1 and read("(1,)") == (1,) and read("[]") == ()


@pytest.mark.parametrize(("line", "message"), [
    ("%y: f32[2] = aten.add.Tensor(%nowhere, 1)", "%nowhere is not defined"),
    ("%y: f32[2] = aten.nothing.default(%x)", "no op"),
    ("%y: f32[m] = aten.neg.default(%x)", "unknown name 'm'"),
    ("%y: f32[2] = aten.neg.default(%x, colour=2)", "colour"),
    ("%y: f32[2] = aten.neg.default(%x) oops", "unexpected text"),
])
def test_faults_name_the_line(line, message):
    with pytest.raises(VerificationError, match=message) as caught:
        text.parse("graph {\n    input %x: f32[2]\n    " + line + "\n    return\n}")
    assert "line 3" in str(caught.value)
