"""What a program wrote before it raises stays written, and its random numbers stay drawn."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import monograph


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.count = 0

    def forward(self, x):
        self.total[0] += 1
        x.add_(torch.rand(3))
        self.count += 1
        if x.sum() > 0:
            raise ValueError("positive")
        return x * 2


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_writes_before_an_exception(backend: str) -> None:
    seen: list[Any] = []
    for module in (Counter(), monograph.compile(Counter(), backend=backend)):
        torch.manual_seed(0)
        with torch.no_grad():
            for sign in (-5.0, 1.0, -5.0, 1.0):
                x, ended = torch.full((3,), sign), ""
                try:
                    module(x)
                except ValueError as error:
                    ended = str(error)
                seen.append((ended, x.tolist(), module.total.tolist(), module.count))
        seen.append(torch.rand(2).tolist())
    assert seen[:5] == seen[5:]


def test_integers_of_what_is_none() -> None:
    def function(x):
        n = int(x)
        return n + round(x.item()), n if n > 3 else 0, int(n > 3) + 1

    fast = monograph.compile(function, backend="reference")
    for value in (2.5, float("nan"), float("inf"), -3.5, 1e30):
        ended = []
        for run in (function, fast):
            try:
                ended.append(run(torch.tensor(value)))
            except (ValueError, OverflowError) as error:
                ended.append((type(error), str(error)))
        assert ended[0] == ended[1]
    assert len(monograph.api.dispatcher_of(fast).entries) == 1
