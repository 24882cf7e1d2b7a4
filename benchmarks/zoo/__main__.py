"""Run every `transformers` family through the compiler and report.

    python -m benchmarks.zoo                                  all, the graph run op by op
    python -m benchmarks.zoo --backend llvm --only bert,t5
    python -m benchmarks.zoo --part 2/4 --json zoo.json       a quarter; what the file has already is not run again

Each family runs in a forked process of its own, so that a crash or a hang costs one family.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import resource
import signal
import sys
import warnings
from pathlib import Path

import torch
import transformers

import monograph
from benchmarks.zoo.check import Outcome, check
from benchmarks.zoo.models import families

WAIT = 20       # a busy machine gives a process no less than a twentieth


def _work(name: str, backend: str, limit: int, pipe: multiprocessing.connection.Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    pipe.send(dataclasses.asdict(check(name, backend=backend)))


def one(name: str, backend: str, limit: int) -> Outcome:
    """`check(name)` in a process of its own, for at most `limit` seconds of the processor's time."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, backend, limit, sender))
    process.start()
    sender.close()
    outcome = Outcome(name, "timeout", f"{limit} s", seconds=limit)
    if receiver.poll(WAIT * limit):
        try:
            outcome = Outcome(**receiver.recv())
        except EOFError:
            process.join()
            if process.exitcode != -signal.SIGXCPU:
                outcome = Outcome(name, "died", f"exit code {process.exitcode}")
    process.kill()
    process.join()
    return outcome


def report(outcomes: list[Outcome]) -> None:
    count = collections.Counter(outcome.status for outcome in outcomes)
    built = [outcome for outcome in outcomes if outcome.status != "not built"]
    equal = [outcome for outcome in built if outcome.status == "equal"]
    guarded = [outcome for outcome in equal if outcome.reads]
    share = 100 / max(len(built), 1)
    print(f"{len(outcomes)} families, {len(built)} built; {len(equal)} ({share * len(equal):.1f} %) captured as one "
          f"graph and equal to eager, {len(guarded)} ({share * len(guarded):.1f} %) of them with a value read from the "
          f"call, {sum(o.calls > 0 for o in equal)} with a function that Python calls, "
          f"{sum(o.regions > 0 for o in equal)} with regions, {sum(o.graphs > 1 for o in equal)} with another "
          f"graph for the second call; {dict(count)}")
    for status in ("not built", "timeout", "died", "refused", "different", "error", "equal"):
        for outcome in outcomes:
            if outcome.status == status and (status != "equal" or outcome.graphs != 1 or outcome.reads):
                what = f"{outcome.graphs} graphs, {outcome.reads} reads" if status == "equal" else outcome.reason
                print(f"  {status:10s} {outcome.name}: {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="families, with commas between them")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th family, from the K-th on")
    parser.add_argument("--backend", default="reference", choices=["reference", "llvm"],
                        help="run the graph op by op, or as native code (%(default)s)")
    parser.add_argument(
        "--time-limit", type=int, default=60, help="seconds of the processor's time, for each family")
    parser.add_argument("--json", type=Path, help="the outcomes; families in it are not run again")
    parser.add_argument("--again", default="", help="run again what the file has with one of these statuses")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    names = options.only.split(",") if options.only else families()[part - 1::parts]
    done: dict[str, Outcome] = {}
    if options.json and options.json.exists():
        done = {entry["name"]: Outcome(**entry) for entry in json.loads(options.json.read_text())}
    torch.set_num_threads(1)
    monograph.compile(lambda x: x + 1, backend=options.backend)(torch.ones(2))        # imports, before the forks
    for number, name in enumerate(names, 1):
        if name in done and done[name].status not in options.again.split(",") and not options.only:
            continue
        outcome = done[name] = one(name, options.backend, options.time_limit)
        print(f"{number}/{len(names)} {name}: {outcome.status} {outcome.seconds:.1f} s, {outcome.nodes} nodes, "
              f"{outcome.reads} reads, {outcome.regions} regions, {outcome.calls} calls {outcome.reason}",
              file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps([dataclasses.asdict(entry) for entry in done.values()], indent=1))
    report([done[name] for name in names if name in done])


if __name__ == "__main__":
    main()
