"""How much of a graph is fused, and what each kernel holds.

    Row ::= kind  ops  user lines  count of nodes that are no views

The fusion rate is the share of the decomposed nodes, views left out, that run in a kernel together with
others or as a template's epilogue; a library call and a template alone count as not fused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monograph.ir.graph import Node
from monograph.ir.op import Trait
from monograph.ir.types import ScalarType
from monograph.schedule import checks
from monograph.schedule.kernel import (
    AnySize,
    Branch,
    Fused,
    Item,
    Jump,
    LibraryCall,
    Move,
    Point,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    Schedule,
    Template,
)

__all__ = ["Row", "fusion_rate", "rows"]


KINDS = {Fused: "kernel", LibraryCall: "library", Branch: "branch", Jump: "jump", Move: "move", Record: "record",
         AnySize: "any size", RowsStart: "rows", RowsNext: "rows", Point: "point", RowAt: "row"}


@dataclass(frozen=True)
class Row:
    """One item of a schedule, described."""

    kind: str                     # kernel, gemm, conv, attention, library, raise, size, branch, jump, move, record
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    fused: int                    # nodes that are no views and run together with others here
    shape: str                    # type of the first output


def rows(schedule: Schedule) -> list[Row]:
    return [_row(item) for item in schedule.items]


def _row(item: Item) -> Row:
    nodes = working(item.nodes) or item.nodes
    kind = item.name if isinstance(item, Template) else KINDS[type(item)]
    if isinstance(item, LibraryCall) and checks.is_guarded(item.node):
        kind = "raise"
    elif isinstance(item, LibraryCall) and item.outputs and all(isinstance(x.type, ScalarType) for x in item.outputs):
        kind = "size"                        # told by a value: no call of torch's
    ops = tuple(node.op.name.split(".")[1] for node in nodes)
    lines = tuple(dict.fromkeys(node.loc.short for node in nodes if node.loc is not None))
    together = 0 if isinstance(item, LibraryCall) or len(nodes) < 2 else len(nodes)
    shape = str(item.outputs[0].type) if item.outputs else ""
    if isinstance(item, (Branch, Jump)):
        loc = item.node.loc
        return Row(kind, (item.node.op.name.split(".")[1],), (loc.short,) if loc else (), 0, f"step {item.target}")
    return Row(kind, ops, lines, together, shape)


def working(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that compute: no views, no constants."""
    return [node for node in nodes if not node.op.has(Trait.VIEW) and not node.op.has(Trait.FACTORY)]


def fusion_rate(schedules: Sequence[Schedule]) -> float:
    """Between 0 and 1; 1 for a graph that computes nothing."""
    every: set[Node] = set()
    fused: set[Node] = set()
    for schedule in schedules:
        for item in schedule.items:
            nodes = working(item.nodes)
            every.update(nodes)
            if isinstance(item, (Fused, Template)) and len(nodes) > 1:
                fused.update(nodes)
    return len(fused) / len(every) if every else 1.0
