"""Calls that eager refuses but fakes accept: an element type without a kernel, a number that does not fit, no elements.

`check(func, args, kwargs)` raises eager's own exception. It runs the op for real on made-up tensors (`by_example`):
where only dtypes and ranks can matter, or the tensors are large, with every size cut down to 1, else as they are.

    usual     ::= all tensors f32, or all f64, none empty, no out=; numbers that fit: not checked, but pointwise ops,
                  by the types of the numbers
    signature ::= op, dtype and rank and emptiness of every tensor, type and value of the rest: checked once

What eager refuses depends on values too (an index, a divisor), which are not known here. So a refusal counts only if
it is the same with all integers 0 and all 1, and from ops whose values must fit sizes only for an element type.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

import torch

from monograph import compat
from monograph.capture import by_example
from monograph.capture.dims import hint
from monograph.capture.layout import Layout, is_empty

__all__ = ["check"]

aten = torch.ops.aten
FULL = 1 << 14                  # elements of all tensors together up to which sizes stay as they are
REMEMBERED = 20_000             # signatures
LARGEST_F32 = torch.finfo(torch.float32).max
SHAPE_SAFE = frozenset({torch.Tag.pointwise, torch.Tag.reduction})      # right with any sizes, so with sizes 1
NUMBERS_ONLY = frozenset({aten.full.default, aten.scalar_tensor.default})
VALUES_FIT_SIZES = frozenset({"masked_scatter", "repeat_interleave"})
NOT_CHECKED = frozenset({
    "_local_scalar_dense", "is_nonzero", "item", "equal", "set", "resize", "_to_copy", "clone",
    "_ctc_loss", "ctc_loss", "segment_reduce",      # they follow lengths without asking whether memory is there
})

SIMPLE = (int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)

_accepted: set[Hashable] = set()


class _Unclear(Exception):
    """The call has an argument whose value is not known: it is not checked."""


def check(func: Any, args: Any, kwargs: Any) -> None:
    """Raise what eager raises for this call whatever the values of its tensors are."""
    if func not in NUMBERS_ONLY and not _is_checked(func):
        return
    tensors: list[torch.Tensor] = []
    rest: list[Hashable] = []
    try:
        _collect(args, tensors, rest)
        _collect(kwargs, tensors, rest)
    except _Unclear:
        return
    if not tensors:
        if func not in NUMBERS_ONLY:
            return
    elif not _is_checked(func):
        return
    signature: Hashable = (func, *((x.dtype, x.dim(), _emptiness(x)) for x in tensors), *rest)
    if tensors and _is_usual(tensors, rest) and not _has_out(func):
        if torch.Tag.pointwise not in func.tags:
            return
        signature = (func, tensors[0].dtype, len(tensors), *map(type, rest))
    if signature in _accepted:
        return
    _run(func, args, kwargs, tensors)
    if len(_accepted) > REMEMBERED:
        _accepted.clear()
    _accepted.add(signature)


def _collect(value: Any, tensors: list[torch.Tensor], rest: list[Hashable]) -> None:
    """Tensors go to `tensors`; everything else, flat and with its type, to `rest`."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu" or value.layout is not torch.strided or value.is_quantized:
            raise _Unclear
        if type(value) is not compat.FakeTensor and torch.nn.parameter.is_lazy(value):
            raise _Unclear
        if compat.has_symbols(value) and not Layout.of(value).is_backed:
            raise _Unclear
        tensors.append(value)
        rest.append(None)
    elif isinstance(value, (list, tuple)):
        rest.append(len(value))
        for entry in value:
            _collect(entry, tensors, rest)
    elif isinstance(value, dict):
        rest.extend(value)
        for entry in value.values():
            _collect(entry, tensors, rest)
    elif type(value) is torch.SymInt and compat.is_backed(value):
        rest += int, hint(value)
    elif value is None or isinstance(value, SIMPLE):
        rest += type(value), value
    else:
        raise _Unclear


def _is_usual(tensors: list[torch.Tensor], rest: list[Hashable]) -> bool:
    first = tensors[0].dtype
    if first is not torch.float32 and first is not torch.float64:
        return False
    if any(x.dtype is not first or is_empty(x) for x in tensors):
        return False
    return all(not isinstance(x, float) or abs(x) <= LARGEST_F32 or x - x != 0 for x in rest)


@functools.cache
def _is_checked(func: Any) -> bool:
    """Views only look at sizes, as fakes do; a backward's dtypes are its forward's, and it trusts its indices."""
    schema = func._schema
    is_view = not schema.is_mutable and any(each.alias_info is not None for each in schema.returns)
    name = _name(func)
    return func.namespace == "aten" and not is_view and name not in NOT_CHECKED and "_backward" not in name


@functools.cache
def _has_out(func: Any) -> bool:
    return any(argument.is_out for argument in func._schema.arguments)


def _emptiness(x: torch.Tensor) -> Hashable:
    return tuple(map(hint, x.shape)) if is_empty(x) else None


def _run(func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> None:
    safe = not SHAPE_SAFE.isdisjoint(func.tags) or func in NUMBERS_ONLY
    cut = safe or sum(Layout.of(x).numbers.numel for x in tensors) > FULL
    failure = _failure(func, args, kwargs, cut)
    if failure is not None and cut and not safe and not isinstance(failure, NotImplementedError):
        failure = _failure(func, args, kwargs, cut=False)
    if failure is not None and (isinstance(failure, NotImplementedError) or _name(func) not in VALUES_FIT_SIZES):
        raise failure


def _name(func: Any) -> str:
    """Of the op, or of its form that does not write."""
    name: str = func._schema.name.split("::")[1]
    return name if name.endswith("__") else name.rstrip("_")


def _failure(func: Any, args: Any, kwargs: Any, cut: bool) -> Exception | None:
    """What eager raises, if it raises the same for integers 0 and integers 1."""
    found: list[Exception] = []
    for integer in (0, 1):          # 1, which may lie outside of something, only where 0 is refused
        try:
            made = by_example.made_up(args, kwargs, integer, cut)
            if made is None:
                return None
            if func is aten.full.default:
                made[0][0] = []
            with compat.plain_torch(), torch.random.fork_rng(devices=[]):
                func(*made[0], **made[1])
        except Exception as failure:     # whatever eager raises is the answer
            found.append(failure)
        else:
            return None
    first, second = found
    return first if type(first) is type(second) and str(first) == str(second) else None
