"""loss.backward() through a compiled function or module gives eager's gradients."""

import copy

import pytest
import torch
from torch import nn

import monograph

BACKENDS = ["reference", "llvm"]


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)
        self.norm = nn.LayerNorm(8)
        self.frozen = nn.Parameter(torch.ones(8), requires_grad=False)

    def forward(self, x):
        hidden = self.norm(nn.functional.gelu(self.first(x))) * self.frozen
        return self.last(hidden), hidden.detach()


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_a_module(backend):
    torch.manual_seed(0)
    net, x = Net(), torch.randn(5, 4, requires_grad=True)
    twin, y = copy.deepcopy(net), x.detach().clone().requires_grad_()
    fast = monograph.compile(net, backend=backend)
    for _ in range(2):                       # gradients accumulate
        got, want = fast(x), twin(y)
        assert got[0].requires_grad and not got[1].requires_grad
        torch.testing.assert_close(got[0], want[0])
        got[0].pow(2).sum().backward()
        want[0].pow(2).sum().backward()
    for mine, theirs in zip([*net.parameters(), x], [*twin.parameters(), y]):
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert net.frozen.grad is None and not fast.recompiles


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_forwards_then_two_backwards(backend):
    fast = monograph.compile(lambda a, b: (a * b).sin(), backend=backend)
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    first, second = fast(x, y), fast(y, x)
    second.sum().backward()
    first.sum().backward()
    torch.testing.assert_close(x.grad, 2 * y.detach() * (x * y).detach().cos())


@pytest.mark.parametrize("backend", BACKENDS)
def test_optimizer_steps_are_seen(backend):
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)), torch.randn(8, 4)
    twin = copy.deepcopy(net)
    fast = monograph.compile(net, backend=backend)
    mine, theirs = (torch.optim.AdamW(m.parameters(), lr=0.05) for m in (net, twin))
    for _ in range(4):
        for optimizer, module in ((mine, fast), (theirs, twin)):
            optimizer.zero_grad()
            module(x).pow(2).mean().backward()
            optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(fast(x), twin(x), rtol=1e-4, atol=1e-5)


def test_retain_graph_and_second_backward():
    fast = monograph.compile(lambda x: x.exp(), backend="reference")
    x = leaf(1.0)
    y = fast(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_no_grad_calls_record_nothing():
    fast = monograph.compile(lambda x: x * 2, backend="reference")
    x = leaf(1.0)
    with torch.no_grad():
        assert not fast(x).requires_grad
    with torch.inference_mode():
        assert fast(x).is_inference()
    assert fast(x).requires_grad
    assert not fast(x.detach()).requires_grad


def test_unused_result_has_zero_gradient():
    fast = monograph.compile(lambda x, y: (x * y, x + y), backend="reference")
    x, y = leaf(2.0), leaf(3.0)
    fast(x, y)[0].sum().backward()
    assert (x.grad.item(), y.grad.item()) == (3, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unused_results_that_lie_otherwise_have_zero_gradient(backend):
    x = torch.ones(3, 2, requires_grad=True)
    _, _, total = monograph.compile(lambda x: (x.mT, (x * 3).mT, (x * 2).sum()), backend=backend)(x)
    total.backward()
    assert torch.equal(x.grad, torch.full((3, 2), 2.0))


def test_changed_input_is_noticed_by_backward():
    fast = monograph.compile(lambda x, y: x * y, backend="reference")
    x, y = leaf(2.0), torch.tensor([3.0])
    z = fast(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivative(backend):
    fast = monograph.compile(lambda x: x ** 5, backend=backend)
    for at in (1.0, 2.0):
        x = leaf(at)
        gradient, = torch.autograd.grad(fast(x).sum(), x, create_graph=True)
        second, = torch.autograd.grad(gradient.sum(), x)
        assert (gradient.item(), second.item()) == pytest.approx((5 * at ** 4, 20 * at ** 3))


def test_gradient_penalty_trains():
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(4, 3, requires_grad=True)
    twin = copy.deepcopy(net)
    for module in (monograph.compile(net, backend="reference"), twin):
        gradient, = torch.autograd.grad(module(x).sum(), x, create_graph=True)
        (gradient.norm(dim=1) - 1).pow(2).mean().backward()
    for mine, theirs in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_second_derivative_of_a_random_draw_is_refused():
    fast = monograph.compile(lambda x: nn.functional.dropout(x * x, 0.5), backend="reference")
    x = torch.ones(4, requires_grad=True)
    with pytest.raises(monograph.UnsupportedError, match="second derivative"):
        torch.autograd.grad(fast(x).sum(), x, create_graph=True)


def test_enable_grad_inside_no_grad():
    def f(x):
        with torch.enable_grad():
            y = x * 3
        return y, y * 2

    fast = monograph.compile(f, backend="reference")
    x = leaf(1.0)
    with torch.no_grad():
        y, z = fast(x)
        assert y.requires_grad and not z.requires_grad and not torch.is_grad_enabled()
    y.sum().backward()
    assert x.grad.item() == 3


def test_attention_rows_without_a_key_have_gradient_zero():
    q, k, v = (torch.randn(1, 2, 6, 8, requires_grad=True) for _ in range(3))
    mask = torch.rand(6, 6) > 0.4
    mask[2] = False

    def attend(q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)

    want = torch.autograd.grad(attend(q, k, v).sin().sum(), (q, k, v))
    got = torch.autograd.grad(monograph.compile(attend)(q, k, v).sin().sum(), (q, k, v))
    torch.testing.assert_close(got, want)
