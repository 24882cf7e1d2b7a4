"""`plan(graph, target=...) -> Schedule`: blocks (`nest`), in order (`order`, `flat`), placed (`memory`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import torch

from monograph.ir.graph import Graph
from monograph.ir.placement import Block as Room
from monograph.ir.placement import place
from monograph.ir.sized import example
from monograph.schedule import memory, nest, outputs, regions, views
from monograph.schedule.anysize import Kind
from monograph.schedule.block import Block, Part
from monograph.schedule.extent import extent_bytes
from monograph.schedule.flat import Flat, flatten
from monograph.schedule.kernel import AnySize, Layout, LibraryCall, Move, Place, Schedule, is_held
from monograph.schedule.layout import Laid
from monograph.schedule.order import order

__all__ = ["plan"]


class Target(Protocol):
    """What scheduling asks of the machine."""

    def lanes(self, dtype: torch.dtype) -> int:
        """Elements of `dtype` per vector register."""
        ...


def plan(
    graph: Graph, *, target: Target, pack: bool = True, count: bool = True, refused: Collection[Kind] | None = (),
) -> Schedule:
    """Items in order, layouts and places. Without `pack` no copy of a weight is kept; without `count` no kernel takes
    its number of rows at run time; nodes of a kind in `refused` (None: all) have no kernels for any size."""
    graph = outputs.own_outputs(regions.prepared(graph, count, refused))
    laid = Laid(target.lanes, nest.inside)
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        if is_held(value):
            continue
        laid.layouts[value] = Layout(views.strides_seen(value))
        if pack and source.is_weight:
            laid.weights.add(value)
    block = nest.block(graph, laid)
    schedule = Schedule(graph, layouts=laid.layouts, packs=list(laid.packs.values()))
    for j, value in enumerate(block.returns):
        if is_held(value):
            continue
        schedule.places[value] = Place("output", j)
        schedule.layouts.setdefault(value, Layout(views.strides_seen(value)))
    flat = _arranged(schedule, block)
    schedule.items = flat.items
    _fixed_places(schedule)
    _held_places(schedule, flat)
    for value in schedule.layouts:
        home = flat.home(value)
        if home in schedule.places:
            schedule.places.setdefault(value, schedule.places[home])
    return schedule


def _fixed_places(schedule: Schedule) -> None:
    """Places of inputs and packed weights. What the prologue derives comes before the packs; where only a
    pack reads it, it has no place of its own."""
    graph = schedule.graph
    given = derived = 0
    read = {value for item in schedule.items for value in item.inputs}
    for value, source in zip(graph.inputs, graph.sources, strict=True):
        if source.kind == "derived" and value not in read:
            continue
        if source.kind == "derived":
            schedule.places[value] = Place("derived", derived)
            derived += 1
            continue
        if not is_held(value):
            schedule.places[value] = Place("input", given)
        given += 1
    for k, pack in enumerate(schedule.packs):
        schedule.places[pack.packed] = Place("derived", derived + k)


def _held_places(schedule: Schedule, flat: Flat) -> None:
    """Numbers for what is held, and where the last reader of it is."""
    graph = schedule.graph
    count = 0
    touched = [value for item in flat.items for value in (*item.inputs, *item.outputs)]
    for value in (*graph.inputs, *touched, *graph.outputs):
        home = flat.home(value)
        if is_held(value) and home not in schedule.places:
            schedule.places[home] = Place("held", count)
            count += 1
        if is_held(value):
            schedule.places[value] = schedule.places[home]
    kept = {flat.home(value) for value in graph.outputs}
    for home, (_, last) in memory.lives_of(flat, graph.inputs).items() if count else ():
        item = flat.items[last] if last >= 0 else None
        if is_held(home) and home not in kept and isinstance(item, (LibraryCall, Move)):
            item.drops.append(home)


def _arranged(schedule: Schedule, block: Block) -> Flat:
    """The items in order and the arena: as the program has them or greedily, whichever needs less."""
    placed = {*schedule.places, *schedule.graph.inputs, *(pack.packed for pack in schedule.packs)}

    def greedy(block: Block) -> list[Part]:
        weight = {
            value: example(extent_bytes(value, schedule.layouts[value]))
            for part in block.items for value in part.outputs if value not in placed and value in schedule.layouts
        }
        return order(block.items, weight, block.flow.binders)

    plans: list[tuple[memory.Arena, Flat]] = []
    for arrange in (lambda block: block.items, greedy):
        flat = flatten(block, dict(schedule.layouts), arrange)
        plans.append((memory.plan_memory(flat, placed), flat))
    arena, flat = min(plans, key=lambda plan: plan[0].bytes + _example_bytes(plan[0]))
    schedule.layouts = flat.layouts
    for value, offset in arena.offsets.items():
        schedule.places[value] = Place("arena", offset)
    schedule.places.update((value, Place("rows", word)) for value, word in flat.rows.items())
    _sized_places(schedule, arena, flat)
    schedule.row_words = flat.row_words
    schedule.counts = flat.counts
    schedule.arena_bytes = arena.bytes
    schedule.intermediate_bytes = arena.total
    return flat


def _example_bytes(arena: memory.Arena) -> int:
    """What the blocks of unknown size would need, for the sizes that estimates are made with."""
    return place([Room(example(block.bytes), block.first, block.last) for block in arena.sized])


def _sized_places(schedule: Schedule, arena: memory.Arena, flat: Flat) -> None:
    """Words of the frame for what has no size before a call."""
    for begin, item in enumerate(flat.items):
        if not isinstance(item, AnySize):
            continue
        for block in arena.sized:
            if begin <= block.first < item.end:
                word = flat.row_words
                flat.row_words += 1
                item.blocks.append((word, block.bytes, block.first, block.last))
                schedule.places.update((value, Place("rows", word)) for value in block.values)
