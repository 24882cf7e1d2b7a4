"""How much memory a value takes."""

from __future__ import annotations

from monograph.ir import dtypes
from monograph.ir.graph import Value
from monograph.schedule.kernel import Layout
from monograph.schedule.views import shape_of

__all__ = ["extent_bytes"]


def extent_bytes(value: Value, layout: Layout) -> int:
    """Bytes from the first to the last element."""
    shape = shape_of(value)
    if 0 in shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(shape, layout.strides, strict=True))
    return (last + 1) * dtypes.itemsize(value.tensor.dtype)
