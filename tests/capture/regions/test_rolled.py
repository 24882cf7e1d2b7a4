"""Long loops whose trips Python knows: one loop of the program, and as in eager whatever they do."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils import _pytree as pytree

import monograph
from tests.capture.regions import functions_rolled as functions


def call(function, grad):
    torch.manual_seed(5)
    x, w = torch.randn(100, 4), (torch.randn(4, 4) * 0.4).requires_grad_(grad)
    results = function(x, w)
    leaves = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    needs = [leaf.sum() for leaf in leaves if leaf.requires_grad]
    gradients = torch.autograd.grad(sum(needs), w) if needs else ()
    return results, x, gradients, torch.rand(2)


def check(function, fast, grad):
    expected, found = call(function, grad), call(fast, grad)
    assert pytree.tree_structure(found) == pytree.tree_structure(expected)
    for a, b in zip(pytree.tree_leaves(expected), pytree.tree_leaves(found), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
            assert (b.stride(), b.requires_grad) == (a.stride(), a.requires_grad)
        else:
            assert type(a) is type(b) and (a == b or abs(a - b) < 1e-9)


def size(function, grad=False):
    """How many nodes the program has, those inside of its loops not counted."""
    x, w = torch.randn(100, 4), torch.randn(4, 4).requires_grad_(grad)
    return len(monograph.capture(function, x, w).graph.nodes)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", [function.__name__ for function in functions.ROLLED])
def test_one_loop(name, grad):
    function = getattr(functions, name)
    assert size(function, grad) < 60
    check(function, monograph.compile(function, backend="reference"), grad)


@pytest.mark.parametrize("name", [function.__name__ for function in functions.WITHOUT_GRADIENTS])
def test_one_loop_without_gradients(name):
    function = getattr(functions, name)
    assert size(function) < 60
    check(function, monograph.compile(function, backend="reference"), grad=False)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", [function.__name__ for function in functions.LISTS])
def test_lists(name, grad):
    function = getattr(functions, name)
    if not grad:
        assert size(function) < 60
    check(function, monograph.compile(function, backend="reference"), grad)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", [function.__name__ for function in functions.WRITTEN_OUT])
def test_written_out(name, grad, capsys):
    function = getattr(functions, name)
    check(function, monograph.compile(function, backend="reference"), grad)


@pytest.mark.parametrize("name", ["over_rows", "stacked", "left_early", "neighbours_written"])
def test_native(name):
    function = getattr(functions, name)
    check(function, monograph.compile(function), grad=False)


def test_modules_of_a_long_list_are_called_one_by_one():
    class Deep(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(70)])
            self.calls = 0

        def forward(self, x):
            for i in range(len(self.layers)):
                x = self.layers[i](x).sin() + x
                if x.sum() > 1e6:
                    x = x * 0.5
            self.calls += 1
            return x

    model, x = Deep(), torch.randn(2, 4)
    fast = monograph.compile(model, backend="reference")
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
    assert model.calls == 2


def test_the_size_of_the_program_is_the_same_for_more_trips():
    def steps(x, n):
        for i in range(n):
            x = torch.tanh(x * 0.9) + i
        return x

    sizes = {sum(1 for _ in monograph.capture(steps, torch.randn(3), n).graph.walk()) for n in (300, 3000)}
    assert len(sizes) == 1 and sizes.pop() < 30


def test_rows_are_views_that_autograd_lets_nobody_write():
    def doubled(x):
        y = x * 1
        for row in y:
            row.mul_(2).sin_().add_(1)
        return y

    for x in (torch.randn(100, 3, requires_grad=True), torch.randn(100, 3)):
        fast = monograph.compile(doubled, backend="reference")
        if not x.requires_grad:
            torch.testing.assert_close(fast(x), doubled(x))
            continue
        for function in (doubled, fast):
            with pytest.raises(RuntimeError, match="returns multiple views"):
                function(x)


def test_a_backward_that_eager_refuses_is_refused():
    def written_after_it_is_kept(x, w):
        y = x.clone()
        for i in range(99):
            y[i + 1] = y[i].sin() @ w
        return y

    def as_often_as_a_value_says(x, w):
        y = x.clone()
        for i in range(int(x.shape[0] * 0.5 + w.sum() * 0)):
            y[i + 1] = y[i].sin() @ w
        return y

    x, w = torch.randn(100, 4), torch.randn(4, 4, requires_grad=True)
    for function in (written_after_it_is_kept, as_often_as_a_value_says):
        for run in (function, monograph.compile(function, backend="reference")):
            with warnings.catch_warnings(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
                warnings.simplefilter("ignore")
                run(x, w).sum().backward()
