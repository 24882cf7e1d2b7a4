"""What scheduling decides.

    Schedule ::= Item* in execution order, a Layout for every materialised value, a place for each
    Item     ::= Fused(nodes, inputs, outputs)                one loop kernel over a set of nodes
               | Template(name, anchor, epilogue, ...)        GEMM, convolution, attention with fused neighbours
               | LibraryCall(node)                            no kernel for this op: torch runs it
    Layout   ::= strides in elements, per logical dim
    Place    ::= input(i) | output(j) | derived(k) | literal | arena(offset)

A value that is only read through views, or inside the item that makes it, is not materialised: it
has no layout and no place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from monograph.ir.graph import Graph, Node, Value

__all__ = ["Fused", "Item", "Layout", "LibraryCall", "Place", "Schedule", "Template"]


@dataclass(slots=True)
class Layout:
    """Strides in elements, one per logical dim; static."""

    strides: tuple[int, ...]


@dataclass(slots=True)
class Place:
    kind: Literal["input", "output", "derived", "literal", "arena"]
    position: int


@dataclass(eq=False, slots=True)
class Fused:
    nodes: list[Node]
    inputs: list[Value]         # materialised values read
    outputs: list[Value]        # values other items (or the caller) read


@dataclass(eq=False, slots=True)
class Template:
    """`anchor` is the composite node; `nodes` also holds the pointwise neighbours pulled in as epilogue or prologue."""

    name: str                   # gemm, conv, attention: a key of the capability table in ops.templates
    anchor: Node
    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class LibraryCall:
    node: Node
    inputs: list[Value]
    outputs: list[Value]

    @property
    def nodes(self) -> list[Node]:
        return [self.node]


Item = Fused | Template | LibraryCall


@dataclass
class Schedule:
    graph: Graph
    items: list[Item] = field(default_factory=list)
    layouts: dict[Value, Layout] = field(default_factory=dict)
    places: dict[Value, Place] = field(default_factory=dict)
    arena_bytes: int = 0
    intermediate_bytes: int = 0     # the sum of all materialised intermediates, for the report
