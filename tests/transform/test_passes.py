"""IR in, IR out: what each pass does to a few lines of graph."""

from __future__ import annotations

import pytest

from monograph.errors import VerificationError
from monograph.ir.graph import Graph
from monograph.ir.types import TensorType
from monograph.ops.text import parse
from monograph.transform.conv_bn import fold_conv_bn
from monograph.transform.cse import cse
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from monograph.transform.runner import Pass, run
from monograph.transform.simplify import simplify


def ops(graph: Graph) -> list[str]:
    return [node.op.name.removeprefix("aten.") for node in graph.nodes]


def simplified(text: str) -> Graph:
    graph = parse(text)
    simplify(graph)
    dce(graph)
    return graph


def test_dce_removes_unused_and_keeps_draws():
    graph = parse("""graph {
        input %x: f32[4]
        %a = aten.add.Tensor(%x, 1)
        %b = aten.mul.Tensor(%a, 2)
        %r = aten.bernoulli.default(%x)
        return %a
    }""")
    assert dce(graph)
    assert ops(graph) == ["add.Tensor", "bernoulli.default"]
    assert not dce(graph)


def test_cse_shares_equal_nodes_and_commuted_operands():
    graph = parse("""graph {
        input %x: f32[4]
        input %y: f32[4]
        %a = aten.add.Tensor(%x, %y)
        %b = aten.add.Tensor(%y, %x)
        %c = aten.sub.Tensor(%x, %y)
        %d = aten.sub.Tensor(%y, %x)
        %e = aten.cat.default((%a, %b, %c, %d))
        return %e
    }""")
    assert cse(graph)
    assert ops(graph) == ["add.Tensor", "sub.Tensor", "sub.Tensor", "cat.default"]


def test_cse_tells_numbers_of_different_type_apart():
    graph = parse("""graph {
        input %x: i64[4]
        %a = aten.add.Tensor(%x, 1)
        %b = aten.add.Tensor(%x, 1.0)
        %c = aten.mul.Tensor(%b, 0.0)
        %d = aten.mul.Tensor(%b, -0.0)
        return %a, %c, %d
    }""")
    assert not cse(graph)


def test_cse_keeps_draws_apart():
    graph = parse("""graph {
        input %x: f32[4]
        %a = aten.bernoulli.default(%x)
        %b = aten.bernoulli.default(%x)
        return %a, %b
    }""")
    assert not cse(graph)


@pytest.mark.parametrize("line", [
    "aten.mul.Tensor(%x, 1)", "aten.div.Tensor(%x, 1)", "aten.sub.Tensor(%x, 0)", "aten.clone.default(%x)",
    "aten.expand.default(%x, [2, 3])", "aten.view.default(%x, [2, 3])", "aten.permute.default(%x, [0, 1])",
    "aten.pow.Tensor_Scalar(%x, 1)", "aten.cat.default((%x,))", "aten._to_copy.default(%x, dtype=f32)",
    "aten.slice.Tensor(%x, 1, 0, 3)",
])
def test_simplify_drops_identities(line: str):
    graph = simplified(f"""graph {{
        input %x: f32[2, 3]
        %y = {line}
        %z = aten.neg.default(%y)
        return %z
    }}""")
    assert ops(graph) == ["neg.default"]


@pytest.mark.parametrize("line", [
    "aten.add.Tensor(%x, 0)",            # turns -0.0 into 0.0
    "aten.sub.Tensor(%x, -0.0)",         # so does this
    "aten.sub.Tensor(%x, 0, alpha=-1)",  # and this
    "aten.add.Tensor(0, %i, alpha=2)",
    "aten.mul.Tensor(%x, 0)",            # NaN stays NaN
    "aten.mul.Tensor(%i, 1.0)",          # promotes
    "aten.expand.default(%x, [4, 2, 3])",
    "aten._to_copy.default(%x, dtype=f64)",
    "aten.div.Tensor(%i, 1)",            # true division promotes
])
def test_simplify_keeps_what_changes_something(line: str):
    graph = parse(f"""graph {{
        input %x: f32[2, 3]
        input %i: i64[2, 3]
        %y = {line}
        %z = aten.neg.default(%y)
        return %z
    }}""")
    assert not simplify(graph)


def test_simplify_drops_what_is_empty_from_a_cat():
    graph = simplified("""graph {
        input %x: f32[2, 3]
        input %none: f32[0]
        %y = aten.cat.default((%none, %x), 1)
        %z = aten.neg.default(%y)
        return %z
    }""")
    assert ops(graph) == ["neg.default"]


def test_simplify_composes_views():
    graph = simplified("""graph {
        input %x: f32[2, 3, 4]
        %a = aten.permute.default(%x, [2, 0, 1])
        %b = aten.permute.default(%a, [1, 2, 0])
        %c = aten.view.default(%b, [6, 4])
        %d = aten.view.default(%c, [24])
        %e = aten.neg.default(%d)
        return %e
    }""")
    assert ops(graph) == ["view.default", "neg.default"]


def test_simplify_never_loses_the_strides_of_an_output():
    graph = parse("""graph {
        input %x: f32[2, 3, strides=[3, 1]]
        %y: f32[2, 3, strides=[1, 2]] = aten.clone.default(%x)
        return %y
    }""")
    simplify(graph)
    assert isinstance(graph.outputs[0].type, TensorType)
    assert graph.outputs[0].type.strides == (1, 2)


def test_fold_moves_work_on_weights_and_leaves_views():
    graph = parse("""graph {
        input %x: f32[2, 4]
        input %w: f32[3, 4] = parameter "w"
        %s = aten.mul.Tensor(%w, 2.0)
        %t = aten.t.default(%s)
        %y = aten.mm.default(%x, %t)
        return %y
    }""")
    assert fold(graph)
    dce(graph)
    assert ops(graph) == ["t.default", "mm.default"]
    assert graph.prologue is not None and ops(graph.prologue) == ["mul.Tensor"]
    assert graph.sources[-1].kind == "derived"
    assert not fold(graph)


def test_fold_leaves_written_inputs_alone():
    graph = parse("""graph {
        input %n: i64[] = buffer "num_batches_tracked"
        %y = aten.add.Tensor(%n, 1)
        return %y
    }""")
    assert not fold(graph, written=[0])


def test_dce_drops_derived_inputs_nobody_reads():
    graph = parse("""graph {
        input %x: f32[4]
        input %w: f32[4] = parameter "w"
        %s = aten.exp.default(%w)
        %y = aten.mul.Tensor(%x, %s)
        return %x
    }""")
    fold(graph)
    dce(graph)
    assert graph.prologue is None and len(graph.inputs) == 2


def test_conv_bn_becomes_one_convolution():
    graph = parse("""graph {
        input %x: f32[1, 3, 8, 8]
        input %w: f32[4, 3, 3, 3] = parameter "conv.weight"
        input %g: f32[4] = parameter "bn.weight"
        input %b: f32[4] = parameter "bn.bias"
        input %m: f32[4] = buffer "bn.running_mean"
        input %v: f32[4] = buffer "bn.running_var"
        %c = aten.convolution.default(%x, %w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        %n, %p, %q = aten.native_batch_norm.default(%c, %g, %b, %m, %v, False, 0.1, 1e-05)
        %y = aten.relu.default(%n)
        return %y
    }""")
    assert fold_conv_bn(graph)
    fold(graph)
    dce(graph)
    assert ops(graph) == ["convolution.default", "relu.default"]


def test_the_runner_names_the_pass_that_broke_the_graph():
    graph = parse("""graph {
        input %x: f32[4]
        %a = aten.neg.default(%x)
        %b = aten.exp.default(%a)
        return %b
    }""")

    def swap(graph: Graph) -> bool:
        graph.nodes.reverse()
        return True

    with pytest.raises(VerificationError, match="not valid after swap"):
        run(graph, [Pass("swap", swap)])


def test_the_runner_records_what_each_pass_did():
    graph = parse("""graph {
        input %x: f32[4]
        %a = aten.neg.default(%x)
        return %x
    }""")
    first, second = run(graph, [Pass("dce", dce), Pass("again", dce)])
    assert (first.changed, first.before, first.after) == (True, 1, 0)
    assert (second.changed, second.before, second.after) == (False, 0, 0)
