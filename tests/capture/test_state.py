"""A trace leaves Python and torch as it found them, whatever happens in it."""

from __future__ import annotations

import functools
import random
import sys
from typing import Any

import pytest
import torch

import monograph
from monograph import compat, errors
from monograph.capture import trace
from tests.capture.test_views import ramp


class Layer(torch.nn.Module):
    def __init__(self, action: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(ramp(3))
        self.register_buffer("total", torch.zeros(3))
        self.cache: dict[str, Any] = {}
        self.history: list[Any] = []
        self.action = action

    def forward(self, x: torch.Tensor) -> Any:
        self.action(self, x)
        return x * self.weight


def ambient() -> Any:
    return (torch.get_rng_state().tolist(), random.getstate(), torch.is_grad_enabled(),
            torch.is_autocast_enabled("cpu"), compat.function_mode_depth(), compat.dispatch_mode_depth())


def sets_attribute(layer: Layer, x: torch.Tensor) -> None:
    layer.last = x * 2


def sets_buffer(layer: Layer, x: torch.Tensor) -> None:
    layer.total = layer.total + x.sum(0)


def sets_entry(layer: Layer, x: torch.Tensor) -> None:
    layer.cache["x"] = x * 1


def appends(layer: Layer, x: torch.Tensor) -> None:
    layer.history.append(x * 1)


def draws_in_python(layer: Layer, x: torch.Tensor) -> None:
    random.random()


def calls_backward(layer: Layer, x: torch.Tensor) -> None:
    with torch.enable_grad():
        (layer.weight * x).sum().backward()


@pytest.mark.parametrize(("action", "name"), [
    (sets_attribute, "last"), (sets_buffer, "total"), (sets_entry, "cache"), (appends, "history"),
    (draws_in_python, "random"), (calls_backward, "gradient of"),
])
def test_marks_are_removed_and_named(action: Any, name: str) -> None:
    layer = Layer(action)
    attributes, total = set(vars(layer)), layer.total
    torch.rand(1)
    before = ambient()
    with pytest.raises(errors.UnsupportedError, match=name), torch.no_grad():
        trace(layer, (ramp(4, 3),), {})
    assert ambient() == before
    assert set(vars(layer)) == attributes and layer.total is total
    assert not layer.cache and not layer.history and layer.weight.grad is None


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Interrupted])
def test_exceptions_leave_nothing_behind(failure: type[BaseException]) -> None:
    def fails(layer: Layer, x: torch.Tensor) -> None:
        torch.rand(3)
        layer.total.add_(1)
        layer.last = x
        torch.set_grad_enabled(True)
        raise failure

    layer = Layer(fails)
    before = ambient()
    with torch.no_grad():
        inner = ambient()
        with pytest.raises(failure):
            trace(layer, (ramp(4, 3),), {})
        assert ambient() == inner
    assert ambient() == before
    assert not hasattr(layer, "last") and layer.total._version == 0 and not layer.total.any()


def test_caches_do_not_keep_fakes() -> None:
    @functools.lru_cache
    def table(size: int) -> torch.Tensor:
        return torch.arange(size) * 2

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x + table(3)

    with torch.no_grad():
        for _ in range(2):
            trace(fn, (ramp(4, 3),), {})
    assert not isinstance(table(3), compat.FakeTensor)
    assert torch.equal(fn(ramp(4, 3)), ramp(4, 3) + torch.tensor([0, 2, 4]))


def test_repeatable_writes_are_allowed() -> None:
    def fn(layer: Layer, x: torch.Tensor) -> None:
        layer.action = layer.action
        layer.training = bool(layer.training)

    with torch.no_grad():
        trace(Layer(fn), (ramp(4, 3),), {})


def test_mutated_argument_containers_are_refused() -> None:
    def fn(items: list[torch.Tensor]) -> None:
        items.append(items[0] * 2)

    items = [ramp(3)]
    with pytest.raises(errors.UnsupportedError, match="list or dict"):
        trace(fn, (items,), {})
    assert len(items) == 1


def test_draws_do_not_move_the_generator() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(3)

    torch.manual_seed(5)
    torch.rand(1)
    before = torch.get_rng_state()
    with torch.no_grad():
        trace(fn, (ramp(4, 3),), {})
    assert torch.equal(torch.get_rng_state(), before)


class Recast(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.linear = self.linear.to(torch.float32)
        return self.linear(x)


def test_data_set_to_itself_changes_nothing():
    layer = Recast()
    x = ramp(2, 3)
    with torch.no_grad():
        assert torch.allclose(monograph.compile(layer, backend="reference")(x), layer(x))


@pytest.mark.parametrize("grad", [False, True])
def test_no_fake_outlives_a_trace(grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = sys.modules["monograph.capture.driver"]
    swept: list[int] = []
    monkeypatch.setattr(driver, "clear_caches", lambda: swept.append(1))
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = model(x)
        y.register_hook(lambda gradient: gradient * 2)
        return y * 2, y.sum()

    with torch.set_grad_enabled(grad):
        monograph.capture(function if grad else model, torch.randn(2, 4))
    assert not swept


def test_no_fake_of_a_restarted_trace_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = sys.modules["monograph.capture.driver"]
    swept: list[int] = []
    monkeypatch.setattr(driver, "clear_caches", lambda: swept.append(1))

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        found = [x]
        while x.sum() < 3:
            if x.max() > 2:
                found.append(x)              # which a region cannot hold: asked, then a fork
            x = x + 1
        return found

    with torch.no_grad():
        assert len(monograph.compile(function, backend="reference")(ramp(2, 3) * 0 - 1)) == 1
    assert not swept


def test_an_exception_that_the_caller_handles_keeps_its_frames() -> None:
    def failing() -> None:
        mark = 1
        raise ValueError(mark)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x

    try:
        failing()
    except ValueError as error:
        monograph.capture(function, ramp(2, 3))
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        assert error.__traceback__.tb_next.tb_frame.f_locals == {"mark": 1}
