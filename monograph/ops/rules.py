"""The rules of decomposition by op name, one module per family."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from monograph.ir.graph import Node, Value
from monograph.ops.build import Builder

__all__ = ["RULES", "Rule"]

Rule: TypeAlias = "Callable[[Builder, Node], Value | tuple[Value | None, ...] | None]"

RULES: dict[str, Rule] = {}
