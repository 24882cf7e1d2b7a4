"""A deque is watched as a list is: what a program reads of one is a fact, what it writes is written at every call."""

from collections import deque

import pytest
import torch
from torch import nn

import monograph


class Keeper(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.tensors, self.numbers = kind([torch.zeros(2)]), kind([1, 2, 3])

    def forward(self, x):
        self.tensors.append(x * 2)
        self.numbers.append(len(self.numbers))
        return x + self.tensors[0] + self.numbers[0]


@pytest.mark.parametrize("kind", [list, deque, lambda given: deque(given, maxlen=3)])
def test_what_is_kept(kind):
    plain, module = Keeper(kind), Keeper(kind)
    fast = monograph.compile(module, backend="reference")
    for _ in range(4):
        x = torch.randn(2)
        assert torch.equal(fast(x), plain(x))
    assert module.numbers == plain.numbers and type(module.tensors) is type(plain.tensors)
    assert all(map(torch.equal, module.tensors, plain.tensors))


def test_a_capture_that_fails_leaves_it_as_it_was():
    kept = deque([1.0])

    def refused(x):
        kept.append(x)
        return x.to_sparse()

    with pytest.raises(monograph.UnsupportedError):
        monograph.compile(refused)(torch.ones(2))
    assert list(kept) == [1.0]
