"""`x[i]` with `i` a number that only the run knows: a view at an unknown place, as in eager. `x[:n] = y` of such sizes.

Its layout has a symbolic offset, its step is a select whose index is a value:

    read    index_select(parent, dim, index)
    write   index_copy(parent, dim, index, new)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.dims import key_of
from monograph.capture.layout import Layout
from monograph.capture.views import DynamicIndex, Step
from monograph.ir.graph import Value
from monograph.ir.symbolic import free_symbols

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["is_copied", "select", "site_of", "split_index"]

aten = torch.ops.aten


def split_index(x: torch.Tensor, index: Any, is_dynamic: Any) -> tuple[list[tuple[int, Any]], tuple[Any, ...]] | None:
    """Dims that an index selects at unknown places, last first, and the index that is left; None when there is none."""
    entries = index if isinstance(index, tuple) else (index,)
    if not any(is_dynamic(entry) for entry in entries):
        return None
    widths = [_width(entry) for entry in entries]
    missing = x.dim() - sum(widths)
    found, left, dim = [], [], 0
    for entry, width in zip(entries, widths, strict=True):
        if is_dynamic(entry):
            found.append((dim, entry))
        else:
            left.append(entry)
        dim += missing if entry is Ellipsis else width
    return found[::-1], tuple(left)


def _width(entry: Any) -> int:
    """Dims of the indexed tensor that one entry of an index stands for."""
    if entry is None or entry is Ellipsis or isinstance(entry, bool):
        return 0
    if isinstance(entry, torch.Tensor) and entry.dtype in (torch.bool, torch.uint8):
        return entry.dim()
    return 1


def select(tracer: Tracer, x: torch.Tensor, dim: int, index: torch.Tensor, site: Any) -> torch.Tensor:
    """The view `x.select(dim, index)`, written at `site`."""
    x, index = tracer.lift(x), tracer.lift(index)
    parent, size = Layout.of(x), x.shape[dim]
    place = _place(tracer, tracer.memory.read(index), size)
    symbol = tracer.mode.shape_env.create_unbacked_symint()
    tracer.index_sites[str(key_of(symbol))] = site
    sizes = (*parent.sizes[:dim], *parent.sizes[dim + 1:])
    strides = (*parent.strides[:dim], *parent.strides[dim + 1:])
    offset = parent.offset + symbol * parent.strides[dim]
    if torch.is_grad_enabled() and x.requires_grad:
        fake = x.as_strided(sizes, strides, offset)          # autograd is to know that it is a view
    else:
        fake = compat.run_fake(tracer.mode, aten.as_strided.default, (x, sizes, strides, offset), {})
    step = Step(aten.select.int, (dim, DynamicIndex(place)), {}, parent, Layout.of(fake))
    tracer.memory.of(x).remember(step)
    return fake


def site_of(tracer: Tracer, layout: Layout, known: Collection[str] = ()) -> Any:
    """The expression that put a view at an unknown place; None where no index but those behind `known` symbols did."""
    names = free_symbols(key_of(layout.offset)).difference(known)
    return next((site for name, site in tracer.index_sites.items() if name in names), None)


def _place(tracer: Tracer, index: Value, size: int) -> Value:
    """The index as i64[1], counted from the front."""
    record = tracer.record
    index = record.cast(index, (), torch.int64)
    negative = record.emit("aten.lt.Scalar", index, 0, sizes=(), dtype=torch.bool)
    wrapped = record.emit("aten.add.Tensor", index, size, sizes=(), dtype=torch.int64)
    return record.reshape(record.emit("aten.where.self", negative, wrapped, index, sizes=(), dtype=torch.int64), (1,))


def is_copied(tracer: Tracer, x: torch.Tensor, index: Any, new: Any) -> bool:
    """Whether `x[index] = new` is a copy into a view, and torch would ask whether the first size of `new` is 1. Its
    answer changes nothing: the copy spreads over what `x[index]` has more."""
    entries = index if type(index) is tuple else (index,)
    plain = all(isinstance(entry, (slice, int, torch.SymInt, type(None), type(Ellipsis))) and type(entry) is not bool
                for entry in entries)
    if not plain or not isinstance(new, compat.FakeTensor) or not new.dim() or not tracer.sizes.is_told(new.shape[0]):
        return False
    left = x.dim() + sum((entry is None) - isinstance(entry, (int, torch.SymInt)) for entry in entries)
    return new.dim() <= left
