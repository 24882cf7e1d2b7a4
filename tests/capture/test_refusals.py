"""Questions that one graph cannot answer are refused by name, with the user's file, line and expression."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import monograph
from monograph import errors
from monograph.capture import trace
from tests.capture.test_views import ramp


def as_complex(x, n):
    return x * abs(torch.complex(x, x).sum().item())  # asks: torch.complex(x, x).sum().item()


@pytest.mark.parametrize("fn", [as_complex])
def test_data_dependent(fn: Any) -> None:
    lines, start = inspect.getsourcelines(fn)
    offset, line = next((i, text) for i, text in enumerate(lines) if "# asks: " in text)
    wanted = line.split("# asks: ")[1].strip()
    with pytest.raises(errors.DataDependentError) as caught, torch.no_grad():
        trace(fn, (ramp(4, 3), torch.tensor(2)), {})
    error = caught.value
    assert error.loc is not None and error.loc.file == __file__ and error.loc.line == start + offset
    assert error.loc.function == fn.__name__
    assert wanted.split("(")[0] in error.expression and wanted in line
    assert error.hint and f"{__file__}:{start + offset}" in str(error)


def test_numbers_written_in_the_code_are_known() -> None:
    def fn(x):
        table = torch.tensor([1, 2, 3])
        if table.sum() > 5 and table[0].item() == 1:
            x = x * int(torch.arange(4).max())
        return x * sum(table.tolist())

    with torch.no_grad():
        trace(fn, (ramp(4, 3),), {})


def test_a_view_that_is_returned_lies_where_this_call_says() -> None:
    with torch.no_grad():
        captured = trace(lambda x, i: x[i], (ramp(4, 3), torch.tensor(1)), {})
    assert [node.attributes["value"] for node in captured.graph.nodes if node.op.name == "mono.expect"] == [(1,)]


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


@pytest.mark.parametrize(("make", "name"), [
    (lambda: ramp(3, 3).to_sparse(), "sparse"),
    (lambda: Wrapped(ramp(3)), "Wrapped"),
    (lambda: torch.quantize_per_tensor(ramp(3), 0.1, 0, torch.qint8), "quantized"),
])
def test_unsupported_arguments(make: Any, name: str) -> None:
    with pytest.raises(errors.UnsupportedError, match=name):
        trace(lambda x: x * 2, (make(),), {})


def test_devices_are_named() -> None:
    with pytest.raises(errors.DeviceError, match="meta"):
        trace(lambda x: x * 2, (torch.empty(3, device="meta"),), {})
    with pytest.raises(errors.DeviceError, match="meta"):
        trace(lambda x: x * torch.zeros(3, device="meta").numel(), (ramp(3),), {})


@pytest.mark.parametrize("fn", [lambda x: x.data_ptr(), lambda x: repr(x)])
def test_leaving_torch(fn: Any) -> None:
    with pytest.raises(errors.UnsupportedError, match="out of torch"), torch.no_grad():
        trace(fn, (ramp(3),), {})


class Weight(torch.nn.Parameter):
    """One that says nothing of ops."""


@pytest.mark.parametrize("grad", [False, True])
def test_a_weight_may_be_of_a_subclass_of_parameter(grad: bool) -> None:
    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Weight(torch.arange(3.0))
            self.weight.scale = 2.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight * self.weight.scale if isinstance(self.weight, Weight) else x

    model = Scale()
    compiled = monograph.compile(model)
    for number in (2.0, 3.0):
        model.weight.scale = number
        with torch.set_grad_enabled(grad):
            assert torch.equal(compiled(torch.ones(3)), model(torch.ones(3)))
            assert type(compiled(torch.ones(3))) is torch.Tensor
    if grad:
        compiled(torch.ones(3)).sum().backward()
        assert torch.equal(model.weight.grad, torch.full((3,), 3.0))
    model.weight = torch.nn.Parameter(torch.ones(3))
    assert torch.equal(compiled(torch.ones(3)), model(torch.ones(3)))
