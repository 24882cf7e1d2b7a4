"""When a fake kernel fails: run the op for real on made-up tensors.

Either the op fails in eager too, and then with eager's own exception, or it works and shows what its
result looks like: some fake kernels are stricter than eager or missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from monograph import compat

__all__ = ["laid_as_eager", "made_up", "result_or_error", "with_constants"]

Constant = Callable[[torch.Tensor], torch.Tensor | None]

LARGEST = 1 << 24       # elements of all arguments together


def with_constants(mode: Any, func: Any, args: Any, kwargs: Any, constant: Constant) -> Any:
    """A fake result whose sizes depend on values, when all integers and masks among the arguments are known.

    NotImplemented when they are not. `constant(fake)` is the value of a tensor that depends on no input.
    """
    tensors = _tensors((args, kwargs))
    indices = [tensor for tensor in tensors if not (tensor.is_floating_point() or tensor.is_complex())]
    if not indices or sum(tensor.untyped_storage().nbytes() for tensor in tensors) > LARGEST:
        return NotImplemented
    known = {id(tensor): constant(tensor) for tensor in indices}
    if any(value is None for value in known.values()):
        return NotImplemented
    with compat.plain_torch():
        made = _real((args, kwargs), [0], known)
        return _fake(mode, func(*made[0], **made[1]))


def result_or_error(mode: Any, func: Any, args: Any, kwargs: Any, failure: Exception | None) -> Any:
    """A fake result shaped as eager's, or eager's exception; `failure` itself where neither can be had.

    Without a `failure` the answer is then NotImplemented.
    """
    size = [0]
    with compat.plain_torch():
        made = _real((args, kwargs), size)
    if size[0] > LARGEST:
        if failure is None:
            return NotImplemented
        raise failure
    with compat.plain_torch(), torch.random.fork_rng(devices=[]):
        result = func(*made[0], **made[1])
    if func._schema.is_mutable and failure is not None:
        raise failure
    return _fake(mode, result)


def laid_as_eager(mode: Any, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """`result` of a fake kernel, with the strides that eager gives it where it can be asked."""
    got = _tensors(result)
    given = {compat.storage_id(tensor) for tensor in _tensors((args, kwargs))}
    if not got or any(compat.storage_id(tensor) in given for tensor in got):
        return result
    try:
        asked = result_or_error(mode, func, args, kwargs, None)
    except Exception:            # the made-up numbers do not suit the op: the fake kernel has said all there is
        return result
    want = [] if asked is NotImplemented else _tensors(asked)
    same = len(got) == len(want) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(got, want))
    return asked if same else result


def made_up(args: Any, kwargs: Any, integer: int, cut: bool) -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments like these with made-up tensors: integers `integer`, with `cut` sizes of 1; None when too large."""
    size = [0]
    with compat.plain_torch():
        made = _real((args, kwargs), size, integer=integer, cut=cut)
    return None if size[0] > LARGEST else (list(made[0]), made[1])


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for entry in value for leaf in _tensors(entry)] if isinstance(value, (list, tuple)) else []


def _real(
    value: Any, size: list[int], known: Mapping[int, Any] = MappingProxyType({}), integer: int = 0, cut: bool = False
) -> Any:
    if isinstance(value, torch.Tensor):
        if id(value) in known:
            return known[id(value)]
        inexact = value.is_floating_point() or value.is_complex()
        number = 1 if inexact else integer
        if cut:
            return torch.full([min(size, 1) for size in value.shape], number, dtype=value.dtype)
        size[0] += value.untyped_storage().nbytes()
        if size[0] > LARGEST:
            return None
        count = value.untyped_storage().nbytes() // value.element_size()
        memory = torch.full((count,), number, dtype=value.dtype)
        real = memory.as_strided(value.shape, value.stride(), value.storage_offset())
        if inexact and value.dim() >= 2 and value.shape[-1] == value.shape[-2]:
            real = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(torch.eye(value.shape[-1]))
        return real
    if isinstance(value, (list, tuple)):
        return type(value)(_real(entry, size, known, integer, cut) for entry in value)
    if isinstance(value, dict):
        return {name: _real(entry, size, known, integer, cut) for name, entry in value.items()}
    return value


def _fake(mode: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        args, options = (tuple(value.shape), value.stride()), {"dtype": value.dtype, "device": value.device}
        return compat.run_fake(mode, torch.ops.aten.empty_strided.default, args, options)
    if isinstance(value, (list, tuple)):
        return type(value)(_fake(mode, entry) for entry in value)
    return value
