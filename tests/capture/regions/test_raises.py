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
