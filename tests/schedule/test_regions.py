"""Regions in a schedule: what is written over what, what is hoisted, which memory is shared."""

import torch

from monograph.ir.verifier import verify
from monograph.ops.text import parse
from monograph.schedule import plan
from monograph.schedule.kernel import Branch, Fused, Jump, LibraryCall
from tests.schedule.build import ops
from tests.schedule.simulate import Lanes

LOOP = """
graph {{
    input %x: f32[128, strides=[1]]
    input %w: f32[128, strides=[1]]
    %i: bool[], %y: f32[128] = mono.while([%start, %x]) {{
        condition {{
            input %i0: bool[]
            input %y0: f32[128]
            return %i0
        }}
        body {{
            input %i1: bool[]
            input %y1: f32[128]
            %s = aten.any.default(%y1)
{body}
            return %s, %y2
        }}
    }}
    return %y
}}
"""


def scheduled(body):
    text = LOOP.format(body=body).replace("    %i: bool[], %y", "    %start = aten.any.default(%x)\n    %i: bool[], %y")
    graph = parse(text)
    verify(graph)
    return plan(graph, target=Lanes())


def test_the_next_value_is_written_over_the_present_one():
    schedule = scheduled("            %y2: f32[128] = aten.sin.default(%y1)")
    body = [item for item in schedule.items if isinstance(item, Fused)][2:]
    assert [[node.op.name.split(".")[1] for node in item.nodes] for item in body] == [["any"], ["sin"]]
    places = {str(schedule.places[value]) for item in body for value in item.outputs}
    assert str(schedule.places[schedule.graph.outputs[0]]) in places and schedule.places[
        schedule.graph.outputs[0]].kind == "output"


def test_a_value_that_is_read_again_is_copied_over_at_the_end():
    schedule = scheduled("""
            %a = aten.flip.default(%y1, [0])
            %y2: f32[128] = aten.add.Tensor(%a, %y1)""")
    assert ops(schedule)[-2:] == [["clone"], []]


def test_either_branch_writes_over_what_only_the_other_reads_later():
    schedule = scheduled("""
            %y2: f32[128] = mono.cond(%s) {
                then {
                    %a = aten.sin.default(%y1)
                    return %a
                }
                otherwise {
                    %b = aten.cos.default(%y1)
                    return %b
                }
            }""")
    assert ops(schedule)[-2:] == [["cos"], []]


def test_a_loop_inside_reads_the_present_value_in_every_round():
    schedule = scheduled("""
            %zero = aten.full.default([], True, dtype=bool)
            %j: bool[], %y2: f32[128] = mono.while([%zero, %w]) {
                condition {
                    input %j0: bool[]
                    input %z0: f32[128]
                    return %j0
                }
                body {
                    input %j1: bool[]
                    input %z1: f32[128]
                    %t = aten.any.default(%z1)
                    %z2: f32[128] = aten.add.Tensor(%z1, %y1)
                    return %t, %z2
                }
            }""")
    assert ops(schedule)[-2:] == [["clone"], []]


def test_regions_of_a_cond_share_memory():
    text = """
graph {
    input %x: f32[4096, strides=[1]]
    input %p: bool[strides=[]]
    %y: f32[4096] = mono.cond(%p) {
        then {
            %a, %k = aten.sort.default(%x)
            %c, %l = aten.sort.default(%a)
            return %c
        }
        otherwise {
            %b, %m = aten.sort.default(%x)
            %d, %n = aten.sort.default(%b)
            return %d
        }
    }
    return %y
}
"""
    schedule = plan(parse(text), target=Lanes())
    assert schedule.arena_bytes < 1.1 * 4096 * 4
    assert [type(item) for item in schedule.items] == [Branch, LibraryCall, LibraryCall, Jump, LibraryCall, LibraryCall]


def test_copies_of_outer_values_stand_in_front_of_the_loop():
    graph = parse("""
graph {
    input %x: f32[8, 8, strides=[8, 1]]
    input %n: i64[strides=[]]
    input %m: f32[8, 2, 8, strides=[16, 8, 1]]
    %zero = aten.full.default([], 0, dtype=i64)
    %turned = aten.transpose.int(%m, 1, 2)
    %flat: f32[8, 16] = aten.reshape.default(%turned, [8, 16])
    %i: i64[], %y: f32[8, 8] = mono.while([%zero, %x]) {
        condition {
            input %i0: i64[]
            input %y0: f32[8, 8]
            %p = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[8, 8]
            %i2 = aten.add.Scalar(%i1, 1)
            %f: f32[8, 16] = aten.mm.default(%y1, %flat)
            %y2 = aten.slice.Tensor(%f, 1, 0, 8)
            return %i2, %y2
        }
    }
    return %y
}
""".replace("aten.reshape.default(%turned, [8, 16])", "aten.reshape.default(%turned, shape=[8, 16])").replace(
        "aten.slice.Tensor(%f, 1, 0, 8)", "aten.slice.Tensor(%f, dim=1, start=0, end=8)"))
    schedule = plan(graph, target=Lanes())
    jump = next(item for item in schedule.items if isinstance(item, Jump))
    before = schedule.items[:jump.target]
    copied = [value for item in before for value in item.outputs if value.tensor.shape == (8, 16)]
    assert len(copied) == 1 and torch.float32 is copied[0].tensor.dtype
