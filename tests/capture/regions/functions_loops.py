"""Loops that values decide about (`functions` has the grammar of CASES)."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import nn

from tests.capture.regions.functions import N, P, n

__all__ = ["CASES"]

ROWS = torch.arange(12.0).reshape(4, 3) - 4


def nonzero_loop(x):
    total = torch.zeros(())
    for i in (x > 0).nonzero().flatten():
        total = total + x[i] * 2
    return total


def growing_rows(x):
    while x.shape[0] < 20 and x.sum() < 50:
        x = torch.cat([x, x[-1:] + 1])
    return x


def list_of_counted_loop(x, k):
    out = []
    for i in range(int(k)):
        out.append(x + i)
    return torch.stack(out)


def newton_root(x):
    root = x.clone()
    for _ in range(30):
        step = (root * root - x) / (2 * root)
        root = root - step
        if step.abs().max() < 1e-4:
            break
    return root


def power_iteration(a, v):
    value, error = torch.zeros(()), torch.ones(())
    rounds = 0
    while error > 1e-3 and rounds < 25:
        w = a @ v
        v = w / w.norm()
        new = v @ a @ v
        error, value = (new - value).abs(), new
        rounds += 1
    return value, rounds


def countdown(x, k):
    left = int(k)
    while left:
        x = x * 1.5
        left -= 1
    return x


def step_backwards(x, k):
    for i in range(int(k), 0, -2):
        x = x + i
    return x


def range_between(x, a, b):
    for i in range(int(a), int(b)):
        x = x * 2 - i
    return x


def rows_of_a_tensor(x):
    best = x[0]
    for row in x:
        if row.sum() > best.sum():
            best = row
        elif row[0] < -3:
            continue
    return best


def enumerate_rows(x):
    total = x[0] * 0
    for i, row in enumerate(x, 1):
        if row.max() > i:
            total = total + row * i
    return total


def zip_rows(x, y):
    total = torch.zeros(3)
    for a, b in zip(x, y):
        if a.sum() > b.sum():
            total += a
        else:
            total -= b
    return total


def reversed_rows(x):
    for row in reversed(list(x.unbind())):
        if row.sum() < 0:
            return row
    return x.sum(0)


def break_out_of_two(x, k):
    found = x * 0
    for i in range(int(k)):
        for j in range(3):
            if (x * i).sum() > 2 * j + 3:
                found = x * i + j
                break
        else:
            continue
        break
    return found


def while_in_for(x):
    for i in range(3):
        while x.max() < 2 ** (i + 1):
            x = x + 1
    return x


def for_in_while(x):
    rounds = 0
    while x.abs().sum() < 40:
        for i in range(2):
            if x[i] > 3:
                x = x * 2
            else:
                x = x + 1
        rounds += 1
    return x, rounds


def continue_skips_the_rest(x, k):
    total = torch.zeros(3)
    for i in range(int(k)):
        if i == 2 or total.sum() > 30:
            continue
        total = total + x.abs() * i
    return total


def else_after_break(x):
    for i in range(4):
        if x.sum() > 3 * i:
            break
        x = x + 1
    else:
        return x * 100
    return x, i


def loop_variable_afterwards(x, k):
    i = -1
    for i in range(int(k)):     # noqa: B007
        x = x + 1
    return x * i


def loop_keeps_its_dtype(x):
    total = torch.zeros(3, dtype=torch.float64)
    while total.sum() < 5:
        total += x.abs()
    return total


def integer_state(x, k):
    a, b = 0, 1
    for _ in range(int(k)):
        a, b = b, a + b
    return x * a


def euclid(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def digits(k):
    total = k * 0
    while k > 0:
        total = total + k % 10
        k = k // 10
    return total


def bisect_root(x):
    low, high = x.min() - 4, x.max() + 4
    while high - low > 1e-2:
        middle = (low + high) / 2
        if (x - middle).sum() > 0:
            low = middle
        else:
            high = middle
    return low


def longest_run(x):
    best = run = torch.zeros((), dtype=torch.long)
    for v in x:
        if v > 0:
            run = run + 1
        else:
            run = run * 0
        if run > best:
            best = run
    return best


def insertion_sort(x):
    y = x.clone()
    for i in range(1, 3):
        j = i
        while j > 0 and y[j - 1] > y[j]:
            kept = y[j].clone()
            y[j] = y[j - 1]
            y[j - 1] = kept
            j -= 1
    return y


def write_rows_in_loop(x):
    y = torch.zeros_like(x)
    i = 0
    while i < x.shape[0] and x[i].sum() < 4:
        y[i] = x[i] * 2
        i += 1
    return y


def slice_by_counter(x):
    total = torch.zeros(())
    i = 0
    while i < 4 and total < 10:
        total = total + x[i:].abs().sum()
        i += 1
    return total, i


def chained_generators(x):
    def scaled(t, factor):
        for row in t:
            if row.sum() > 0:
                yield row * factor
            else:
                yield row
    return sum(chain(scaled(x, 2), scaled(x, 3)), torch.zeros(3))


class Halting(nn.Module):
    """Adaptive computation: each round may be the last."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.cell = nn.GRUCell(3, 3)
        self.halt = nn.Linear(3, 1)

    def forward(self, x):
        h = torch.zeros_like(x)
        left = torch.ones(x.shape[0])
        out = torch.zeros_like(x)
        for _ in range(6):
            h = self.cell(x, h)
            p = torch.sigmoid(self.halt(h)).squeeze(-1) * left
            out = out + p[:, None] * h
            left = left - p
            if left.max() < 0.2:
                break
        return out, left


class Greedy(nn.Module):
    """Tokens until one of them is the end."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(7, 8)
        self.mix = nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 7)

    def forward(self, token):
        h = torch.zeros(1, 8)
        made = torch.full((9,), -1)
        i = 0
        while i < 9:
            h = self.mix(self.embed(token).view(1, 8), h)
            token = self.head(h).argmax(-1).squeeze()
            made[i] = token
            if token == 3:
                break
            i += 1
        return made, i


CASES: list[tuple[Any, list[tuple[torch.Tensor, ...]]]] = [
    (nonzero_loop, [(P,), (N,)]),
    (growing_rows, [(P,), (P * 20,)]),
    (list_of_counted_loop, [(P, n(3)), (P, n(5))]),
    (newton_root, [(P.abs() + 1,), (P.abs() * 50 + 1,)]),
    (power_iteration, [(torch.diag(P.abs() + 0.1), torch.ones(3)), (torch.eye(3), torch.ones(3))]),
    (countdown, [(P, n(3)), (P, n(0))]),
    (step_backwards, [(P, n(5)), (P, n(0)), (P, n(-3))]),
    (range_between, [(P, n(1), n(4)), (P, n(4), n(1))]),
    (rows_of_a_tensor, [(ROWS,), (-ROWS,)]),
    (enumerate_rows, [(ROWS,), (-ROWS,)]),
    (zip_rows, [(ROWS, -ROWS), (ROWS, ROWS.flip(0))]),
    (reversed_rows, [(ROWS,), (ROWS + 10,)]),
    (break_out_of_two, [(P, n(5)), (P * 0.01, n(3)), (P, n(0))]),
    (while_in_for, [(P,), (P * 9,)]),
    (for_in_while, [(P,), (P * 30,)]),
    (continue_skips_the_rest, [(P, n(6)), (P * 9, n(6)), (P, n(0))]),
    (else_after_break, [(P,), (P - 9,), (P * 2,)]),
    (loop_variable_afterwards, [(P, n(3)), (P, n(0))]),
    (loop_keeps_its_dtype, [(P,), (P * 9,)]),
    (integer_state, [(P, n(9)), (P, n(0))]),
    (euclid, [(n(48), n(18)), (n(7), n(0)), (n(3), n(12))]),
    (digits, [(n(9041),), (n(0),)]),
    (bisect_root, [(P,), (P * 7,)]),
    (longest_run, [(P,), (N,), (P.abs(),)]),
    (insertion_sort, [(P,), (N,), (P.abs(),)]),
    (write_rows_in_loop, [(ROWS,), (ROWS + 9,), (ROWS - 9,)]),
    (slice_by_counter, [(ROWS,), (ROWS * 0.01,)]),
    (chained_generators, [(ROWS,), (-ROWS,)]),
    (Halting(), [(ROWS,), (ROWS * 5,), (ROWS * 0,)]),
    (Greedy(), [(n(0),), (n(3),), (n(5),)]),
]
