"""Run passes: verify, time and record around every one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monograph.errors import VerificationError
from monograph.ir.graph import Graph
from monograph.ir.verifier import verify

__all__ = ["Pass", "PassRecord", "run"]


@dataclass(frozen=True, slots=True)
class Pass:
    """A named function `Graph -> bool` (changed?)."""

    name: str
    function: Callable[[Graph], bool]


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did: whether it fired, seconds it took, nodes before and after (regions included)."""

    name: str
    changed: bool
    seconds: float
    before: int
    after: int


def run(
    graph: Graph,
    passes: Sequence[Pass],
    *,
    check: bool = True,
    observe: Callable[[str, Graph], None] | None = None,
) -> list[PassRecord]:
    """Apply `passes` in order, in place. With `check` the graph is verified before the first and after each
    that changed it; a fault names the pass. `observe(name, graph)` is called after each pass.

    Raises VerificationError: a pass left a graph that breaks the grammar.
    """
    if check:
        _verify(graph, "capture")
    records = []
    for each in passes:
        before = _size(graph)
        start = time.perf_counter()
        changed = each.function(graph)
        seconds = time.perf_counter() - start
        if changed and check:
            _verify(graph, each.name)
        records.append(PassRecord(each.name, changed, seconds, before, _size(graph)))
        if observe is not None:
            observe(each.name, graph)
    return records


def _size(graph: Graph) -> int:
    return sum(1 for _ in graph.walk())


def _verify(graph: Graph, after: str) -> None:
    try:
        verify(graph)
    except VerificationError as error:
        raise VerificationError(f"the graph is not valid after {after}: {error.what}", loc=error.loc) from error
