"""Ops of our own: control flow, seeding.

    mono.cond(predicate) {then, otherwise}   predicate is a one-element tensor or a number;
                                             results: those of the region chosen
    mono.while(carried*) {condition, body}   condition(carried*) -> bool; body(carried*) -> carried*;
                                             results: the last carried
    mono.seed(; seed)                        the default generator starts anew, as by torch.manual_seed;
                                             result: i8[] that nobody reads

Regions see the values of the graph around them. Both regions of `cond` return the same types;
`while` regions take one input per carried value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from monograph.ir.graph import Attribute, Graph, Operand
from monograph.ir.op import Effect, Op, Parameter, ParameterKind
from monograph.ir.types import TensorType, Type

__all__ = ["TABLE", "Own"]

TypeRule = Callable[[Sequence[Operand], Mapping[str, Attribute], Sequence[Graph]], tuple[Type, ...]]


@dataclass(frozen=True, slots=True)
class Own:
    """An op, its types, and its evaluation in torch (None: it has regions, `ops.evaluate` runs those)."""

    op: Op
    types: TypeRule
    call: Callable[..., Any] | None = None


def _inside(type: Type) -> Type:
    return replace(type, strides=None) if isinstance(type, TensorType) else type


def _outputs_of(position: int) -> TypeRule:
    def types(
        operands: Sequence[Operand], attributes: Mapping[str, Attribute], regions: Sequence[Graph]
    ) -> tuple[Type, ...]:
        return tuple(_inside(value.type) for value in regions[position].outputs)

    return types


COND = Op("mono.cond", (Parameter("predicate", ParameterKind.TENSOR),), regions=("then", "otherwise"))
WHILE = Op("mono.while", (Parameter("carried", ParameterKind.TENSORS),), regions=("condition", "body"))
SEED = Op("mono.seed", (Parameter("seed", ParameterKind.ATTRIBUTE),), effects=frozenset({Effect.WRITES_STATE}))


def _seed(seed: int) -> torch.Tensor:
    torch.default_generator.manual_seed(seed)
    return torch.zeros((), dtype=torch.int8)


TABLE: dict[str, Own] = {
    COND.name: Own(COND, _outputs_of(0)),
    WHILE.name: Own(WHILE, _outputs_of(1)),
    SEED.name: Own(SEED, lambda operands, attributes, regions: (TensorType(torch.int8, ()),), _seed),
}
