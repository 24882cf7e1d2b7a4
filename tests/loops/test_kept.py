"""A row written into a buffer that a loop carries costs that row."""

from __future__ import annotations

import pytest
import torch

import monograph
from monograph.codegen.target import host
from monograph.loops.lower import lower
from monograph.loops.nodes import For
from monograph.ops.decompose import expand
from monograph.ops.text import parse
from monograph.schedule import plan
from monograph.schedule.kernel import Fused

ROWS = 5000
LOOP = """
graph {
    input %x: f32[4, strides=[1]]
    input %n: i64[strides=[]]
    %buffer: f32[5000, 4] = aten.full.default([5000, 4], 0.5, dtype=f32)
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %end: i64[], %y: f32[5000, 4, strides=[4, 1]] = mono.while([%zero, %buffer]) {
        condition {
            input %i0: i64[]
            input %y0: f32[5000, 4]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }
        body {
            input %i1: i64[]
            input %y1: f32[5000, 4]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
            %at: i64[1] = aten.view.default(%i1, size=[1])
            %row: f32[1, 4] = aten.unsqueeze.default(%x, 0)
            %y2: f32[5000, 4] = aten.index_copy.default(%y1, dim=0, index=%at, source=%row)
            return %i2, %y2
        }
    }
    return %y
}
"""


def test_no_loop_over_what_stays():
    graph = parse(LOOP)
    expand(graph)
    schedule = plan(graph, target=host())
    kernels = [lower(item, schedule, "kernel") for item in schedule.items if isinstance(item, Fused)]
    long = [[statement for statement in kernel.statements() if isinstance(statement, For)
             and getattr(statement.hi, "value", 0) >= ROWS] for kernel in kernels]
    assert sum(map(bool, long)) == 1          # the kernel that fills the buffer


def written(x, n):
    out = torch.zeros(50, 3)
    for i in range(int(n)):
        x = x * 0.5 + i
        out[i - 2] = x
        if x.sum() > 8:
            out[i + 1, 1] = x[0]
    return out


def read_elsewhere(x, n):
    out = torch.ones(50, 3)
    for i in range(int(n)):
        out[i + 1] = out[i] * 0.5 + x
    return out


def shifted(x, n):
    out = torch.ones(50, 3)
    for i in range(int(n)):
        out = torch.where(torch.arange(50)[:, None] == i, x, out.flip(0))
    return out


@pytest.mark.parametrize("function", [written, read_elsewhere, shifted], ids=lambda function: function.__name__)
def test_values(function):
    fast = monograph.compile(function)
    for trips in (0, 1, 9, 49, 60):
        torch.manual_seed(trips)
        x, n = torch.randn(3), torch.tensor(trips)
        try:
            expected = function(x, n)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                fast(x, n)
        else:
            torch.testing.assert_close(fast(x, n), expected)
