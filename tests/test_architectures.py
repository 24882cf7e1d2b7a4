"""Real architectures, small configs: one graph each, equal to eager in value, dtype, shape, strides and type."""

from __future__ import annotations

import copy

import pytest
import torch

import monograph
from tests.architectures import ARCHITECTURES, build
from tests.compare import assert_same


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_equal_to_eager(name: str):
    model, inputs = build(name)
    compiled = monograph.compile(copy.deepcopy(model))
    with torch.no_grad():
        expected = model(**inputs)
        atol = 1e-5 + 2 * _rounding(model, inputs, expected)
        assert_same(compiled(**inputs), expected, rtol=1e-4, atol=atol)
        assert_same(compiled(**inputs), expected, rtol=1e-4, atol=atol)
    assert len(compiled.recompiles) == 0


def _rounding(model: torch.nn.Module, inputs: dict, result: object) -> float:
    """How far eager's own rounding takes it from the result in double precision: below that nothing can be told."""
    exact = copy.deepcopy(model).double()(**{
        key: value.double() if value.is_floating_point() else value for key, value in inputs.items()
    })
    return max(float((value - exact[key]).abs().max()) for key, value in result.items()
               if isinstance(value, torch.Tensor) and value.is_floating_point())


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet", "t5", "vit", "llama", "clip"])
def test_gradients_equal_eagers(name: str):
    model, inputs = build(name)
    twin = copy.deepcopy(model)
    compiled = monograph.compile(twin)
    _loss(model(**inputs)).backward()
    _loss(compiled(**inputs)).backward()
    expected = {key: parameter.grad for key, parameter in model.named_parameters()}
    actual = {key: parameter.grad for key, parameter in twin.named_parameters()}
    assert_same(actual, expected, rtol=1e-3, atol=1e-4)


def _loss(output: object) -> torch.Tensor:
    results = [value for value in output.values() if isinstance(value, torch.Tensor) and value.is_floating_point()]
    return sum((result * torch.linspace(-1, 1, result.numel()).reshape(result.shape)).sum() for result in results)
