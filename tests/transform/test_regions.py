"""IR in, IR out: what passes do to graphs with regions."""

from __future__ import annotations

from monograph.ir.graph import Graph, Node
from monograph.ir.verifier import verify
from monograph.ops import infer
from monograph.ops.text import parse
from monograph.transform.dce import dce


def ops(graph: Graph) -> list[str]:
    return [node.op.name.removeprefix("aten.") for node in graph.nodes]


def only(graph: Graph, name: str) -> Node:
    (found,) = [node for node in graph.walk() if node.op.name == name]
    return found


def read(text: str) -> Graph:
    graph = parse(text)
    verify(graph, infer.result_types)
    return graph


LOOP = """graph {
    symbol t: 0..
    input %x: f32[2]
    input %n: i64[]
    %a, %b, %i, %t, %as, %bs = mono.while([%x, %x, %n], history=[0, 1], trips="t") {
        condition {
            input %c: f32[2]
            input %d: f32[2]
            input %k: i64[]
            %go = aten.lt.Scalar(%k, 3)
            return %go
        }
        body {
            input %c: f32[2]
            input %d: f32[2]
            input %k: i64[]
            %e = aten.mul.Tensor(%c, 2)
            %f = aten.add.Tensor(%d, %c)
            %l = aten.add.Tensor(%k, 1)
            return %e, %f, %l
        }
    }
    RETURN
}"""


def loop(returned: str) -> Node:
    graph = read(LOOP.replace("RETURN", returned))
    dce(graph)
    verify(graph, infer.result_types)
    return only(graph, "mono.while")


def test_dce_drops_a_carry_that_only_feeds_itself():
    node = loop("return %a")
    assert len(node.results) == 2 and node.attributes["trips"] is None and node.attributes["history"] == ()
    assert ops(node.regions[1]) == ["mul.Tensor", "add.Tensor"]


def test_dce_keeps_what_a_live_carry_reads():
    assert len(loop("return %b").results) == 3


def test_dce_keeps_the_stacks_that_are_read():
    node = loop("%s = aten.sum.default(%as)\n return %s")
    assert node.attributes == {"history": (0,), "trips": "t"} and len(node.results) == 4


def test_dce_keeps_the_number_of_iterations_for_its_symbol():
    node = loop("%s = aten.full.default([t], 1.0)\n return %s")
    assert node.attributes == {"history": (), "trips": "t"} and len(node.results) == 2


def test_dce_drops_a_loop_that_nobody_reads():
    graph = read(LOOP.replace("RETURN", "return %x"))
    assert dce(graph)
    assert ops(graph) == []


COND = """graph {
    input %x: f32[2]
    input %p: bool[]
    %a, %b = mono.cond(%p) {
        then {
            %c = aten.neg.default(%x)
            %d = aten.exp.default(%x)
            CHECK
            return %c, %d
        }
        otherwise {
            return %x, %x
        }
    }
    RETURN
}"""


def test_dce_prunes_results_of_a_cond():
    graph = read(COND.replace("RETURN", "return %b").replace("CHECK", ""))
    assert dce(graph)
    node = only(graph, "mono.cond")
    assert len(node.results) == 1 and ops(node.regions[0]) == ["exp.default"]
    assert not dce(graph)


def test_dce_keeps_a_check_in_a_branch():
    graph = read(COND.replace("RETURN", "return %x").replace("CHECK", 'mono.check(%p, error="ValueError")'))
    assert dce(graph)
    node = only(graph, "mono.cond")
    assert not node.results and ops(node.regions[0]) == ["mono.check"]


def test_dce_keeps_what_tells_a_symbol_and_only_that():
    graph = read("""graph {
        symbol n: 0..
        input %k: i64[]
        %n = mono.number(%k, symbol="n")
        %a = aten.full.default([n], 1.0)
        %b = aten.full.default([n], 2.0)
        return %b
    }""")
    assert dce(graph)
    assert ops(graph) == ["mono.number", "full.default"]
