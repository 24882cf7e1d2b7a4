"""Tensors without dims where torch functions take integers: `torch.arange(n)`, `x.view(n, -1)`, `x[:n]`.

`x.split([n, m])`: that sizes make up the whole is eager's to check (`assert_parts`), and no reason to take numbers.

Torch asks such a tensor for its number. A traced one is given as a size instead, which is a symbol where that can be.
Interpolation to a size that is a symbol skips the composite op, which takes numbers only (`interpolation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from monograph.capture.number import TracedNumber

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["INTERPOLATIONS", "SPLITS", "as_sizes", "assert_parts", "interpolation"]

Tensor = torch.Tensor
INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
FACTORIES = frozenset({torch.arange, torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, torch.eye})
OF_A_TENSOR = frozenset({
    Tensor.view, Tensor.reshape, Tensor.expand, Tensor.repeat, Tensor.split, Tensor.split_with_sizes, Tensor.narrow,
    Tensor.unflatten, Tensor.tile, Tensor.new_zeros, Tensor.new_ones, Tensor.new_empty, Tensor.roll, torch.reshape,
    torch.split, torch.split_with_sizes, torch.narrow, torch.unflatten, torch.tile, torch.roll,
    torch.nn.functional.pad, torch.nn.functional.interpolate, torch.nn.functional.upsample,
})
SIZE_AT = {torch.full: 0, Tensor.new_full: 1}         # beside a number that is none
INDEXING = frozenset({Tensor.__getitem__, Tensor.__setitem__})
SPLITS = frozenset({torch.split, Tensor.split, torch.split_with_sizes, Tensor.split_with_sizes})


def as_sizes(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a torch function with traced numbers for traced tensors that stand for integers."""
    if func in INDEXING:
        return (args[0], _slices(tracer, args[1]), *args[2:]), kwargs
    if func in FACTORIES:
        return _numbers(tracer, args), _numbers(tracer, kwargs)
    if func in SIZE_AT:
        place = SIZE_AT[func]
        args = (*args[:place], *(_numbers(tracer, size) for size in args[place:place + 1]), *args[place + 1:])
        return args, {name: _numbers(tracer, value) if name == "size" else value for name, value in kwargs.items()}
    if func in OF_A_TENSOR and args:
        return (args[0], *_numbers(tracer, args[1:])), _numbers(tracer, kwargs)
    return args, kwargs


def _numbers(tracer: Tracer, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _number(tracer, value)
    if type(value) in (list, tuple):
        return type(value)(_numbers(tracer, entry) for entry in value)
    return {name: _numbers(tracer, entry) for name, entry in value.items()} if type(value) is dict else value


def _slices(tracer: Tracer, index: Any) -> Any:
    if isinstance(index, slice):
        return slice(*(_numbers(tracer, bound) for bound in (index.start, index.stop, index.step)))
    return tuple(_slices(tracer, entry) for entry in index) if type(index) is tuple else index


def _number(tracer: Tracer, tensor: torch.Tensor) -> Any:
    if tensor.dim() or tensor.dtype not in INTEGERS:
        return tensor
    with torch._C.DisableTorchFunction(), torch.no_grad():
        fake = tracer.lift(tensor)
        if tracer.known(fake) is not None:
            return tensor
        return TracedNumber(tracer, fake.detach().to(torch.int64, copy=True))


def assert_parts(tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Ask whether sizes that values decide make up the tensor that a function of `SPLITS` splits by them: eager raises
    where they do not."""
    if not 2 <= len(args) <= 3 or type(args[1]) not in (list, tuple):
        return
    x, sizes, *rest = args
    dim = rest[0] if rest else kwargs.get("dim", 0)
    if any(map(tracer.sizes.is_told, sizes)) and type(dim) is int and -x.dim() <= dim < x.dim():
        with tracer.sizes.asserted():
            bool(sum(sizes) == x.shape[dim])


UPSAMPLE = """upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d""".split()
INTERPOLATIONS = {getattr(torch.ops.aten, name).vec: getattr(torch.ops.aten, name).default for name in UPSAMPLE}


def interpolation(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The op, and its arguments, that an interpolation to a size that is a symbol ends in; `func` for others."""
    found = INTERPOLATIONS.get(func)
    if found is None or kwargs or args[-1] is not None or not any(isinstance(size, torch.SymInt) for size in args[1]):
        return func, args
    return found, args[:-1]
