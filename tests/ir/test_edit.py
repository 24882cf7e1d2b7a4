"""Graph surgery."""

import pytest
import torch

from monograph.ir import edit
from monograph.ir.verifier import verify
from monograph.ops import evaluate, text

TEXT = """
graph {
    input %x: f32[2]
    %a = aten.neg.default(%x)          # m.py:1
    %b = aten.exp.default(%a)
    %p = aten.sum.default(%b)
    %c = mono.cond(%p) {
        then {
            %d = aten.add.Tensor(%a, %b)
            return %d
        }
        otherwise {
            return %b
        }
    }
    return %c
}"""


@pytest.fixture
def graph():
    return text.parse(TEXT)


def test_a_clone_shares_nothing(graph):
    copied = edit.clone(graph)
    verify(copied)
    assert str(copied) == str(graph)
    mine = {v for n in graph.walk() for v in n.results} | set(graph.inputs)
    assert not mine & ({v for n in copied.walk() for v in n.results} | set(copied.inputs))
    x = torch.tensor([0.5, -1.0])
    assert torch.equal(evaluate.evaluate(copied, [x])[0], evaluate.evaluate(graph, [x])[0])


def test_sort_puts_definitions_first_and_sees_into_regions(graph):
    graph.nodes.reverse()
    assert not edit.is_sorted(graph)
    edit.sort(graph)
    assert edit.is_sorted(graph)
    assert str(graph) == str(text.parse(TEXT))


def test_a_circle_is_refused(graph):
    graph.nodes[0].operands = (graph.nodes[1].result,)
    with pytest.raises(ValueError, match="depends on itself"):
        edit.sort(graph)


def test_moving_inserting_erasing(graph):
    first, second = graph.nodes[:2]
    edit.move_before(graph, second, first)
    assert graph.nodes[:2] == [second, first]
    extra = edit.copy_node(first, {})
    edit.insert_before(graph, first, [extra])
    assert edit.position(graph, extra) == 1 and extra.loc == first.loc
    edit.erase(graph, [extra, second])
    assert graph.nodes[0] is first and len(graph.nodes) == 3
    with pytest.raises(ValueError):
        edit.position(graph, extra)
