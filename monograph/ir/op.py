"""What an operation is: its parameters, traits and effects.

    Op        ::= name(Parameter*) Trait* Effect*
    Parameter ::= name kind default            kind: tensor | optional | tensors | attribute

Parameters of the first three kinds take operands (SSA values), in the order they are declared;
the last kind takes a keyword attribute. Passes ask an op for its traits and effects and never
list op names. The vocabulary itself stands in `monograph.ops`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Effect", "Op", "Parameter", "ParameterKind", "Trait", "NO_DEFAULT", "freeze"]


class Trait(enum.Enum):
    """What passes may assume of an op."""

    POINTWISE = "pointwise"        # result[i] depends on operand[i] only, after broadcasting
    VIEW = "view"                  # result is an index map of the first operand: no arithmetic
    REDUCTION = "reduction"        # folds some dims of the first operand
    COMMUTATIVE = "commutative"    # op(a, b) == op(b, a), bit for bit
    RANDOM = "random"              # draws from a generator: neither shared nor removed nor moved
    FACTORY = "factory"            # no tensor operand: the result depends on attributes alone
    COMPOSITE = "composite"        # kept whole for the sake of templates; `ops.decompose` opens it
    SYNC = "sync"                  # a size or number of the result depends on tensor values


class Effect(enum.Enum):
    """What an op does besides computing its results. A pure op has none."""

    READS_STATE = "reads_state"      # generator, clock, environment
    WRITES_STATE = "writes_state"
    RAISES = "raises"                # may raise on some values (index checks, assert)
    HOST = "host"                    # runs the user's Python (print, log)


class ParameterKind(enum.Enum):
    TENSOR = "tensor"
    OPTIONAL = "optional"
    TENSORS = "tensors"              # a list, whose entries may be None where the schema says so
    ATTRIBUTE = "attribute"


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: ParameterKind
    default: Any = NO_DEFAULT

    @property
    def is_operand(self) -> bool:
        return self.kind is not ParameterKind.ATTRIBUTE


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of the vocabulary. Two ops are the same op when their names are equal."""

    name: str
    parameters: tuple[Parameter, ...] = field(compare=False, default=())
    traits: frozenset[Trait] = field(compare=False, default=frozenset())
    effects: frozenset[Effect] = field(compare=False, default=frozenset())
    regions: tuple[str, ...] = field(compare=False, default=())   # names of the regions it takes

    def has(self, trait: Trait) -> bool:
        return trait in self.traits

    @property
    def is_pure(self) -> bool:
        """No effect and no draw: may be removed when unused, merged with an equal node, moved."""
        return not self.effects and Trait.RANDOM not in self.traits

    @property
    def operand_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_operand)

    @property
    def attribute_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if not p.is_operand)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort a call's arguments into operand slots and attributes, defaults filled in.

        Raises TypeError where the call does not fit the parameters.
        """
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        names = {parameter.name for parameter in self.parameters}
        if len(args) > len(self.parameters) or not names.issuperset(kwargs):
            unknown = sorted(set(kwargs) - names) or f"{len(args)} arguments"
            raise TypeError(f"{self.name} has no parameters for {unknown}")
        for position, parameter in enumerate(self.parameters):
            if position < len(args):
                value = args[position]
            elif parameter.name in kwargs:
                value = kwargs[parameter.name]
            elif parameter.default is not NO_DEFAULT:
                value = parameter.default
            else:
                raise TypeError(f"{self.name}: no value for {parameter.name!r}")
            if parameter.is_operand:
                operands.append(freeze(value))
            else:
                attributes[parameter.name] = freeze(value)
        return tuple(operands), attributes

    def __str__(self) -> str:
        return self.name


def freeze(value: Any) -> Any:
    """Lists as tuples, at any depth."""
    return tuple(freeze(entry) for entry in value) if isinstance(value, (list, tuple)) else value
