"""Clocks, `random`, `numpy.random`: read at every call as in eager, never baked; what cannot be is refused by name."""

import datetime
import os
import pathlib
import random
import secrets
import threading
import time
import uuid
from datetime import datetime as Moment
from random import random as draw

import numpy as np
import pytest
import torch

import monograph

MINE = random.Random(3)
BOUND = MINE.random
SYSTEM = random.SystemRandom()
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
    (lambda x: x + random.randbytes(1)[0], "random.randbytes"),
    (lambda x: x + int(np.random.choice(["1", "2"])), "numpy.random.choice"),
    (lambda x: x + np.random.default_rng().random(), "numpy.random.default_rng"),
    (lambda x: x + RNG.random(), "RNG, a Generator"),
    (lambda x: MINE.seed(1) or x, "Random.seed"),
    (lambda x: x + BOUND(), "BOUND, a Random"),
    (lambda x: x + torch.seed(), "torch.seed"),
    (lambda x: x + torch.default_generator.seed(), "default_generator.seed"),
    (lambda x: x + datetime.datetime.now().microsecond, "datetime.datetime.now"),
    (lambda x: x + Moment.utcnow().microsecond, "datetime.datetime.utcnow"),
    (lambda x: x + Moment.now().timestamp(), "datetime.datetime.now"),
    (lambda x: x + datetime.date.today().day, "datetime.date.today"),
    (lambda x: x + time.localtime().tm_sec, "time.localtime"),
    (lambda x: x + int(time.strftime("%S")), "time.strftime"),
    (lambda x: x + uuid.uuid4().int % 7, "uuid.uuid4"),
    (lambda x: x + int(secrets.token_hex(2), 16), "secrets.token_hex"),
    (lambda x: x + os.urandom(1)[0], "urandom"),
    (lambda x: x + random.SystemRandom().random(), "SystemRandom"),
    (lambda x: x + SYSTEM.choice([1, 2]), "SystemRandom"),
    (lambda x: x + random.Random().random(), "random.Random"),
    (lambda x: x + np.random.RandomState().rand(), "RandomState"),
    (lambda x: x + np.random.Generator(np.random.PCG64()).random(), "PCG64"),
    (lambda x: os.environ.__setitem__("MONOGRAPH_TEST", "1") or x, "os.environ"),
    (lambda x: open(os.devnull, "w").close() or x, "open"),
])
def test_refused_by_name(fn, name):
    states = MINE.getstate(), RNG.bit_generator.state
    with pytest.raises(monograph.UnsupportedError, match=name):
        monograph.compile(fn)(torch.ones(1))
    assert (MINE.getstate(), RNG.bit_generator.state) == states


def test_what_is_not_drawn_is_not_refused():
    fast = monograph.compile(lambda x: x + np.random.default_rng(3).random() if RNG is not None else x)
    assert fast(torch.zeros(1)).item() == pytest.approx(np.random.default_rng(3).random())


def test_moments_that_are_given_are_no_matter():
    def fn(x):
        day = Moment(2020, 1, 5) + datetime.timedelta(days=3)
        assert isinstance(day, Moment) and isinstance(day, datetime.date) and type(day) is type(Moment.max)
        return x + day.day + Moment.fromisoformat("2020-02-03").month + time.gmtime(0).tm_year + \
            random.Random(5).randint(0, 9) + np.random.RandomState(3).randint(9) + time.strptime("7", "%d").tm_mday

    assert monograph.compile(fn)(torch.zeros(1)) == fn(torch.zeros(1))


def test_entropy_is_drawn_anew():
    fast = monograph.compile(lambda x: x + secrets.randbelow(1 << 40) + secrets.randbits(40))
    assert len({fast(torch.zeros(1, dtype=torch.float64)).item() for _ in range(4)}) == 4 and not fast.recompiles


def in_fork(x):
    with torch.random.fork_rng():
        a = torch.rand(2)
        torch.rand(3)
    return x + a + torch.rand(3)[:2]


def seeded_in_fork(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        a = torch.rand(2)
    return x + a + torch.rand(2)


def winds_back(x):
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    return x + a + torch.randn(2)


def winds_back_by_hand(x):
    y = torch.rand(3)
    state = torch.default_generator.get_state()
    a = torch.rand(2) + y[:2]
    torch.default_generator.set_state(state)
    return x + a + torch.randn(2)


def gives_states(x):
    before = torch.get_rng_state()
    return x + torch.rand(2), before, torch.default_generator.get_state(), before[:8].sum()


def forks_at_the_end(x):
    with torch.random.fork_rng():
        return x * torch.rand(2)


def with_the_default_by_name(x):
    torch.default_generator.manual_seed(5)
    a = torch.rand(2, generator=torch.default_generator)
    return x + a + torch.empty(2).normal_(generator=torch.default_generator)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("fn", [in_fork, seeded_in_fork, winds_back, winds_back_by_hand, gives_states,
                                forks_at_the_end, with_the_default_by_name])
def test_states_of_the_generator(fn, backend):
    fast = monograph.compile(fn, backend=backend)
    for seed in (0, 0, 1, 2, 3):
        results = []
        for function in (fn, fast):
            torch.manual_seed(seed)
            results.append((function(torch.ones(2)), torch.get_rng_state(), torch.rand(1)))
        torch.testing.assert_close(*results)
    assert not fast.recompiles


def test_the_seed_of_the_default_generator_is_a_fact():
    fast = monograph.compile(lambda x: x + torch.rand(1) * 0 + torch.default_generator.initial_seed())
    for seed in (3, 4, 3):
        torch.manual_seed(seed)
        assert fast(torch.zeros(1)).item() == seed
    assert len(fast.recompiles) == 1


@pytest.mark.parametrize("read", [
    lambda: len(os.environ), lambda: sum(key.startswith("MONOGRAPH_T") for key in os.environ),
    lambda: len(dict(os.environ)), lambda: len(os.environb.get(b"MONOGRAPH_TEST", b"ab")),
    lambda: int("MONOGRAPH_TEST" in os.environ), lambda: len(os.getenv("MONOGRAPH_TEST", "ab")),
], ids=["length", "keys", "copy", "bytes", "in", "getenv"])
def test_the_environment_is_a_fact(read, monkeypatch):
    monkeypatch.delenv("MONOGRAPH_TEST", raising=False)
    fast = monograph.compile(lambda x: x + read())
    for _ in range(2):
        assert fast(torch.zeros(1)).item() == read()
    monkeypatch.setenv("MONOGRAPH_TEST", "abcdef")
    assert fast(torch.zeros(1)).item() == read()


def test_the_process_is_a_fact(tmp_path, monkeypatch):
    file = tmp_path / "numbers"
    file.write_text("7")

    def fn(x):
        with open(file) as opened:
            number = int(opened.read())
        return x + number + int(pathlib.Path(file).read_text()) + len(os.getcwd()) + os.path.exists("numbers")

    fast = monograph.compile(fn)
    x = torch.zeros(1, dtype=torch.float64)
    for change in (lambda: None, lambda: file.write_text("123"), lambda: monkeypatch.chdir(tmp_path)):
        change()
        assert fast(x) == fn(x)
        assert fast(x) == fn(x)
    assert len(fast.recompiles) == 2


def test_the_thread_is_a_fact():
    fast = monograph.compile(lambda x: x + threading.get_ident())
    found = []

    def run():
        found.append((fast(torch.zeros(1, dtype=torch.float64)).item(), threading.get_ident()))

    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert all(got == want for got, want in found) and len(found) == 2


OWN = torch.Generator()


def of_a_global(x):
    a = torch.rand(2, generator=OWN)
    return x + a * torch.rand(2) + torch.empty(2).normal_(generator=OWN)


def of_an_argument(x, generator):
    return x + torch.randn(2, generator=generator) * torch.randint(9, (2,), generator=generator)


def seeds_it(x, generator):
    a = torch.rand(2, generator=generator)
    generator.manual_seed(3)
    return x + a + torch.rand(2, generator=generator)


def only_seeds_it(x, generator):
    generator.manual_seed(5)
    return x * 2


def winds_it_back(x, generator):
    a = torch.rand(2, generator=generator)
    state = generator.get_state()
    b = torch.rand(3, generator=generator)
    generator.set_state(state)
    return x + a + torch.randn(2, generator=generator) + b[:2]


def makes_one(x):
    generator = torch.Generator().manual_seed(7)
    return x + torch.rand(2, generator=generator) + torch.randperm(2, generator=generator)


def then_a_value(x, generator):
    a = torch.rand(2, generator=generator)
    table = [1.0, 2.0, 3.0]
    return x * table[int(a.sum() > 1)] + torch.rand(2, generator=generator)


def multinomial(x, generator):
    return x + torch.multinomial(torch.ones(4), 2, generator=generator) + torch.bernoulli(x / 2, generator=generator)


def initialises(x, generator):
    w = torch.empty(2, 2)
    torch.nn.init.uniform_(w, generator=generator)
    return x @ w + torch.randn(2)


def in_a_condition(x, generator):
    if x.sum() > 2:
        x = x + torch.rand(2, generator=generator)
    return x * torch.rand(2, generator=generator)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("fn", [of_a_global, of_an_argument, seeds_it, only_seeds_it, winds_it_back, makes_one,
                                then_a_value, multinomial, initialises, in_a_condition])
def test_generators_of_the_callers(fn, grad, backend):
    takes = fn.__code__.co_argcount == 2
    fast = monograph.compile(fn, backend=backend)
    for seed in (0, 1, 2):
        results = []
        for function in (fn, fast):
            torch.manual_seed(seed)
            OWN.manual_seed(seed + 10)
            x = torch.ones(2, requires_grad=grad) * (1 + seed % 2)
            rows = [function(x, OWN) if takes else function(x) for _ in range(2)]
            results.append((rows, OWN.get_state(), torch.rand(1), torch.rand(1, generator=OWN)))
        torch.testing.assert_close(*results)


def test_a_capture_leaves_generators_alone():
    OWN.manual_seed(4)
    monograph.capture(of_an_argument, torch.ones(2), OWN)
    assert torch.equal(OWN.get_state(), torch.Generator().manual_seed(4).get_state())
