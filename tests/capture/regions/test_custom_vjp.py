"""The user's autograd.Function in branches and loops: forward, backward, and what must take the path of the call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import monograph
from monograph.errors import UnsupportedError

WEIGHT = torch.tensor([0.5, -1.5, 2.0, 1.0], requires_grad=True)
STATE = torch.zeros(1)


class Round(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        gradient = gradient.clone()
        gradient[x.abs() > 2] = 0
        return gradient.mul_(2)


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg() * ctx.factor, None


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, gradient):
        if gradient.norm() > 1:
            gradient = gradient / gradient.norm()
        return gradient * ctx.saved_tensors[0]


class Largest(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        values, places = (x * weight).max(-1)
        ctx.mark_non_differentiable(places)
        return values, places, x + weight

    @staticmethod
    def backward(ctx, values, places, sums):
        x, weight = ctx.saved_tensors
        by_x = values[:, None] * weight + 3 * sums if ctx.needs_input_grad[0] else None
        return by_x, values[:, None] * x - sums          # the second is summed to the size of the weight


class Drop(Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 2


class Nothing(Function):
    @staticmethod
    def forward(ctx, x, zeros):
        ctx.zeros = zeros
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient) if ctx.zeros else None, None


class Unwatched(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.x


class Writes(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        STATE.add_(1)
        return gradient


def in_a_branch(x, c):
    if c > 0:
        return Round.apply(x * 2) * WEIGHT
    return x * 3


def in_loops(x, c):
    for _ in range(int(c.abs())):
        if x.sum() > 0:
            x = Round.apply(x * WEIGHT) + Exp.apply(x * 0.1)
        else:
            x = Drop.apply(Reverse.apply(x + 1, 2.0)) * WEIGHT
    return x


def several_results(x, c):
    if c > 0:
        values, places, sums = Largest.apply(x, WEIGHT)
        return values * 2 + places + sums.sum()
    return Largest.apply(x, WEIGHT)[0]


def reversed_in_a_branch(x, c):
    h = x * 2
    if c > 0:
        h = Reverse.apply(h, 0.5)
    return h * WEIGHT


def without_gradients(x, c):
    if c > 0:
        return Nothing.apply(WEIGHT * 1, False) + x
    return x * 2


def zeros_for_gradients(x, c):
    if c > 0:
        return Nothing.apply(WEIGHT * 1, True) + x
    return x * 2


def returned_view(x, c):
    if c > 0:
        return Reverse.apply(x, 0.5)
    return x * 1


def written_afterwards(x, c):
    h = x * 2
    y = h
    if c > 0:
        y = Unwatched.apply(h)
    with torch.no_grad():
        h.add_(1)
    return y * WEIGHT


def seen(function: Any, x: torch.Tensor, c: float) -> Any:
    x, WEIGHT.grad = x.clone().requires_grad_(), None
    torch.manual_seed(1)
    result = function(x, torch.tensor(c))
    result.sum().backward()
    return result.detach(), result.data_ptr() == x.data_ptr(), x.grad, WEIGHT.grad


def check(function: Any, graphs: int) -> None:
    fast = monograph.compile(function, backend="reference")
    for number, c in enumerate((2.0, -3.0, 1.0)):
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(number))
        torch.testing.assert_close(seen(fast, x, c), seen(function, x, c))
    assert len(fast.recompiles) == graphs - 1


@pytest.mark.parametrize("function", [in_a_branch, in_loops, several_results, reversed_in_a_branch, without_gradients,
                                      zeros_for_gradients])
def test_the_derivative_in_a_region_is_the_users(function):
    check(function, 1)


@pytest.mark.parametrize("function", [returned_view, written_afterwards])
def test_what_a_region_cannot_stand_for_takes_the_path_of_the_call(function):
    check(function, 2)


def test_a_backward_that_writes_to_a_tensor_is_refused():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(UnsupportedError, match="a backward writes to a tensor"):
        monograph.compile(lambda x: Writes.apply(x), fullgraph=True)(x)
