"""Ops that need more than a node: questions for values, constants, batch norm, checks.

    handler(tracer, call) -> result | NotImplemented (treat it as any other op)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph import errors
from monograph.capture import blame
from monograph.capture.dims import dims
from monograph.capture.layout import Layout
from monograph.capture.overlap import check_write
from monograph.capture.recorder import type_of
from monograph.capture.twins import written
from monograph.ops import table
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["TABLE", "needs_value"]

aten = torch.ops.aten
Handler = Callable[["Tracer", "Call"], Any]

HINT = ("compute the condition with tensor operations (torch.where, masks), or pass the number in as a Python argument")


def needs_value(func: Any, loc: SourceLoc | None) -> errors.DataDependentError:
    """The error for an op whose result's size or number depends on values."""
    frame = blame.user_frame(2)
    text = blame.expression(frame)
    name = func._schema.name.split("::")[1]
    return errors.DataDependentError(
        f"`{text}` needs the values of a tensor while the program is being captured ({name})",
        loc=blame.location(frame) or loc, hint=HINT, expression=text)


def ask(tracer: Tracer, call: Call) -> Any:
    """`.item()` and all that comes down to it: known when it depends on no input."""
    return tracer.ask(call.tensors[0], call.func)


def equal(tracer: Tracer, call: Call) -> Any:
    if call.tensors[0].shape != call.tensors[1].shape:
        return False
    alike = tracer.again(aten.eq.Tensor, tuple(call.tensors), {})
    return tracer.ask(tracer.again(aten.all.default, (alike,), {}), call.func)


def batch_norm(tracer: Tracer, call: Call) -> Any:
    """native_batch_norm writes its statistics in training though its schema does not say so."""
    x, weight, bias, mean, var, training, momentum, eps = (call.argument(i) for i in range(8))
    if not training:
        return tracer.again(aten._native_batch_norm_legit_no_training.default,
                            (x, weight, bias, mean, var, momentum, eps), {})
    if mean is None:
        return tracer.again(aten._native_batch_norm_legit.no_stats, (x, weight, bias, True, momentum, eps), {})
    result = tracer.fake(aten.native_batch_norm.default, call.args, call.kwargs)
    args = tracer.encode((x, weight, bias, mean, var, True, momentum, eps))
    types = [type_of(leaf.shape, leaf.dtype) for leaf in (*result, mean, var)]
    node = tracer.record.node(table.of_overload(aten._native_batch_norm_legit_functional.default), args, {}, types)
    for leaf, value in zip(result, node.results, strict=False):
        tracer.memory.add(leaf, value)
    tracer.memory.write_layout(tracer.memory.of(mean), Layout.of(mean), node.results[3])
    tracer.memory.write_layout(tracer.memory.of(var), Layout.of(var), node.results[4])
    return result


def functional(pure: Any, count: int) -> Handler:
    """An op that writes its arguments and returns `count` results; `pure` returns the written ones after those."""
    def handler(tracer: Tracer, call: Call) -> Any:
        targets = [call.argument(position) for position in written(call.func)]
        for target in targets:
            check_write(target, Layout.of(target), call.tensors, call.name)
        result = tracer.fake(call.func, call.args, call.kwargs)
        leaves = [*(result if isinstance(result, (list, tuple)) else [result])]
        types = [type_of(leaf.shape, leaf.dtype) for leaf in (*leaves[:count], *targets)]
        values = tracer.node(table.of_overload(pure), tracer.encode(call.args), tracer.encode(call.kwargs), types)
        for leaf, value in zip(leaves, values[:count], strict=True):
            tracer.memory.add(leaf, value)
        for target, value in zip(targets, values[count:], strict=True):
            tracer.memory.write(target, value)
        return result
    return handler


def check_later(tracer: Tracer, call: Call) -> Any:
    """An assertion on a value, made when the program runs."""
    with tracer, torch.no_grad():
        tracer.only_if((call.tensors[0] != 0).reshape(()))
    return None


def zeros(tracer: Tracer, call: Call) -> Any:
    """Autograd's zeros without memory: ordinary ones."""
    return tracer.again(aten.zeros.default, call.args, call.kwargs)


def drawn_like(tracer: Tracer, call: Call) -> Any:
    """`rand_like` draws in memory order, which values of a graph do not have, nor what it is given when it runs: drawn
    on the memory's shape, permuted."""
    result = tracer.fake(call.func, call.args, call.kwargs)
    layout = Layout.of(result)
    order = layout.order()
    sizes = dims([layout.sizes[d] for d in order])
    if call.func is aten.randn_like.default and order != sorted(order):
        value = tracer.normal(sizes, 0.0, 1.0, layout.dtype)
    else:
        args = (tracer.record.full(sizes, 0, layout.dtype), *tracer.encode(call.args[1:]))
        op = table.of_overload(call.func)
        value = tracer.node(op, args, {"dtype": layout.dtype}, [type_of(sizes, layout.dtype)], blank=True)[0]
    tracer.memory.add(result, tracer.record.permute(value, [order.index(d) for d in range(len(order))]))
    return result


def by_lengths(tracer: Tracer, call: Call) -> Any:
    """Ops that read their lengths without asking, and whose results have sizes by them."""
    raise needs_value(call.func, tracer.record.loc)


def power(tracer: Tracer, call: Call) -> Any:
    """A bool to the power of a bool is a bool; fakes take the exponent for an integer."""
    x, exponent = call.argument(0), call.argument(1)
    if type(exponent) is not bool or x.dtype is not torch.bool:
        return NotImplemented
    return tracer.again(aten.clone.default if exponent else aten.ones_like.default, (x,), {})


def nothing(tracer: Tracer, call: Call) -> Any:
    """Checks whose answer fakes already know."""
    tracer.fake(call.func, call.args, call.kwargs)
    return None


TABLE: dict[Any, Handler] = {
    aten._local_scalar_dense.default: ask,
    aten.equal.default: equal,
    aten.native_batch_norm.default: batch_norm,
    aten._native_batch_norm_legit.default: functional(aten._native_batch_norm_legit_functional.default, 3),
    aten._batch_norm_with_update.default: functional(aten._batch_norm_with_update_functional.default, 4),
    aten.rrelu_with_noise.default: functional(aten.rrelu_with_noise_functional.default, 1),
    aten._efficientzerotensor.default: zeros,
    aten.rand_like.default: drawn_like,
    aten.randn_like.default: drawn_like,
    aten.randint_like.default: drawn_like,
    aten.randint_like.low_dtype: drawn_like,
    aten.pow.Tensor_Scalar: power,
    aten._assert_async.default: check_later,
    aten._pack_padded_sequence.default: by_lengths,
    aten._pad_packed_sequence.default: by_lengths,
    aten._assert_async.msg: check_later,
    aten._assert_tensor_metadata.default: nothing,
}
