"""Grad mode, inference mode, autocast and function transforms, around the program and inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from monograph.capture import trace
from tests.capture.harness import assert_same, check, check_gradients, execute
from tests.capture.test_views import ramp

torch.set_num_threads(1)

LINEAR = torch.nn.Linear(3, 3)
CONV = torch.nn.Conv1d(4, 4, 3, padding=1)
CASES: list[Callable[..., Any]] = []


def case(fn: Any) -> Any:
    CASES.append(fn)
    return fn


@case
def no_grad_inside(x):
    with torch.no_grad():
        y = LINEAR(x)
    return y * 2


@case
def inference_mode_inside(x):
    with torch.inference_mode():
        y = LINEAR(x) + 1
        y[0].zero_()
    return y.clone() * 2


@case
def autocast_inside(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = LINEAR(x)
        z = CONV(x[None])
        w = y @ x.t()
    return y, z, w + 1.0, F.softmax(w, -1)


@case
def autocast_off_inside(x):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.autocast("cpu", enabled=False):
        return LINEAR(x)


@case
def gradient_inside(x):
    with torch.enable_grad():
        t = x.detach().requires_grad_()
        y = (LINEAR(t) ** 2).sum()
        g, = torch.autograd.grad(y, t)
    return g, y.detach()


@case
def per_sample(x):
    return torch.func.vmap(lambda row: row * row.sum() + LINEAR.weight[0])(x.detach())


@case
def functional_gradient(x):
    return torch.func.grad(lambda t: (t ** 3).sum())(x.detach())


@case
def jacobian(x):
    return torch.func.jacrev(lambda t: t ** 2 * t.sum())(x.detach()[0])


@pytest.mark.parametrize("fn", CASES, ids=[fn.__name__ for fn in CASES])
@pytest.mark.parametrize("grad", [False, True])
def test_modes_inside(fn: Any, grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        captured = trace(fn, (ramp(4, 3),), {})
        expected = fn(ramp(4, 3))
    actual = execute(captured, (ramp(4, 3),))
    assert_same(expected, actual, exact=False)
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("fn", [no_grad_inside, autocast_off_inside, gradient_inside, LINEAR])
def test_autocast_outside(fn: Any) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        captured = trace(fn, (ramp(4, 3),), {})
        expected = fn(ramp(4, 3))
    assert_same(expected, execute(captured, (ramp(4, 3),)), exact=False)


def test_inference_mode_outside() -> None:
    def fn(x):
        x.add_(1)
        return LINEAR(x), x[0]

    with torch.inference_mode():
        check(fn, lambda: (ramp(4, 3),), exact=False)


def test_default_dtype_is_followed() -> None:
    def fn(x):
        return x * torch.ones(3), torch.arange(3) / 2, torch.tensor([1.5])

    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            check(fn, lambda: (ramp(4, 3),))
    finally:
        torch.set_default_dtype(torch.float32)


def test_gradients_of_autocast() -> None:
    def fn(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return LINEAR(x).float()

    check_gradients(fn, lambda: (ramp(4, 3).requires_grad_(),), wrt=list(LINEAR.parameters()))
