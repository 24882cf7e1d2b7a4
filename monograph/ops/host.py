"""Ops that run code nobody looks into, called by torch or Python when the program runs.

    host.<namespace>.<packet>.<overload>(parameters of its schema)
                             a custom op that writes to arguments or draws, as a function: results are those of the op
                             that are no aliases, then the new contents of the arguments it writes
    host.<name>.<number>(tensors*)    `call(tensors) -> results` of `of_function`

Their result types are given when the node is made, not inferred.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from monograph.errors import UnsupportedError
from monograph.ir.graph import Attribute, Graph, Operand
from monograph.ir.op import Effect, Op, Parameter, ParameterKind, Trait
from monograph.ir.types import Type
from monograph.ops import own, table

__all__ = ["of_function", "of_overload"]

_numbers = itertools.count()


def of_function(name: str, call: Callable[[Sequence[torch.Tensor]], Sequence[Any]], *, random: bool = False,
                effects: frozenset[Effect] = frozenset(), sync: bool = True) -> Op:
    """A new op that calls a Python function of tensors; it lives as long as the process. Without `sync` what it gives
    is of one type."""
    readable = "".join(c if c.isalnum() else "_" for c in name)
    op = Op(f"host.{readable}.{next(_numbers)}", (Parameter("tensors", ParameterKind.TENSORS),),
            _traits(random) if sync else frozenset(), effects=effects)
    return _add(op, lambda tensors: tuple(call(tensors)))


@functools.cache
def of_overload(target: Any, random: bool = False) -> Op:
    """The functional form of a torch overload that writes to arguments, draws random numbers, or both."""
    schema = target._schema
    parameters = tuple(table.parameter(argument) for argument in schema.arguments)
    written = [i for i, argument in enumerate(schema.arguments)
               if argument.alias_info is not None and argument.alias_info.is_write]
    fresh = [result.alias_info is None for result in schema.returns]

    def call(*given: Any) -> tuple[Any, ...]:
        values = list(given)
        for position in written:
            values[position] = _copies(values[position])
        by_name = {a.name: v for a, v in zip(schema.arguments, values, strict=True) if a.kwarg_only}
        by_place = [v for a, v in zip(schema.arguments, values, strict=True) if not a.kwarg_only]
        result = target(*by_place, **by_name)
        results = result if len(fresh) > 1 else (result,) if fresh else ()
        kept = [entry for entry, is_fresh in zip(results, fresh, strict=True) if is_fresh]
        return *kept, *(values[position] for position in written)

    return _add(Op(f"host.{table.op_name(target)}", parameters, _traits(random)), call)


def _copies(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_copies(entry) for entry in value]
    return None if value is None else value.clone()


def _traits(random: bool) -> frozenset[Trait]:
    return frozenset({Trait.SYNC, Trait.RANDOM} if random else {Trait.SYNC})


def _add(op: Op, call: Callable[..., tuple[Any, ...]]) -> Op:
    def types(_: Sequence[Operand], __: Mapping[str, Attribute], ___: Sequence[Graph]) -> tuple[Type, ...]:
        raise UnsupportedError(f"what {op.name} gives is known from a run only",
                               why="its sizes are needed before")

    own.TABLE[op.name] = own.Own(op, types, call)
    return op
