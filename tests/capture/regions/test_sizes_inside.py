"""Sizes that values decide inside a branch or a loop: one program for all of them, equal to eager."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import monograph
from monograph.api import dispatcher_of
from monograph.ops.own import reads_value
from monograph.ops.text import parse


def experts_hit(x, mask, weight):
    out = torch.zeros_like(x)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        expert = expert[0]
        place, token = torch.where(mask[expert])
        chosen = functional.gelu(x[token] @ weight[expert])
        out.index_add_(0, token, chosen * (place[:, None] + 1))
    return out


def experts_by_number(x, mask, weight):
    out = torch.zeros_like(x)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        expert = int(expert.item())
        place, token = torch.where(mask[expert])
        if token.numel() == 0:
            continue
        out.index_add_(0, token, x[token] @ weight[expert])
    return out


def skipped(x, mask, weight):
    out = torch.zeros_like(x)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        expert = expert[0]
        if expert == 1:
            continue
        _, token = torch.where(mask[expert])
        out.index_add_(0, token, x[token] @ weight[expert])
    return out


def in_a_branch(x, mask, weight):
    if x.sum() > 0:
        y = x[x > 0].exp().sum()
    else:
        y = x[x <= 0].mean() + x[x <= 0].numel()
    return y * 2


def count_in_a_loop(x, mask, weight):
    total = torch.zeros(4)
    i = torch.tensor(0)
    while i < mask.sum() % 4 + 1:
        rows = x[(x[:, 0] > i)]
        total = total + rows.sum(0) * rows.shape[0]
        i = i + 1
    return total


def parts(x, mask, weight):
    counts = mask.sum((-1, -2))
    total = torch.zeros(4)
    for expert in (counts > 0).nonzero():
        n = int(counts[expert[0]])
        total = total + (torch.arange(n)[:, None] * x[expert[0]]).sum(0)
    return total


def ends_differ(x, mask, weight):
    y = torch.cat([x, x[:3] * 2]) if x.sum() > 0 else x * 3
    return (y * 2).softmax(0), y[-1] + y.shape[0]


def rows_of_a_branch(x, mask, weight):
    hit = mask[0].any()
    rows = x
    if hit:
        place, token = torch.where(mask[0])
        count = token.numel()
        rows = torch.cat([x, x[token]])
    total = rows.cumsum(0)
    return total.sum(0) + x[token].sum(0) * place.amax() + count if hit else total.sum(0)


def rows_in_a_loop(x, mask, weight):
    total = torch.zeros(4)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        rows = x[x[:, 0] > 0] if expert[0] > 1 else x[:2]
        total = total + rows.sum(0) * rows.shape[0]
    return total


FUNCTIONS = [experts_hit, experts_by_number, skipped, in_a_branch, count_in_a_loop, parts, ends_differ,
             rows_of_a_branch, rows_in_a_loop]


def calls():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(5, 4, 4, generator=generator)
    for most in (5, 2, 3, 1, 5):
        x = torch.randn(10, 4, generator=generator) - most % 2
        places = torch.randint(0, most, (10, 2), generator=generator)
        yield x, functional.one_hot(places, 5).permute(2, 1, 0), weight


def reads(fast):
    return [sum(map(reads_value, parse(entry.report.text).walk())) for entry in dispatcher_of(fast).entries]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_that_reads_nothing(function, backend):
    fast = monograph.compile(function, backend=backend)
    for arguments in calls():
        torch.testing.assert_close(fast(*arguments), function(*arguments))
    assert reads(fast) == [0]


@pytest.mark.parametrize("function", [experts_hit, in_a_branch, rows_of_a_branch])
def test_gradients_are_those_of_eager(function):
    fast = monograph.compile(function, backend="reference")
    for x, mask, weight in calls():
        found = []
        for called in (function, fast):
            leaves = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
            called(leaves[0], mask, leaves[1]).sum().backward()
            found.append([leaf.grad for leaf in leaves])
        torch.testing.assert_close(found[1], found[0])


def test_what_torch_takes_for_granted_of_a_size_is_a_condition_of_the_program():
    def function(x, counts):
        total = torch.zeros(())
        for i in range(int(counts[0])):
            n = int(counts[i])
            total = total + x[:n].sum() * n
        return total

    fast = monograph.compile(function, backend="reference")
    x = torch.arange(6.0)
    for counts in ([2, 3, 1], [3, 2, 4], [1, 1, 1], [3, -2, 5], [2, 9, 0], [0, 0, 0], [2, 1, 1]):
        counts = torch.tensor(counts)
        assert fast(x, counts) == function(x, counts)
