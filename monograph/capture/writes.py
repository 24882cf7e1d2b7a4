"""Ops that write: a functional twin is recorded and its result becomes the new content of the storage.

    in place   twin, converted and broadcast to self, written through self's layout
    out=       twin, written to each out tensor, which may have been resized
    metadata   nothing recorded: the fake now lies elsewhere
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture.dims import dims
from monograph.capture.inputs import Restart
from monograph.capture.layout import Layout
from monograph.capture.overlap import check_write, depends_on_order, write_in_order
from monograph.capture.recorder import type_of
from monograph.capture.regions.custom_vjp import keep_history
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.storage import Storage
from monograph.capture.twins import RANDOM_FILLS, out_names, twin, written
from monograph.capture.views import NO_STEP, Step
from monograph.ir.graph import Value
from monograph.ops import table

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["forget_history", "metadata", "write"]

aten = torch.ops.aten
GEOMETRIC = frozenset({"resize_", "resize_as_", "as_strided_", "set_"})


def write(tracer: Tracer, call: Call) -> Any:
    """Any op whose schema says that it writes to arguments."""
    targets = _targets(call)
    before = [Layout.of(target) for target in targets]
    homes = [tracer.memory.of(target) for target in targets]
    gives_history = torch.is_grad_enabled() and any(tracer.followed_by_autograd(tensor) is not None
                                                    for tensor in call.tensors)
    past: list[tuple[Storage, Value]] = []
    for target, layout in zip(targets, before, strict=True):
        _refuse_history(tracer, call, target)
        if gives_history:
            _follow(tracer, target)
        elif tracer.in_region and tracer.followed_by_autograd(tracer.memory.of(target).base) is not None:
            past.append(_past_autograd(tracer, target))
        check_write(target, layout, call.tensors, call.name)
    result = _record(tracer, call, targets, before, homes)
    for storage, value in past:
        keep_history(tracer, storage, value)
    return result


def _record(tracer: Tracer, call: Call, targets: list[torch.Tensor], before: list[Layout], homes: list[Storage]) -> Any:
    if len(targets) == 1 and depends_on_order(targets[0], before[0], call.tensors, call.name):
        return write_in_order(tracer, call, targets[0])
    if call.func is aten.copy_.default and isinstance(call.args[1], torch.Tensor):
        return call.restore(_copy(tracer, call))
    pure = twin(call.func)
    if pure is None:
        raise errors.UnsupportedError(f"{call.func}, which writes and has no functional form", loc=tracer.record.loc,
                                      why="a write is the op's value in a graph without writes",
                                      hint="use the op that gives a new tensor")
    fresh: list[Any] = []
    if call.func in RANDOM_FILLS:
        values = _random(tracer, call, pure, targets)
    else:
        values, fresh = _twin(tracer, call, pure)
    result = _fake(tracer, call, targets)
    for position, (target, layout, home, value) in enumerate(zip(targets, before, homes, values, strict=True)):
        after = Layout.of(target)
        if after.key != layout.key:               # out= resized it
            if fresh and after.sizes != layout.sizes and fresh[position] != after.strides:
                with tracer.quiet():              # to what the op would have returned, where fakes make it contiguous
                    target.as_strided_(after.sizes, fresh[position])
            _cover(tracer, home, target)
        tracer.memory.write(target, tracer.record.cast(value, target.shape, target.dtype))
    return call.restore(result)


def _fake(tracer: Tracer, call: Call, targets: list[torch.Tensor]) -> Any:
    """The op on fakes. Eager resizes the `out=` of factories without a warning."""
    with warnings.catch_warnings():
        if len(call.tensors) == len(targets):
            warnings.simplefilter("ignore")
        return tracer.fake(call.func, call.args, call.kwargs)


def _follow(tracer: Tracer, target: torch.Tensor) -> None:
    """`target` gets a history, and nothing else does: no other tensor that it may be, or that may be it."""
    _refuse_places(tracer, target, "gets a history")
    if tracer.in_region:
        tracer.claim(target)
        tracer.touch(target)


def _refuse_places(tracer: Tracer, target: torch.Tensor, what: str) -> Storage:
    """Unmergeable where `target` may be another tensor, or another one it; its storage."""
    storage = tracer.memory.of(target)
    if storage.places and storage.frozen is None:
        raise Unmergeable(f"a tensor that may be another one {what}", storage.site)
    for other in tracer.memory.by_id.values():
        if other.frozen is None and any(place.storage is storage for place in other.places):
            raise Unmergeable(f"a tensor that another one may be {what}", other.site)
    return storage


def _past_autograd(tracer: Tracer, target: torch.Tensor) -> tuple[Storage, Value]:
    """In a branch or loop `target` is about to get other numbers and keep its history: its storage, what that holds."""
    storage = _refuse_places(tracer, target, "is written past autograd")
    tracer.rewriting += [tracer.memory.sites[id(scope)] for scope in tracer.memory.scopes]
    return storage, storage.value


def forget_history(tracer: Tracer, target: torch.Tensor) -> None:
    """`target` is about to lose its history in a branch or loop, which leaves its numbers as they are."""
    _follow(tracer, target)
    value = tracer.memory.read(target)
    tracer.memory.write(target, tracer.record.emit("aten.detach.default", value, like=Layout.of(target)))


def _refuse_history(tracer: Tracer, call: Call, target: torch.Tensor) -> None:
    """Autograd would give a tensor of the caller's a history made of fakes."""
    real = call.lifted.get(id(target))
    if real is None or not torch.is_grad_enabled():
        return
    others = [call.lifted.get(id(tensor), tensor) for tensor in call.tensors]
    if any(other.requires_grad for other in others):
        raise errors.UnsupportedError("an in-place write under grad to a tensor that is not an argument",
                                      loc=tracer.record.loc, hint="write under torch.no_grad(), or to a copy",
                                      why="its history would begin in this call and outlive it")


def _targets(call: Call) -> list[torch.Tensor]:
    """The tensors the op writes to, in the order of its schema."""
    found: list[torch.Tensor] = []
    for position in written(call.func):
        value = call.argument(position)
        found += value if isinstance(value, (list, tuple)) else [value]
    return found


def _copy(tracer: Tracer, call: Call) -> Any:
    """`copy_` records nothing but a conversion."""
    target, source = call.args[0], call.args[1]
    value = tracer.record.cast(tracer.operand(source), target.shape, target.dtype)
    if tracer.in_region and tracer.followed_by_autograd(target) is not None:
        value = _instead_of(tracer, target, value)
    result = tracer.fake(call.func, call.args, call.kwargs)
    tracer.memory.write(target, value)
    return result


def _instead_of(tracer: Tracer, target: torch.Tensor, value: Any) -> Any:
    """`value` as it follows the old content of `target`, which keeps its history without a gradient."""
    if not torch.is_grad_enabled():
        return value
    never = tracer.record.full((), False, torch.bool)
    return tracer.memory.choose(never, tracer.operand(target), value)


def _twin(tracer: Tracer, call: Call, pure: Any) -> tuple[list[Any], list[Any]]:
    """Record the twin on the present values; its results, one per written argument, and the strides they have."""
    outs = out_names(call.func)
    count = sum(not argument.is_out and not argument.kwarg_only for argument in call.func._schema.arguments)
    args = call.args[:count]
    kwargs = {name: value for name, value in call.kwargs.items() if name not in outs}
    if any(argument.name == "dtype" for argument in pure._schema.arguments) and "dtype" not in kwargs and outs:
        kwargs["dtype"] = _targets(call)[0].dtype
    result = tracer.fake(pure, args, kwargs)
    leaves = result if isinstance(result, (list, tuple)) else [result]
    if not outs:
        _check_shapes(call, leaves)
    types = [type_of(leaf.shape, leaf.dtype) for leaf in leaves]       # promotion may differ from the op that writes
    values = tracer.node(table.of_overload(pure), tracer.encode(args), tracer.encode(kwargs), types)
    return list(values), [leaf.stride() for leaf in leaves]


def _check_shapes(call: Call, results: Sequence[torch.Tensor]) -> None:
    """RuntimeError where an op in place would give more than `self` has room for, which not all fakes check."""
    for target, result in zip(_targets(call), results, strict=False):
        if result.dim() > target.dim():
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                               f"{list(result.shape)}")


NORMAL = torch.ops.aten.normal_.default


def _random(tracer: Tracer, call: Call, pure: Any, targets: list[torch.Tensor]) -> list[Any]:
    """A random fill draws in memory order, so it is recorded on the memory's shape and permuted back."""
    target = targets[0]
    layout = Layout.of(target)
    order = layout.order()
    sizes = [layout.sizes[d] for d in order]
    if call.func is NORMAL and not target.is_contiguous():
        value = tracer.normal(sizes, tracer.encode(call.argument(1)), tracer.encode(call.argument(2)), layout.dtype)
        return [tracer.record.permute(value, [order.index(d) for d in range(len(order))])]
    blank = tracer.record.full(sizes, 0, layout.dtype)
    numbers = range(1, len(call.func._schema.arguments) - 1)       # without the generator, which is the default one
    args = (blank, *(tracer.encode(call.argument(i)) for i in numbers))
    values = tracer.node(table.of_overload(pure), args, {}, [type_of(sizes, layout.dtype)], blank=True)
    return [tracer.record.permute(values[0], [order.index(d) for d in range(len(order))])]


# -- metadata --------------------------------------------------------------------------------

def metadata(tracer: Tracer, call: Call) -> Any:
    """`t_()`, `resize_`, `set_`, ...: the tensor lies elsewhere from now on."""
    target = call.tensors[0]
    before, home = Layout.of(target), tracer.memory.of(target)
    if home.frozen is not None:                   # it may be another tensor, which would lie elsewhere too
        raise Unmergeable(*home.frozen)
    result = tracer.fake(call.func, call.args, call.kwargs)
    after = Layout.of(target)
    new_home = tracer.memory.find(target)
    if new_home is None:                          # set_() to a fresh, empty storage
        value = tracer.record.full(dims(after.sizes), 0, after.dtype)
        tracer.memory.add(target, value)
        return call.restore(result)
    if new_home is home and call.name not in GEOMETRIC:
        _remember(tracer, call, before, after)
    _cover(tracer, new_home, target)
    return call.restore(result)


def _remember(tracer: Tracer, call: Call, before: Layout, after: Layout) -> None:
    """The step that the out-of-place form of a metadata op would have left."""
    home = tracer.memory.of(call.tensors[0])
    packet = getattr(aten, call.name[:-1], None)
    view = getattr(packet, call.func._overloadname, None) if packet is not None else None
    if view is not None and view not in NO_STEP:
        home.remember(Step(view, call.args[1:], call.kwargs, before, after))


def _cover(tracer: Tracer, home: Any, target: torch.Tensor) -> None:
    """Grow `home` where `target`, which lies in it, reaches past its end."""
    layout = Layout.of(target)
    if layout.dtype != home.layout.dtype or layout.key in home.recipes or layout.key == home.layout.key:
        return
    if layout.is_static and home.layout.is_static and layout.extent > home.layout.numel:
        if home.input is not None:
            _see_all(tracer, home, compat.storage_id(target))
        tracer.memory.grow(home, int(layout.extent))
    elif layout.is_backed and home.layout.is_backed and not layout.fits(home.layout):
        raise errors.UnsupportedError("a tensor is resized to sizes that vary", loc=tracer.record.loc,
                                      why="its memory is laid out before", hint="make a new tensor")


def _see_all(tracer: Tracer, home: Any, key: int) -> None:
    """Start again with the caller's storage as one dimension where it is more than `home` covers."""
    real = next(entry.real for entry in tracer.entries if entry.home == key)
    count = real.untyped_storage().nbytes() // real.element_size()
    if not home.layout.is_dense() or not home.layout.is_static or home.layout.numel != count:
        raise Restart(compat.storage_id(real))
