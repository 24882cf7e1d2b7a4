"""Blocks: a graph fused, put into items and laid out; the graphs in its regions the same way, inside it.

    block(graph, laid) -> Block

A region is scheduled while the layouts around it are known and before anything has a place in the arena. What it
returns is laid out as the result it becomes; what a loop carries has one layout from the initial value to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monograph.ir.graph import Graph, Value
from monograph.ir.sized import guessing
from monograph.schedule import fuse, outputs, siblings, turning, views
from monograph.schedule.block import Block, Control
from monograph.schedule.flow import Flow, flow
from monograph.schedule.items import items
from monograph.schedule.kernel import Layout, is_held
from monograph.schedule.layout import Laid, Walk
from monograph.schedule.regions import is_loop

__all__ = ["block", "inside"]

Strides = tuple[int, ...]


def block(
    graph: Graph, laid: Laid, around: Walk | None = None, *, strides: Sequence[Strides | None] = (),
    stays: Sequence[Value] = (), is_condition: bool = False, is_loop: bool = False,
) -> Block:
    """The items of `graph`, a region inside what `around` lays out.

    `strides` are those of the outputs, where their types do not say; outputs that are the input at their place in
    `stays` have no item. `is_loop`: runs again and again.
    """
    outer = around.flow if around is not None else None
    graph = outputs.own_outputs(graph, stays)
    for value, wanted in zip(graph.outputs, strides, strict=False):
        if value not in stays and wanted is not None and not is_held(value):
            value.type = replace(value.tensor, strides=wanted)
    facts = flow(graph, outer=outer)
    stored = turning.stored(facts)
    if stored:
        facts = flow(graph, stored, outer)
    with guessing():        # kernels compute any set of nodes rightly
        groups = fuse.fuse(facts)
    moved = outputs.pull_back(facts, groups)
    with guessing():
        siblings.join_siblings(groups)
    pinned = {
        value: views.strides_seen(value) for value in graph.outputs
        if value.node in facts.own and not is_held(value)
    }
    pinned.update(dict(moved.values()))
    _pin_carried(facts, pinned)
    parts = items(facts, groups, graph.outputs if outer is not None else ())
    walk = Walk(facts, parts, pinned, laid, around if is_loop else None)
    for part in parts:
        walk.add(part)
    returns = [moved[value][0] if value in moved else value for value in graph.outputs]
    return Block(facts, walk.items, returns, walk.whole(returns[0]) if is_condition else None)


def _pin_carried(facts: Flow, pinned: dict[Value, Strides]) -> None:
    """What becomes a pinned value by going through loops is pinned as well."""
    for node in reversed(facts.graph.nodes):
        if is_loop(node):
            for operand, result in zip(node.inputs, node.results, strict=False):
                if result in pinned:
                    pinned[operand] = pinned[result]


def inside(walk: Walk, item: Control) -> None:
    """Schedule the regions of an item, whose results are laid out."""
    node, layouts = item.node, walk.laid.layouts
    if item.is_loop:
        for region in node.regions:
            for value, result in zip(region.inputs, node.results, strict=False):
                if result in layouts:
                    layouts[value] = layouts[result]
        condition, body = node.regions
        strides = _strides(layouts, body.inputs)
        given = [value for value in condition.outputs if value in condition.inputs]
        item.blocks = [
            block(condition, walk.laid, walk, stays=given, is_condition=True, is_loop=True),
            block(body, walk.laid, walk, strides=strides, stays=body.inputs, is_loop=True),
        ]
    elif item.is_rows:
        for region in node.regions:
            layouts.update((value, Layout(views.row_major(views.shape_of(value)))) for value in region.inputs)
        item.blocks = [
            block(region, walk.laid, walk, strides=[views.row_major(views.shape_of(value)) for value in region.outputs],
                  is_loop=True)
            for region in node.regions
        ]
    elif item.is_any_size:
        region, = node.regions
        layouts.update((value, Layout(views.row_major(views.shape_of(value)))) for value in region.inputs)
        strides = [layouts[result].strides if result in layouts else views.row_major(views.shape_of(value))
                   for value, result in zip(region.outputs, node.results, strict=True)]
        item.blocks = [block(region, walk.laid, walk, strides=strides)]
    else:
        item.predicate = walk.whole(node.inputs[0])
        strides = _strides(layouts, node.results)
        item.blocks = [block(region, walk.laid, walk, strides=strides) for region in node.regions]
    item.inputs = _reads(item)


def _strides(layouts: dict[Value, Layout], values: Sequence[Value]) -> list[Strides | None]:
    return [layouts[value].strides if value in layouts else None for value in values]


def _reads(item: Control) -> list[Value]:
    """What the regions of an item read and do not make, and what enters them."""
    parts = [part for block in item.blocks for part in block.items]
    made = {value for part in parts for value in part.outputs}
    made.update(value for region in item.node.regions for value in region.inputs)
    read = [*item.node.inputs] if item.is_loop or item.is_rows or item.is_any_size else []
    tests = [item.predicate, *(block.predicate for block in item.blocks)]
    read += [test.value for test in tests if test is not None]
    read += [value for part in parts for value in part.inputs]
    read += [value for block in item.blocks for value in block.returns if is_held(value)]
    return [value for value in dict.fromkeys(read) if value not in made]
