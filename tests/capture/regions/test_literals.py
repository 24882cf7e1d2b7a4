"""Tensors made of numbers that only the run knows."""

from __future__ import annotations

import pytest
import torch

import monograph
from tests.compare import assert_same

P = torch.tensor([1.0, 2.0, 3.0])


def of_tensors(x):
    return torch.tensor([x.sum(), x.max()]), torch.tensor([[(x > 0).sum(), 3]])


def of_numbers(x):
    n = (x > 0).sum().item()
    return torch.tensor([n, 2 * n]), torch.tensor(n), torch.tensor([n, 0.5]), torch.tensor([n > 1, True])


def nested(x):
    return torch.tensor([[x[0], 1.0], [x[1].item(), 2]], dtype=torch.float64), torch.as_tensor([x.argmax(), 7])


def of_rows(x):
    return torch.tensor([x, x + 1])


def is_fresh(x):
    y = torch.tensor([x.sum()])
    y += 1
    return x, y


@pytest.mark.parametrize("function", [of_tensors, of_numbers, nested, is_fresh])
def test_equal_to_eager(function):
    compiled = monograph.compile(function)
    for x in (P, -P, P - 1.5):
        assert_same(compiled(x), function(x))
    assert not compiled.recompiles


def test_what_torch_refuses_is_refused():
    for function in (lambda x: torch.tensor([[x.sum()], x.max()]), of_rows):
        with pytest.raises(Exception) as expected:
            function(P)
        with pytest.raises(type(expected.value)):
            monograph.compile(function, fullgraph=False)(P)
