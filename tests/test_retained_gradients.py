"""`retain_grad()` inside of a compiled function: `.grad` of what comes out, over all of its uses."""

import pytest
import torch
from torch import nn

import monograph


def one(x):
    y = x * 2
    y.retain_grad()
    return y, (y * y).sum()


def two(x):
    y = x * 2
    y.retain_grad()
    z = y.sin()
    z.retain_grad()
    return y, z, (z * z).sum()


def same_twice(x):
    y = x.exp()
    y.retain_grad()
    return y, y, (y[1:] * 3).sum()


def rounds(function, combine):
    x = torch.arange(3.0, requires_grad=True)
    *kept, total = function(x)
    seen = []
    for again in range(3):
        combine(kept[0], total).backward(retain_graph=True)
        seen += [tensor.grad if tensor.grad is None else tensor.grad.clone() for tensor in (x, *kept)]
        seen += [tensor.retains_grad for tensor in kept]
        if again == 1:
            kept[0].grad = None
    return seen


COMBINED = {
    "inside": lambda y, total: total.sum(), "outside": lambda y, total: (y * 3).sum(),
    "both": lambda y, total: total.sum() + y.sum(),
    "in turns": lambda y, total: y.prod() if y.grad is None else total.sum(),
}


@pytest.mark.parametrize("function", [one, two, same_twice], ids=["one", "two", "same twice"])
@pytest.mark.parametrize("way", list(COMBINED))
def test_gradient_of_a_result(function, way):
    torch.testing.assert_close(rounds(monograph.compile(function), COMBINED[way]), rounds(function, COMBINED[way]))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.seen = nn.Linear(3, 4), nn.Linear(4, 2), None

    def forward(self, x):
        self.seen = self.a(x)
        self.seen.retain_grad()
        return self.b(self.seen.relu())


def test_attribute_and_hook():
    def played(wrap):
        torch.manual_seed(0)
        model, held = Model(), []
        fast = wrap(model)
        fast(torch.ones(1, 3)).sum().backward()
        first = model.seen.grad
        model.b.register_forward_hook(lambda module, args, out: held.append(out) or out.retain_grad())
        fast(torch.ones(1, 3)).square().sum().backward()
        return first, model.seen.grad, held[0].grad

    torch.testing.assert_close(played(monograph.compile), played(lambda model: model))


def test_create_graph_is_refused():
    x = torch.arange(3.0, requires_grad=True)
    with pytest.raises(monograph.errors.UnsupportedError):
        torch.autograd.grad(monograph.compile(one)(x)[1], x, create_graph=True)
