"""Choices from sequences, draws of arrays, and generators of one's own: made at every call, as in eager."""

import random

import numpy as np
import pytest
import torch

import monograph

MINE = random.Random(5)
LETTERS = ["a", "b", "c"]


class Noise(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.random = random.Random(7)

    def forward(self, x):
        return x * self.random.random() + self.random.randint(0, 5) + self.random.choice([1.5, 2.5, 3.5])


NOISE = Noise()


def choice(x):
    return x * random.choice([1.0, 2.0, 5.0]) + random.choice((3, 4)) + random.choice(range(10, 20, 3))


def several(x):
    a, b = random.sample([1.0, 2.0, 3.0], 2)
    c, d = random.choices([1, 2, 3], [1, 5, 1], k=2)
    return x * a + b * c - d


def shuffled(x):
    numbers = [1, 2, 3, 4]
    random.shuffle(numbers)
    MINE.shuffle(numbers)
    return x * numbers[0] + numbers[1] * 10 + numbers[2] * 100


def of_traced_numbers(x):
    return x + random.choice([float(x[0]), float(x[1] * 2)])


def own(x):
    if MINE.random() > 0.5:
        x = x + MINE.uniform(0, 3)
    return x * MINE.random()


def in_a_loop(x):
    for _ in range(3):
        if random.random() > 0.5:
            x = x + random.choice([1.0, 7.0])
    return x


def arrays(x):
    return (x + torch.from_numpy(np.random.rand(2)) * np.random.choice([1.0, 2.0]) + np.random.permutation(4)[0]
            + np.random.choice(5) + np.random.randint(0, 4, size=(2,))[1])


def of_torch(x):
    """Draws in branches keep their order among others."""
    for _ in range(3):
        if torch.rand(()) > 0.5:
            x = x + torch.rand(2)
    return x


def unused(x):
    MINE.random()
    random.choice([1, 2])
    return x + random.random()


ONE_PROGRAM = [choice, several, shuffled, of_traced_numbers, own, in_a_loop, arrays, of_torch, unused, NOISE]


def of_tensors(x):
    return random.choice([x, x + 1, x * 2])


def of_letters(x):
    return x + 1 if random.choice(LETTERS) == "a" else x - 1


def shuffled_tensors(x):
    items = [x, x + 1, x + 4]
    random.shuffle(items)
    return items[0] - 2 * items[1]


def in_a_branch(x):
    return random.choice([x, x * 3]) if x.sum() > 0 else x - 1


def of_nothing(x):
    return x + random.choice([])


READ = [of_tensors, of_letters, shuffled_tensors, in_a_branch, of_nothing]


def played(function, calls=8):
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    MINE.seed(9)
    NOISE.random.seed(3)
    results = []
    for number in range(calls):
        x = torch.full((2,), float(number - 2), dtype=torch.float64)
        try:
            results.append(function(x).tolist())
        except IndexError as error:
            results.append(str(error))
    return results, random.random(), np.random.rand(), torch.rand(1).item(), MINE.random(), NOISE.random.random()


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", ONE_PROGRAM, ids=lambda f: getattr(f, "__name__", "module"))
def test_draws_are_those_of_eager(function, backend):
    compiled = monograph.compile(function, backend=backend)
    assert played(compiled) == played(function)
    assert not compiled.recompiles


@pytest.mark.parametrize("function", READ, ids=lambda f: f.__name__)
def test_choices_of_other_things_are_read(function):
    compiled = monograph.compile(function)
    assert played(compiled) == played(function)


def test_another_generator_is_another_program():
    class Holder:
        def __init__(self, seed):
            self.mine = random.Random(seed)

    def fn(x, holder):
        return x + holder.mine.random()

    compiled = monograph.compile(fn)
    for _ in range(2):
        for seed in (1, 2):
            assert compiled(torch.zeros((), dtype=torch.float64), Holder(seed)).item() == random.Random(seed).random()


def test_a_generator_stays_as_it_was_while_it_is_traced():
    before = MINE.getstate()
    monograph.capture(own, torch.ones(2))
    assert MINE.getstate() == before
    assert not {"random", "getrandbits"} & set(vars(random.Random))


def test_what_runs_again_in_python_draws_once():
    def fn(x, index):
        return x[index] * MINE.random() + random.random()

    compiled = monograph.compile(fn)
    x = torch.arange(3.0)
    assert compiled(x, torch.tensor(1)).shape == ()
    for function in (fn, compiled):
        MINE.seed(2)
        random.seed(2)
        with pytest.raises(IndexError):
            function(x, torch.tensor(7))
        if function is fn:
            want = MINE.random(), random.random()
    assert (MINE.random(), random.random()) == want


class Scaled(random.Random):
    def __init__(self, seed, scale):
        super().__init__(seed)
        self.scale = scale

    def scaled(self):
        return self.random() * self.scale


class Halved(random.Random):
    def random(self):
        return super().random() / 2


def test_a_subclass_that_adds_to_the_generator_draws_as_in_eager():
    def fn(x, mine):
        return x + mine.scaled() + mine.randint(0, 9) + mine.choice([1.0, 2.0])

    compiled, x = monograph.compile(fn), torch.zeros((), dtype=torch.float64)
    mine, other = Scaled(3, 10.0), Scaled(3, 10.0)
    for _ in range(3):
        assert compiled(x, mine) == fn(x, other)
        assert mine.getstate() == other.getstate()
    assert not compiled.recompiles


def test_a_subclass_that_draws_otherwise_is_refused():
    mine = Halved(3)
    with pytest.raises(monograph.errors.UnsupportedError, match="Halved"):
        monograph.compile(lambda x: x + mine.random())(torch.ones(2))
    assert mine.getstate() == Halved(3).getstate()
