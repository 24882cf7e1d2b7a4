"""Control flow over tensors of any size (`functions` has the grammar of CASES): every input has other sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.capture.regions.functions import n

__all__ = ["CASES"]


class BranchOfRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        if x.sum() > 0:
            return torch.relu(self.linear(x)) * 2
        return x - 1


def carried_rows(x, k):
    for _ in range(int(k)):
        x = torch.tanh(x) * 1.1
        if x.mean() > 0.5:
            break
    return x


def root_of_each(x):
    wanted = x.abs() + 1
    root = wanted.clone()
    for _ in range(20):
        step = (root * root - wanted) / (2 * root)
        root = root - step
        if step.abs().max() < 1e-4:
            break
    return root


def softmax_in_a_loop(x):
    rounds = 0
    while x.max() > 0.5 and rounds < 5:
        x = torch.softmax(x * 3, -1)
        rounds += 1
    return x, rounds


def joined_in_branches(x):
    y = x * 2
    if y.sum() > 0:
        z = torch.cat([y, y])
    else:
        z = torch.cat([y, -y])
    return z.cumsum(0)


def rows_written(x, k):
    x = x.clone()
    for i in range(int(k)):
        x[i] = x[i] * 2 + 1
    return x


def branch_in_a_loop(x):
    rounds = 0
    while x.sum() < 10 and rounds < 30:
        if x.max() > 1:
            x = x + 0.5
        else:
            x = x * 2 + 1
        rounds += 1
    return x


def turned_in_a_loop(x, k):
    total = x.sum(0)
    for _ in range(int(k)):
        total = total + (x * total).t().contiguous().amax(1)
    return total.unsqueeze(0) + x


CASES: list[tuple[Any, list[tuple[torch.Tensor, ...]]]] = [
    (BranchOfRows(), [(torch.ones(3, 6),), (-torch.ones(5, 6),), (torch.ones(17, 6),)]),
    (carried_rows, [(torch.ones(3, 6), n(2)), (torch.rand(5, 7) - 0.5, n(4)), (torch.ones(19, 2), n(0))]),
    (root_of_each, [(torch.rand(3),), (torch.rand(4) * 40,), (torch.rand(130),)]),
    (softmax_in_a_loop, [(torch.eye(2, 3),), (torch.rand(4, 5),), (torch.eye(9, 70),)]),
    (joined_in_branches, [(torch.ones(3, 6),), (-torch.ones(4, 2),), (torch.ones(33, 5),)]),
    (rows_written, [(torch.rand(3, 6), n(2)), (torch.rand(5, 3), n(5)), (torch.rand(4, 2), n(0))]),
    (branch_in_a_loop, [(torch.rand(3, 6),), (-torch.rand(2, 2),), (torch.rand(5, 4) - 0.5,)]),
    (turned_in_a_loop, [(torch.rand(3, 6), n(2)), (torch.rand(5, 3), n(5)), (torch.rand(4, 20), n(0))]),
]
