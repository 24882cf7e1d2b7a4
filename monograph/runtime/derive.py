"""Copies made from weights by recipes: plain data, so that a loaded program can make them again.

    Step ::= ("pad", amounts as torch.nn.functional.pad takes them) | ("reshape", shape) | ("permute", dims)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

__all__ = ["Step", "apply"]

Step = tuple[str, tuple[int, ...]]


def apply(steps: Sequence[Step], tensor: torch.Tensor) -> torch.Tensor:
    """`steps` applied to `tensor`, as a contiguous tensor that shares no memory with it."""
    result = tensor
    for name, numbers in steps:
        if name == "pad":
            result = F.pad(result, tuple(numbers))
        elif name == "reshape":
            result = result.reshape(numbers)
        elif name == "permute":
            result = result.permute(numbers)
        else:
            raise ValueError(f"no recipe step {name!r}")
    return result.clone(memory_format=torch.contiguous_format)
