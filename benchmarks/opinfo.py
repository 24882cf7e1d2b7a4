"""Run PyTorch's whole operator database through the compiler and report.

    python -m benchmarks.opinfo                          float32, forward, 3 samples an op
    python -m benchmarks.opinfo --dtype bfloat16
    python -m benchmarks.opinfo --grad
    python -m benchmarks.opinfo --only softmax --verbose

Each op runs in a forked process of its own, so a crash or a hang costs one op.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import fnmatch
import json
import multiprocessing
import queue
import sys
import time
from pathlib import Path

import torch

from tests import opinfo

NATIVE_FAMILIES = ("pointwise", "reduction", "view", "gather", "scan")


def _work(op_index: int, options: argparse.Namespace, results: multiprocessing.Queue) -> None:
    torch.set_num_threads(1)
    dtype = getattr(torch, options.dtype)
    op = opinfo.ops(dtype)[op_index]
    outcome = opinfo.check(op, dtype, samples=options.samples, grad=options.grad, backend=options.backend)
    results.put((op_index, dataclasses.asdict(outcome)))


def run(options: argparse.Namespace) -> list[opinfo.Outcome]:
    """Every selected op, `options.jobs` at a time; a process that dies or takes too long is a failure of its op."""
    dtype = getattr(torch, options.dtype)
    ops = opinfo.ops(dtype)
    wanted = [i for i, op in enumerate(ops) if not options.only or any(
        fnmatch.fnmatch(opinfo.full_name(op), pattern) for pattern in options.only)]
    if not wanted:
        raise SystemExit(f"no op is called {' or '.join(options.only)}")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    outcomes: dict[int, opinfo.Outcome] = {}
    running: dict[int, tuple[multiprocessing.process.BaseProcess, float]] = {}
    waiting = list(reversed(wanted))
    while waiting or running:
        while waiting and len(running) < options.jobs:
            index = waiting.pop()
            process = context.Process(target=_work, args=(index, options, results))
            process.start()
            running[index] = (process, time.monotonic())
        try:
            index, fields = results.get(timeout=0.2)
            outcomes[index] = opinfo.Outcome(**fields)
        except queue.Empty:
            pass
        for index, (process, start) in list(running.items()):
            if index in outcomes:
                process.join()
                del running[index]
            elif not process.is_alive() or time.monotonic() - start > options.timeout:
                reason = "timeout" if process.is_alive() else f"the process died with code {process.exitcode}"
                _drain(results, outcomes)
                if index not in outcomes:
                    op = ops[index]
                    outcomes[index] = opinfo.Outcome(opinfo.full_name(op), opinfo.family(op), "failed", reason)
                process.kill()
                process.join()
                del running[index]
        if sys.stderr.isatty():
            print(f"\r{len(outcomes)}/{len(wanted)}", end="", file=sys.stderr)
    return [outcomes[index] for index in wanted]


def _drain(results: multiprocessing.Queue, outcomes: dict[int, opinfo.Outcome]) -> None:
    time.sleep(0.1)
    while not results.empty():
        index, fields = results.get()
        outcomes[index] = opinfo.Outcome(**fields)


def report(outcomes: list[opinfo.Outcome], verbose: bool) -> None:
    count = collections.Counter(outcome.status for outcome in outcomes)
    deterministic = [o for o in outcomes if o.status in ("passed", "failed", "refused")]
    print(f"{len(outcomes)} ops; eager runs {len(deterministic)} deterministically; {count['passed']} equal to eager, "
          f"{count['failed']} failed, {count['refused']} refused by name")
    ours = [o for o in deterministic if o.family in NATIVE_FAMILIES]
    native = [o for o in ours if o.status == "passed" and not o.library]
    if ours:
        print(f"pointwise, reduction, view, gather and scan ops: {len(ours)}, of which {len(native)} "
              f"({100 * len(native) / len(ours):.1f} %) ran without any library call")
    for outcome in outcomes:
        if outcome.status not in ("passed",) or (verbose and outcome.library):
            library = " ".join(outcome.library)
            print(f"  {outcome.status:16s} {outcome.family:10s} {outcome.name}: {outcome.reason} {library}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32", help="of the samples, as torch names it (%(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="of each op (%(default)s)")
    parser.add_argument("--grad", action="store_true", help="compare gradients as well")
    parser.add_argument("--backend", default="llvm", choices=["reference", "llvm"], help="(%(default)s)")
    parser.add_argument("--only", nargs="*", default=[], help="patterns of names, such as *softmax*")
    parser.add_argument("--jobs", type=int, default=2, help="ops at once (%(default)s)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each op (%(default)s)")
    parser.add_argument("--json", type=Path, help="where to write the outcomes")
    parser.add_argument("--verbose", action="store_true", help="print the errors whole")
    options = parser.parse_args()
    outcomes = run(options)
    report(outcomes, options.verbose)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(outcome) for outcome in outcomes], indent=1))


if __name__ == "__main__":
    main()
