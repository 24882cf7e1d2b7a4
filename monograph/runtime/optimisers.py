"""Which tensors optimisers stepped, and when: fused optimisers write weights without bumping a version.

Every step of any optimiser is one more epoch; the storages of the parameters it holds are remembered with
it. Nothing is recorded until somebody listens.
"""

from __future__ import annotations

from typing import Any

import torch

from monograph import compat

__all__ = ["epoch", "listen", "stepped"]

_FORGET_AT = 1 << 16      # remembered storages; then all older ones count as stepped at the current epoch

_state: dict[str, Any] = {"epoch": 0, "forgotten": 0, "handle": None}
_storages: dict[int, int] = {}


def listen() -> None:
    """Start recording; further calls do nothing."""
    if _state["handle"] is None:
        _state["handle"] = compat.after_optimizer_step(_record)


def epoch() -> int:
    """Number of optimiser steps recorded so far."""
    return _state["epoch"]


def stepped(tensor: torch.Tensor, since: int) -> bool:
    """Did an optimiser step memory of this tensor's storage after epoch `since`?"""
    if _state["forgotten"] > since:
        return True
    return _storages.get(compat.storage_address(tensor), 0) > since


def _record(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    now = _state["epoch"] + 1
    if len(_storages) > _FORGET_AT:
        _storages.clear()
        _state["forgotten"] = now
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            _storages[compat.storage_address(parameter)] = now
    _state["epoch"] = now
