"""What a benchmark reads off a compiled module: its programs, their steps and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph.api import dispatcher_of
from monograph.ops.text import parse
from monograph.runtime.program import Library, Native
from monograph.schedule.report import eager_peak, fusion_rate

__all__ = ["Facts", "facts", "forget_arenas", "largest_difference"]


@dataclass(frozen=True)
class Facts:
    """nodes of the captured graph, kernels and library calls per run, distinct kernels, bytes, fusion rate 0..1."""

    nodes: int
    kernels: int
    distinct: int
    library: int
    arena_bytes: int
    intermediate_bytes: int
    eager_peak_bytes: int
    fusion: float


def facts(compiled: Any) -> Facts:
    """Facts of the newest program of a compiled function or module."""
    dispatcher = dispatcher_of(compiled)
    assert dispatcher is not None and dispatcher.entries, "nothing is compiled yet"
    report = dispatcher.entries[0].report
    half = report.halves["forward"]
    captured = parse(report.text)
    native = [step for step in half.program.steps if isinstance(step, Native)]
    return Facts(
        nodes=len(captured.nodes),
        kernels=len(native),
        distinct=len({step.symbol for step in native}),
        library=sum(isinstance(step, Library) for step in half.program.steps),
        arena_bytes=half.program.arena_bytes,
        intermediate_bytes=half.schedule.intermediate_bytes,
        eager_peak_bytes=eager_peak(captured),
        fusion=fusion_rate(half.schedule),
    )


def forget_arenas(compiled: Any) -> None:
    """Give back the arenas that the programs of `compiled` keep between calls."""
    dispatcher = dispatcher_of(compiled)
    assert dispatcher is not None
    for entry in dispatcher.entries:
        for half in entry.report.halves.values():
            half.executable.trim()


def largest_difference(actual: Any, expected: Any) -> float:
    """Largest absolute difference between two results of the same structure."""
    pairs = zip(pytree.tree_leaves(dict(actual)), pytree.tree_leaves(dict(expected)), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs if isinstance(b, torch.Tensor))
