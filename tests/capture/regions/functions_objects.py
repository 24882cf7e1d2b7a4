"""Branches of Python objects, scopes and statements (`functions` has the grammar of CASES)."""

from __future__ import annotations

import contextlib
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.capture.regions.functions import N, P, n

__all__ = ["CASES"]

Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class State:
    x: Any
    steps: int = 0


def dict_written_in_branch(x):
    made = {"x": x}
    if x.sum() > 0:
        made["y"] = x * 2
    else:
        made["y"] = x - 1
    return made["x"] + made["y"]


def dict_replaced_in_loop(x):
    state = {"x": x, "rounds": 0}
    while state["x"].sum() < 20:
        state["x"] = state["x"] + 2
        state["rounds"] += 1
    return state["x"], state["rounds"]


def list_item_in_branch(x):
    parts = [x, x * 2, x * 3]
    if x[0] > 0:
        parts[1] = parts[0] + parts[2]
    parts[-1] += 1
    return parts


def namedtuple_in_branch(x):
    pair = Pair(x, x * 2)
    if x.sum() > 0:
        pair = pair._replace(second=x * 5)
    return pair.first + pair.second


def dataclass_in_loop(x):
    state = State(x)
    while state.x.sum() < 12:
        state.x = state.x * 2 + 1
        state.steps += 1
    return state.x, state.steps


def ordered_dict(x):
    layers = OrderedDict(double=lambda t: t * 2, shift=lambda t: t - 1)
    for name, layer in layers.items():
        if x.sum() > 0 or name == "shift":
            x = layer(x)
    return x


def default_dict(x):
    found = defaultdict(lambda: torch.zeros(()))
    for i, v in enumerate(x):
        found[i % 2] = found[i % 2] + v
    return found[0] if found[0] > found[1] else found[1]


def nonlocal_in_branch(x):
    total = torch.zeros(())

    def add(v):
        nonlocal total
        if v > 0:
            total = total + v
        else:
            total = total - v / 2
    for v in x:
        add(v)
    return total


def closure_over_loop_variable(x):
    made = []
    for k in range(3):
        made.append(lambda t, k=k: t * k if t.sum() > k else t + k)
    return sum(f(x) for f in made)


def partial_and_reduce(x):
    def step(scale, a, b):
        return a + b * scale if a > b else a - b
    return reduce(partial(step, 3), x)


def default_argument(x):
    def f(t, scale=2.0, *rest, bias=1, **more):
        if t.sum() > 0:
            return t * scale + bias
        return t - more.get("shift", 0) - len(rest)
    return f(x) + f(x, 3, 4, 5, shift=2)


def with_in_branch(x):
    if x.sum() > 0:
        with torch.no_grad():
            scale = x.sum() * 2
    else:
        scale = torch.ones(())
    return x * scale


def early_return_from_with(x):
    with contextlib.nullcontext(3) as k:
        if x.sum() > 0:
            return x * k
        x = x - 1
    return x


def finally_after_return(x):
    seen = []
    try:
        if x.sum() > 0:
            return x * 2, seen
        x = x + 1
    finally:
        seen.append(1)
    return x, seen


def else_of_try(x):
    try:
        y = x / x.sum()
    except ZeroDivisionError:
        y = x
    else:
        if y.max() > 1:
            y = y.clamp(max=1)
    return y


def star_targets(x):
    first, *middle = x.unbind()
    if first > 0:
        first, *middle = [v * 2 for v in (first, *middle)]
    return torch.stack([first, *middle])


def walrus(x):
    if (total := x.sum()) > 0:
        return x / total
    return x * total


def nested_ternaries(x):
    s = x.sum()
    return x if s > 2 else (x * 2 if s > 0 else (x * 3 if s > -2 else x * 4))


def boolean_values(x):
    flag = (x.sum() > 0) or (x[0] < -5)
    other = (x[1] > 0) and (x[2] < 0)
    return (x + 1 if flag else x - 1) * (2 if other else 3)


def equality_of_numbers(x, k):
    if k == 3 != x.sum():
        return x * 3
    return x


def chained_comparison(x):
    return x + 1 if -1 <= x.min() <= x.max() < 3 else x - 1


def builtins_over_rows(x):
    return max(x, key=abs) + min(x) * sum(x) - abs(min(0, x[0]))


def sorted_values(x):
    low, *_, high = sorted(x)
    return x * low + high


def filter_and_map(x):
    return sum(map(lambda v: v * v, filter(lambda v: v > 0, x)), torch.zeros(()))


def comprehension_with_filter(x):
    return [v * 2 for v in x if v > 0]


def dict_comprehension(x):
    return {i: (v if v > 0 else -v) for i, v in enumerate(x)}


def nested_comprehension(x):
    return torch.stack([torch.stack([a * b if a > b else a + b for b in x]) for a in x])


def conditional_function(x):
    f = torch.relu if x.sum() > 0 else torch.tanh
    return f(x)


def conditional_dtype(x):
    y = x.double() if x.sum() > 0 else x
    return y * 2


def conditional_shape(x):
    y = x[:2] if x.sum() > 0 else x
    return y.sum() + y.shape[0]


def shadowed_names(x):
    sum = x.sum()
    if sum > 0:
        max = x * 2
    else:
        max = x
    return max + sum


def deleted_name(x):
    y = x * 2
    if y.sum() > 0:
        z = y
        del y
        y = z + 1
    return y


def mutual_recursion(x):
    def even(t, k):
        return t if k == 0 else odd(t * 2 if t.sum() > 0 else t - 1, k - 1)

    def odd(t, k):
        return -t if k == 0 else even(t + 1, k - 1)
    return even(x, 4)


def match_shapes(x):
    match (x.shape, x.sum() > 0):
        case ((3,), positive) if positive:
            return x * 2
        case ((_,), _):
            return x * 3
    return x


def match_mapping(x, k):
    match {"kind": int(k), "x": x}:
        case {"kind": 1, "x": y}:
            return y * 2
        case {"kind": 2 | 3, **rest}:
            return rest["x"] * 3
    return x


class Property(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    @property
    def shrunk(self):
        return self.scale / 2 if self.scale > 1 else self.scale

    @staticmethod
    def positive(x):
        return x.sum() > 0

    @classmethod
    def make(cls, x):
        return x * 3 if cls.positive(x) else x

    def forward(self, x):
        return self.make(x) * self.shrunk


class Counted(nn.Module):
    """Writes a buffer and an attribute on one path."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.last: Any = None

    def forward(self, x):
        if x.sum() > 0:
            self.seen += x.detach().sum()
            self.last = x * 2
        else:
            self.last = x
        return self.last + self.seen


class Routed(nn.Module):
    """The expert with the highest score."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.gate = nn.Linear(3, 3)
        self.experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        chosen = self.gate(x).argmax()
        for i, expert in enumerate(self.experts):
            if chosen == i:
                return expert(x) * i
        return x


class Clipped(nn.Module):
    """Running statistics that decide."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        y = self.norm(x)
        if y.abs().max() > 1.4:
            y = F.hardtanh(y)
        return y


ROWS = torch.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0], [4.0, 0.0, -3.0]])

CASES: list[tuple[Any, list[tuple[torch.Tensor, ...]]]] = [
    (dict_written_in_branch, [(P,), (N,)]),
    (dict_replaced_in_loop, [(P,), (P * 20,)]),
    (list_item_in_branch, [(P,), (N,)]),
    (namedtuple_in_branch, [(P,), (N,)]),
    (dataclass_in_loop, [(P,), (P * 9,)]),
    (ordered_dict, [(P,), (N,)]),
    (default_dict, [(P,), (N,)]),
    (nonlocal_in_branch, [(P,), (N,)]),
    (closure_over_loop_variable, [(P,), (N,), (P.abs() * 3,)]),
    (partial_and_reduce, [(P,), (N,)]),
    (default_argument, [(P,), (N,)]),
    (with_in_branch, [(P,), (N,)]),
    (early_return_from_with, [(P,), (N,)]),
    (finally_after_return, [(P,), (N,)]),
    (else_of_try, [(P,), (N,), (P.abs(),)]),
    (star_targets, [(P,), (N,)]),
    (walrus, [(P,), (N,)]),
    (nested_ternaries, [(P,), (N,), (P * 0.3,), (N * 0.3,)]),
    (boolean_values, [(P,), (N,), (P.abs(),), (N * 9,)]),
    (equality_of_numbers, [(P, n(3)), (P, n(2)), (torch.ones(3), n(3))]),
    (chained_comparison, [(P,), (P * 9,)]),
    (builtins_over_rows, [(P,), (N,)]),
    (sorted_values, [(P,), (N,)]),
    (filter_and_map, [(P,), (N,)]),
    (comprehension_with_filter, [(P,), (N,)]),
    (dict_comprehension, [(P,), (N,)]),
    (nested_comprehension, [(P,), (N,)]),
    (conditional_function, [(P,), (N,)]),
    (conditional_dtype, [(P,), (N,)]),
    (conditional_shape, [(P,), (N,)]),
    (shadowed_names, [(P,), (N,)]),
    (deleted_name, [(P,), (N,)]),
    (mutual_recursion, [(P,), (N,)]),
    (match_shapes, [(P,), (N,)]),
    (match_mapping, [(P, n(1)), (P, n(3)), (P, n(7))]),
    (Property(), [(P,), (N,)]),
    (Counted(), [(P,), (N,)]),
    (Routed(), [(P,), (N,), (P * 5,), (N * 5,)]),
    (Clipped(), [(ROWS,), (ROWS * 0 + 1,)]),
]
