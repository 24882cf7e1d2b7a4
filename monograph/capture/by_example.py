"""When a fake kernel fails: run the op for real on made-up tensors.

Either the op fails in eager too, and then with eager's own exception, or it works and shows what its
result looks like: some fake kernels are stricter than eager or missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture.dims import dims, hint, is_symbolic, key_of
from monograph.capture.layout import Layout
from monograph.capture.symbols import strides_of
from monograph.ir import symbolic

__all__ = ["laid_as_eager", "made_up", "result_or_error", "with_constants"]

Constant = Callable[[torch.Tensor], torch.Tensor | None]

LARGEST = 1 << 24       # elements of all arguments together
OTHERS = (2, 5)         # sizes that formulas are tried on: from these on, by twos


def with_constants(mode: Any, func: Any, args: Any, kwargs: Any, constant: Constant) -> Any:
    """A fake result whose sizes depend on values, when all integers and masks among the arguments are known.

    NotImplemented when they are not. `constant(fake)` is the value of a tensor that depends on no input.
    """
    tensors = _tensors((args, kwargs))
    if _has_symbols((args, kwargs)):
        return NotImplemented
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
        made = _real(_numbers((args, kwargs)), size)
    if size[0] > LARGEST:
        if failure is None:
            return NotImplemented
        raise failure
    with compat.plain_torch(), torch.random.fork_rng(devices=[]):
        result = func(*made[0], **made[1])
    if func._schema.is_mutable and failure is not None:
        raise failure
    if _has_symbols((args, kwargs)):
        raise failure or errors.UnsupportedError(f"{func} has no shape rule for sizes that vary")
    return _fake(mode, result)


def laid_as_eager(mode: Any, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """`result` of a fake kernel, with the strides that eager gives it where it can be asked."""
    got = _tensors(result)
    given = {compat.storage_id(tensor) for tensor in _tensors((args, kwargs))}
    if not got or any(compat.storage_id(tensor) in given for tensor in got):
        return result
    symbolic = _has_symbols((args, kwargs))
    with compat.plain_torch():
        numbers = _numbers((args, kwargs)) if symbolic else (args, kwargs)
    try:
        asked = result_or_error(mode, func, *numbers, None)
    except Exception:            # the made-up numbers do not suit the op: the fake kernel has said all there is
        return result
    want = [] if asked is NotImplemented else _tensors(asked)
    same = len(got) == len(want) and all(_shape(a) == _shape(b) and a.dtype == b.dtype for a, b in zip(got, want))
    if not symbolic:
        return asked if same else result
    if same and any(Layout.of(a).numbers.strides != b.stride() for a, b in zip(got, want)):
        if all(_lies_as_one_of(tensor, args) for tensor in want):
            return asked
        laid = _laid(mode, func, args, kwargs, result, want[0]) if isinstance(result, torch.Tensor) else None
        if laid is None:
            raise errors.UnsupportedError(f"{func} gives strides that its shape rule for sizes that vary does not")
        return laid
    return result


def _laid(mode: Any, func: Any, args: Any, kwargs: Any, result: torch.Tensor, want: torch.Tensor) -> Any:
    """`result` as eager lays it: in this call like `want`, and with other sizes by the same formulas. None where there
    are none."""
    with compat.plain_torch():
        strides = strides_of(want, result.shape)
    formulas = dims((*result.shape, *strides))
    names = sorted(frozenset[str]().union(*map(symbolic.free_symbols, formulas), *(
        symbolic.free_symbols(size) for given in _tensors((args, kwargs)) for size in dims(given.shape))))
    for least in OTHERS:
        env = {name: least + 2 * place for place, name in enumerate(names)}
        with compat.plain_torch():
            numbers = _numbers((args, kwargs), env)
        try:
            laid = result_or_error(mode, func, *numbers, None)
        except Exception:        # these sizes do not go together
            return None
        if laid is NotImplemented or [symbolic.evaluate(each, env) for each in formulas] != [
                *laid.shape, *laid.stride()]:
            return None
    with compat.plain_torch():
        return compat.fake_strided(mode, result.shape, strides, result.dtype)


def _lies_as_one_of(result: torch.Tensor, args: Any) -> bool:
    """Does it lie as an argument of its shape without symbols does, and so in every call?"""
    for given in _tensors(args):
        if Layout.of(given).is_static and given.shape == result.shape and Layout.of(result).is_static:
            with compat.plain_torch():
                like = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype)      # meta ones differ
                if torch.empty_like(like).stride() == result.stride():
                    return True
    return False


def made_up(args: Any, kwargs: Any, integer: int, cut: bool) -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments like these with made-up tensors: integers `integer`, with `cut` sizes of 1; None when too large."""
    size = [0]
    if _has_symbols((args, kwargs)):
        with compat.plain_torch():
            args, kwargs = _numbers((args, kwargs))
    with compat.plain_torch():
        made = _real((args, kwargs), size, integer=integer, cut=cut)
    return None if size[0] > LARGEST else (list(made[0]), made[1])


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(map(hint, tensor.shape))


def _has_symbols(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not Layout.of(value).is_static
    if isinstance(value, dict):
        return any(map(_has_symbols, value.values()))
    return any(map(_has_symbols, value)) if isinstance(value, (list, tuple)) else is_symbolic(value)


def _numbers(value: Any, env: Mapping[str, int] | None = None) -> Any:
    """Arguments with the sizes of this call, or those that symbols have in `env`: tensors on the meta device."""
    if isinstance(value, torch.Tensor) and not Layout.of(value).is_static:
        lies = Layout.of(value).numbers if env is None else Layout.of(value).evaluated(env)
        memory = torch.empty(lies.extent, dtype=value.dtype, device="meta")
        return memory.as_strided(lies.sizes, lies.strides, lies.offset)
    if isinstance(value, (list, tuple)):
        return type(value)(_numbers(entry, env) for entry in value)
    if isinstance(value, dict):
        return {name: _numbers(entry, env) for name, entry in value.items()}
    if not isinstance(value, torch.SymInt):
        return value
    return hint(value) if env is None else symbolic.evaluate(key_of(value), env)


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
        square = value.dim() >= 2 and value.shape[-1] == value.shape[-2]
        if inexact and square and not Layout.of(value).overlaps_itself():
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
