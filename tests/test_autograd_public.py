"""What surrounds autograd in a compiled function: custom functions, hooks, leaves, checkpointing."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import monograph

FACTOR = 2.0


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * FACTOR

    @staticmethod
    def backward(ctx, tangent):
        return tangent * FACTOR * 10


class ScaleLate(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * FACTOR

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = FACTOR + 1

    @staticmethod
    def backward(ctx, tangent):
        return tangent * ctx.factor


@pytest.mark.parametrize("function", [Scale, ScaleLate])
def test_globals_of_a_custom_function_are_watched(function, monkeypatch):
    def apply(x):
        return function.apply(x)

    compiled = monograph.compile(apply, backend="reference")
    for factor in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        expected, actual = (torch.ones(3, requires_grad=True) for _ in range(2))
        apply(expected).sum().backward()
        result = compiled(actual)
        result.sum().backward()
        torch.testing.assert_close(result, apply(expected))
        torch.testing.assert_close(actual.grad, expected.grad)


def test_a_replaced_backward_of_a_custom_function_is_seen(monkeypatch):
    compiled = monograph.compile(lambda x: Scale.apply(x), backend="reference")
    compiled(torch.ones(3, requires_grad=True))
    monkeypatch.setattr(Scale, "backward", staticmethod(lambda ctx, tangent: tangent * 7))
    x = torch.ones(3, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [7.0] * 3


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_a_backward_hook_may_keep_gradients(register):
    kept = []
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    getattr(model[0], register)(lambda *given: kept.append(given[-1][0]))
    for run in (model, monograph.compile(model, backend="reference")):
        run(torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()).sum().backward()
    assert len(kept) == 2
    torch.testing.assert_close(kept[0], kept[1])


def test_a_tensor_hook_may_keep_gradients():
    kept = []

    def double(x):
        y = x * 2
        y.register_hook(lambda gradient: kept.append(gradient))
        return y.sin()

    for run in (double, monograph.compile(double, backend="reference")):
        run(torch.ones(3, requires_grad=True)).sum().backward()
    assert len(kept) == 2
    torch.testing.assert_close(kept[0], kept[1])


def test_a_leaf_of_the_program_may_serve_a_gradient_inside():
    def slope(x):
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(leaf.pow(3).sum(), leaf)[0]

    assert monograph.compile(slope, backend="reference")(torch.full((2,), 2.0)).tolist() == [12.0, 12.0]


def test_a_compiled_model_under_checkpoint_compiles_in_its_first_forward():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = monograph.compile(model, backend="reference")
    grads = []
    for run in (model, compiled):
        torch.manual_seed(1)
        x = torch.ones(2, 4, requires_grad=True)
        checkpoint(run, x, use_reentrant=False).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
