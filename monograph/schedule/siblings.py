"""Kernels that read the same value become one, so that it is read once.

Only where that costs no memory: what the later one stores is a graph output, or small beside the value they share.
"""

from __future__ import annotations

from monograph.schedule import recompute, rows
from monograph.schedule.flow import size
from monograph.schedule.fuse import ALONE, MOST_NODES, Group, Groups
from monograph.schedule.kernel import is_held

__all__ = ["join_siblings"]

MOST_READERS = 12       # of one value, looked at
SMALL = 8               # a result this many times smaller than what is read costs nothing to keep


def join_siblings(groups: Groups) -> None:
    """Merge groups that share an operand, where the union is one kernel over the same domain."""
    for value, readers in groups.flow.readers.items():
        if len(readers) < 2 or is_held(value) or size(value) < 2:
            continue
        found = list(dict.fromkeys(groups.of[node] for node in readers[:MOST_READERS] if node in groups.of))
        found = [group for group in found if group.capability is None and group.role not in ALONE]
        for at, late in enumerate(found):
            for early in found[:at]:
                if late.number in groups.alive and early.number in groups.alive:
                    _join(groups, early, late, size(value))


def _join(groups: Groups, early: Group, late: Group, shared: int) -> None:
    flow = groups.flow
    if early.domain is None or late.domain is None or early.domain.reduced != late.domain.reduced:
        return
    if early.domain.shape != late.domain.shape or len(early.nodes) + len(late.nodes) > MOST_NODES:
        return
    stored = groups.escaping(late.nodes, set(late.nodes))
    if not all(value in flow.escapes or size(value) * SMALL <= shared for value in stored):
        return
    if not groups.joinable(early, late):
        return
    nodes = sorted([*early.nodes, *late.nodes], key=flow.position.__getitem__)
    outputs = groups.escaping(nodes, set(nodes))
    domain = rows.domain(flow, nodes, outputs)
    if domain is not None and recompute.affordable(flow, nodes, outputs):
        groups.merge(late, early, nodes)
        late.domain = domain
