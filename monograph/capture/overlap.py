"""The checks eager makes on memory before it writes, which fake tensors skip."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from monograph import compat
from monograph.capture.layout import Layout

__all__ = ["check_write"]

MEETS_ITSELF = ("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation.")
MEETS_INPUT = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
               "memory location. Please clone() the tensor before performing the operation.")

# They index the written tensor, so torch checks no more than self-overlap.
UNCHECKED = frozenset({"index_put_", "scatter_", "_index_put_impl_"})


def check_write(tensor: torch.Tensor, layout: Layout, tensors: Iterable[torch.Tensor], name: str) -> None:
    """Raise RuntimeError as eager does when op `name` writes to `tensor` and it meets itself, or `tensors` in part."""
    if layout.overlaps_itself():
        raise RuntimeError(MEETS_ITSELF)
    if name in UNCHECKED or not layout.is_backed:
        return
    home = None
    for other in tensors:
        if other is tensor:
            continue
        home = home or compat.storage_id(tensor)
        if compat.storage_id(other) == home and _partly(layout, Layout.of(other)):
            raise RuntimeError(MEETS_INPUT)


def _partly(a: Layout, b: Layout) -> bool:
    if a.key == b.key or not b.is_backed or 0 in a.key[0] or 0 in b.key[0]:
        return False
    if not (a.is_non_overlapping_and_dense() and b.is_non_overlapping_and_dense()):
        return False       # torch calls this "too hard" and lets it pass
    return bool(a.offset < b.extent and b.offset < a.extent)
