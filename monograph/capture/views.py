"""Views: how one is read from its storage, and how a write goes back through it.

    Step ::= view op (args, kwargs) of the parent layout, part i of n when the op gives several

A view emits no node when it is made: its storage remembers the step. Reading a layout replays steps
from the base; writing walks the chain back through inverses. A layout without a step is read and
written by index arithmetic over the flat storage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import errors
from monograph.capture.layout import Layout
from monograph.capture.recorder import Recorder, type_of
from monograph.ir.graph import Value
from monograph.ops import table

__all__ = [
    "NO_STEP", "DynamicIndex", "Step", "flat_to_layout", "gather", "inverse", "layout_to_flat", "replay", "scatter",
    "static_recipes",
]

aten = torch.ops.aten

# Views that mean a place in the storage rather than in the parent: read by index arithmetic.
NO_STEP = frozenset({aten.as_strided.default, aten.as_strided_.default})

RESHAPES = frozenset({
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten._reshape_alias.default,
    aten.alias.default, aten.detach.default,
})
# Ops that hide from autograd that they give views.
AS_VIEWS: dict[Any, Any] = {
    aten.unsafe_split.Tensor: aten.split.Tensor,
    aten.unsafe_split_with_sizes.default: aten.split_with_sizes.default,
}
UNIT_DIMS = frozenset({aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default})


@dataclass(frozen=True, slots=True)
class Step:
    """`layout` = `func`(parent, *args, **kwargs), part `part` of `parts` when the op gives a list."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    parent: Layout
    layout: Layout
    part: int = 0
    parts: int = 1
    several: bool = False
    part_sizes: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class DynamicIndex:
    """The index of a select that only the run knows: i64[1], not negative."""

    value: Value


def replay(record: Recorder, step: Step, parent: Value) -> Value:
    """The value of the step's layout, given that of its parent."""
    func, layout = step.func, step.layout
    if func is aten.select.int and isinstance(step.args[1], DynamicIndex):
        sizes = _with_one(step)
        row = record.emit("aten.index_select.default", parent, step.args[0], step.args[1].value, sizes=sizes,
                          dtype=layout.dtype)
        return record.reshape(row, layout.sizes)
    if func in RESHAPES:
        return record.reshape(parent, layout.sizes)
    if func is aten._conj.default:
        return record.emit("aten.conj_physical.default", parent, like=layout)
    if func is aten._neg_view.default:
        return record.emit("aten.neg.default", parent, like=layout)
    func = AS_VIEWS.get(func, func)
    types = [type_of(sizes, layout.dtype) for sizes in (step.part_sizes if step.several else (layout.sizes,))]
    node = record.node(table.of_overload(func), (parent, *step.args), step.kwargs, types)
    return node.results[step.part]


# -- inverses ----------------------------------------------------------------------------
# rule(record, parent thunk, new value, step) -> new value of the parent

Inverse = Callable[[Recorder, Callable[[], Value], Value, Step], Value]


def _scatter_rule(name: str) -> Inverse:
    def rule(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
        return record.emit(name, parent(), new, *step.args, like=step.parent, **step.kwargs)
    return rule


def _with_one(step: Step) -> list[Any]:
    """The sizes of the parent with 1 in place of the selected dim."""
    return [1 if axis == step.args[0] else size for axis, size in enumerate(step.parent.sizes)]


def _select_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    axis, index = step.args
    if isinstance(index, DynamicIndex):
        row = record.reshape(new, _with_one(step))
        return record.emit("aten.index_copy.default", parent(), axis, index.value, row, like=step.parent)
    return record.emit("aten.select_scatter.default", parent(), new, axis, index, like=step.parent)


def _permute_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    order = [d % len(step.args[0]) for d in step.args[0]]
    return record.permute(new, [order.index(d) for d in range(len(order))])


def _transpose_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    return record.emit("aten.transpose.int", new, *step.args, like=step.parent)


def _t_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    return record.emit("aten.t.default", new, like=step.parent)


def _reshape_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    return record.reshape(new, step.parent.sizes)


def _dtype_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    return record.emit("aten.view.dtype", new, step.parent.dtype, like=step.parent)


def _same_elements(name: str) -> Inverse:
    def rule(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
        return record.emit(name, new, like=step.parent)
    return rule


def _part_back(record: Recorder, parent: Callable[[], Value], new: Value, step: Step) -> Value:
    """One part of split or unbind, as the slice or select it is."""
    if step.func is aten.unbind.int:
        axis = step.args[0] if step.args else 0
        return record.emit("aten.select_scatter.default", parent(), new, axis, step.part, like=step.parent)
    axis = step.args[1] if len(step.args) > 1 else step.kwargs.get("dim", 0)
    start = sum(sizes[axis] for sizes in step.part_sizes[:step.part])
    return record.emit("aten.slice_scatter.default", parent(), new, axis, start, start + step.layout.sizes[axis],
                       like=step.parent)


INVERSES: dict[Any, Inverse] = {
    aten.slice.Tensor: _scatter_rule("aten.slice_scatter.default"),
    aten.select.int: _select_back,
    aten.diagonal.default: _scatter_rule("aten.diagonal_scatter.default"),
    aten.transpose.int: _transpose_back,
    aten.t.default: _t_back,
    aten.permute.default: _permute_back,
    aten.view.dtype: _dtype_back,
    aten.view_as_real.default: _same_elements("aten.view_as_complex.default"),
    aten.view_as_complex.default: _same_elements("aten.view_as_real.default"),
    aten._conj.default: _same_elements("aten.conj_physical.default"),
    aten._neg_view.default: _same_elements("aten.neg.default"),
    aten.unbind.int: _part_back,
    aten.unsafe_split.Tensor: _part_back,
    aten.unsafe_split_with_sizes.default: _part_back,
    aten.split.Tensor: _part_back,
    aten.split_with_sizes.default: _part_back,
    **{func: _reshape_back for func in RESHAPES | UNIT_DIMS},
}


def inverse(step: Step) -> Inverse | None:
    """How a write goes back through `step`; None when only index arithmetic can say."""
    return INVERSES.get(step.func)


# -- the storage as one dimension ----------------------------------------------------------

def layout_to_flat(record: Recorder, layout: Layout, value: Value) -> Value:
    """The storage of a dense layout, as one dimension in memory order."""
    if not layout.is_dense():
        raise errors.UnsupportedError(f"a raw view of a tensor with strides {list(layout.strides)}", loc=record.loc,
                                      why="its memory is not one run of elements", hint="call .contiguous() first")
    return record.reshape(record.permute(value, layout.order()), (layout.numel,))


def flat_to_layout(record: Recorder, layout: Layout, flat: Value) -> Value:
    """The inverse of `layout_to_flat`."""
    order = layout.order()
    laid = record.reshape(flat, [layout.sizes[d] for d in order])
    return record.permute(laid, [order.index(d) for d in range(len(order))])


def _places(record: Recorder, layout: Layout) -> Value:
    """For every index of `layout`, its element in the flat storage (int64)."""
    places: Value | None = None
    rank = len(layout.sizes)
    for axis, (size, step) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        if size == 1:
            continue
        arange = record.node(table.lookup("aten.arange.start_step"), (0, size, 1), {"dtype": torch.int64},
                             (type_of((size,), torch.int64),)).results[0]
        scaled = record.emit("aten.mul.Tensor", arange, step, sizes=(size,), dtype=torch.int64)
        column = record.reshape(scaled, [size if d == axis else 1 for d in range(rank)])
        if places is None:
            places = column
        else:
            sizes = [b if a == 1 else a for a, b in zip(places.tensor.shape, column.tensor.shape, strict=True)]
            places = record.emit("aten.add.Tensor", places, column, sizes=sizes, dtype=torch.int64)
    if places is None:
        return record.full(layout.sizes, layout.offset, torch.int64)
    if layout.offset:
        places = record.emit("aten.add.Tensor", places, layout.offset, sizes=places.tensor.shape, dtype=torch.int64)
    return record.cast(places, layout.sizes, torch.int64)


def gather(record: Recorder, flat: Value, layout: Layout) -> Value:
    """The elements at `layout` of a flat storage."""
    if layout.at_zero().is_dense():       # one stretch of memory
        count = layout.numel
        part = record.emit("aten.slice.Tensor", flat, 0, layout.offset, layout.offset + count, sizes=(count,),
                           dtype=layout.dtype)
        return flat_to_layout(record, layout, part)
    return record.emit("aten.index.Tensor", flat, (_places(record, layout),), like=layout)


def scatter(record: Recorder, flat: Value, layout: Layout, new: Value) -> Value:
    """A flat storage with the elements at `layout` replaced."""
    sizes, dtype = flat.tensor.shape, flat.tensor.dtype
    if layout.at_zero().is_dense():
        part = layout_to_flat(record, layout.at_zero(), new)
        return record.emit("aten.slice_scatter.default", flat, part, 0, layout.offset, layout.offset + layout.numel,
                           sizes=sizes, dtype=dtype)
    return record.emit("aten.index_put.default", flat, (_places(record, layout),), new, sizes=sizes, dtype=dtype)


def static_recipes(recipes: dict[Any, Step]) -> dict[Any, Step]:
    """The steps that hold outside of the region they were met in: those without a value in them."""
    kept: dict[Any, Step] = {}
    for key, step in recipes.items():
        if not any(isinstance(entry, (DynamicIndex, Value)) for entry in pytree.tree_leaves((step.args, step.kwargs))):
            kept[key] = step
    return kept
