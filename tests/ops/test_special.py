"""Special functions by series against torch's kernels, at ordinary points, kinks, zeros and infinities."""

import pytest
import torch

from monograph.ops import evaluate, families, text
from monograph.ops.decompose import expand
from monograph.ops.decompose_special import FORMULAS

POINTS = torch.cat([
    torch.linspace(-12, 12, 201, dtype=torch.float64), torch.logspace(-6, 3, 50, dtype=torch.float64),
    torch.tensor([0.0, float("inf"), -float("inf"), float("nan"), 2.0, 5.0, 8.0, -8.0, 60.0], dtype=torch.float64),
])


@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.parametrize(("dtype", "tolerance"), [("f64", 1e-11), ("f32", 2e-6)])
def test_values(name, dtype, tolerance):
    graph = text.parse(f"""
        graph {{
            input %x: {dtype}[{POINTS.numel()}]
            %y = aten.{name}.default(%x)
            return %y
        }}""")
    x = POINTS.to(graph.inputs[0].tensor.dtype)
    wanted = evaluate.evaluate(graph, [x])[0]
    assert expand(graph)
    assert all(node.op.name in families.KERNELS for node in graph.nodes)
    got = evaluate.evaluate(graph, [x], check=True)[0]
    # Near its zeros an oscillating function has no relative accuracy.
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance if "bessel" in name else 0, equal_nan=True)


def test_bytes_become_floats():
    graph = text.parse("graph {\n input %x: i64[3]\n %y = aten.i0.default(%x)\n return %y\n }")
    expand(graph)
    got = evaluate.evaluate(graph, [torch.arange(3)], check=True)[0]
    torch.testing.assert_close(got, torch.special.i0(torch.arange(3)))
