"""Folded weights: a pointwise op at the end is left to where the copy is written."""

import pytest
import torch

from monograph.codegen.derived import evaluator
from monograph.ops.text import parse
from monograph.runtime.recipe import Pointwise, computation

TEXTS = {
    "%y: f32[6, 4] = aten.mul.Tensor(%w, %s)": True,
    "%a: f32[6, 1] = aten.rsqrt.default(%s)  %y: f32[6, 4] = aten.mul.Tensor(%w, %a)": True,
    "%y: f32[6, 4] = aten.exp.default(%w)": True,
    "%a: f32[6, 4] = aten.mul.Tensor(%w, %w)  %y: f32[6, 4] = aten.div.Tensor(%a, %s)": True,
    "%y: f32[6, 4] = aten.add.Tensor(%w, %s, alpha=2)": False,
    "%y: f32[6, 4] = aten.mul.Scalar(%w, 2)": False,
    "%y: f64[6, 4] = aten.add.Tensor(%w, %d)": False,
    "%y: f32[6, 4] = aten.cumsum.default(%w, dim=1)": False,
}


@pytest.mark.parametrize(("body", "is_left"), TEXTS.items())
def test_what_is_left_undone(body, is_left):
    lines = "\n    ".join(body.split("  "))
    text = f"""graph derived {{
    input %w: f32[6, 4]
    input %s: f32[6, 1]
    input %d: f64[6, 4]
    {lines}
    return %y
}}"""
    first = evaluator(parse)(text)
    w, s, d = torch.rand(6, 4), torch.rand(6, 1) + 1, torch.rand(6, 4, dtype=torch.float64)
    made = first(w, s, d)
    assert isinstance(made, Pointwise) == is_left
    steps = [["pad", [0, 0, 0, 2]], ["reshape", [2, 4, 4]], ["permute", [0, 2, 1]]]
    expected = computation({"steps": steps})(made.made() if is_left else made)
    home = torch.empty_like(expected).contiguous()
    computation({"graph": text, "steps": steps}, evaluator(parse)).into(home, w, s, d)
    assert torch.equal(home, expected)
