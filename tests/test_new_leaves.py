"""Results that start to require grad inside the program: factories, parameters, `detach().requires_grad_()`."""

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_flatten

import monograph
from monograph.errors import UnsupportedError


def look(*tensors):
    return [(t.detach().clone(), t.requires_grad, t.is_leaf, type(t).__name__) for t in tensors]


def same(scenario, *, backend="reference"):
    ours, ours_spec = tree_flatten(scenario(lambda f: monograph.compile(f, backend=backend)))
    eager, spec = tree_flatten(scenario(lambda f: f))
    assert ours_spec == spec
    for mine, theirs in zip(ours, eager):
        if isinstance(theirs, torch.Tensor):
            torch.testing.assert_close(mine, theirs)
        else:
            assert mine == theirs


def ones(*shape, grad=False):
    return torch.ones(*shape, requires_grad=grad)


FORMS = {
    "factory": lambda x: torch.zeros(3, requires_grad=True),
    "parameter": lambda x: nn.Parameter(x * 2),
    "frozen parameter": lambda x: nn.Parameter(x * 2, requires_grad=False),
    "of a new tensor": lambda x: (x.detach() * 2).requires_grad_(),
    "of the argument": lambda x: x.detach().requires_grad_(),
    "of a part of the argument": lambda x: x.detach()[1:].requires_grad_(),
    "turned": lambda x: x.detach().exp().reshape(3, 1).t().requires_grad_(),
}


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_new_leaf_alone(form, grad, mode):
    def scenario(wrap):
        run, x = wrap(FORMS[form]), ones(3, grad=grad)
        with mode():
            found = [run(x) for _ in range(2)]
        if mode is torch.enable_grad and found[1].requires_grad:
            (found[1] * 2).sum().backward()
        written = look(*found, x)
        if mode is torch.enable_grad:
            with torch.no_grad():
                found[1].add_(1)                 # whose memory is it?
        grads = [t.grad for t in (found[1], x) if not t.is_inference() and t.grad is not None]
        return written, look(*found, x), grads

    same(scenario)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
def test_results_that_depend_on_the_leaf(grad, backend):
    def step(x):
        p = nn.Parameter(x.detach() * 2)
        return p, (p * x).sin(), p, p[0], x * 3

    def scenario(wrap):
        run, found = wrap(step), []
        for number in range(2):
            x = torch.full((2, 3), 1.0 + number, requires_grad=grad)
            p, y, again, part, _ = run(x)
            (y.sum() + part.exp().sum()).backward()
            found.append((look(p, y, part), p is again, p.grad, [] if x.grad is None else [x.grad]))
            with torch.no_grad():
                p.add_(1)
            found.append(look(part))
        return found

    same(scenario, backend=backend)


def test_what_does_not_use_the_leaf_gives_it_no_gradient():
    def scenario(wrap):
        x = ones(2, grad=True)
        p, _, other = wrap(lambda x: ((p := nn.Parameter(torch.ones(2))), p * x, x * 3))(x)
        other.sum().backward()
        return p.grad is None, x.grad

    same(scenario)


def test_a_leaf_that_nobody_sees():
    def scenario(wrap):
        y = wrap(lambda x: (torch.ones(2, requires_grad=True) * x).sum())(ones(2))
        y.backward()
        return look(y)

    same(scenario)


def test_leaves_that_python_keeps():
    class Learns(nn.Module):
        def __init__(self):
            super().__init__()
            self.fast = torch.ones(2)

        def forward(self, x):
            loss = (self.fast * x).pow(2).sum()
            self.fast = (self.fast * 2).detach().requires_grad_()
            return loss

    def scenario(wrap):
        model, found = Learns(), []
        run = wrap(model)
        for _ in range(3):
            fast, loss = model.fast, run(ones(2))
            if loss.requires_grad:
                loss.backward()
                found.append(fast.grad)
            found.append(look(model.fast))
        return found

    same(scenario)


def test_an_optimiser_trains_a_leaf_of_the_program():
    def scenario(wrap):
        p, loss = wrap(lambda x: ((p := nn.Parameter(torch.ones(2))), (p * x).pow(2).sum()))(ones(2))
        optimiser = torch.optim.Adam([p], lr=0.1)
        loss.backward()
        optimiser.step()
        return look(p)

    same(scenario)


@pytest.mark.parametrize("wrap", [lambda f: f, monograph.compile])
def test_a_leaf_written_before_the_backward_is_noticed(wrap):
    p, loss = wrap(lambda x: ((p := nn.Parameter(x * 2)), (p * p).sum()))(ones(2))
    with torch.no_grad():
        p.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_refusals():
    p, loss = monograph.compile(lambda x: ((p := nn.Parameter(x * 2)), (p ** 3).sum()), backend="reference")(ones(2))
    with pytest.raises(UnsupportedError, match="second derivative"):
        torch.autograd.grad(loss, p, create_graph=True)


WEIGHT = nn.Parameter(torch.arange(6.0).reshape(2, 3))
VIEWS = {
    "detached weight": lambda x: WEIGHT.detach(),
    "data of a weight": lambda x: WEIGHT.data[0],
    "detached argument": lambda x: x.detach().t(),
    "several": lambda x: (x[0], x.detach()[0], WEIGHT.t(), WEIGHT.detach().t(), x * 2),
}


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_requires_grad_are_as_detached_as_in_eager(view, grad, mode):
    def scenario(wrap):
        run, x = wrap(VIEWS[view]), ones(2, 3, grad=grad)
        with mode():
            results = run(x)
        results = results if isinstance(results, tuple) else (results,)
        seen = look(*results)
        for result in results:
            if not result.requires_grad and mode is torch.enable_grad:
                result.add_(1)
        seen += look(x, WEIGHT)
        WEIGHT.data = torch.arange(6.0).reshape(2, 3)
        return seen

    same(scenario)
