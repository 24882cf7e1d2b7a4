"""`plan(graph, target=...) -> Schedule`: fuse, lay out, order, place."""

from __future__ import annotations

from typing import Protocol

import torch

from monograph.errors import CompileError
from monograph.ir.graph import Graph, Value
from monograph.ir.types import TensorType
from monograph.schedule import fuse, memory, outputs, siblings, turning, views
from monograph.schedule.flow import flow
from monograph.schedule.items import items
from monograph.schedule.kernel import Layout, Place, Schedule
from monograph.schedule.layout import Laid, lay_out
from monograph.schedule.order import order

__all__ = ["plan"]


class Target(Protocol):
    """What scheduling asks of the machine."""

    def lanes(self, dtype: torch.dtype) -> int:
        """Elements of `dtype` per vector register."""
        ...


def plan(graph: Graph, *, target: Target, pack: bool = True) -> Schedule:
    """Items in order, layouts and places for a static graph. Without `pack` no copy of a weight is kept.

    CompileError where a size or a number is only known at run time.
    """
    _refuse_unknown(graph)
    graph = outputs.own_outputs(graph)
    facts = flow(graph)
    stored = turning.stored(facts)
    if stored:
        facts = flow(graph, stored)
    groups = fuse.fuse(facts)
    moved = outputs.pull_back(facts, groups)
    siblings.join_siblings(groups)
    pinned = {value: views.strides_seen(value) for value in graph.outputs if isinstance(value.type, TensorType)}
    pinned.update(dict(moved.values()))
    laid = lay_out(facts, items(facts, groups), pinned, target.lanes, pack=pack)
    schedule = Schedule(graph, layouts=laid.layouts, packs=laid.packs)
    _fixed_places(schedule, laid, {output: base for output, (base, _) in moved.items()})
    _arena(schedule, laid, facts)
    return schedule


def _refuse_unknown(graph: Graph) -> None:
    for value in (*graph.inputs, *(result for node in graph.nodes for result in node.results)):
        loc = value.node.loc if value.node is not None else None
        if not isinstance(value.type, TensorType):
            raise CompileError("native programs compute no numbers yet, only tensors", loc=loc)
        if not value.type.is_static:
            raise CompileError(f"native programs need static sizes, not {value.type}", loc=loc)


def _fixed_places(schedule: Schedule, laid: Laid, moved: dict[Value, Value]) -> None:
    """Places of inputs, outputs and packed weights. What the prologue derives comes before the packs; where only a
    pack reads it, it has no place of its own."""
    graph = schedule.graph
    given = derived = 0
    read = {value for item in laid.items for value in item.inputs}
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        if source.kind == "derived" and value not in read:
            continue
        if source.kind == "derived":
            schedule.places[value] = Place("derived", derived)
            derived += 1
        else:
            schedule.places[value] = Place("input", given)
            given += 1
    for j, value in enumerate(graph.outputs):
        held = moved.get(value, value)
        schedule.places[held] = Place("output", j)
        schedule.layouts.setdefault(held, Layout(views.strides_seen(value)))
    for k, pack in enumerate(schedule.packs):
        schedule.places[pack.packed] = Place("derived", derived + k)


def _arena(schedule: Schedule, laid: Laid, facts: fuse.Flow) -> None:
    """Order the items and place the rest in the arena: as the program has them or greedily, whichever needs less."""
    placed = set(schedule.places)
    weight = {
        value: memory.extent_bytes(value, schedule.layouts[value])
        for item in laid.items for value in item.outputs if value not in placed
    }
    orders = [laid.items, order(laid.items, weight)]
    plans = [(memory.plan_memory(facts, items, schedule.layouts, placed), items) for items in orders]
    arena, schedule.items = min(plans, key=lambda pair: pair[0].bytes)
    for value, offset in arena.offsets.items():
        schedule.places[value] = Place("arena", offset)
    schedule.arena_bytes = arena.bytes
    schedule.intermediate_bytes = arena.total
