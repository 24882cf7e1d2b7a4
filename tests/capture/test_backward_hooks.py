"""Hooks of tensors and modules that run in the backward, compared with eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import UnsupportedError

BACKENDS = pytest.mark.parametrize("backend", ["reference", "llvm"])
Log = list[Any]


def gradient(function: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    function(leaf).backward()
    assert leaf.grad is not None
    return leaf.grad


def hooked(make: Callable[[Log], Any], log: Log) -> Callable[[torch.Tensor], torch.Tensor]:
    hook = make(log)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(hook)
        return (y * y).sum()

    return function


class Keeper:
    def __init__(self, log: Log) -> None:
        self.log = log

    def __call__(self, grad: torch.Tensor) -> None:
        self.log.append(grad.sum().item())

    def scaled(self, grad: torch.Tensor) -> torch.Tensor:
        self.log.append(len(self.log))
        return grad * len(self.log)


HOOKS: dict[str, Callable[[Log], Any]] = {
    "computes": lambda log: lambda grad: grad * 3,
    "number": lambda log: lambda grad: log.append(grad.sum().item()),
    "replaces": lambda log: lambda grad: (log.append(grad.norm().item()), grad.cos())[1],
    "branches": lambda log: lambda grad: grad * 2 if grad.sum() > 0 else grad * 3,
    "branches and tells": lambda log: lambda grad: log.append(1) if grad.sum() > 0 else log.append(2),
    "object": lambda log: Keeper(log),
    "method": lambda log: Keeper(log).scaled,
}


@BACKENDS
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_of_a_tensor_runs_in_every_backward(name: str, backend: str) -> None:
    expected: Log = []
    log: Log = []
    eager = hooked(HOOKS[name], expected)
    fast = monograph.compile(hooked(HOOKS[name], log), backend=backend)
    for x in (torch.randn(3, 4), torch.randn(3, 4), -torch.ones(3, 4)):
        torch.testing.assert_close(gradient(fast, x), gradient(eager, x))
        assert log == pytest.approx(expected)


def hang(model: nn.Sequential, log: Log) -> None:
    model[0].register_full_backward_hook(lambda module, given, grads: log.append((given[0] is None, grads[0].sum())))
    model[2].register_full_backward_hook(lambda module, given, grads: (log.append(given[0].sum()), (given[0] * 2,))[1])
    model[2].register_full_backward_pre_hook(lambda module, grads: (log.append(grads[0].sum()), (grads[0] * 5,))[1])


@BACKENDS
def test_hooks_of_modules_run_in_every_backward(backend: str) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    twin = copy.deepcopy(model)
    expected: Log = []
    log: Log = []
    hang(model, expected)
    hang(twin, log)
    fast = monograph.compile(twin, backend=backend)
    for _ in range(3):
        x = torch.randn(4, 8)
        model(x).pow(2).sum().backward()
        fast(x).pow(2).sum().backward()
    torch.testing.assert_close(log, expected)
    torch.testing.assert_close([p.grad for p in twin.parameters()], [p.grad for p in model.parameters()])


def test_a_hook_that_is_added_or_removed_later_counts() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    fast = monograph.compile(model, backend="reference")
    log: Log = []
    x = torch.randn(2, 4)
    fast(x).sum().backward()
    handle = model[0].register_full_backward_hook(lambda module, given, grads: log.append(1))
    fast(x).sum().backward()
    handle.remove()
    fast(x).sum().backward()
    assert log == [1]


class Scale:
    factor = 2.0


def test_what_a_hook_reads_is_guarded() -> None:
    scale = Scale()

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda grad: grad * scale.factor)
        return (y * y).sum()

    fast = monograph.compile(function, backend="reference")
    x = torch.randn(3)
    for factor in (2.0, 5.0, -1.0):
        scale.factor = factor
        torch.testing.assert_close(gradient(fast, x), gradient(function, x))


class Doubled(torch.autograd.Function):
    scale = Scale()

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * Doubled.scale.factor


def test_what_the_backward_of_a_function_reads_is_guarded() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return Doubled.apply(x).sum()

    fast = monograph.compile(function, backend="reference")
    x = torch.randn(3)
    try:
        for factor in (2.0, 5.0):
            Doubled.scale.factor = factor
            torch.testing.assert_close(gradient(fast, x), gradient(function, x))
    finally:
        Doubled.scale.factor = 2.0


def test_a_hook_that_prints_does_so_in_every_backward(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda grad: print("gradient", tuple(grad.shape)))
        return (y * y).sum()

    fast = monograph.compile(function)
    for _ in range(2):
        gradient(fast, torch.randn(3))
    assert capsys.readouterr().out == "gradient (3,)\n" * 2


def test_a_hook_that_changes_the_size_fails_as_in_eager() -> None:
    log: Log = []

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda grad: (log.append(1), grad.sum())[1])
        return (y * y).sum()

    for run in (function, monograph.compile(function)):
        with pytest.raises(RuntimeError, match="has changed the size of value"):
            gradient(run, torch.randn(3))
    assert log == [1, 1]


def test_a_hook_that_writes_to_what_the_call_made_is_refused() -> None:
    def function(x: torch.Tensor) -> Any:
        seen: Log = []
        y = x * 2
        y.register_hook(lambda grad: seen.append(grad.sum()))
        return (y * y).sum(), seen

    with pytest.raises(UnsupportedError, match="a container that the call made"):
        monograph.compile(function)(torch.randn(3, requires_grad=True))


class Telling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        print("in the backward")
        return grads[0] * 2


def test_a_function_that_prints_in_the_backward_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="prints, warns or logs in the backward"):
        monograph.compile(lambda x: Telling.apply(x).sum())(torch.randn(3, requires_grad=True))
