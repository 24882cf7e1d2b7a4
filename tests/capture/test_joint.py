"""Forward and backward in one graph give eager's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from monograph import errors
from monograph.capture import trace
from tests.capture.harness import check_gradients
from tests.capture.test_views import ramp

torch.set_num_threads(1)

NORM = torch.nn.BatchNorm1d(3)
LINEAR = torch.nn.Linear(3, 2)
CASES: list[Callable[..., Any]] = []


def case(fn: Any) -> Any:
    CASES.append(fn)
    return fn


def argument() -> torch.Tensor:
    return (ramp(4, 3) * 0.3).requires_grad_()


@case
def linear_twice(x):
    return LINEAR(x) * LINEAR(x + 1)


@case
def in_place_on_a_result(x):
    y = x * 2
    y.mul_(x)
    return y


@case
def in_place_on_views(x):
    y = x * 2
    y[0].mul_(3)
    y[:, 1].add_(y[:, 0])
    return y ** 2


@case
def copied_into_a_buffer(x):
    b = torch.zeros(6, 3)
    b[1:5] = x
    b[2].mul_(x[0])
    return b ** 2


@case
def detached_alias_written(x):
    y = x * 2
    y.detach().add_(1)
    return y * 3, y.detach() * 1


@case
def data_written(x):
    y = x * 2
    y.data.mul_(5)
    return y * y.detach()


@case
def written_without_grad(x):
    y = x * 2
    with torch.no_grad():
        y.add_(1)
    return y * 3, y.detach() * 1


@case
def relu_in_place(x):
    y = x - 0.5
    torch.relu_(y)
    return y * y


@case
def indexed_writes(x):
    y = x * 1
    y[torch.tensor([0, 0, 1])] = x[1:] * 2
    y.index_put_((torch.tensor([2, 2]),), x[:2], accumulate=True)
    return y ** 2


@case
def raw_strides_read(x):
    return (x * 1).as_strided((3, 2), (2, 3), 1) ** 2


@case
def gradient_of_a_gradient(x):
    y = x * 1
    y[0].mul_(x[1])
    g, = torch.autograd.grad((y ** 3).sum(), x, create_graph=True)
    return g ** 2


@case
def batch_norm(x):
    return NORM(x) ** 3


@case
def optimiser_inside(x):
    p = x.detach().clone().requires_grad_()
    step = torch.optim.SGD([p], lr=0.1, momentum=0.9)
    for _ in range(2):
        step.zero_grad()
        (p ** 2).sum().backward()
        step.step()
    return p.detach() * x


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t ** 3

    @staticmethod
    def backward(ctx, g):
        t, = ctx.saved_tensors
        return g * t * 7          # not the true derivative: it must be this one that is used


class TripleInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        t.mul_(3)
        ctx.mark_dirty(t)
        return t

    @staticmethod
    def backward(ctx, g):
        return g * 3


@case
def own_derivative(x):
    return Cube.apply(x * 2)


@case
def own_function_in_place(x):
    y = x * 2
    z = TripleInPlace.apply(y)
    return z * y


@case
def hook_on_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y * y


@case
def results_share_memory(x):
    y = x * 2
    return y, y[0], y.t(), (y.sum(), y.detach())


@case
def views_of_the_argument(x):
    return x[0], x.t()


@case
def recomputed(x):
    return checkpoint(lambda t: F.dropout(t * 2, 0.5).exp(), x, use_reentrant=False)


@case
def attention(x):
    q = x.view(1, 1, 4, 3)
    return F.scaled_dot_product_attention(q, q * 2, q), F.dropout(x, 0.3)


@pytest.mark.parametrize("fn", CASES, ids=[fn.__name__ for fn in CASES])
def test_gradients(fn: Any) -> None:
    wrt = [*NORM.parameters(), *LINEAR.parameters()]
    captured = check_gradients(fn, lambda: (argument(),), wrt=wrt, state=list(NORM.buffers()))
    assert all(node.loc is not None for node in captured.graph.nodes)
    assert all(p.grad is None for p in wrt)


def test_argument_with_a_history() -> None:
    def fn(x):
        return x * LINEAR.weight[0, 0]

    captured = check_gradients(fn, lambda: (argument() * 2,), wrt=list(LINEAR.parameters()))
    assert captured.joint is not None and len(captured.joint.gradients) == 2


def test_parameter_hooks_are_left_to_the_caller() -> None:
    layer = torch.nn.Linear(3, 2)
    called = []
    layer.weight.register_hook(lambda g: called.append(1))
    captured = trace(layer, (ramp(4, 3),), {})
    assert captured.joint is not None and not called
    layer(ramp(4, 3)).sum().backward()
    assert called == [1]


def test_nothing_to_differentiate() -> None:
    assert trace(lambda x: x * 2, (ramp(4, 3),), {}).joint is None
    with torch.no_grad():
        assert trace(LINEAR, (ramp(4, 3),), {}).joint is None


def leaf_written(x):
    x.add_(1)
    return x


def saved_value_written(x):
    y = x.exp()
    y.add_(1)
    return torch.autograd.grad(y.sum(), x)


def part_of_unbind_written(x):
    y = x * 1
    first, *_ = y.unbind(0)
    first.add_(1)
    return y


@pytest.mark.parametrize("fn", [leaf_written, saved_value_written, part_of_unbind_written])
def test_errors_are_those_of_eager(fn: Any) -> None:
    with pytest.raises(RuntimeError) as eager:
        fn(argument())
    with pytest.raises(RuntimeError) as ours:
        trace(fn, (argument(),), {})
    assert str(ours.value) == str(eager.value)


def test_new_history_of_a_buffer_is_refused() -> None:
    total = torch.zeros(4, 2)

    def fn(x):
        total.add_(LINEAR(x))
        return total * 1

    with pytest.raises(errors.UnsupportedError, match="in-place write under grad"):
        trace(fn, (ramp(4, 3),), {})
    assert total.grad_fn is None and not total.requires_grad and total._version == 0
