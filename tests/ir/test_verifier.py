"""The verifier: one small graph per fault."""

import pytest
import torch

from monograph.errors import VerificationError
from monograph.ir.graph import Graph, Node, Source, Value
from monograph.ir.symbolic import Symbol
from monograph.ir.types import TensorType
from monograph.ir.verifier import verify
from monograph.ops import infer, table, text

GOOD = """
graph {
    symbol n: 1..
    input %x: f32[n, 8]
    input %w: f32[8] = parameter w
    input %d: f32[8] = derived 0
    %y = aten.add.Tensor(%x, %d)        # model.py:3 in forward
    %z = aten.sum.dim_IntList(%y, [1])
    %p = aten.sum.default(%z)
    %c = mono.cond(%p) {
        then {
            %a = aten.neg.default(%z)
            return %a
        }
        otherwise {
            return %z
        }
    }
    return %c
    prologue {
        input %w: f32[8] = parameter w
        %e = aten.exp.default(%w)
        return %e
    }
}"""


@pytest.fixture
def graph():
    return text.parse(GOOD)


def fault(graph, message, infer=None):
    with pytest.raises(VerificationError, match=message) as caught:
        verify(graph, infer)
    return str(caught.value)


def test_a_good_graph_passes(graph):
    verify(graph, infer.result_types)


def test_use_before_definition_prints_the_nodes_around(graph):
    graph.nodes[0], graph.nodes[1] = graph.nodes[1], graph.nodes[0]
    shown = fault(graph, "not defined before")
    assert "aten.add.Tensor" in shown and "model.py:3" in shown


def test_a_value_of_a_region_does_not_escape(graph):
    graph.outputs = [graph.nodes[3].regions[0].outputs[0]]
    fault(graph, "returns %a")


def test_a_second_definition(graph):
    graph.nodes.append(graph.nodes[0])
    fault(graph, "second time")


def test_slots_and_attributes(graph):
    node = graph.nodes[0]
    node.operands = node.operands[:1]
    fault(graph, "1 operands for 2")
    node.operands = (node.operands[0], (node.operands[0],))
    fault(graph, "operand other cannot be")
    node.operands = (node.operands[0], 1)
    node.attributes = {}
    fault(graph, r"missing \['alpha'\]")
    node.attributes = {"alpha": [1]}
    fault(graph, "attribute alpha cannot be")


def test_types_against_the_op(graph):
    graph.nodes[2].results[0].type = TensorType(torch.float64, ())
    verify(graph)
    fault(graph, "the op gives f32", infer.result_types)


def test_region_signature(graph):
    graph.nodes[3].regions[1].outputs.append(graph.nodes[1].results[0])
    fault(graph, "returns 2 values instead of 1")


def test_symbols_are_declared_and_bound(graph):
    graph.nodes[0].results[0].type = TensorType(torch.float32, (Symbol("m"), Symbol("n") * Symbol("k")))
    fault(graph, "symbol k is used before|symbol m is not declared")


def test_sources(graph):
    graph.sources.pop()
    fault(graph, "prologue|sources")


def test_prologue_reads_weights_only(graph):
    graph.prologue.sources[0] = Source("argument", "x")
    fault(graph, "no weight")


def test_derived_input_without_prologue(graph):
    graph.prologue = None
    fault(graph, "needs a prologue")


def test_result_must_point_at_its_node():
    graph = Graph()
    x = graph.add_input(TensorType(torch.float32, (2,)), "x")
    node = graph.append(Node(table.lookup("aten.neg.default"), (x,), {}, [x.type]))
    node.results = (Value(x.type),)
    fault(graph, "does not point back")
