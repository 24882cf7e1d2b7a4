"""IR in, IR out: what passes do to graphs with regions."""

from __future__ import annotations

import pytest

from monograph.ir.graph import Graph, Node
from monograph.ir.printer import print_graph
from monograph.ir.verifier import verify
from monograph.ops import infer
from monograph.ops.text import parse
from monograph.transform.bypass import bypass
from monograph.transform.cse import cse
from monograph.transform.dce import dce
from monograph.transform.fold import fold
from monograph.transform.hoist import hoist
from monograph.transform.literals import literals
from monograph.transform.propagate import propagate
from monograph.transform.ranges import ranges
from monograph.transform.select import HEAVY, LIMIT, select
from monograph.transform.simplify import simplify
from monograph.transform.sink import sink
from monograph.transform.unroll import unroll


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


# --- propagate ----------------------------------------------------------------------------------

def test_constants_are_evaluated():
    graph = read("""graph {
        %i = aten.full.default([], 2, dtype=i64)
        %j = aten.add.Tensor(%i, 1)
        %k = aten.remainder.Scalar(%j, 2)
        return %j, %k
    }""")
    assert propagate(graph)
    dce(graph)
    assert ops(graph) == ["full.default", "full.default"]
    assert [node.attributes["fill_value"] for node in graph.nodes] == [3, 1]


def test_what_raises_is_left_to_raise():
    graph = read("""graph {
        %i = aten.full.default([], 2, dtype=i64)
        %z = aten.full.default([], 0, dtype=i64)
        %j = aten.floor_divide.default(%i, %z)
        return %j
    }""")
    propagate(graph)
    assert "floor_divide.default" in ops(graph)


KNOWN = """graph {
    input %x: f32[2]
    input %q: bool[]
    %p = aten.full.default([], TRUTH, dtype=bool)
    %a = mono.cond(%p) {
        then {
            %b = aten.neg.default(%x)
            %c = aten.exp.default(%b)
            return %c
        }
        otherwise {
            mono.check(%q, error="ValueError")
            return %x
        }
    }
    return %a
}"""


def test_a_known_branch_is_taken():
    graph = read(KNOWN.replace("TRUTH", "True"))
    assert propagate(graph)
    dce(graph)
    assert ops(graph) == ["neg.default", "exp.default"]
    graph = read(KNOWN.replace("TRUTH", "False"))
    assert propagate(graph)
    dce(graph)
    assert ops(graph) == ["mono.check"]
    assert graph.outputs == [graph.inputs[0]]


def test_a_branch_knows_its_predicate():
    graph = read("""graph {
        input %x: f32[2]
        input %p: bool[]
        input %q: bool[]
        %both = aten.logical_and.default(%p, %q)
        %a = mono.cond(%both) {
            then {
                %b = mono.cond(%q) {
                    then {
                        %c = aten.neg.default(%x)
                        return %c
                    }
                    otherwise {
                        return %x
                    }
                }
                return %b
            }
            otherwise {
                return %x
            }
        }
        return %a
    }""")
    assert propagate(graph)
    verify(graph, infer.result_types)
    assert ops(only(graph, "mono.cond").regions[0]) == ["neg.default"]


def test_a_loop_that_never_starts_gives_what_it_was_given():
    graph = read(LOOP.replace("RETURN", "%s = mono.scalar(t)\n return %a, %i, %s, %as")
                 .replace("input %n: i64[]", "%n = aten.full.default([], 9, dtype=i64)", 1))
    assert propagate(graph)
    verify(graph, infer.result_types)
    dce(graph)
    assert set(ops(graph)) == {"full.default"}
    assert graph.outputs[0] is graph.inputs[0] and graph.outputs[3].tensor.shape == (0, 2)


def test_a_flag_is_known_in_the_body_and_behind_the_loop():
    graph = read("""graph {
        input %x: f32[]
        input %q: bool[]
        %no = aten.full.default([], False, dtype=bool)
        %y, %done = mono.while([%x, %no]) {
            condition {
                input %c: f32[]
                input %d: bool[]
                %go = aten.logical_not.default(%d)
                return %go
            }
            body {
                input %c: f32[]
                input %d: bool[]
                %e = mono.cond(%d) {
                    then {
                        return %c
                    }
                    otherwise {
                        %f = aten.mul.Tensor(%c, 0.5)
                        return %f
                    }
                }
                %g = aten.lt.Scalar(%e, 1.0)
                return %e, %g
            }
        }
        return %y, %done
    }""")
    assert propagate(graph)
    verify(graph, infer.result_types)
    assert ops(only(graph, "mono.while").regions[1]) == ["mul.Tensor", "lt.Scalar"]
    assert graph.outputs[1].node.attributes["fill_value"] is True


def test_a_known_number_becomes_a_size():
    graph = read("""graph {
        symbol n: 0..
        %k = aten.full.default([], 3, dtype=i64)
        %n = mono.number(%k, symbol="n")
        %a = aten.full.default([n, 2], 1.0)
        %b = mono.scalar(%n)
        return %a, %b
    }""")
    assert propagate(graph)
    verify(graph, infer.result_types)
    assert graph.outputs[0].tensor.shape == (3, 2) and graph.outputs[1].node.attributes["fill_value"] == 3


def test_a_branch_taken_tells_the_size_it_gives():
    graph = read("""graph {
        symbol k: 0..
        input %x: f32[3]
        %p = aten.full.default([], True, dtype=bool)
        %y: f32[k] = mono.cond(%p) {
            then {
                %s = aten.slice.Tensor(%x, 0, 1)
                return %s
            }
            otherwise {
                return %x
            }
        }
        %z: f32[k] = aten.neg.default(%y)
        return %z
    }""")
    assert propagate(graph)
    verify(graph, infer.result_types)
    assert graph.outputs[0].tensor.shape == (2,)


def test_outputs_keep_the_strides_promised():
    graph = parse(KNOWN.replace("TRUTH", "False").replace("input %x: f32[2]", "input %x: f32[2, strides=[5]]")
                  .replace("%a = mono", "%a: f32[2, strides=[1]] = mono"))
    assert propagate(graph)
    verify(graph)
    assert str(graph.outputs[0].type) == "f32[2, strides=[1]]"


# --- bypass -------------------------------------------------------------------------------------

def test_equal_results_and_truths_bypass_a_cond():
    graph = read("""graph {
        input %x: f32[2]
        input %p: bool[]
        %a, %yes, %no = mono.cond(%p) {
            then {
                %t = aten.full.default([], True, dtype=bool)
                %f = aten.full.default([], False, dtype=bool)
                return %x, %t, %f
            }
            otherwise {
                %t = aten.full.default([], False, dtype=bool)
                %f = aten.full.default([], True, dtype=bool)
                return %x, %t, %f
            }
        }
        return %a, %yes, %no
    }""")
    assert bypass(graph)
    dce(graph)
    assert graph.outputs[:2] == graph.inputs and ops(graph) == ["logical_not.default"]
    assert not bypass(graph)


def test_carries_that_never_change_are_outer_values():
    graph = read(LOOP.replace("RETURN", "return %a, %b").replace("return %e, %f, %l", "return %c, %f, %l"))
    assert bypass(graph)
    dce(graph)
    node = only(graph, "mono.while")
    assert len(node.results) == 2 and graph.outputs[0] is graph.inputs[0]
    assert graph.inputs[0] in node.regions[1].free_values()
    assert not bypass(graph)


def test_carries_that_are_always_equal_are_one():
    graph = read(LOOP.replace("RETURN", "return %a, %b").replace("return %e, %f, %l", "return %e, %e, %l"))
    assert bypass(graph)
    dce(graph)
    assert len(only(graph, "mono.while").results) == 2 and graph.outputs[0] is graph.outputs[1]


# --- hoist --------------------------------------------------------------------------------------

def test_invariant_work_leaves_nested_loops():
    graph = read("""graph {
        input %x: f32[2]
        input %n: i64[]
        input %q: i64[]
        %y, %i = mono.while([%x, %n]) {
            condition {
                input %c: f32[2]
                input %k: i64[]
                %limit = aten.mul.Tensor(%q, 2)
                %go = aten.lt.Tensor(%k, %limit)
                return %go
            }
            body {
                input %c: f32[2]
                input %k: i64[]
                %p = aten.gt.Scalar(%k, 0)
                %d = mono.cond(%p) {
                    then {
                        %v = aten.view.default(%x, [2])
                        %e = aten.exp.default(%v)
                        %f = aten.add.Tensor(%c, %e)
                        return %f
                    }
                    otherwise {
                        %v = aten.view.default(%x, [2])
                        %e = aten.exp.default(%v)
                        %f = aten.sub.Tensor(%c, %e)
                        return %f
                    }
                }
                %l = aten.add.Tensor(%k, 1)
                return %d, %l
            }
        }
        return %y
    }""")
    assert hoist(graph)
    verify(graph, infer.result_types)
    assert ops(graph) == ["mul.Tensor", "view.default", "exp.default", "mono.while"]
    cond = only(graph, "mono.cond")
    assert [ops(region) for region in cond.regions] == [["add.Tensor"], ["sub.Tensor"]]
    assert not hoist(graph)


def test_views_and_what_raises_stay_in_a_loop():
    graph = read(LOOP.replace("RETURN", "return %a, %b").replace(
        "%e = aten.mul.Tensor(%c, 2)",
        "%v = aten.view.default(%x, [2, 1])\n %w = aten.view.default(%v, [2])\n"
        "%r = aten.floor_divide.default(%n, %n)\n %e = aten.mul.Tensor(%c, %w)"))
    assert not hoist(graph)


# --- select -------------------------------------------------------------------------------------

def test_a_small_cond_is_a_choice():
    graph = read(COND.replace("RETURN", "return %a, %b").replace("CHECK", ""))
    assert select(graph)
    verify(graph, infer.result_types)
    assert ops(graph) == ["neg.default", "exp.default", "where.self", "where.self"]


@pytest.mark.parametrize("change", [
    ("CHECK", 'mono.check(%p, error="ValueError")'),
    ("%d = aten.exp.default(%x)", "%d = aten.mm.default(%x, %x)"),
    ("f32[2]", f"f32[{HEAVY * LIMIT}]"),
])
def test_a_cond_with_effects_or_much_work_stays(change: tuple[str, str]):
    text = COND.replace("RETURN", "return %a, %b")
    if "mm" in change[1]:
        text = text.replace("f32[2]", "f32[2, 2]")
    graph = read(text.replace(*change).replace("CHECK", ""))
    assert not select(graph)


@pytest.mark.parametrize(("type", "made"), [
    ("f32[1]", ["ne.Scalar", "view.default"]), ("bool[]", []), ("i64[]", ["ne.Scalar"]),
])
def test_the_predicate_of_a_choice_is_a_flag(type: str, made: list[str]):
    graph = read(COND.replace("RETURN", "return %a").replace("CHECK", "").replace("input %p: bool[]",
                                                                                 f"input %p: {type}"))
    dce(graph)
    assert select(graph)
    assert ops(graph) == ["neg.default", *made, "where.self"]


# --- unroll, sink -------------------------------------------------------------------------------

COUNTED = LOOP.replace("input %n: i64[]", "%n = aten.full.default([], START, dtype=i64)", 1)


def test_a_short_loop_is_written_out():
    graph = read(COUNTED.replace("RETURN", "return %a, %i, %as").replace("START", "1"))
    assert unroll(graph)
    verify(graph, infer.result_types)
    assert ops(graph).count("mul.Tensor") == 2 and "mono.while" not in ops(graph)
    assert graph.outputs[2].tensor.shape == (2, 2)


def test_a_long_loop_stays():
    graph = read(COUNTED.replace("RETURN", "return %a, %i").replace("START", "-100"))
    assert not unroll(graph)


def test_views_and_constants_sink_into_regions():
    graph = read("""graph {
        input %x: f32[2]
        input %p: bool[]
        %v = aten.view.default(%x, [2, 1])
        %w = aten.permute.default(%v, [1, 0])
        %o = aten.full.default([], 1.0)
        %a = mono.cond(%p) {
            then {
                %b = aten.add.Tensor(%w, %o)
                return %b
            }
            otherwise {
                return %w
            }
        }
        return %a
    }""")
    assert sink(graph)
    verify(graph, infer.result_types)
    dce(graph)
    assert ops(graph) == ["mono.cond"]
    assert ops(graph.nodes[0].regions[0]) == ["view.default", "permute.default", "full.default", "add.Tensor"]
    assert not sink(graph)


# --- cse ----------------------------------------------------------------------------------------

def test_regions_share_what_stands_before_them_only():
    graph = read("""graph {
        input %x: f32[2]
        input %p: bool[]
        %e = aten.exp.default(%x)
        %a = mono.cond(%p) {
            then {
                %f = aten.exp.default(%x)
                %g = aten.neg.default(%f)
                return %g
            }
            otherwise {
                return %x
            }
        }
        %h = aten.neg.default(%e)
        return %a, %h
    }""")
    assert cse(graph)
    verify(graph, infer.result_types)
    assert ops(graph) == ["exp.default", "mono.cond", "neg.default"]
    assert ops(graph.nodes[1].regions[0]) == ["neg.default"]


def test_one_number_read_twice_has_one_name():
    graph = read("""graph {
        symbol n: 0..
        symbol m: 0..
        input %k: i64[]
        %n = mono.number(%k, symbol="n")
        %m = mono.number(%k, symbol="m")
        %a = aten.full.default([n], 1.0)
        %b = aten.full.default([m], 1.0)
        %c = aten.add.Tensor(%a, %b)
        %d = mono.scalar(%m)
        return %c, %d
    }""")
    assert cse(graph)
    verify(graph, infer.result_types)
    assert ops(graph) == ["mono.number", "full.default", "add.Tensor", "mono.scalar"]
    assert str(graph.outputs[0].type) == "f32[n]"


# --- simplify -----------------------------------------------------------------------------------

@pytest.mark.parametrize(("yes", "no", "left"), [
    ("%t", "%f", []), ("%f", "%t", ["logical_not.default"]), ("%t", "%q", ["logical_or.default"]),
    ("%q", "%f", ["logical_and.default"]), ("%q", "%q", []), ("%f", "%q", ["full.default", "where.self"]),
])
def test_choices_between_truths_are_logic(yes: str, no: str, left: list[str]):
    graph = read(f"""graph {{
        input %p: bool[]
        input %q: bool[]
        %t = aten.full.default([], True, dtype=bool)
        %f = aten.full.default([], False, dtype=bool)
        %w = aten.where.self(%p, {yes}, {no})
        return %w
    }}""")
    simplify(graph)
    dce(graph)
    verify(graph, infer.result_types)
    assert ops(graph) == left


def test_a_number_read_and_written_is_the_tensor():
    graph = read("""graph {
        symbol n: 0..
        input %k: i64[]
        %n = mono.number(%k, symbol="n")
        %s = mono.scalar(%n)
        %t = mono.scalar(%n, dtype=i32)
        return %s, %t
    }""")
    simplify(graph)
    dce(graph)
    assert graph.outputs[0] is graph.inputs[0] and ops(graph) == ["mono.number", "mono.scalar"]


def test_a_size_that_was_read_stays_in_its_loop():
    graph = parse(LOOP.replace("RETURN", "return %a, %b").replace(
        "%e = aten.mul.Tensor(%c, 2)",
        "%z: i64[u, 1] = aten.nonzero.default(%x)\n %s = mono.sized(%z, size=[2, 1], number=0)\n"
        "%w = aten.view.default(%s, [2])\n %e = aten.mul.Tensor(%c, %w)",
    ).replace("symbol t", "symbol u: 0..\n symbol t"))
    verify(graph)
    assert not hoist(graph)


# --- fold ---------------------------------------------------------------------------------------

def test_weights_alone_leave_regions_for_the_prologue():
    graph = read("""graph {
        input %x: f32[2]
        input %w: f32[2] = parameter "w"
        input %p: bool[]
        %a = mono.cond(%p) {
            then {
                %e = aten.exp.default(%w)
                %b = aten.add.Tensor(%x, %e)
                return %b
            }
            otherwise {
                %n = aten.neg.default(%w)
                return %n
            }
        }
        return %a
    }""")
    assert fold(graph)
    dce(graph)
    verify(graph)
    assert ops(graph.prologue) == ["exp.default", "neg.default"]
    assert [ops(region) for region in graph.nodes[0].regions] == [["add.Tensor"], []]


def test_what_has_a_size_known_at_run_time_is_not_folded():
    graph = read("""graph {
        symbol n: 0..
        input %x: f32[n]
        %a = mono.scalar(n)
        %b = aten.full.default([2], n)
        return %a, %b
    }""")
    assert not fold(graph)


# --- literals -----------------------------------------------------------------------------------

@pytest.mark.parametrize(("line", "made"), [
    ("aten.add.Tensor(%one, %i)", "%y: i64[] = aten.add.Tensor(%i, 1)"),
    ("aten.sub.Tensor(%i, %one, alpha=2)", "%y: i64[] = aten.sub.Tensor(%i, 1, alpha=2)"),
    ("aten.lt.Tensor(%i, %one)", "%y: bool[] = aten.lt.Scalar(%i, other=1)"),
    ("aten.remainder.Tensor(%i, %one)", "%y: i64[] = aten.remainder.Scalar(%i, other=1)"),
    ("aten.sub.Tensor(%one, %i)", "%y: i64[] = aten.sub.Tensor(%one, %i)"),
    ("aten.add.Tensor(%x, %one)", "%y: f32[2] = aten.add.Tensor(%x, %one)"),
    ("aten.add.Tensor(%short, %one)", "%y: i64[] = aten.add.Tensor(%short, %one)"),
])
def test_integer_constants_are_written_as_numbers(line: str, made: str):
    graph = read(f"""graph {{
        input %i: i64[]
        input %x: f32[2]
        input %short: i32[]
        %one = aten.full.default([], 1, dtype=i64)
        %y = {line}
        return %y
    }}""")
    literals(graph)
    dce(graph)
    verify(graph, infer.result_types)
    assert made in str(print_graph(graph))


def test_a_division_by_a_known_number_may_move():
    graph = read(LOOP.replace("RETURN", "return %a, %b").replace(
        "%e = aten.mul.Tensor(%c, 2)", "%two = aten.full.default([], 2, dtype=i64)\n"
        "%r = aten.remainder.Tensor(%n, %two)\n %e = aten.mul.Tensor(%c, %r)"))
    assert hoist(graph)
    assert ops(graph) == ["full.default", "remainder.Tensor", "mono.while"]


# --- ranges -------------------------------------------------------------------------------------

def checks_left(text: str) -> int:
    graph = read(text)
    changed, left = ranges(graph), sum(node.op.name == "mono.check" for node in graph.walk())
    assert changed is (left < text.count("mono.check"))
    return left


@pytest.mark.parametrize(("lines", "left"), [
    ("%n = aten.argmax.default(%x)\n%m = aten.add.Tensor(%n, 1)\n%ok = aten.le.Scalar(%m, 9223372036854775806)", 0),
    ("%n = aten.argmax.default(%x)\n%ok = aten.gt.Scalar(%n, 0)", 1),
    ("%ok = aten.le.Scalar(%k, 9223372036854775806)", 1),
    ("%n = aten.remainder.Scalar(%k, 7)\n%ok = aten.lt.Scalar(%n, 7)", 0),
    ("%n = aten.remainder.Scalar(%k, 7)\n%ok = aten.lt.Scalar(%n, 6)", 1),
    ("%n = aten._to_copy.default(%h, dtype=f64)\n%m = aten.mul.Tensor(%n, %n)\n%ok = aten.lt.Scalar(%m, 5e9)", 0),
    ("%n = aten._to_copy.default(%k, dtype=f64)\n%m = aten.mul.Tensor(%n, %n)\n%ok = aten.lt.Scalar(%m, 5e9)", 1),
    ("%n = aten.remainder.Scalar(%k, 16777217)\n%ok = aten.lt.Scalar(%n, 16777217.0)", 1),   # torch compares as f32
    ("%a = aten.add.Tensor(%h, 1)\n%n = aten._to_copy.default(%a, dtype=i64)\n%ok = aten.le.Scalar(%n, 32767)", 0),
    ("%a = aten.full.default([1], 5, dtype=i16)\n%b = aten.full.default([], 40000, dtype=i64)\n"
     "%m = aten.minimum.default(%a, %b)\n%ok = aten.ge.Scalar(%m, 0)", 1),                     # it is -25536
    ("%n = aten.abs.default(%k)\n%ok = aten.ge.Scalar(%n, 0)", 1),                            # not of the least one
])
def test_ranges_drops_what_cannot_fail(lines: str, left: int):
    assert checks_left(f"""graph {{
    input %x: f32[5]
    input %k: i64[]
    input %h: i16[]
    {lines}
    mono.check(%ok, error="ValueError")
    return %x
}}""") == left


@pytest.mark.parametrize(("step", "left"), [
    ("aten.add.Tensor(%j, 1)", 0), ("aten.sub.Tensor(%j, 3)", 0), ("aten.add.Tensor(%j, %i)", 1),
    ("aten.add.Tensor(%j, 1125899906842624)", 1), ("aten.mul.Tensor(%j, 2)", 1), ("aten.remainder.Scalar(%i, 5)", 0),
])
def test_ranges_finds_what_a_loop_adds_up(step: str, left: int):
    assert checks_left(f"""graph {{
    input %n: i64[]
    %zero = aten.full.default([], 0, dtype=i64)
    %a, %b = mono.while([%n, %zero]) {{
        condition {{
            input %i: i64[]
            input %j: i64[]
            %go = aten.gt.Scalar(%i, 0)
            return %go
        }}
        body {{
            input %i: i64[]
            input %j: i64[]
            %ok = aten.ge.Scalar(%i, 1)
            mono.check(%ok, error="ValueError")
            %fits = aten.lt.Scalar(%j, 9223372036854775807)
            mono.check(%fits, error="ValueError")
            %next = aten.sub.Tensor(%i, 1)
            %sum = {step}
            return %next, %sum
        }}
    }}
    return %a, %b
}}""") == left
