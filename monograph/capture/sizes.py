"""Results whose sizes depend on values: `nonzero`, masks, `unique`.

The op is recorded with symbols for such sizes, each of which is then read from this call (`paths`): what
follows sees numbers, and a call in which a size differs is captured on its own.

    %y: i64[u0, 2] = aten.nonzero.default(%x)
    %n: i64[] = mono.scalar(u0)
    mono.expect(%n, value=[3], number=0)
    %z: i64[3, 2] = mono.sized(%y, size=[3, 2], number=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture import handlers
from monograph.capture.call import flatten_result, result_type
from monograph.capture.dims import dims
from monograph.capture.regions.errors import Unmergeable
from monograph.ir.graph import Value
from monograph.ir.symbolic import Symbol, symbols_of
from monograph.ops import table

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["are_new", "read"]


def are_new(results: list[Any]) -> bool:
    """Whether a result, of an op that makes fresh ones, has a size that only the run knows."""
    return any(isinstance(size, torch.SymInt) and not compat.is_backed(size)
               for result in results if isinstance(result, torch.Tensor) for size in result.shape)


def read(tracer: Tracer, call: Call, result: Any) -> Any:
    """Record `call`, whose fake result is `result`, and give it with the sizes of this call."""
    results = flatten_result(result)
    types = [result_type(leaf) for leaf in results]
    values = tracer.node(table.of_overload(call.func), tracer.encode(call.args), tracer.encode(call.kwargs), types)
    found: dict[str, Symbol] = {}
    for value in values:
        for size in value.tensor.shape:
            found.update(symbols_of(size))
    for symbol in found.values():
        _read(tracer, call, symbol)
    made = [_sized(tracer, leaf, value) for leaf, value in zip(results, values, strict=True)]
    return type(result)(made) if isinstance(result, (list, tuple)) else made[0]


def _read(tracer: Tracer, call: Call, symbol: Symbol) -> None:
    tracer.graph.symbols[symbol.name] = symbol
    with compat.plain_torch():
        fake = tracer.fresh((), (), torch.int64)
    tracer.memory.add(fake, tracer.record.emit("mono.scalar", symbol, dtype=torch.int64, sizes=()))
    if tracer.in_region:
        raise Unmergeable("the size of a tensor depends on values in a branch or loop")
    if not tracer.paths.can_read(fake):
        raise handlers.needs_value(call.func, tracer.record.loc)
    tracer.paths.read(fake)


def _sized(tracer: Tracer, leaf: Any, value: Value) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    real = tracer.paths.values[value]
    with compat.plain_torch():
        fake = tracer.fresh(real.shape, real.stride(), real.dtype)
    tracer.memory.add(fake, tracer.record.emit("mono.sized", value, dims(real.shape), len(tracer.paths.reads) - 1,
                                                sizes=real.shape, dtype=real.dtype))
    return fake
