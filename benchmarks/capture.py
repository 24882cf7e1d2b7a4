"""Time to capture a model, against torch.compile(backend="eager") and torch.export, and the guard of a captured call.

    python -m benchmarks.capture [--runs 3] [--only BERT-base,llama]

One interleaved run: every round captures each model once by every contender, from nothing (`torch._dynamo.reset`).
Printed are ratios of medians of CPU time: how many times longer the peer takes. Of torch.compile's, which runs the
model as well, one run is taken off. A peer that cannot take the model says so.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

import monograph
from benchmarks.models import MODELS
from monograph.api import dispatcher_of
from tests import architectures

KINDS = ("llama", "t5", "mistral", "bart", "clip", "wav2vec2", "convnext", "swin", "whisper", "segformer")
GUARD_CALLS = 200


def models(only: set[str]) -> dict[str, Callable[[], tuple[torch.nn.Module, dict[str, Any]]]]:
    found: dict[str, Callable[[], Any]] = {"BERT-base": MODELS["BERT-base"]}
    found |= {name: functools.partial(architectures.build, name) for name in KINDS}
    return {name: build for name, build in found.items() if not only or name in only}


def by_monograph(model: torch.nn.Module, inputs: dict[str, Any]) -> None:
    monograph.capture(model, **inputs)


def by_dynamo(model: torch.nn.Module, inputs: dict[str, Any]) -> None:
    torch._dynamo.reset()
    torch.compile(model, backend="eager", dynamic=False)(**inputs)


def by_export(model: torch.nn.Module, inputs: dict[str, Any]) -> None:
    torch._dynamo.reset()
    torch.export.export(model, (), inputs, strict=False)


CONTENDERS = {"monograph": by_monograph, "torch.compile": by_dynamo, "torch.export": by_export}


def measure(build: Callable[[], Any], runs: int) -> dict[str, float | None]:
    """Median seconds of each contender; None for one that fails."""
    model, inputs = build()
    contenders = {**CONTENDERS, "a run": lambda model, inputs: model(**inputs)}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    failed: set[str] = set()
    with torch.no_grad():
        model(**inputs)
        for _ in range(runs + 1):            # the first round is not counted: imports, caches
            for name, capture in contenders.items():
                if name in failed:
                    continue
                start = time.process_time()
                try:
                    capture(model, inputs)
                except Exception:            # whatever the peer raises: it cannot take this model
                    failed.add(name)
                seconds[name].append(time.process_time() - start)
    found = {name: None if name in failed else statistics.median(taken[1:]) for name, taken in seconds.items()}
    if found["torch.compile"] is not None and found["a run"] is not None:
        found["torch.compile"] -= found["a run"]
    return found


def guard_microseconds(build: Callable[[], Any]) -> float:
    """The check of one captured call."""
    model, inputs = build()
    fast = monograph.compile(model, backend="reference")
    with torch.no_grad():
        fast(**inputs)
    dispatcher = dispatcher_of(fast)
    assert dispatcher is not None
    check = dispatcher.entries[0].guard.check
    taken = []
    with torch.no_grad():
        for _ in range(GUARD_CALLS):
            start = time.perf_counter()
            held = check((), inputs)
            taken.append(time.perf_counter() - start)
            assert held is not None
    return statistics.median(taken) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="of each contender; the median counts (%(default)s)")
    parser.add_argument("--only", default="", help="models, with commas between them")
    options = parser.parse_args()
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    only = set(filter(None, options.only.split(",")))
    if not only or "BERT-base" in only:      # first: the heaps that peers leave slow all of Python down
        print(f"guard of BERT-base: {guard_microseconds(MODELS['BERT-base']):.0f} us")
    print(f"{'model':<16}{'torch.compile / monograph':>28}{'torch.export / monograph':>28}")
    for name, build in models(only).items():
        seconds = measure(build, options.runs)
        mine = seconds["monograph"]
        cells = []
        for peer in ("torch.compile", "torch.export"):
            other = seconds[peer]
            cells.append("fails" if other is None else "-" if mine is None else f"{other / mine:.1f}x")
        print(f"{name:<16}{cells[0]:>28}{cells[1]:>28}", flush=True)


if __name__ == "__main__":
    main()
