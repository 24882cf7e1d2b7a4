"""Questions that one graph cannot answer are refused by name, with the user's file, line and expression."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from monograph import errors
from monograph.capture import trace
from tests.capture.test_views import ramp


def truth(x, n):
    if (x.sum() > 0) and x.ndim:  # asks: x.sum() > 0
        return x
    return x * 2


def loop(x, n):
    for _ in range(int(n)):  # asks: int(n)
        x = x + 1
    return x


def item(x, n):
    return x * [1, 2, 3, 4][n.item()]  # asks: n.item()


def as_float(x, n):
    return x.view(-1)[: int(float(x[0, 0]))]  # asks: float(x[0, 0])


def as_list(x, n):
    return sum(x[0].tolist())  # asks: x[0].tolist()


def as_slice(x, n):
    return x[:n]  # asks: x[:n]


def matching(x, n):
    return len(x[x > 1])  # asks: x[x > 1]


def places(x, n):
    return len(torch.nonzero(x))  # asks: torch.nonzero(x)


def equality(x, n):
    return 1 if torch.equal(x, x + 1) else 2  # asks: torch.equal(x, x + 1)


def closeness(x, n):
    return not torch.allclose(x, x + 1)  # asks: not torch.allclose(x, x + 1)


def item_in_python_arithmetic(x, n):
    return x * (n.item() + 1)  # asks: n.item() + 1


def item_printed(x, n):
    return f"{x.sum().item():.3f}"  # asks: x.sum().item()


def item_of_another_dtype(x, n):
    return x * n.item()  # asks: x * n.item()


def looping_while(x, n):
    while x.sum() < 100:  # asks: x.sum() < 100
        x = x * 2
    return x


def asserting(x, n):
    assert (x > 0).all(), "positive"  # asks: (x > 0).all()
    return x


@pytest.mark.parametrize("fn", [truth, loop, item, as_float, as_list, as_slice, matching, places, equality, closeness,
                                item_in_python_arithmetic, item_printed, item_of_another_dtype,
                                looping_while, asserting])
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


def test_a_view_at_an_unknown_place_is_not_returned() -> None:
    with pytest.raises(errors.DataDependentError, match="view at a place"), torch.no_grad():
        trace(lambda x, i: x[i], (ramp(4, 3), torch.tensor(1)), {})


class Wrapped(torch.Tensor):
    pass


@pytest.mark.parametrize(("make", "name"), [
    (lambda: ramp(3, 3).to_sparse(), "sparse"),
    (lambda: ramp(3).as_subclass(Wrapped), "Wrapped"),
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


@pytest.mark.parametrize("fn", [lambda x: x.numpy(), lambda x: f"{x}", lambda x: x.data_ptr(), lambda x: repr(x)])
def test_leaving_torch(fn: Any) -> None:
    with pytest.raises(errors.UnsupportedError, match="out of torch"), torch.no_grad():
        trace(fn, (ramp(3),), {})
