"""The rules of decomposition by op name, gathered from the modules of the families."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from monograph.ir.graph import Node, Value
from monograph.ops import (
    decompose_activation,
    decompose_backward,
    decompose_linear,
    decompose_loss,
    decompose_move,
    decompose_norm,
    decompose_reduce,
    decompose_scatter,
    decompose_special,
)
from monograph.ops.build import Builder

__all__ = ["RULES", "Rule"]

Rule: TypeAlias = "Callable[[Builder, Node], Value | tuple[Value | None, ...] | None]"

RULES: dict[str, Rule] = {
    **decompose_activation.RULES,
    **decompose_backward.RULES,
    **decompose_linear.RULES,
    **decompose_loss.RULES,
    **decompose_move.RULES,
    **decompose_norm.RULES,
    **decompose_reduce.RULES,
    **decompose_scatter.RULES,
    **decompose_special.RULES,
}
