"""Writes: in place, `out=`, indexed, converting, random, to captured tensors and buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from monograph.capture import trace
from tests.capture.harness import check
from tests.capture.test_views import ramp

torch.set_num_threads(1)

CASES: list[tuple[Callable[..., Any], Callable[[], Any]]] = []
CAPTURED = ramp(3)
NORM = torch.nn.BatchNorm1d(3)
STATE = [CAPTURED, *NORM.buffers()]


def case(make: Callable[[], Any] = lambda: (ramp(4, 3),)) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        CASES.append((fn, make))
        return fn
    return add


@case()
def argument_in_place(x):
    x.add_(1)
    return x * 2


@case()
def nothing_returned(x):
    x -= 0.1 * x
    x[:, 0] -= 1


@case()
def duplicate_indices(x):
    y = x * 1
    y.index_put_((torch.tensor([0, 0, 2]),), torch.ones(3, 3), accumulate=True)
    return y


@case()
def mask_and_list_assignment(x):
    y = x * 1
    y[y > 2] = 0.0
    y[torch.tensor([1, 2])] += 3
    y[[0, 3], [1, 2]] = -1.0
    return y


@case()
def scatter_through_a_view(x):
    y = x * 1
    y.t().scatter_(0, torch.tensor([[0, 1, 2, 0]]), 9.0)
    y[1:].index_add_(0, torch.tensor([0, 0]), torch.ones(2, 3))
    return y


@case()
def out_argument(x):
    o = torch.empty(4, 3)
    torch.add(x, 1, out=o)
    torch.mul(o, o, out=o)
    return o


@case()
def out_into_a_view(x):
    o = torch.zeros(4, 6)
    torch.exp(x * 0.1, out=o[:, ::2])
    return o


@case()
def out_grows(x):
    o = torch.empty(0)
    torch.mm(x, x.t(), out=o)
    v = o[0]
    o.add_(1)
    return o, v


@case()
def two_outs(x):
    v, i = torch.empty(4), torch.empty(4, dtype=torch.long)
    torch.max(x, 1, out=(v, i))
    v.add_(i)
    return v, i


@case()
def out_of_a_factory(x):
    o = torch.empty(4)
    torch.arange(4, out=o)
    p = torch.empty(2, 2, dtype=torch.float64)
    torch.ones(2, 2, out=p)
    return o, p, x * o[:, None]


@case()
def keeps_its_dtype(x):
    y = torch.arange(12).reshape(4, 3)
    z = x.half()
    y.add_(torch.ones(3, dtype=torch.int32))
    z.mul_(x)
    z.add_(x.double())
    return y, z


@case()
def comparison_in_place(x):
    y = x * 1
    y.gt_(2)
    z = torch.zeros(4, 3, dtype=torch.int32)
    z.logical_or_(y)
    z <<= 2
    z &= 4
    return y, z


@case()
def foreach(x):
    rows = [x[0] * 1, x[1] * 1]
    torch._foreach_add_(rows, [x[2], x[3]])
    torch._foreach_mul_(rows, 2.0)
    return rows


@case()
def number_accumulated(x):
    s = torch.zeros(())
    s += x.sum()
    s.mul_(2)
    return s


@case()
def activations_in_place(x):
    y = x - 3
    F.relu_(y)
    F.dropout(y, 0.5, training=False, inplace=True)
    F.silu(y[1:], inplace=True)
    F.hardtanh_(y, -1, 1)
    return y


@case()
def self_copies(x):
    y = x * 1
    y[:2].copy_(y[2:])
    y[:, 0] = y[:, 1]
    y.copy_(y)
    return y


@case()
def swap_contents(x):
    a, b = x[0], x[1]
    t = a.clone()
    a.copy_(b)
    b.copy_(t)
    return t


@case(lambda: (ramp(2, 2), ramp(2, 2) + 10))
def swap_arguments(a, b):
    t = a * 1
    a.copy_(b)
    b.copy_(t)


@case()
def captured_tensor(x):
    CAPTURED.add_(x[0])
    return CAPTURED * 2, CAPTURED


@case()
def batch_norm_training(x):
    return NORM(x), NORM.running_mean * 1, NORM(x * 2)


@case(lambda: (ramp(3), torch.zeros(3), ramp(3) * 0.1))
def momentum_step(p, buffer, g):
    buffer.mul_(0.9).add_(g)
    p.add_(buffer, alpha=-0.1)


@case(lambda: (ramp(3), torch.zeros(3), torch.zeros(3), torch.tensor(0.0), ramp(3) * 0.1))
def adam_step(p, m, v, t, g):
    t += 1
    m.lerp_(g, 0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    d = (v / (1 - 0.999 ** t)).sqrt_().add_(1e-8)
    p.addcdiv_(m / (1 - 0.9 ** t), d, value=-0.01)


@case(lambda: (torch.zeros(2, 8, 4), ramp(2, 1, 4), torch.tensor(3)))
def cache_update(cache, keys, position):
    cache.index_copy_(1, position.reshape(1), keys)
    cache[:, 0] = 1.0
    return cache.sum(1)


@case()
def random_in_place(x):
    y = torch.empty(3, 4).t()
    y.uniform_(-1, 1)
    z = torch.empty(5).normal_(2, 3)
    w = torch.empty(4, 3).bernoulli_(0.3)
    return y, z, w, F.dropout(x, 0.4), torch.rand(2, 2), torch.randn_like(x), torch.randperm(5), torch.bernoulli(x / 10)


@case()
def literals(x):
    c = torch.tensor([1.0, 2.0, 3.0])
    c[0] = 7.0
    d = torch.tensor([[1, 2], [3, 4]])
    return c, x * c, torch.tensor(2.5), d, torch.tensor([0.0, -0.0]), torch.full((2,), torch.tensor(3).item())


@case()
def seeded_inside(x):
    a = torch.rand(3)
    torch.manual_seed(7)
    b = F.dropout(x, 0.5)
    state = torch.get_rng_state()
    c = torch.rand(2)
    torch.set_rng_state(state)
    d = torch.rand(2)
    torch.manual_seed(11)
    return a, b, c, d


@case(lambda: (torch.zeros(2, 8, 4), ramp(2, 4), torch.tensor(3)))
def cache_row_by_number(cache, keys, position):
    cache[:, position] = keys
    row = cache[:, position]
    row.add_(1)
    return cache.sum(1), row * 1


@case(lambda: (ramp(4, 3), torch.tensor(2), torch.tensor(-2, dtype=torch.int32)))
def two_names_of_one_row(x, i, j):
    a, b = x[i], x[j]
    a.add_(1)
    b.mul_(2)
    x[-1].sub_(3)
    return a * 1, b * 1, x * 1


@case(lambda: (ramp(4, 4), torch.tensor(1), torch.tensor(-1)))
def mixed_with_other_indices(x, i, j):
    y = x * 1
    y[i, j] = 7.0
    y[..., i] += 1
    y[i][1:].zero_()
    return y, y[j, None, 1:] * 1, y[torch.tensor([0, 1]), i], (x * 2)[i]


@case()
def numbers_returned(x):
    total = x.sum().item()
    return total, {"max": x.argmax().item()}, (x > 1).all().item(), torch.equal(x, x * 1), torch.allclose(x, x + 1)


@case()
def number_with_tensors(x):
    scale = x.max().item()
    x.mul_(2)
    return x * scale, scale - x, x > scale, scale, CAPTURED[0].item() * x, torch.equal(x, x[0])


@case()
def deep_copies(x):
    y = x * 1
    kept = copy.deepcopy({"a": y, "b": [y, x * 1, y[1:]]})
    y.zero_()
    kept["a"][1].add_(1)
    return kept["a"] + 1, kept["b"], kept["a"] is kept["b"][0]


@pytest.mark.parametrize(("fn", "make"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_writes(fn: Any, make: Any) -> None:
    with torch.no_grad():
        check(fn, make, state=STATE)


ORDERED: dict[str, Any] = {
    "a column": lambda x: x.sub_(x[:, :1]), "shifted": lambda x: x[:, 1:].copy_(x[:, :-1]),
    "diagonal": lambda x: x.add_(x.diagonal()), "windows": lambda x: x.as_strided((3, 2), (1, 1)).mul_(2),
    "another": lambda x: x.t().addcmul_(x[0, 0].expand(3, 3), torch.ones(3, 3)),
    "apart": lambda x: x[:, ::2].add_(x[:, 1:2]), "itself": lambda x: x[:1].expand(3, 3).copy_(x[:1].expand(3, 3)),
}


@pytest.mark.parametrize("name", list(ORDERED))
def test_a_write_to_what_it_reads(name: str) -> None:
    """Torch goes through the elements in its order."""
    def fn(x):
        y = x * 1
        ORDERED[name](y)
        return y

    with torch.no_grad():
        check(fn, lambda: (ramp(3, 3),))


def overlapping_copy(x):
    y = x.view(-1) * 1
    y[1:].copy_(y[:-1])


def add_own_transpose(x):
    y = x[:3] * 1
    y.add_(y.t())


def write_to_a_broadcast(x):
    (x[0] * 1).expand(4, 3).add_(1)


def wrong_shape(x):
    return x @ x


def wider_than_self(x):
    (x[0, 0] * 1).clamp_(min=x)


def bad_cast(x):
    torch.arange(12).reshape(4, 3).add_(x)


@pytest.mark.parametrize("fn", [overlapping_copy, add_own_transpose, write_to_a_broadcast, wrong_shape, bad_cast])
def test_errors_are_those_of_eager(fn: Any) -> None:
    with pytest.raises(RuntimeError) as eager:
        fn(ramp(4, 3))
    with pytest.raises(type(eager.value)) as ours, torch.no_grad():
        trace(fn, (ramp(4, 3),), {})
    assert str(ours.value) == str(eager.value)


def test_a_result_wider_than_self_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"), torch.no_grad():
        trace(wider_than_self, (ramp(4, 3),), {})
