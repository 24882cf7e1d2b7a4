"""The order of items: among those that may run, the one that frees most, or takes least, of the arena.

Ties keep the order of the program, so a chain stays a chain. Draws from a generator keep their order.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping

from monograph.ir import edit
from monograph.ir.graph import Node, Value
from monograph.schedule import roles
from monograph.schedule.block import Part

__all__ = ["order"]


def order(items: list[Part], weight: dict[Value, int], binders: Mapping[str, Node]) -> list[Part]:
    """`items` reordered; `weight` has the bytes of every value that takes room in the arena, `binders` the nodes that
    tell a symbol."""
    maker = {value: item for item in items for value in item.outputs}
    holder = {node: item for item in items for node in item.nodes} if binders else {}
    told = {name: holder[node] for name, node in binders.items()}
    pending: dict[Value, int] = {}
    missing: dict[Part, int] = {}
    after: dict[Part, list[Part]] = {item: [] for item in items}
    for item in items:
        for value in item.inputs:
            pending[value] = pending.get(value, 0) + 1
        makers = {maker[value] for value in item.inputs if value in maker}
        if told:
            names = set().union(*map(edit.symbols_read, item.nodes))
            makers |= {told[name] for name in names if told.get(name, item) is not item}
        missing[item] = len(makers)
        for other in makers:
            after[other].append(item)
    for first, second in _checked(items) if told else ():
        if second not in after[first]:
            after[first].append(second)
            missing[second] += 1
    ordered = [item for item in items if any(roles.is_ordered(node) for node in item.nodes)]
    for first, second in itertools.pairwise(ordered):
        if second not in after[first]:
            after[first].append(second)
            missing[second] += 1
    position = {item: i for i, item in enumerate(items)}

    def growth(item: Part) -> int:
        made = sum(weight.get(value, 0) for value in item.outputs)
        return made - sum(weight.get(value, 0) for value in item.inputs if pending[value] == 1)

    ready = [(growth(item), position[item]) for item in items if not missing[item]]
    heapq.heapify(ready)
    done: list[Part] = []
    while ready:
        known, at = heapq.heappop(ready)
        item = items[at]
        now = growth(item)
        if now != known:        # others have read what it reads since it was queued
            heapq.heappush(ready, (now, at))
            continue
        done.append(item)
        for value in item.inputs:
            pending[value] -= 1
        for later in after[item]:
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, (growth(later), position[later]))
    assert len(done) == len(items), "a cycle between items"
    return done


def _checked(items: list[Part]) -> Iterator[tuple[Part, Part]]:
    """Conditions on symbols, and what comes later and has such sizes: it would fail in its own words."""
    checks: dict[str, list[Part]] = {}
    for item in items:
        names = set().union(*map(edit.symbols_read, item.nodes))
        for check in {id(check): check for name in names for check in checks.get(name, ())}.values():
            yield check, item
        if any(node.op.name == "mono.require" for node in item.nodes):
            for name in names:
                checks.setdefault(name, []).append(item)
