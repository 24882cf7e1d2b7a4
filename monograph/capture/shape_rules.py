"""Shapes and strides that torch's fake kernels get wrong or compute slowly.

    rule(tracer, func, args, kwargs) -> fake result | NotImplemented (ask torch's fake kernel)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture import by_example
from monograph.capture.dims import dims
from monograph.capture.layout import Layout, channels_last_strides, contiguous_strides, is_empty
from monograph.capture.reshaped import viewed
from monograph.capture.size_arguments import INTERPOLATIONS

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["KEPT_WHOLE", "TABLE"]

aten = torch.ops.aten
FLOATS = frozenset({torch.float32, torch.float64})
GROUPED = frozenset({torch.float32, torch.bfloat16, torch.float16})
Rule = Callable[["Tracer", Any, Any, Any], Any]

# Composites recorded as one node: opened, they lose what templates want to see. They arrive here
# only where autograd does not need to look inside.
KEPT_WHOLE = frozenset({
    aten.linear.default, aten.scaled_dot_product_attention.default,
    aten.linalg_svdvals.default, aten.linalg_eigvalsh.default,     # eager leaves out the vectors, for fakes it does not
    aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input,
})


def as_in_eager(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Fake kernels that give other sizes than eager: ask eager."""
    return by_example.result_or_error(tracer.mode, func, args, kwargs, None)


def index(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel takes masks of bytes for places."""
    if not any(isinstance(entry, torch.Tensor) and entry.dtype is torch.uint8 for entry in args[1]):
        return NotImplemented
    result = by_example.with_constants(tracer.mode, func, args, kwargs, tracer.known)
    if result is NotImplemented:
        raise compat.DynamicOutputShapeException(func)
    return result


def interpolation(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernels take sizes that are numbers only."""
    x, size = args[:2]
    if kwargs or x.dim() != len(size) + 2 or not any(isinstance(entry, torch.SymInt) for entry in size):
        return NotImplemented
    sizes = (*x.shape[:2], *size)
    if compat.suggest_memory_format(x) is not torch.contiguous_format:
        return tracer.fresh(sizes, channels_last_strides(sizes), x.dtype)
    strides: list[Any] = [1]         # none of the sizes is 0: eager refuses that
    for entry in reversed(sizes[1:]):
        strides.insert(0, strides[0] * entry)
    return tracer.fresh(sizes, strides, x.dtype)


def view(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel asks for more than formulas of sizes tell."""
    x = args[0]
    found = viewed(tracer, x, args[1])
    if found is None:
        return NotImplemented
    return compat.run_fake(tracer.mode, aten.as_strided.default, (x, *found, x.storage_offset()), {})


def linear(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Row by row, however the argument lies."""
    x, weight = args[0], args[1]
    if weight.dim() != 2 or x.dim() < 2:
        return NotImplemented
    if x.dtype != weight.dtype or x.shape[-1] != weight.shape[1]:
        return NotImplemented
    sizes = (*x.shape[:-1], weight.shape[0])
    bias = args[2] if len(args) > 2 else None
    if bias is not None and (bias.dtype != x.dtype or bias.shape != sizes[-1:]):
        return NotImplemented
    return tracer.fresh(sizes, contiguous_strides(sizes), x.dtype)


def constant_pad(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel makes numbers of sizes that are symbols."""
    x, amounts = args[0], args[1]
    layout = Layout.of(x)
    if layout.is_static and all(type(amount) is int for amount in amounts) or not layout.is_backed:
        return NotImplemented
    if len(amounts) % 2 or len(amounts) > 2 * x.dim():
        return NotImplemented
    plain = layout.at_zero().whole[1] == dims(contiguous_strides(x.shape))
    formats = x.dim() in (4, 5)          # that memory may have
    in_order = not formats and 1 not in layout.key[0] and layout.order() == list(range(x.dim()))
    if not (plain or in_order) or formats and 1 in layout.key[0]:
        return NotImplemented
    sizes = list(x.shape)
    for pair in range(len(amounts) // 2):
        sizes[-1 - pair] = sizes[-1 - pair] + amounts[2 * pair] + amounts[2 * pair + 1]
    if any(size < (1 if type(size) is int else 0) for size in sizes):
        return NotImplemented
    return tracer.fresh(sizes, contiguous_strides(sizes), x.dtype)


def batch_norm_inference(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    plain = all(t is None or (t.dtype == x.dtype and t.shape == x.shape[1:2]) for t in args[1:5])
    if x.dtype not in FLOATS or not plain or not (x.is_contiguous() or _is_channels_last(x)):
        return by_format(tracer, func, args, kwargs)
    moments = [tracer.fresh((0,), (1,), x.dtype) for _ in range(2)]
    strides = contiguous_strides(x.shape) if x.is_contiguous() else channels_last_strides(x.shape)
    return tracer.fresh(x.shape, strides, x.dtype), *moments


def layer_norm(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    x, normalised = args[0], tuple(args[1])
    plain = all(t is None or (t.dtype == x.dtype and tuple(t.shape) == normalised) for t in args[2:4])
    outer = x.dim() - len(normalised)
    if x.dtype not in FLOATS or not plain or not x.is_contiguous() or is_empty(x):
        return NotImplemented
    if not normalised or tuple(x.shape[outer:]) != normalised:
        return NotImplemented
    moments = (*x.shape[:outer], *(1 for _ in normalised))
    strides = contiguous_strides(moments)
    return (tracer.fresh(x.shape, contiguous_strides(x.shape), x.dtype), tracer.fresh(moments, strides, x.dtype),
            tracer.fresh(moments, strides, x.dtype))


def grouped_product(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel takes bf16 alone, as some GPUs do. Rows of the result lie at multiples of 16 bytes."""
    given = (*args, *kwargs.values())
    if len(given) != 3 or not isinstance(given[2], torch.Tensor):
        return NotImplemented
    left, right, ends = given
    groups = {(2, 3): right.shape[0], (3, 2): left.shape[0]}.get((left.dim(), right.dim()))
    if groups is None or ends.dtype is not torch.int32 or tuple(ends.shape) != (groups,):
        return NotImplemented
    if left.dtype != right.dtype or left.dtype not in GROUPED or not (_in_whole_words(left) and _in_whole_words(right)):
        return NotImplemented
    if left.dim() == 2 and left.shape[1] != right.shape[1] or left.dim() == 3 and left.shape[2] != right.shape[0]:
        return NotImplemented
    aligned = 16 // left.element_size()
    sizes = (left.shape[-2], right.shape[-1])
    return tracer.fresh(sizes, ((sizes[1] + aligned - 1) // aligned * aligned, 1), left.dtype)


def grid_sampler(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Of sizes that are symbols torch's fake kernel works out every number in between."""
    x, grid = args[0], args[1]
    axes = x.dim() - 2
    if grid.dim() != x.dim() or grid.shape[-1] != axes or x.shape[0] != grid.shape[0]:
        return NotImplemented
    plain = x.dtype == grid.dtype and x.dtype in FLOATS and not is_empty(x) and not is_empty(grid)
    if not plain or Layout.of(x).is_static and Layout.of(grid).is_static:
        return NotImplemented
    sizes = (*x.shape[:2], *grid.shape[1:-1])
    return tracer.fresh(sizes, contiguous_strides(sizes), x.dtype)


def convolution(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel asks which of eager's kernels would run: how many, how large. All lay the result alike."""
    if kwargs or len(args) != 9:
        return NotImplemented
    x, weight, bias, stride, padding, dilation, transposed, _, groups = args
    layout, axes = Layout.of(x), x.dim() - 2
    if transposed or layout.is_static or not layout.is_backed or not Layout.of(weight).is_static:
        return NotImplemented
    if axes not in (1, 2, 3):
        return NotImplemented
    plain = layout.at_zero().whole[1] == dims(contiguous_strides(x.shape))
    if not plain or tuple(weight.stride()) != contiguous_strides(weight.shape):
        return NotImplemented
    if x.dtype not in FLOATS or weight.dtype != x.dtype or weight.dim() != x.dim():
        return NotImplemented
    if bias is not None and (bias.dtype != x.dtype or tuple(bias.shape) != tuple(weight.shape[:1])):
        return NotImplemented
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        return NotImplemented
    stride, padding, dilation = (list(each) * (axes if len(each) == 1 else 1) for each in (stride, padding, dilation))
    sizes = [x.shape[0], weight.shape[0]]
    for axis in range(axes):
        room = x.shape[2 + axis] + 2 * padding[axis] - dilation[axis] * (weight.shape[2 + axis] - 1) - 1
        if room < 0:
            return NotImplemented
        sizes.append(room // stride[axis] + 1)
    return tracer.fresh(sizes, contiguous_strides(sizes), x.dtype)


def product_added(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """torch's fake kernel cannot spread what is added over sizes that vary."""
    added, left, right = args[:3]
    if any(each.dim() != 3 or each.dtype not in FLOATS or each.dtype != added.dtype or is_empty(each)
           for each in (left, right)) or all(Layout.of(each).is_static for each in (added, left, right)):
        return NotImplemented
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        return NotImplemented
    sizes = (left.shape[0], left.shape[1], right.shape[2])
    spread = zip(reversed(added.shape), reversed(sizes), strict=False)
    if added.dim() > 3 or not all(type(has) is int and has == 1 or has == size for has, size in spread):
        return NotImplemented
    return tracer.fresh(sizes, contiguous_strides(sizes), added.dtype)


def _in_whole_words(x: torch.Tensor) -> bool:
    """Whether one of the last two dims is dense and steps along the other are multiples of 16 bytes."""
    rows, columns = x.shape[-2:]
    down, across = x.stride()[-2:]
    step, least = (across, rows) if down == 1 and across >= max(1, rows) else (down, columns)
    return 1 in (down, across) and step >= max(1, least) and step * x.element_size() % 16 == 0


def by_format(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """The first result lies in the memory format that suits the argument; fake kernels lay it as the argument."""
    result = compat.run_fake(tracer.mode, func, args, kwargs)
    first = result if isinstance(result, torch.Tensor) else result[0]
    plain = compat.suggest_memory_format(args[0]) is torch.contiguous_format
    strides = contiguous_strides(first.shape) if plain else channels_last_strides(first.shape)
    if tuple(first.stride()) == strides or not first.numel():
        return result
    first = tracer.fresh(first.shape, strides, first.dtype)
    return first if isinstance(result, torch.Tensor) else (first, *result[1:])


def _is_channels_last(x: torch.Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)


TABLE: dict[Any, Rule] = {
    aten.index.Tensor: index,
    aten.linear.default: linear,
    aten.view.default: view, aten._unsafe_view.default: view,
    aten.constant_pad_nd.default: constant_pad,
    aten._native_batch_norm_legit_no_training.default: batch_norm_inference,
    aten.native_batch_norm.default: by_format,
    aten._native_batch_norm_legit.default: by_format,
    aten._native_batch_norm_legit.no_stats: by_format,
    aten._batch_norm_with_update.default: by_format,
    aten.channel_shuffle.default: by_format,
    aten.native_layer_norm.default: layer_norm,
    aten._grouped_mm.default: grouped_product,
    aten.convolution.default: convolution,
    aten.baddbmm.default: product_added,
    aten.grid_sampler_2d.default: grid_sampler,
    aten.grid_sampler_3d.default: grid_sampler,
    aten._ctc_loss.default: as_in_eager,
    aten._embedding_bag.default: as_in_eager,
    aten._embedding_bag_forward_only.default: as_in_eager,
    **dict.fromkeys(INTERPOLATIONS.values(), interpolation),
}
