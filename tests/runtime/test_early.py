"""What a call does before its one native call."""

import torch

from monograph.codegen import assemble, target
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
