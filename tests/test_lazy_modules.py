"""Modules whose weights the first call makes: that call runs in Python, what follows is compiled."""

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import UninitializedError


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.LazyLinear(2)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).flatten(1))


MODELS = {"linear": (lambda: nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2)), (2, 5)),
          "convolution": (Inner, (2, 3, 6, 6))}


def played(name, wrap):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make()
    fast = wrap(model)
    results = []
    for _ in range(3):
        out = fast(torch.randn(shape))
        out.square().sum().backward()
        results += [out.detach(), *[p.grad.clone() for p in model.parameters()]]
    return results, type(fast), list(model.state_dict())


@pytest.mark.parametrize("name", list(MODELS))
def test_as_in_eager(name):
    mine, theirs = played(name, monograph.compile), played(name, lambda model: model)
    torch.testing.assert_close(mine[0], theirs[0], rtol=1e-4, atol=1e-5)
    assert mine[2] == theirs[2]


def test_compiled_from_the_second_call_on():
    layer = nn.LazyLinear(3)

    @monograph.compile
    def function(x):
        return layer(x) * 2

    x = torch.ones(2, 5)
    torch.testing.assert_close(function(x), layer(x) * 2)
    assert not monograph.api.dispatcher_of(function).entries
    torch.testing.assert_close(function(x), layer(x) * 2)
    assert len(monograph.api.dispatcher_of(function).entries) == 1


def test_capture_names_it():
    with pytest.raises(UninitializedError, match="lazy module"):
        monograph.capture(nn.LazyLinear(3), torch.ones(2, 5))
