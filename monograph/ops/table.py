"""From names and torch overloads to `Op`.

`lookup("aten.add.Tensor")` and `of_overload(torch.ops.aten.add.Tensor)` give the same op, built
once from torch's own schema: tensor parameters become operands, all others attributes; traits
come from the schema's alias annotations and tags, effects and exceptions to the tags from
`ops.traits`. Ops of our own (`mono.*`) stand in `ops.own`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from monograph.ir.graph import Attribute, Operand
from monograph.ir.op import NO_DEFAULT, Op, Parameter, ParameterKind, freeze
from monograph.ops import own, traits

__all__ = ["bind", "lookup", "of_overload", "op_name", "overload", "parameter", "unbind"]


def op_name(target: torch._ops.OpOverload) -> str:
    namespace, name = target._schema.name.split("::")
    return f"{namespace}.{name}.{target._overloadname}"


@functools.cache
def of_overload(target: torch._ops.OpOverload) -> Op:
    """The op of a torch overload. Overloads that write to an argument have none: ValueError."""
    schema = target._schema
    if schema.is_mutable:
        raise ValueError(f"{target} writes to its arguments; functionalise it first")
    name = op_name(target)
    parameters = tuple(parameter(argument) for argument in schema.arguments)
    return Op(name, parameters, traits.of_schema(name, target), traits.effects(name))


def parameter(argument: Any) -> Parameter:
    kind = {
        "Tensor": ParameterKind.TENSOR,
        "Optional[Tensor]": ParameterKind.OPTIONAL,
        "List[Tensor]": ParameterKind.TENSORS,
        "List[Optional[Tensor]]": ParameterKind.TENSORS,
        "Optional[List[Tensor]]": ParameterKind.TENSORS,
    }.get(str(argument.type), ParameterKind.ATTRIBUTE)
    default = freeze(argument.default_value) if argument.has_default_value() else NO_DEFAULT
    return Parameter(argument.name, kind, default)


@functools.cache
def overload(name: str) -> torch._ops.OpOverload:
    """The torch overload behind an ATen-style op name; KeyError when torch has none."""
    namespace, packet, overload_name = name.split(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload_name)
    except AttributeError as error:
        raise KeyError(name) from error


@functools.cache
def lookup(name: str) -> Op:
    """The op called `name`; KeyError when there is none."""
    if name in own.TABLE:
        return own.TABLE[name].op
    return of_overload(overload(name))


def bind(op: Op, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Operand, ...], dict[str, Attribute]]:
    """Sort a call's arguments into operand slots and attributes, defaults filled in."""
    return op.bind(args, kwargs)


def unbind(op: Op, operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The inverse of `bind`: positional and keyword arguments for the torch overload (or our own function)."""
    slots = iter(operands)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    keywords = _keyword_only(op.name)
    for parameter in op.parameters:
        value = next(slots) if parameter.is_operand else attributes[parameter.name]
        if parameter.name in keywords:
            kwargs[parameter.name] = value
        else:
            args.append(list(value) if isinstance(value, tuple) else value)
    return args, kwargs


@functools.cache
def _keyword_only(name: str) -> frozenset[str]:
    if name in own.TABLE:
        return frozenset()
    return frozenset(argument.name for argument in overload(name)._schema.arguments if argument.kwarg_only)
