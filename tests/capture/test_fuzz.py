"""Random straight-line programs of views and writes: whatever eager does, the capture does."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from monograph import errors
from monograph.capture import trace
from tests.capture.harness import check, check_gradients
from tests.capture.test_views import ramp

torch.set_num_threads(1)


def view(x: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Some view of `x`, `x` itself where it has none of the kind drawn."""
    kind = rng.randrange(12)
    if x.dim() == 0:
        return x.view(1) if kind % 2 else x.detach()
    axis = rng.randrange(x.dim())
    size = x.shape[axis]
    if kind == 0:
        return x.transpose(axis, rng.randrange(x.dim()))
    if kind == 1 and size:
        return x.select(axis, rng.randrange(size))
    if kind == 2 and size > 1:
        start = rng.randrange(size - 1)
        return x.narrow(axis, start, rng.randrange(1, size - start + 1))
    if kind == 3 and size:
        return x.split(rng.randrange(1, size + 1), axis)[-1]
    if kind == 4:
        return x.unsqueeze(axis)
    if kind == 5:
        return x.squeeze()
    if kind == 6 and x.is_contiguous():
        return x.view(-1)
    if kind == 7 and x.dim() >= 2:
        return x.diagonal(0, 0, 1)
    if kind == 8 and size > 1:
        return x.unfold(axis, 2, 2)
    if kind == 9:
        return x[tuple(slice(None, None, 2) if d == axis else slice(None) for d in range(x.dim()))]
    if kind == 10 and size > 1:
        return x.as_strided((size - 1,), (x.stride(axis),), x.storage_offset() + x.stride(axis))
    if kind == 11 and size:
        return x.unbind(axis)[0]
    return x.detach()


def write(x: torch.Tensor, y: torch.Tensor, rng: random.Random) -> None:
    kind = rng.randrange(9)
    if kind == 0:
        x.add_(rng.randrange(1, 4))
    elif kind == 1:
        x.mul_(0.5)
    elif kind == 2:
        x.copy_(y if y.shape == x.shape else y.sum())
    elif kind == 3:
        x.zero_()
    elif kind == 4:
        x[x > 4] = 1.5
    elif kind == 5 and x.dim():
        x.index_fill_(0, torch.tensor([0]), 2.5)
    elif kind == 6:
        torch.add(y.sum(), 1, out=x) if x.dim() == 0 else x.sub_(y.sum())
    elif kind == 7 and x.dim() >= 2:
        x[..., :1] += 3
    else:
        x.neg_()


def program(seed: int) -> Any:
    """A function of two tensors that takes about a dozen random steps."""
    def fn(a: torch.Tensor, b: torch.Tensor) -> Any:
        rng = random.Random(seed)
        pool = [a, b]
        for _ in range(rng.randrange(4, 16)):
            x, y = rng.choice(pool), rng.choice(pool)
            action = rng.random()
            if action < 0.45:
                pool.append(view(x, rng))
            elif action < 0.85:
                write(x, y, rng)
            else:
                pool.append(rng.choice((lambda t: t * 2, lambda t: t.clone(), lambda t: t.contiguous(),
                                        lambda t: t + t.sum(), lambda t: torch.cat([t.reshape(-1), t.reshape(-1)])))(x))
        return [rng.choice(pool) for _ in range(rng.randrange(1, 5))]
    return fn


def arguments(seed: int) -> Any:
    def make() -> Any:
        base = ramp(4, 3)
        return [(base, ramp(2, 3)), (base[:2], base[1:]), (base.t(), base[0]), (base.view(-1)[1:9], base[1])][seed % 4]
    return make


def run(seed: int) -> str:
    """How the comparison went: equal, or refused by name; AssertionError otherwise."""
    fn, make = program(seed), arguments(seed)
    try:
        fn(*make())
    except RuntimeError as eager:
        with pytest.raises(type(eager)), torch.no_grad():
            trace(fn, make(), {})
        return "equal"
    try:
        with torch.no_grad():
            check(fn, make)
    except errors.CaptureError:
        return "refused"
    return "equal"


def test_random_programs() -> None:
    outcomes = [run(seed) for seed in range(60)]
    assert outcomes.count("refused") <= 2


def gradients(seed: int) -> None:
    steps = program(seed)

    def fn(a: torch.Tensor, b: torch.Tensor) -> Any:
        return steps(a * 1, b * 1)

    def make() -> Any:
        return (ramp(4, 3) * 0.3).requires_grad_(), (ramp(2, 3) * 0.2).requires_grad_()

    a, b = make()
    try:
        outs = [t for t in fn(a, b) if t.requires_grad]
        if not outs:
            return
        torch.autograd.grad(outs, [a, b], [torch.ones_like(t) for t in outs], allow_unused=True)
    except RuntimeError as eager:
        with pytest.raises(RuntimeError) as ours:
            trace(fn, make(), {})
        assert str(ours.value)[:60] == str(eager)[:60]
        return
    check_gradients(fn, make)


def test_gradients_of_random_programs() -> None:
    for seed in range(25):
        gradients(seed)
