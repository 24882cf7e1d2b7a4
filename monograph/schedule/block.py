"""Scheduled graphs inside each other, before they are laid out flat.

    Block   ::= Item* in order, where each output of its graph is held
    Control ::= node  predicate  Block*           a node with regions (cond, while, rows, ...) until `schedule.flat`

Blocks see the values around them: what a region reads of the graph outside are inputs of its Control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from monograph.ir.graph import Node, Value
from monograph.schedule import anysize, rowwise
from monograph.schedule.flow import Flow
from monograph.schedule.kernel import Item, Strided

__all__ = ["Block", "Control", "Part"]


@dataclass(eq=False, slots=True)
class Control:
    """`predicate`: of a cond. `blocks`: one per region."""

    node: Node
    inputs: list[Value]
    outputs: list[Value]
    predicate: Strided | None = None
    blocks: list[Block] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [self.node]

    @property
    def is_loop(self) -> bool:
        return "body" in self.node.op.regions

    @property
    def is_rows(self) -> bool:
        return rowwise.is_rows(self.node)

    @property
    def is_any_size(self) -> bool:
        return anysize.is_any_size(self.node)


Part = Item | Control


@dataclass(eq=False, slots=True)
class Block:
    flow: Flow
    items: list[Part]
    returns: Sequence[Value]            # by output: the value that an item stores as it
    predicate: Strided | None = None    # of a condition: where its output lies
