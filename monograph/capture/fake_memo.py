"""What an op's result looks like, remembered.

    key     ::= op, default dtype, and for every argument its layout (tensors) or type and value
    Result  ::= fresh layout | view of argument i at a layout | None

Torch's own cache of fake results costs several times what making the result costs. Only ops that write
nothing are remembered, and only results made of tensors.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from monograph import compat
from monograph.capture.dims import dim
from monograph.capture.layout import Layout
from monograph.capture.views import NO_STEP
from monograph.ir.symbolic import Expr
from monograph.ops import families

if TYPE_CHECKING:
    from monograph.capture.call import Call

__all__ = ["key_of_call", "make", "remember", "sized_by_values"]

LARGEST = 50_000        # entries
INDEX = torch.ops.aten.index.Tensor
_dtypes: dict[Hashable, torch.dtype] = {}


@dataclass(frozen=True, slots=True)
class Part:
    """One result; `argument` is the tensor argument it is a view of, -1 when fresh."""

    layout: Layout
    argument: int = -1


@dataclass(frozen=True, slots=True)
class Recipe:
    kind: Any                        # None: one tensor; else list or tuple
    parts: tuple[Part | None, ...]


Table: TypeAlias = dict[Hashable, Recipe]
_known: Table = {}


class _Unhashable(Exception):
    """The call has an argument that is no key."""


def key_of_call(call: Call) -> Hashable | None:
    """The key of a call; None when its result is not remembered."""
    if call.func in NO_STEP or sized_by_values(call.func, call.args):
        return None
    layouts = iter(call.layouts)
    try:
        return (call.func, torch.get_default_dtype(), *(_key(value, layouts) for value in call.args),
                *((name, _key(value, layouts)) for name, value in call.kwargs.items()))
    except _Unhashable:
        return None


def sized_by_values(func: Any, args: Any) -> bool:
    """The numbers in an argument decide the size of the result; of an index, only those of a mask do."""
    if torch.Tag.dynamic_output_shape not in func.tags:
        return False
    return func is not INDEX or any(
        isinstance(entry, torch.Tensor) and entry.dtype in families.MASKS for entry in args[1])


def _key(value: Any, layouts: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        layout = next(layouts)
        if not layout.is_backed:
            raise _Unhashable
        return layout.whole
    if isinstance(value, (list, tuple)):
        return tuple(_key(entry, layouts) for entry in value)
    if type(value) is torch.SymInt and compat.is_backed(value):
        return dim(value)
    if value is None or isinstance(value, (int, float, bool, str, torch.dtype, torch.device, torch.layout,
                                           torch.memory_format, complex)):
        return type(value), value
    raise _Unhashable


def make(key: Hashable, call: Call, mode: Any, trace: Table) -> Any:
    """The fake result of a call seen before, else NotImplemented. `trace`: what is remembered for one trace."""
    recipe = _known.get(key) or trace.get(key)
    if recipe is None:
        return _like_operands(call, mode)
    parts = [None if part is None else _part(part, call, mode) for part in recipe.parts]
    return parts[0] if recipe.kind is None else recipe.kind(parts)


def _part(part: Part, call: Call, mode: Any) -> torch.Tensor:
    if part.argument < 0:
        layout = part.layout
        return compat.fake_strided(mode, layout.sizes, layout.strides, layout.dtype)
    return compat.fake_view(mode, call.tensors[part.argument], part.layout)


def _table(key: Hashable, trace: Table) -> Table:
    """What was asked about symbols was asked in one trace, for which alone the answers are remembered."""
    return trace if _has_symbols(key) else _known


def _has_symbols(key: Any) -> bool:
    return isinstance(key, Expr) or type(key) is tuple and any(map(_has_symbols, key))


def remember(key: Hashable, call: Call, result: Any, trace: Table) -> None:
    """Keep what `result` looks like, where that says all."""
    several = type(result) in (list, tuple)
    leaves = list(result) if several else [result]
    homes = {compat.storage_id(tensor): number for number, tensor in enumerate(call.tensors)}
    parts: list[Part | None] = []
    for leaf in leaves:
        if leaf is None:
            parts.append(None)
            continue
        if not isinstance(leaf, torch.Tensor) or any(leaf is tensor for tensor in call.tensors):
            return
        if leaf.device.type != "cpu" or leaf.layout is not torch.strided:
            return
        layout, home = Layout.of(leaf), compat.storage_id(leaf)
        argument = homes.get(home, -1)
        if not layout.is_backed:
            return
        if argument < 0:
            if layout.offset or layout.conj or layout.neg:
                return
            homes[home] = -2          # another result in the same fresh storage
        elif argument == -2:
            return
        parts.append(Part(layout, argument))
    if any(part is not None and part.argument == -2 for part in parts):
        return
    table = _table(key, trace)
    if table is _known and not all(part is None or part.layout.is_static for part in parts):
        return
    if len(table) > LARGEST:
        table.clear()
    table[key] = Recipe(type(result) if several else None, tuple(parts))
    _remember_dtype(call, leaves)


# -- pointwise ops on operands that all lie alike ----------------------------------------------
# The result lies as they do; only its dtype has to be known, and that does not depend on sizes.

def _alike(call: Call) -> Hashable | None:
    if not call.layouts or torch.Tag.pointwise not in call.func.tags:
        return None
    first = call.layouts[0]
    if len(first.sizes) == 0 or 0 in first.key[0] or first.conj or first.neg or not first.is_backed:
        return None
    if first.is_ambiguous or (1 in first.key[0] and not first.is_static):
        return None
    whole = first.at_zero().whole
    if any(layout.at_zero().whole != whole for layout in call.layouts[1:]):
        return None
    if not first.at_zero().is_dense():
        return None
    others = [value for value in (*call.args, *call.kwargs.values()) if not isinstance(value, torch.Tensor)]
    if any(isinstance(value, (list, tuple, torch.memory_format)) for value in others):
        return None
    kinds = {int: int, float: float, torch.SymInt: int}
    numbers = tuple(kinds.get(type(value), (type(value), value)) for value in others)       # False equals 0j
    return call.func, torch.get_default_dtype(), len(call.layouts), first.dtype, tuple(call.kwargs), numbers


def _remember_dtype(call: Call, leaves: list[Any]) -> None:
    key = _alike(call)
    if key is not None and len(leaves) == 1 and isinstance(leaves[0], torch.Tensor):
        layout = Layout.of(leaves[0])
        if layout.whole[:2] == call.layouts[0].whole[:2]:
            _dtypes[key] = layout.dtype


def _like_operands(call: Call, mode: Any) -> Any:
    key = _alike(call)
    dtype = None if key is None else _dtypes.get(key)
    if dtype is None:
        return NotImplemented
    layout = call.layouts[0]
    return compat.fake_strided(mode, layout.sizes, layout.strides, dtype)
