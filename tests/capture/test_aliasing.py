"""Who is whom and who shares memory with whom, before and after the call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from monograph.capture import trace
from tests.capture.harness import check, execute
from tests.capture.test_views import ramp

torch.set_num_threads(1)

CASES: list[tuple[Callable[..., Any], Callable[[], Any]]] = []


def case(make: Callable[[], Any] = lambda: (ramp(4, 3),)) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        CASES.append((fn, make))
        return fn
    return add


def overlapping_rows() -> Any:
    base = ramp(4, 3)
    return base[:2], base[1:]


def base_and_window() -> Any:
    base = ramp(4, 3)
    return base, base.view(-1)[2:5]


def twice() -> Any:
    base = ramp(4, 3)
    return base, base


@case()
def views_of_the_argument(x):
    return x[1], x.t(), x


@case()
def written_view_of_the_argument(x):
    v = x[1:]
    v.mul_(3)
    return v, v[0]


@case()
def results_share(x):
    y = x + 1
    return y, y[0], y.view(-1)[2:], y.t()


@case()
def one_object_twice(x):
    y = x + 1
    return y, y, [y, {"again": y}]


@case()
def only_a_view_returned(x):
    y = x + 1
    return y[1], (y * 2)[:, ::2], (y * 3)[:, 1:]


@case(overlapping_rows)
def arguments_overlap(x, y):
    x.add_(1)
    return y * 2, y


@case(base_and_window)
def argument_inside_another(x, y):
    y.mul_(10)
    x[0] += 1
    return x.sum(), y.clone(), y


@case(lambda: tuple(reversed(base_and_window())))
def argument_around_another(y, x):
    y.mul_(10)
    x[0] += 1
    return x.sum(), y.clone(), x[1:], y[1:]


@case(twice)
def same_argument_twice(x, y):
    x.add_(1)
    y.mul_(2)
    return x + y, x, y


@case(lambda: (ramp(8, 3)[::2],))
def strided_argument(x):
    x.add_(1)
    return x[1], x * 2


@case(lambda: (ramp(6, 4)[1:5, 1:3],))
def inner_block_argument(x):
    x.t()[0].mul_(2)
    return x.t(), x.sum(0), x[1:, 1]


@case()
def detached_and_data(x):
    y = x * 1
    y.data.add_(1)
    d = y.detach()
    d[0] = 7.0
    return y, d


@case()
def data_assigned(x):
    y = x * 1
    z = torch.ones(2, 2)
    y.data = z
    y.add_(1)
    return y, z


@case()
def data_of_the_argument_assigned(x):
    x.data = x.data * 3
    x.add_(1)
    return x * 1


@case()
def transposed_in_place(x):
    y = x * 1
    v = y[0]
    y.t_()
    y[0].add_(1)
    y.unsqueeze_(0).squeeze_(0)
    return y, v


@case()
def argument_transposed_in_place(x):
    x.t_()
    x[0].add_(1)
    return x


@case()
def resized(x):
    y = x * 1
    y.resize_(2, 3)
    y.add_(1)
    return y


@case()
def resized_and_back(x):
    y = x * 1
    v = y[0]
    y.resize_(2, 3)
    y.add_(1)
    y.resize_(12)
    return y, v


@case()
def resized_to_more(x):
    y = x.clone().view(-1)
    z = y.detach()
    y.resize_(20)
    y[12:] = 0
    z.add_(1)
    return y, z


@case()
def set_to_another(x):
    y = x * 1
    z = torch.zeros(2)
    z.set_(y)
    z.add_(1)
    w = torch.zeros(2)
    w.set_(y[1])
    w.add_(1)
    return y, z, w


Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Answer:
    value: torch.Tensor
    parts: list[torch.Tensor]
    label: str = "answer"


@case()
def containers(x):
    y = x * 2
    return {"a": [y, (x, 3)], "b": Pair(y[0], None), "c": "text", "d": x.shape}


@pytest.mark.parametrize(("fn", "make"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_aliasing(fn: Any, make: Any) -> None:
    with torch.no_grad():
        check(fn, make)


def test_objects_come_back_in_their_own_types() -> None:
    def fn(x):
        y = x * 2
        return Answer(y, [y[0], x]), Answer(x, [])

    x = ramp(4, 3)
    with torch.no_grad():
        captured = trace(fn, (x,), {})
    first, second = execute(captured, (x,))
    assert isinstance(first, Answer) and first.label == "answer" and torch.equal(first.value, x * 2)
    assert first.parts[1] is x and second.value is x
    assert first.parts[0].untyped_storage().data_ptr() == first.value.untyped_storage().data_ptr()
