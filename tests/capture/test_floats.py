"""Floats that Python itself takes: numbers of the program where they can be, else values that are checked."""

import math

import numpy as np
import pytest
import torch

import monograph
from tests.compare import assert_same


def roots(x):
    return x * math.sqrt(x.sum().item()) / math.hypot(x.min().item(), 2)


def of_a_tensor(x):
    return x + math.exp(x.mean()) + math.log(x.sum())


def powers(x):
    return x * x.sum().item() ** -0.5 + 2 ** x.mean().item()


def rounded(x):
    return x * round(x.sum().item(), 2), math.isnan(x.sum().item())


def text(x):
    return x * 2, str(x.sum().item()), repr(x.min().item()), f"{x.sum().item():.3f}"


def bounds(x):
    return x.clamp(min=x.min().item(), max=x.mean().item()) + torch.clamp(x, x.mean().item())


def filled(x):
    total = x.sum().item()
    return torch.full((2,), total), x.new_full((2, 2), total), x.clone().fill_(total), torch.where(x > 1, total, 0.0)


def scaled(x):
    return x.add(x, alpha=x.sum().item()) + torch.lerp(x, x * 2, x.min().item())


def in_a_branch(x):
    if x.sum() > 3:
        return x * math.sqrt(x.sum().item())
    return x / math.sqrt(x.max().item())


def in_a_loop(x):
    while x.sum() < 20:
        x = x * math.sqrt(1 + x.max().item())
    return x


def an_index(x):
    return x * [1.0, 2.0, 3.0][min(2, int(math.log2(x.sum().item())))]


SEEN = {}
MANY = [roots, of_a_tensor, powers, rounded, text, bounds, filled, scaled, in_a_branch, in_a_loop, an_index]


def played(function, x):
    result = function(x)
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result)
              if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    return result, torch.autograd.grad(sum(leaf.sum() for leaf in leaves), x)[0].clone() if leaves else None


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("fn", MANY)
def test_one_program_serves_all_values(fn, grad, backend):
    fast = monograph.compile(fn, backend=backend)
    for number in range(4):
        x = (torch.rand(3, generator=torch.Generator().manual_seed(number)) + 0.5 + number).requires_grad_(grad)
        assert_same(played(fast, x), played(fn, x))
    assert len(fast._dispatcher.entries) <= (1 if fn is not an_index else 3)


def as_a_key(x):
    return {x.sum().item(): x * 2}


def keeps_keys(x):
    SEEN[x.sum().item()] = x * 2
    return x, set(SEEN)


def of_numpy(x):
    return x * float(np.cbrt(x.sum().item()))


@pytest.mark.parametrize("fn", [as_a_key, keeps_keys, of_numpy])
def test_a_value_that_nothing_stands_for_is_checked(fn):
    SEEN.clear()
    fast = monograph.compile(fn)
    for number in (1, 2, 1):
        assert_same(fast(torch.full((2,), float(number))), fn(torch.full((2,), float(number))))
    assert len(fast._dispatcher.entries) == 2 or fn is keeps_keys
    assert all(type(key) is float and type(value) is torch.Tensor for key, value in SEEN.items())


def test_errors_are_those_of_math():
    fast = monograph.compile(roots)
    assert_same(fast(torch.ones(2)), roots(torch.ones(2)))
    with pytest.raises(ValueError, match="math domain error"):
        fast(-torch.ones(2))
