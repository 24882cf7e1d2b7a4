"""Clocks, `random`, `numpy.random`: read at every call as in eager, never baked; what cannot be is refused by name."""

import random
import time
from random import random as draw

import numpy as np
import pytest
import torch

import monograph

MINE = random.Random(3)
RNG = np.random.default_rng(0)


def in_branches(x):
    if random.random() < 0.5:
        return x + random.randint(5, 9)
    return x - 1


def several(x):
    return x * random.uniform(1, 2) + draw() - random.gauss(0, 1)


def of_numpy(x):
    return x + np.random.rand() * np.random.randint(3, 7) + np.random.normal(2.0, 0.5)


def as_a_size(x):
    return x.expand(random.randint(1, 3), -1)


def beside_torch(x):
    return x + torch.rand(1) * random.random() + torch.rand(1)


def in_a_branch(x):
    y = x + draw()
    return y * random.random() if y.sum() > 1 else y


def played(function, calls, grad):
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    results = []
    for number in range(calls):
        x = torch.full((1,), float(number), requires_grad=grad)
        y = function(x)
        results.append((y, torch.autograd.grad(y.sum(), x)[0] if grad else None))
    return results, random.random(), np.random.rand(), torch.rand(1)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("fn", [in_branches, several, of_numpy, as_a_size, beside_torch, in_a_branch])
def test_draws_are_those_of_eager(fn, grad, backend):
    fast = monograph.compile(fn, backend=backend)
    torch.testing.assert_close(played(fast, 6, grad), played(fn, 6, grad), rtol=1e-6, atol=1e-6)


def test_capture_draws_nothing():
    before = random.getstate(), np.random.get_state()[1].copy()
    monograph.capture(lambda x: several(x) + of_numpy(x), torch.ones(1))
    assert random.getstate() == before[0] and np.array_equal(np.random.get_state()[1], before[1])


def test_clocks_go_on():
    perf_counter = time.perf_counter

    class Net(torch.nn.Module):
        started = 0.0

        def forward(self, x):
            self.started = time.perf_counter()
            return x + time.time_ns() * 0

    net = Net()
    fast = monograph.compile(net)
    for _ in range(3):
        before = perf_counter()
        fast(torch.ones(1))
        assert before <= net.started <= perf_counter()
    assert not fast.recompiles


def test_the_seed_is_a_fact():
    def fn(x):
        return x + torch.rand(1) * 0 + torch.initial_seed() + torch.random.initial_seed()

    fast = monograph.compile(fn)
    for seed in (3, 4, 3):
        torch.manual_seed(seed)
        assert fast(torch.zeros(1)).item() == 2 * seed
    assert "initial_seed" in str(fast.recompiles[0]) and len(fast.recompiles) == 1


@pytest.mark.parametrize(("fn", "name"), [
    (lambda x: x + random.choice([1, 2]), "random.choice"),
    (lambda x: x + torch.from_numpy(np.random.rand(1)), "numpy.random.rand"),
    (lambda x: x + np.random.default_rng().random(), "numpy.random.default_rng"),
    (lambda x: x + RNG.random(), "RNG, a Generator"),
    (lambda x: x + MINE.random(), "MINE, a Random"),
    (lambda x: x + torch.get_rng_state()[0], "get_rng_state"),
    (lambda x: x + torch.random.get_rng_state()[0], "get_rng_state"),
])
def test_refused_by_name(fn, name):
    states = MINE.getstate(), RNG.bit_generator.state
    with pytest.raises(monograph.UnsupportedError, match=name):
        monograph.compile(fn)(torch.ones(1))
    assert (MINE.getstate(), RNG.bit_generator.state) == states


def test_what_is_not_drawn_is_not_refused():
    fast = monograph.compile(lambda x: x + np.random.default_rng(3).random() if RNG is not None else x)
    assert fast(torch.zeros(1)).item() == pytest.approx(np.random.default_rng(3).random())
