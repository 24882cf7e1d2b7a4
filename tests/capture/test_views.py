"""Views: reads after writes to the base, writes through chains, views of other dtypes, raw strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.capture.harness import check

torch.set_num_threads(1)


def ramp(*shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(1.0, 1.0 + count) * 0.5).reshape(shape)


def complex_ramp() -> torch.Tensor:
    return torch.complex(ramp(3), ramp(3) + 1)


CASES: list[tuple[Callable[..., Any], Callable[[], Any]]] = []


def case(make: Callable[[], Any] = lambda: (ramp(4, 3),)) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        CASES.append((fn, make))
        return fn
    return add


@case()
def write_row_and_column(x):
    y = x.clone()
    y[0].add_(1)
    y[:, 1].mul_(2)
    return y


@case()
def base_written_under_a_view(x):
    y = x * 1
    row = y[1]
    y.add_(5)
    return row * 2, y


@case()
def chain_of_views(x):
    y = x * 1
    v = y.t()[1:]
    v[0, 1:3].zero_()
    y.mul_(2)
    return v, y


@case()
def flatten_then_slice(x):
    y = x * 1
    y.view(-1)[3:7] = 0.0
    y.view(2, 6).t()[0] += 1
    return y


@case()
def several_views_of_one(x):
    y = x * 1
    a = y[1:]
    b = a.t()
    c = b[0]
    d = y[:, 0]
    c.add_(1)
    d.mul_(2)
    a[0, 0] = 5.0
    return y, a, b, c, d


@case()
def strided_slices(x):
    y = x * 1
    y[::2, 1:] += 1
    y[1::2].flip(0).add_(100)
    return y[::3], y


@case()
def diagonals(x):
    y = x * 1
    y.diagonal().fill_(0.0)
    torch.diagonal(y, 1).add_(2)
    return y


@case()
def unbind_parts(x):
    y = x * 1
    a, b, c = y.unbind(1)
    a.add_(1)
    b.copy_(a)
    return y, c


@case()
def split_parts(x):
    y = x * 1
    a, b = y.split([1, 3])
    halves = y.chunk(2)
    b.mul_(2)
    halves[1].add_(a)
    return y, a


@case()
def raw_strides(x):
    y = x * 1
    v = y.as_strided((3, 2), (2, 3), 1)
    v.add_(10)
    return y, v


@case()
def raw_strides_of_a_view(x):
    y = x * 1
    v = y.t()
    w = torch.as_strided(v, (4,), (2,), 3)
    w.mul_(-1)
    return y, v, w


@case()
def windows(x):
    y = x.view(-1) * 1
    u = y.unfold(0, 2, 4)
    u.add_(1)
    return y, u


@case()
def overlapping_windows_read(x):
    y = x.view(-1) * 1
    return y.unfold(0, 4, 2).sum(1), y


@case()
def bits_of_floats(x):
    y = x * 1
    v = y.view(torch.int32)
    v.bitwise_and_(0x7FFFFFFF).bitwise_xor_(1 << 31)
    return y, v


@case()
def bytes_of_floats(x):
    y = x * 1
    v = y.view(torch.uint8)
    v[:, 3::4] |= 128
    return y


@case(lambda: (complex_ramp(),))
def real_and_imaginary_parts(x):
    y = x * 1
    torch.view_as_real(y)[:, 0] = 0.0
    y.imag.add_(1)
    return y, y.real


@case(lambda: (complex_ramp(),))
def lazy_conjugate(x):
    y = x * 1
    c = y.conj()
    c.add_(1j)
    return y, c * 1


@case(lambda: (complex_ramp(),))
def lazy_conjugate_returned(x):
    return x.conj(), (x * 2).conj(), x.conj().imag


@case(lambda: (ramp(4, 2),))
def pairs_as_complex(x):
    c = torch.view_as_complex(x)
    c.mul_(1j)
    return c


@case()
def broadcast_read(x):
    b = x[0] * 1
    y = b.expand(4, 3)
    b.add_(1)
    return y * x, y


@case()
def one_row_of_a_broadcast(x):
    b = x[0] * 1
    y = b.expand(4, 3)[2]
    y.add_(1)
    return b, y


@case()
def permuted_result(x):
    y = (x * 2).t()
    return y, y.reshape(-1), y.contiguous(), y.contiguous().contiguous()


@case()
def unsqueezed_and_squeezed(x):
    y = (x * 1)[None, :, None]
    y.squeeze(0).squeeze(1)[0] = 3.0
    y.unsqueeze(-1).movedim(0, 2).sub_(1)
    return y


@case(lambda: (ramp(2, 3, 4).to(memory_format=torch.contiguous_format).permute(2, 0, 1),))
def permuted_input(x):
    x[0].add_(1)
    return x * 2, x.reshape(4, 6), x.transpose(0, 1)


@case(lambda: (ramp(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),))
def channels_last(x):
    y = torch.nn.functional.conv2d(x, torch.ones(2, 3, 3, 3), padding=1)
    return y, y + 1, y[:, :1], x.flatten(1)


@case(lambda: (ramp(0, 3), ramp(3, 0)))
def empty_tensors(x, y):
    x.add_(1)
    return x @ y.t().reshape(3, 0), x.t(), y.sum(), y.clone().add_(1)


@pytest.mark.parametrize(("fn", "make"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_views(fn: Any, make: Any) -> None:
    with torch.no_grad():
        check(fn, make)
