"""From names and torch overloads to `Op`.

`lookup("aten.add.Tensor")` and `of_overload(torch.ops.aten.add.Tensor)` give the same op, built
once from torch's own schema: tensor parameters become operands, all others attributes; traits
come from the schema's alias annotations and tags. Ops of our own (`mono.*`) stand in `ops.own`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from monograph.ir.graph import Attribute, Operand
from monograph.ir.op import NO_DEFAULT, Effect, Op, Parameter, ParameterKind, Trait

__all__ = ["bind", "lookup", "of_overload", "overload", "unbind"]

COMMUTATIVE = frozenset({
    "aten.add.Tensor", "aten.mul.Tensor", "aten.maximum.default", "aten.minimum.default",
    "aten.eq.Tensor", "aten.ne.Tensor", "aten.logical_and.default", "aten.logical_or.default",
    "aten.logical_xor.default", "aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor",
    "aten.bitwise_xor.Tensor",
})


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
    parameters = tuple(_parameter(argument) for argument in schema.arguments)
    traits = set()
    if any(result.alias_info is not None for result in schema.returns):
        traits.add(Trait.VIEW)
    if torch.Tag.pointwise in target.tags:
        traits.add(Trait.POINTWISE)
    if torch.Tag.nondeterministic_seeded in target.tags:
        traits.add(Trait.RANDOM)
    if torch.Tag.dynamic_output_shape in target.tags or torch.Tag.data_dependent_output in target.tags:
        traits.add(Trait.SYNC)
    if not any(parameter.is_operand for parameter in parameters):
        traits.add(Trait.FACTORY)
    if name in COMMUTATIVE:
        traits.add(Trait.COMMUTATIVE)
    return Op(name, parameters, frozenset(traits), frozenset())


def _parameter(argument: Any) -> Parameter:
    kind = {
        "Tensor": ParameterKind.TENSOR,
        "Optional[Tensor]": ParameterKind.OPTIONAL,
        "List[Tensor]": ParameterKind.TENSORS,
        "List[Optional[Tensor]]": ParameterKind.TENSORS,
        "Optional[List[Tensor]]": ParameterKind.TENSORS,
    }.get(str(argument.type), ParameterKind.ATTRIBUTE)
    default = _freeze(argument.default_value) if argument.has_default_value() else NO_DEFAULT
    return Parameter(argument.name, kind, default)


def _freeze(value: Any) -> Any:
    return tuple(_freeze(entry) for entry in value) if isinstance(value, (list, tuple)) else value


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
    return of_overload(overload(name))


def bind(op: Op, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Operand, ...], dict[str, Attribute]]:
    """Sort a call's arguments into operand slots and attributes, defaults filled in."""
    operands: list[Operand] = []
    attributes: dict[str, Attribute] = {}
    for position, parameter in enumerate(op.parameters):
        if position < len(args):
            value = args[position]
        elif parameter.name in kwargs:
            value = kwargs[parameter.name]
        elif parameter.default is not NO_DEFAULT:
            value = parameter.default
        else:
            raise TypeError(f"{op.name}: no value for {parameter.name!r}")
        value = _freeze(value)
        if parameter.is_operand:
            operands.append(value)
        else:
            attributes[parameter.name] = value
    return tuple(operands), attributes


def unbind(op: Op, operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The inverse of `bind`: positional and keyword arguments for the torch overload."""
    slots = iter(operands)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    keyword_only = False
    schema_arguments = overload(op.name)._schema.arguments
    for parameter, argument in zip(op.parameters, schema_arguments, strict=True):
        value = next(slots) if parameter.is_operand else attributes[parameter.name]
        keyword_only = keyword_only or argument.kwarg_only
        if keyword_only:
            kwargs[parameter.name] = value
        else:
            args.append(list(value) if isinstance(value, tuple) else value)
    return args, kwargs


_ = Effect
