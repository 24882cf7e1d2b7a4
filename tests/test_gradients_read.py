"""`.grad` of the caller's tensors inside a compiled function: read as it is at each call; writes are refused."""

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import UnsupportedError


def both(scenario):
    return [scenario(wrap) for wrap in (lambda f: f, lambda f: monograph.compile(f, backend="reference"))]


def linear():
    torch.manual_seed(0)
    return nn.Linear(2, 2)


def test_of_a_parameter():
    def scenario(wrap):
        layer, found = linear(), []
        run = wrap(lambda x: layer(x) if layer.weight.grad is None else layer(x) + layer.weight.grad.sum())
        for number in range(4):
            if number == 3:
                layer.zero_grad()
            y = run(torch.ones(1, 2))
            found.append(y.tolist())
            y.sum().backward()
        return found

    eager, ours = both(scenario)
    assert ours == eager


def test_that_there_is_none():
    def scenario(wrap):
        layer, found = linear(), []
        run = wrap(lambda x: layer(x) * (1 if all(p.grad is None for p in layer.parameters()) else 2))
        for _ in range(3):
            y = run(torch.ones(1, 2))
            found.append(y.tolist())
            y.sum().backward()
        layer.zero_grad()
        return [*found, run(torch.ones(1, 2)).tolist()]

    eager, ours = both(scenario)
    assert ours == eager


def test_of_an_argument():
    def scenario(wrap):
        run, found = wrap(lambda x: x * 2 if x.grad is None else x + x.grad), []
        x = torch.ones(2, requires_grad=True)
        for _ in range(3):
            y = run(x)
            found.append(y.tolist())
            y.sum().backward()
        fresh = torch.ones(2, requires_grad=True)
        return [*found, run(fresh).tolist(), run(x).tolist()]

    eager, ours = both(scenario)
    assert ours == eager


@pytest.mark.parametrize("keep", [True, False])
def test_gradient_descent_by_hand(keep):
    def scenario(wrap):
        weight, found = torch.ones(2, requires_grad=True), []

        def step():
            with torch.no_grad():
                weight.sub_(weight.grad * 0.1)
                weight.grad.zero_()

        run = wrap(step)
        for _ in range(3):
            if not keep:
                weight.grad = None
            (weight * weight).sum().backward()
            run()
            found.append((weight.tolist(), weight.grad.tolist()))
        return found

    eager, ours = both(scenario)
    assert ours == eager


def sets(layer, x):
    layer.weight.grad = torch.ones(2, 2)


def sets_of_argument(layer, x):
    x.grad = torch.ones(2)


def deletes(layer, x):
    del layer.weight.grad


def sets_data(layer, x):
    layer.weight.data = layer.weight.data * 2


@pytest.mark.parametrize("write", [sets, sets_of_argument, deletes, sets_data])
def test_writes_are_refused_and_leave_no_mark(write):
    layer = linear()
    layer(torch.ones(2)).sum().backward()
    gradient, content, x = layer.weight.grad, layer.weight.detach().clone(), torch.ones(2, requires_grad=True)

    def program(x):
        write(layer, x)
        return layer(x)

    with pytest.raises(UnsupportedError, match="sets the gradient|`.data =`"):
        monograph.compile(program, backend="reference")(x)
    assert layer.weight.grad is gradient and torch.equal(layer.weight, content) and x.grad is None


def test_tensors_of_the_program_may_have_gradients():
    def inner(x):
        p = x.detach().clone().requires_grad_()
        (p * p).sum().backward()
        before = p.grad
        p.grad = None
        return before * x

    eager, ours = (run(torch.full((2,), 3.0)) for run in (inner, monograph.compile(inner, backend="reference")))
    assert ours.tolist() == eager.tolist()


def test_a_backward_that_leaves_gradients_is_refused_at_its_line():
    weight = nn.Parameter(torch.ones(2))

    def step(x):
        loss = (x * weight).sum()
        loss.backward()
        return loss.detach()

    def of_argument(x):
        loss = (x * 2).sum()
        loss.backward()
        return loss

    for function, what in ((step, "parameter weight"), (of_argument, "argument")):
        with pytest.raises(UnsupportedError, match=f"`loss.backward\\(\\)` writes the gradient of .*{what}") as caught:
            monograph.compile(function)(torch.ones(2, requires_grad=function is of_argument))
        assert caught.value.loc.line == function.__code__.co_firstlineno + 2 and "optimiser" in caught.value.hint
        assert weight.grad is None
