"""Batch norm with a cumulative average (`momentum=None`): torch's module reads the number of batches as a Python float.

While a trace runs, the module's forward keeps that number a tensor: the statistics of the batch come from the same op
with a momentum of 1, and go into the running ones weighted by 1 / batches, in double precision as in torch's kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional

from monograph import compat

__all__ = ["cumulative_averages"]


@contextmanager
def cumulative_averages() -> Iterator[None]:
    """Inside, in this thread, batch norms with `momentum=None` ask for no number."""
    original = compat.BatchNorm.forward
    replaced = _forward(original, threading.get_ident())
    compat.BatchNorm.forward = replaced
    try:
        yield
    finally:
        compat.BatchNorm.forward = original


def _forward(original: Callable[..., Any], thread: int) -> Callable[..., Any]:
    def forward(self: Any, input: torch.Tensor) -> torch.Tensor:
        averages = (threading.get_ident() == thread and self.momentum is None and self.training
                    and self.track_running_stats and self.running_mean is not None and self.running_var is not None
                    and self.num_batches_tracked is not None)
        if not averages:
            result: torch.Tensor = original(self, input)
            return result
        self._check_input_dim(input)
        self.num_batches_tracked.add_(1)
        mean, var = torch.zeros_like(self.running_mean), torch.zeros_like(self.running_var)
        result = functional.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
        with torch.no_grad():
            weight = 1.0 / self.num_batches_tracked.to(torch.float64)
            for running, batch in ((self.running_mean, mean), (self.running_var, var)):
                running.copy_(weight * batch.to(torch.float64) + (1 - weight) * running.to(torch.float64))
        return result

    return forward
