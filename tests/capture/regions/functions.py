"""Functions whose control flow depends on values, and inputs that take their paths.

    CASES ::= (function, inputs*)    every input is a tuple of tensors
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

__all__ = ["CASES"]

P = torch.tensor([1.0, 2.0, -0.5])
N = -P


def n(value: int) -> torch.Tensor:
    return torch.tensor(value)


def branch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


def counting_loop(x):
    i = 0
    while x.sum() < 100:
        x = x * 2
        i += 1
    return x, i


def counted_loop_with_jumps(x, k):
    acc = torch.zeros(3)
    for i in range(int(k)):
        acc = acc + x * i
        if acc.sum() > 20:
            break
        if i % 2 == 0:
            continue
        acc = acc + 1
    return acc


def return_from_nested_loops(x, k):
    for _ in range(k.item()):
        for _ in range(3):
            x = x + 1
            if x.max() > 5:
                return x * 10
    return x


def defined_in_one_branch(x):
    if x.sum() > 0:
        z = x * 3
    y = x + 1
    if x.sum() > 0:
        y = y + z
    return y


def list_of_branches(x):
    out = []
    for _ in range(3):
        x = x * 2
        out.append(x if x.sum() > 4 else -x)
    return torch.stack(out)


def writes_in_branches(x):
    y = x.clone()
    if x.sum() > 0:
        y.add_(5)
        x[0] = 7.0
    else:
        y.mul_(2)
    return y + x


def recursion(x, depth=3):
    if depth == 0:
        return x
    if x.sum() > 0:
        return recursion(x - 1, depth - 1)
    return recursion(x + 1, depth - 1)


def absolute_first(function):
    @functools.wraps(function)
    def wrapped(x, *rest):
        if x.numel() > 1 and x.min() < 0:
            x = x.abs()
        return function(x, *rest)
    return wrapped


@absolute_first
def lambda_with_ternary(x):
    k = 2
    pick = lambda t: t * k if t.sum() > 3 else t / k      # noqa: E731
    return pick(x)


class Base(nn.Module):
    def forward(self, x):
        return x * 2 if x.mean() > 0 else x * 3


class EarlyExit(Base):
    def __init__(self) -> None:
        super().__init__()
        self.__private = 1
        self.register_buffer("count", torch.zeros(3))
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.max() > 0.5:
                break
        if x.sum() > 0:
            x = super().forward(x) + self.__private
            self.count.add_(1)
        return x


def _generated(x, count):
    for i in range(count):
        if x.sum() > 0:
            y = x + i
        else:
            y = x - i
        yield y


def generator(x):
    return sum(_generated(x, 3))


def caught_raise(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y = x + 1
    except ValueError:
        y = x * 5
    return y


def boolean_operators(x):
    if not (x > 0).all() and (x[0] > 1 or x[1] > 1):
        return x * 2
    elif 0 < x[0] < 1:
        return x * 4
    assert (x > -100).all(), "bad"
    return x


def nothing_or_tensor(x):
    if x.sum() > 0:
        return None
    return x


def comprehension(x):
    return [v * 2 if v > 0 else v for v in x]


def collatz(x):
    steps = torch.zeros((), dtype=torch.long)
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


def loop_with_else(x):
    while True:
        x = x + 1
        if x.sum() > 10:
            return x * 2
        if x[0] > 50:
            break
    else:
        x = x * 0
    return x - 1


def user_raise(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


def user_assert(x):
    assert (x > -1).all(), f"too small: {x.ndim}"
    return x + 1


def alias_on_one_path(x):
    y = x
    if x.sum() > 0:
        y = x
    else:
        y = torch.ones(3)
    y.add_(1)
    return y * 1, x * 2


def swapped_carries(a, b):
    i = 0
    while (a.sum() + i) < 20:
        a, b = b, a + b
        i += 1
    return a, b, i


def carried_view_written(x):
    y = x.clone()
    row = y[0]
    i = 0
    while i < x.sum():
        row += 1
        row = y[1] if i % 2 == 0 else y[0]
        i += 1
    return y


def number_arithmetic(x, k):
    count = k.item()
    half = count // 2
    if count % 2 == 1 and half >= 1:
        return x * half + count
    return x / (count + 1) - abs(half - 3)


def maximum_of_numbers(x, k):
    best = max(int(k), 2, int(x.sum()))
    return x * best


def any_and_all(x):
    if any(v > 1.5 for v in x):
        return x + 1
    if all(v < 0.9 for v in x):
        return x + 2
    return x + 3


def match_statement(x, k):
    match int(k):
        case 0:
            return x
        case 1 | 2:
            return x * 2
        case value if value > 10:
            return x * 3
    return x * 4


def match_classes(x, k):
    match int(k), float(k):
        case bool(), _:
            return x
        case int(n), float() if n > 10:
            return x * n
        case int(real=1), _:
            return x * 2
    match bool(k):
        case float() | str():
            return x * 3
        case int() if x.sum() > 0:
            return x * 4
        case _:
            return x * 5


def types_of_numbers(x, k):
    n = int(k)
    made = type("Made", (), {})
    if type(n) is not int or type(n > 2) is not bool or made.__module__ != __name__:
        return x
    return x * n


def types_of_texts(x, k):
    text = f"{int(k)}"
    match text:
        case int():
            return x
        case str(same) if isinstance(same, str) and type(same) is str:
            return x * 2
    return x * 3


def attributes_of_numbers(x, k):
    return x * int(k).bit_length() if float(k).is_integer() else x


def membership(x, k):
    return x + 1 if int(k) in (1, 3, 5) else x - 1


def unbound_read(x):
    if x.sum() > 0:
        z = x
    return z * 2


CASES: list[tuple[Any, list[tuple[torch.Tensor, ...]]]] = [
    (branch, [(P,), (N,)]),
    (counting_loop, [(P,), (P * 9,), (P * 1000,)]),
    (counted_loop_with_jumps, [(P, n(4)), (P, n(0)), (P * 4, n(9))]),
    (return_from_nested_loops, [(P, n(1)), (P, n(4)), (P, n(0))]),
    (defined_in_one_branch, [(P,), (N,)]),
    (list_of_branches, [(P,), (N,)]),
    (writes_in_branches, [(P,), (N,)]),
    (recursion, [(P,), (N,)]),
    (lambda_with_ternary, [(P,), (N,), (P.abs() * 3,)]),
    (EarlyExit(), [(P,), (N,), (P * 10,)]),
    (generator, [(P,), (N,)]),
    (caught_raise, [(P,), (N,)]),
    (boolean_operators, [(P,), (N,), (P.abs(),), (P.abs() * 0.3,)]),
    (nothing_or_tensor, [(N,), (P,)]),
    (comprehension, [(P,), (N,)]),
    (collatz, [(n(6),), (n(27),), (n(1),)]),
    (loop_with_else, [(P,), (P * 30,)]),
    (user_raise, [(P,), (N,)]),
    (user_assert, [(P,), (N,)]),
    (alias_on_one_path, [(P,), (N,)]),
    (swapped_carries, [(P.abs(), P.abs()), (P * 100, P)]),
    (carried_view_written, [(torch.ones(2, 3) * 0.7,), (torch.zeros(2, 3),)]),
    (number_arithmetic, [(P, n(3)), (P, n(1)), (P, n(4)), (P, n(-3))]),
    (maximum_of_numbers, [(P, n(1)), (P, n(9)), (P * 10, n(3))]),
    (any_and_all, [(P,), (P * 0.5,), (P * 0.4,)]),
    (match_statement, [(P, n(0)), (P, n(2)), (P, n(30)), (P, n(7))]),
    (match_classes, [(P, n(1)), (P, n(12)), (P, n(7)), (N, n(7))]),
    (types_of_numbers, [(P, n(0)), (P, n(3))]),
    (types_of_texts, [(P, n(1)), (P, n(2))]),
    (attributes_of_numbers, [(P, n(1)), (P, n(9))]),
    (membership, [(P, n(3)), (P, n(2))]),
    (unbound_read, [(P,), (N,)]),
]
