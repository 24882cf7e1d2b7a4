"""What a call does before its one native call."""

import pytest
import torch

from monograph.codegen import assemble, target
from monograph.errors import InputError
from monograph.ops.evaluate import evaluate, special
from monograph.ops.text import parse
from monograph.runtime.early import early, python_steps
from monograph.runtime.execute import Executable
from monograph.runtime.program import AnySize
from monograph.schedule import plan

TWO_REGIONS = """
graph {
    symbol s: 2..
    input %x: f32[4, s, strides=[s, 1]]
    %a: f32[s, 4] = aten.permute.default(%x, [1, 0])
    %c = aten.cumsum.default(%a, 1)
    %b: f32[4, s] = aten.permute.default(%c, [1, 0])
    %e = aten.cumsum.default(%b, 1)
    %o: f32[4, s], %i: i64[4, s] = aten.sort.default(%e)
    %p: f32[s, 4] = aten.permute.default(%o, [1, 0])
    %d = aten.cumsum.default(%p, 1)
    %f: f32[4, s] = aten.permute.default(%d, [1, 0])
    %g = aten.cumsum.default(%f, 1)
    %y = aten.add.Tensor(%g, %e)
    return %e, %y
}
"""


def test_blocks_of_regions_made_ready_early_stay_while_later_ones_are_made_larger():
    graph = parse(TWO_REGIONS)
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    starts = [number for number, step in enumerate(program.steps) if isinstance(step, AnySize)]
    assert early(program) == {starts[0]} and len(starts) == 2
    assert [step.label for step in python_steps(program)] == ["sort", "any size"]
    executable = Executable(program, resolve=special)
    for size in (2, 50, 3, 3000, 7, 3000):
        x = torch.randn(4, size)
        for got, want in zip(executable.run([x]), evaluate(graph, [x]), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)


def test_shapes_seen_before_do_not_hide_another_dtype_or_layout():
    graph = parse("""
    graph {
        symbol s: 2..
        input %x: f32[s, 3, strides=[3, 1]]
        %t: f32[3, s] = aten.permute.default(%x, [1, 0])
        %y = aten.cumsum.default(%t, 1)
        return %y
    }
    """)
    executable = Executable(assemble.program(plan(graph, target=target.host()), target.host(), jobs=1))
    x = torch.randn(4, 3)
    for given in (x, x, torch.randn(3, 4).t(), x.neg(), torch._neg_view(x), torch.randn(5, 3), x):
        torch.testing.assert_close(executable.run([given])[0], given.t().cumsum(1))
    for wrong in (x.double(), torch.randn(4, 2), torch.randn(1, 3), x.to_sparse()):
        with pytest.raises(InputError):
            executable.run([wrong])
    first, second = executable.run([x])[0], executable.run([x])[0]
    assert first.data_ptr() != second.data_ptr()
