"""Interleaved timing: contenders take turns in one process, so that whatever the machine does hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Ratio", "interleave", "ratio"]


@dataclass(frozen=True)
class Ratio:
    """Median over runs of (baseline seconds / contender seconds), with the smallest and largest run."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.low:.2f}-{self.high:.2f})"


def interleave(
    contenders: Mapping[str, Callable[[], object]], *, runs: int = 5, calls: int = 10, warm: int = 3
) -> dict[str, list[float]]:
    """Seconds per call, one median per run and contender; in a run all contenders are called `calls` times in turn."""
    for function in contenders.values():
        for _ in range(warm):
            function()
    medians: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(runs):
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(calls):
            for name, function in contenders.items():
                start = time.perf_counter()
                function()
                seconds[name].append(time.perf_counter() - start)
        for name, values in seconds.items():
            medians[name].append(statistics.median(values))
    return medians


def ratio(baseline: list[float], contender: list[float]) -> Ratio:
    """How many times faster than the baseline the contender was, run by run."""
    ratios = [slow / fast for slow, fast in zip(baseline, contender, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))
