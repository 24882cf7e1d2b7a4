"""Random programs of views and writes, at sizes that vary: whatever eager does, one program does for all sizes."""

import random

import pytest
import torch

import monograph
from tests.capture.harness import alias_relation, normal

SIZES = ((4, 3), (7, 5), (2, 6), (9, 2), (5, 5), (1, 3), (12, 4))


def view(x, rng):
    """Some view of `x`, said in terms of sizes where there are any."""
    kind, a, axis = rng.randrange(15), rng.randrange(1, 3), rng.randrange(x.dim()) if x.dim() else 0
    if x.dim() == 0:
        return x.view(1)
    if kind == 0:
        return x.transpose(axis, rng.randrange(x.dim()))
    if kind == 1:
        return x.select(axis, -1 if a == 1 else 0)
    if kind == 2:
        return x.narrow(axis, 0, x.shape[axis] // 2 + 1)
    if kind == 3:
        return x.chunk(2, axis)[0]
    if kind == 4:
        return x.unsqueeze(axis)
    if kind == 5:
        return x.flatten()
    if kind == 6:
        return x.reshape(x.shape[0], -1) if x.dim() > 1 else x.reshape(-1, 1)
    if kind == 7 and x.dim() >= 2:
        return x.diagonal(0, 0, 1)
    if kind == 8:
        return x[1:] if a == 1 else x[:-1]
    if kind == 9:
        return x[..., ::2]
    if kind == 10:
        return x[x.shape[0] // 2:]
    if kind == 11:
        return x.expand(2, *x.shape)
    if kind == 12:
        return x.unfold(axis, 1, 1)
    if kind == 13:
        return x.t() if x.dim() == 2 else x.squeeze()
    return x.split(a, axis)[0]


def write(x, y, rng):
    kind = rng.randrange(8)
    if kind == 0:
        x.add_(rng.randrange(1, 4))
    elif kind == 1:
        x.mul_(0.5)
    elif kind == 2:
        x.copy_(y if y.shape == x.shape else y.sum())
    elif kind == 3:
        x.zero_()
    elif kind == 4:
        x.masked_fill_(x > 4, 1.5)
    elif kind == 5:
        x.sub_(x.numel())
    elif kind == 6 and x.dim():
        x[..., :1] += x.shape[0]
    else:
        x.neg_()


def compute(x, y, rng):
    kind = rng.randrange(8)
    if kind == 0:
        return x.sin() + 1
    if kind == 1:
        return torch.cat([x, x]) if x.dim() else x * 2
    if kind == 2:
        return x.contiguous()
    if kind == 3:
        return x.sum(-1) if x.dim() else x + y.sum()
    if kind == 4:
        return torch.stack([x, x + 1], -1)
    if kind == 5:
        return x.clone()
    if kind == 6:
        return x + y if x.shape == y.shape else x - y.numel()
    return torch.zeros_like(x) + x


def program(seed):
    def fn(a, b):
        rng = random.Random(seed)
        pool = [a, b]
        for _ in range(rng.randrange(3, 12)):
            x, y = rng.choice(pool), rng.choice(pool)
            act = rng.random()
            if act < 0.5:
                pool.append(view(x, rng))
            elif act < 0.75:
                pool.append(compute(x, y, rng))
            elif x._base is not a and x is not a and not overlapping(x):
                write(x, y, rng)
        return pool[-4:]
    return fn


def overlapping(x):
    return any(size > 1 and step == 0 for size, step in zip(x.shape, x.stride()))


def look(call, m, n):
    """Results, what lies where, the arguments afterwards; an exception by its type."""
    torch.manual_seed(m * 100 + n)
    a, b = torch.randn(m, n), torch.randn(n, m).t()
    try:
        results = list(call(a, b))
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__, [], [], []
    tensors = [*results, a, b]
    return "", tensors, [(t.shape, normal(t), t.dtype) for t in tensors], [r[1:] for r in alias_relation(tensors)]


def check(seed, backend="reference"):
    fn = program(seed)
    fast = monograph.compile(fn, backend=backend, dynamic=True, fullgraph=False)
    for m, n in SIZES:
        got, want = look(fast, m, n), look(fn, m, n)
        assert got[0] == want[0] and got[2:] == want[2:], (seed, m, n, got[2:], want[2:])
        for one, other in zip(got[1], want[1]):
            torch.testing.assert_close(one, other, equal_nan=True)
    return monograph.api.dispatcher_of(fast).entries


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    check(seed)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("seed", range(100, 106))
def test_random_programs_in_native_code(seed):
    check(seed, "llvm")
