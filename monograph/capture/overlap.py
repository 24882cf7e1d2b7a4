"""What eager does with memory that meets itself: the checks it makes before it writes, which fake tensors skip, and
writes whose result depends on the order in which torch goes through the elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture import views
from monograph.capture.layout import Layout
from monograph.capture.recorder import type_of
from monograph.capture.regions.errors import Unmergeable
from monograph.ops import host

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["check_write", "depends_on_order", "write_in_order"]

MEETS_ITSELF = ("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation.")
MEETS_INPUT = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
               "memory location. Please clone() the tensor before performing the operation.")

# They index the written tensor, so torch checks no more than self-overlap.
UNCHECKED = frozenset({"index_put_", "scatter_", "_index_put_impl_"})


def check_write(tensor: torch.Tensor, layout: Layout, tensors: Iterable[torch.Tensor], name: str) -> None:
    """Raise RuntimeError as eager does when op `name` writes to `tensor` and it meets itself, or `tensors` in part."""
    if name == "copy_" and all(_is_same(tensor, layout, other) for other in tensors):
        return
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


def _is_same(tensor: torch.Tensor, layout: Layout, other: torch.Tensor) -> bool:
    return other is tensor or (compat.storage_id(other) == compat.storage_id(tensor)
                               and Layout.of(other).key == layout.key)


def _partly(a: Layout, b: Layout) -> bool:
    if a.key == b.key or not b.is_backed or 0 in a.key[0] or 0 in b.key[0]:
        return False
    if not (a.is_non_overlapping_and_dense() and b.is_non_overlapping_and_dense()):
        return False       # torch calls this "too hard" and lets it pass
    return bool(a.offset < b.extent and b.offset < a.extent)


def depends_on_order(target: torch.Tensor, layout: Layout, tensors: Iterable[torch.Tensor], name: str) -> bool:
    """Whether op `name` may read an element of `target`, through one of `tensors`, after it was written, or write one
    twice: what torch does not check."""
    if not layout.is_static or name in UNCHECKED or layout.is_non_overlapping_and_dense() and all(
            other is target for other in tensors):
        return False
    home, places = compat.storage_id(target), None
    for other in tensors:
        there = Layout.of(other)
        if other is target or compat.storage_id(other) != home or there.key == layout.key or not there.is_static:
            continue
        places = _places(layout) if places is None else places
        try:
            read = np.broadcast_to(_places(there), places.shape)
        except ValueError:                   # no op element by element
            continue
        if np.isin(read[read != places], places).any():
            return True
    return not layout.is_non_overlapping_and_dense() and not _is_box(layout) and len(
        np.unique(_places(layout))) < layout.numel


def _is_box(layout: Layout) -> bool:
    """Whether strides tell soon that no element lies where another one does."""
    least = 1
    for step, size in sorted((step, size) for size, step in zip(layout.sizes, layout.strides) if size > 1):
        if step < least:
            return False
        least = step * size
    return True


def _places(layout: Layout) -> Any:
    """Where each element lies."""
    places = np.array(layout.offset)
    for axis, (size, step) in enumerate(zip(layout.sizes, layout.strides)):
        steps = np.arange(size) * step
        places = places + steps.reshape((-1,) + (1,) * (len(layout.sizes) - axis - 1))
    return places


def write_in_order(tracer: Tracer, call: Call, target: torch.Tensor) -> Any:
    """A write that torch itself makes, on a copy of the whole storage."""
    if tracer.in_region:
        raise Unmergeable(f"{call.name} writes to memory that it reads, in a branch or loop")
    storage = tracer.memory.of(target)
    inside = [tensor for tensor in call.tensors if compat.storage_id(tensor) == compat.storage_id(target)]
    layouts = [Layout.of(tensor) for tensor in inside]
    if any(layout.dtype != storage.layout.dtype or layout.conj or layout.neg for layout in layouts):
        raise errors.UnsupportedError(f"{call.name} writes to memory that it reads through a view of another dtype",
                                      loc=tracer.record.loc, why="what comes of it depends on the order of elements",
                                      hint="clone the tensor that is read")
    outside = [tensor for tensor in call.tensors if all(tensor is not other for other in inside)]
    flat = tracer.memory.flat(storage)
    func = call.func                     # without the call, which holds fakes
    leaves, spec = pytree.tree_flatten((call.args, call.kwargs))
    positions = [next((i for i, tensor in enumerate((*inside, *outside)) if tensor is leaf), -1) for leaf in leaves]
    rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def run(given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        memory, *others = given
        memory = memory.clone(memory_format=torch.contiguous_format)
        tensors = [memory.as_strided(layout.sizes, layout.strides, layout.offset) for layout in layouts] + others
        args, kwargs = pytree.tree_unflatten(
            [tensors[position] if position >= 0 else leaf for position, leaf in zip(positions, rest)], spec)
        func(*args, **kwargs)
        return [memory]

    operands = (flat, *map(tracer.memory.read, outside))
    value, = tracer.node(host.of_function(call.name, run), (operands,), {},
                         [type_of(flat.tensor.shape, flat.tensor.dtype)])
    if len(storage.layout.sizes) != 1:
        value = views.flat_to_layout(tracer.record, storage.layout, value)
    tracer.memory.write_layout(storage, storage.layout, value)
    return call.restore(tracer.fake(call.func, call.args, call.kwargs))
