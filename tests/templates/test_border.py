"""Convolutions whose zeros lie on one side only: the size of the result says how far windows reach."""

import pytest
import torch

from monograph.codegen import assemble, target
from monograph.ops.evaluate import evaluate
from monograph.runtime.execute import Executable
from monograph.schedule import plan
from tests.schedule.build import Maker
from tests.schedule.graphs import inputs_for


@pytest.mark.parametrize("channels, out, groups", [(3, 8, 1), (16, 24, 1), (16, 16, 16), (16, 32, 4)])
@pytest.mark.parametrize("border", [(0, 1, 0, 1), (1, 0, 2, 0), (0, 0, 0, 3), (2, 2, 0, 0)])
def test_borders(channels, out, groups, border):
    m = Maker()
    x, w = m.input(2, channels, 9, 7), m.weight(out, channels // groups, 3, 3)
    padded = m.op("constant_pad_nd.default", x, border)
    y = m.op("convolution.default", padded, w, None, (2, 1), (0, 0), (1, 1), False, (0, 0), groups)
    graph = m.outputs(m.op("relu.default", y))
    inputs = inputs_for(graph)
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    torch.testing.assert_close(Executable(program).run(inputs), evaluate(graph, inputs), rtol=1e-4, atol=1e-4)
