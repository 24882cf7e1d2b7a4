"""Code that is called, not looked into: custom ops without a fake kernel, functions of the user's (`functions`).

What such a call gives is learnt by running it on the values of this very call (`paths`). Its sizes are symbols that
`mono.sized` checks at run time, so that a call in which they differ is captured on its own.

    %y: f32[host0, host1] = mgt.twice.default(%x)            a custom op that only reads
    %y: f32[host0], %a: f32[3] = host.mgt.push.default(%b)   one that writes to an argument, or draws
    %z: f32[4, 3] = mono.sized(%y, size=[4, 3], number=-1, dtype=f32)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture.inputs import check_supported
from monograph.capture.layout import Layout
from monograph.capture.overlap import check_write
from monograph.capture.recorder import type_of
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.twins import twin, written
from monograph.ir.graph import Value
from monograph.ir.op import Op
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import host, own, table

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["custom_op", "is_custom", "learn", "place", "writes_whole"]

BUILT_IN = frozenset({
    "aten", "prim", "prims", "mkldnn", "quantized", "profiler", "higher_order", "rngprims", "c10d", "debugprims",
})


def is_custom(func: Any) -> bool:
    """Whether an op comes from a library of ops other than torch's own."""
    return func.namespace not in BUILT_IN


def writes_whole(func: Any) -> bool:
    """Whether a custom op that writes has no functional form."""
    return is_custom(func) and twin(func) is None


def custom_op(tracer: Tracer, call: Call) -> Any:
    """Record a custom op that no fake kernel describes, or that writes and has no functional form."""
    func = call.func
    targets = [tensor for position in written(func) for tensor in _tensors(call.argument(position))]
    for target in targets:
        check_write(target, Layout.of(target), call.tensors, call.name)
    args, kwargs = tracer.encode(call.args), tracer.encode(call.kwargs)
    fresh = sum(result.alias_info is None for result in func._schema.returns)
    whole = host.of_overload(func)
    learnt: tuple[Any, ...] = ()
    if fresh or not tracer.in_region:
        learnt = learn(tracer, whole, args, kwargs)
    if tracer.paths.drew or torch.Tag.nondeterministic_seeded in func.tags:
        op = host.of_overload(func, True)
    else:
        op = whole if targets else table.of_overload(func)
    made, values = place(tracer, op, args, kwargs, _flat(learnt[:fresh]),
                         [type_of(target.shape, target.dtype) for target in targets], _flat(learnt))
    for target, value in zip(targets, values, strict=True):
        tracer.memory.write(target, value)
    return _answer(call, iter(learnt[:fresh]), iter(made))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _flat([value]) if leaf is not None]


def _flat(value: Any) -> list[Any]:
    return [leaf for entry in value for leaf in _flat(entry)] if isinstance(value, (list, tuple)) else [value]


def _answer(call: Call, learnt: Iterator[Any], made: Iterator[Any]) -> Any:
    """What the op returns: fakes in the structure of `learnt`, and arguments where it hands them back."""
    schema = call.func._schema
    given: list[Any] = []
    for result in schema.returns:
        if result.alias_info is None:
            given.append(_rebuild(next(learnt), made))
        else:
            names = result.alias_info.before_set
            position = next(i for i, argument in enumerate(schema.arguments)
                            if argument.alias_info is not None and argument.alias_info.before_set & names)
            given.append(call.restore(call.argument(position)))
    if not given:
        return None
    return tuple(given) if len(given) > 1 else given[0]


def _rebuild(value: Any, made: Iterator[Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuild(entry, made) for entry in value)
    return next(made)


def learn(tracer: Tracer, op: Op, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """What `op` gives in this very call. No result may lie in the memory of an operand."""
    if tracer.in_region:
        raise Unmergeable(f"{op.name}, whose result only a call can tell, in a branch or loop")
    function = own.TABLE[op.name].call
    assert function is not None
    learnt, given = tracer.paths.run(op, function, args, kwargs)
    homes = {compat.storage_id(x) for x in _flat(given) if isinstance(x, torch.Tensor)}
    for leaf in _flat(learnt):
        if isinstance(leaf, torch.Tensor):
            check_supported(leaf, f"a result of {op.name}")
            if leaf.numel() and compat.storage_id(leaf) in homes:
                raise errors.UnsupportedError(f"{op.name} returns an argument of its own, or a view of one",
                                              loc=tracer.record.loc, hint="return a copy",
                                              why="a value of the graph has memory of its own")
        elif not isinstance(leaf, (bool, int, float)):
            raise errors.UnsupportedError(f"{op.name} returns a {type(leaf).__name__}", loc=tracer.record.loc,
                                              why="values of the graph are tensors and numbers")
    return learnt


def place(tracer: Tracer, op: Op, args: Any, kwargs: Any, learnt: Sequence[Any], types: Sequence[TensorType],
          real: Sequence[Any], *, numbers: bool = False) -> tuple[list[Any], Sequence[Value]]:
    """Record `op`, whose first results look like `learnt` and whose others are of `types`; `real`: all, in this call.

    Gives fakes and numbers (traced ones with `numbers`) for the first, values for the others.
    """
    symbols = tracer.graph.symbols
    first: list[Any] = []
    for leaf in learnt:
        if not isinstance(leaf, torch.Tensor):
            first.append(ScalarType("bool" if isinstance(leaf, bool) else "int" if isinstance(leaf, int) else "float"))
            continue
        sizes = [Symbol(f"host{len(symbols) + position}") for position in range(leaf.dim())]
        symbols.update((symbol.name, symbol) for symbol in sizes)
        first.append(TensorType(leaf.dtype, tuple(sizes)))
    values = tracer.node(op, args, kwargs, [*first, *types])
    if real:
        tracer.paths.found(values, real)
    made = [_made(tracer, leaf, value, numbers) for leaf, value in zip(learnt, values, strict=False)]
    return made, values[len(learnt):]


def _made(tracer: Tracer, leaf: Any, value: Value, numbers: bool) -> Any:
    """A fake that looks like `leaf`, or a number, for the result `value`."""
    if not isinstance(leaf, torch.Tensor):
        dtype = torch.bool if isinstance(leaf, bool) else torch.int64 if isinstance(leaf, int) else torch.float64
        with compat.plain_torch():
            fake = tracer.fresh((), (), dtype)
        tracer.memory.add(fake, tracer.record.node(
            table.lookup("mono.scalar"), (value,), {"dtype": dtype}, (type_of((), dtype),)).results[0])
        return tracer.item(fake) if numbers else tracer.ask(fake)
    number = own.IN_BACKWARD if any(binding.kind == "tangent" for binding in tracer.bindings) else own.LEARNT
    with compat.plain_torch():
        fake = tracer.fresh(leaf.shape, leaf.stride(), leaf.dtype)
    tracer.memory.add(fake, tracer.record.node(
        table.lookup("mono.sized"), (value, tuple(leaf.shape), number, leaf.dtype), {},
        (type_of(leaf.shape, leaf.dtype),)).results[0])
    return fake
