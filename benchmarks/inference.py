"""Inference of four real models: compile time, speed and memory against eager and torch.compile.

    python -m benchmarks.inference                      against eager
    python -m benchmarks.inference --peers              also against torch.compile (needs a C++ compiler)
    python -m benchmarks.inference --only BERT-base

Every model runs in a process of its own, cold: nothing is read from a cache on disk. Contenders take turns in one
process; a ratio is the median of 5 runs with the smallest and the largest. Peak resident sets are those of processes
that do nothing else, eager and compiled in turn: medians of 3.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import monograph
from benchmarks.memory import peak_intermediates, peak_resident
from benchmarks.models import MODELS
from benchmarks.report import facts, forget_arenas, largest_difference
from benchmarks.timing import interleave, ratio
from tests.compare import assert_same

THREADS = 2
PROCESSES = 3           # of each kind, for peak resident sets


def measure(name: str, peers: bool) -> None:
    """Print the lines of one model."""
    torch.set_num_threads(THREADS)
    model, inputs = MODELS[name]()
    contenders = {"eager": lambda: model(**inputs)}
    with torch.no_grad():
        expected = model(**inputs)
        compiled = monograph.compile(copy.deepcopy(model))
        seconds, actual = _first_call(lambda: compiled(**inputs))
        contenders["monograph"] = lambda: compiled(**inputs)
        what = facts(compiled)
        print(f"{name}: {what.nodes} nodes, {what.kernels} kernels ({what.distinct} distinct), "
              f"{what.library} library calls, fusion rate {100 * what.fusion:.0f} %")
        print(f"  largest difference from eager {largest_difference(actual, expected):.1e}")
        assert_same(actual, expected, rtol=1e-4, atol=1e-5)
        print(f"  call to first result: monograph {seconds:.2f} s", end="")
        if peers:
            peer = torch.compile(copy.deepcopy(model))
            print(f", torch.compile {_first_call(lambda: peer(**inputs))[0]:.2f} s", end="")
            contenders["torch.compile"] = lambda: peer(**inputs)
        times = interleave(contenders, calls=10)
        print("\n  faster than eager: " + ", ".join(
            f"{other} {ratio(times['eager'], times[other])}" for other in contenders if other != "eager"))
        ours = peak_intermediates(contenders["monograph"], lambda: forget_arenas(compiled))
        eagers = peak_intermediates(contenders["eager"])
        print(f"  peak of intermediates: eager {eagers / 1e6:.2f} MB measured, monograph "
              f"{what.arena_bytes / 1e6:.2f} MB "
              f"planned ({_saved(what.arena_bytes, eagers)}), {ours / 1e6:.2f} MB measured ({_saved(ours, eagers)}); "
              f"eager's ops under ideal lifetimes would need {what.eager_peak_bytes / 1e6:.2f} MB", flush=True)


def resident(name: str, compiled: bool) -> None:
    """Print the peak resident set of a process that builds a model and calls it ten times."""
    torch.set_num_threads(THREADS)
    model, inputs = MODELS[name]()
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    function = monograph.compile(model) if compiled else model
    with torch.no_grad():
        for _ in range(10):
            function(**inputs)
    print(peak_resident(), weights)


def _first_call(function) -> tuple[float, object]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def _saved(ours: int, eagers: int) -> str:
    return f"{100 * (1 - ours / eagers):.0f} % less"


def _child(*arguments: str) -> str:
    """Run this script in a fresh process without a disk cache; what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MONOGRAPH_CACHE_DIR": "off", "TORCHINDUCTOR_CACHE_DIR": folder}
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.inference", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def _residents(name: str) -> str:
    """Peak resident sets of fresh processes, in words."""
    rounds = [{how: [int(word) for word in _child("--resident", name, how).split()] for how in ("eager", "compiled")}
              for _ in range(PROCESSES)]
    eager, ours = (statistics.median(found[how][0] for found in rounds) for how in ("eager", "compiled"))
    _, weights = rounds[0]["compiled"]
    return (f"  peak resident set: {ours / 1e6:.0f} MB against eager's {eager / 1e6:.0f} MB; the difference is "
            f"{(ours - eager) / weights:.2f} copies of the weights ({weights / 1e6:.0f} MB)\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="also time torch.compile")
    parser.add_argument("--only", choices=list(MODELS), nargs="*", help="these models (all)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--resident", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.peers)
    elif options.resident:
        resident(options.resident[0], options.resident[1] == "compiled")
    else:
        for name in options.only or MODELS:
            print(f"{name}: a minute or two ...", file=sys.stderr, flush=True)
            print(_child("--measure", name, *(["--peers"] if options.peers else [])), end="")
            print(_residents(name), flush=True)


if __name__ == "__main__":
    main()
