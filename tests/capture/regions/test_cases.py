"""Loops over integers that Python needs itself, to index its lists and dicts: a branch for each that there may be."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import monograph
from monograph.api import dispatcher_of
from monograph.ops.own import reads_value
from monograph.ops.text import parse

EXPERTS = 3


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.router = nn.Linear(4, EXPERTS)
        self.listed = nn.ModuleList(nn.Linear(4, 4) for _ in range(EXPERTS))
        self.named = nn.ModuleDict({f"expert_{i}": nn.Linear(4, 4) for i in range(EXPERTS)})
        self.scales = {i: 1.0 + i for i in range(EXPERTS)}

    def routed(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        mask = nn.functional.one_hot(chosen, EXPERTS).permute(2, 1, 0)
        return weights, mask, (mask.sum((-1, -2)) > 0).nonzero()


class ByIndex(Experts):
    def forward(self, x):
        weights, mask, hit = self.routed(x)
        out = torch.zeros_like(x)
        for i in hit:
            at, token = torch.where(mask[i].squeeze(0))
            out.index_add_(0, token, self.listed[i](x[token]) * weights[token, at, None])
        return out


class ByName(Experts):
    def forward(self, x):
        weights, mask, hit = self.routed(x)
        out = torch.zeros_like(x)
        for i in hit:
            at, token = torch.where(mask[i[0]])
            out.index_add_(0, token, self.named[f"expert_{i[0]}"](x[token]) * weights[token, at, None])
        return out


class ByNumber(Experts):
    def forward(self, x):
        hit = self.routed(x)[2].flatten()
        for place, i in enumerate(hit.tolist()):
            if i == 1:
                continue
            x = x * self.scales[i] + place
            if x.sum() > 50:
                break
        return x, i


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.randn(rows, 4) * 3 for rows in (3, 3, 3)] + [torch.ones(3, 4) * k for k in (-5, 0, 9)]


@pytest.mark.parametrize("model, backend", [(ByIndex, "reference"), (ByName, "llvm"), (ByNumber, "reference")])
def test_one_program_that_reads_nothing(model: Any, backend: str) -> None:
    eager = model()
    fast = monograph.compile(eager, backend=backend)
    with torch.no_grad():
        for x in inputs():
            torch.testing.assert_close(fast(x), eager(x))
    entry, = dispatcher_of(fast).entries
    assert not any(reads_value(node) for node in parse(entry.report.text).walk())


def last_of_a_loop(x, rows: list[Any]):
    for i in (x > 0).nonzero():
        found = rows[i]
    return found + 1


def test_an_index_that_is_out_of_range_raises_as_in_eager() -> None:
    fast = monograph.compile(last_of_a_loop, backend="reference")
    rows = [torch.ones(2), torch.zeros(2)]
    for x in ([1.0, -1.0, -1.0], [1.0, 1.0, -1.0]):
        assert torch.equal(fast(torch.tensor(x), rows), last_of_a_loop(torch.tensor(x), rows))
    for x in ([1.0, -1.0, 1.0], [-1.0, -1.0, -1.0]):
        for run in (last_of_a_loop, fast):
            with pytest.raises((IndexError, UnboundLocalError)):
                run(torch.tensor(x), rows)


def test_gradients_are_those_of_eager() -> None:
    eager = ByIndex()
    fast = monograph.compile(eager, backend="reference")
    for x in inputs()[:2]:
        results = []
        for run in (eager, fast):
            eager.zero_grad()
            run(x).square().sum().backward()
            results.append([None if p.grad is None else p.grad.clone() for p in eager.parameters()])
        torch.testing.assert_close(results[1], results[0])
