"""Random programs on tensors, compiled and eager: differences, refusals, forks.

    python -m benchmarks.fuzz --count 1000 --seed 0 [--llvm 0.1] [--grad 0.3] [--refusals]

Prints each difference with a shrunk program, the reasons of refusals by number, the constructs met and which of them
fewer than ENOUGH programs have, and the shares of programs that are one graph, several, or rest on values read from the
call. Exits with 1 where a program differs or more than REFUSED are refused.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from random import Random

import torch

from tests.capture.programs import Program
from tests.capture.regions.constructs import TABLE, constructs
from tests.capture.regions.differ import Verdict, compare, shrink
from tests.capture.regions.tensor_programs import write

ENOUGH = 100        # programs with each construct
REFUSED = 0.02
EVERY = 100         # programs between two lines of progress


def judge(program: Program, number: int, grad: bool, backend: str) -> Verdict:
    try:
        return compare(program, number, grad=grad, backend=backend)
    except Exception as error:              # a fault of the compiler's, or of the comparison
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict("crash", f"{type(error).__name__}: {error} at {where.filename}:{where.lineno}")


def alike(verdict: Verdict, number: int, grad: bool, backend: str, candidate: Program) -> bool:
    """Whether another program fares the same."""
    found = judge(candidate, number, grad, backend)
    return found.kind == verdict.kind and reason(found.why)[:30] == reason(verdict.why)[:30]


def reason(why: str) -> str:
    """A refusal or difference without what is particular to its program."""
    return re.sub(r"\d+", "N", re.sub(r"^call \d+: ", "", why.split("\n")[0]))[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--llvm", type=float, default=0.1)
    parser.add_argument("--grad", type=float, default=0.3)
    parser.add_argument("--deepest", type=int, default=3, help="how deep statements nest")
    parser.add_argument("--shrink", type=int, default=5, help="differences to shrink")
    parser.add_argument("--refusals", type=int, default=0, help="refused programs to shrink and print")
    parser.add_argument("--forks", type=int, default=0, help="programs of several graphs to print")
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    met: Counter[str] = Counter()
    start = time.perf_counter()
    for number in range(options.seed, options.seed + options.count):
        if time.perf_counter() - start > options.seconds:
            break
        random = Random(number)
        backend = "llvm" if random.random() < options.llvm else "reference"
        grad = random.random() < options.grad
        program = write(random, grad=grad, deepest=options.deepest)
        verdict = judge(program, number, grad, backend)
        met.update(constructs(program.source))
        kinds[verdict.kind] += 1
        done = number - options.seed + 1
        if done % EVERY == 0:
            print(f"{done} programs, {time.perf_counter() - start:.0f} s: {dict(kinds)}", flush=True)
        if verdict.kind == "equal":
            kinds["one graph"] += verdict.graphs == 1
            kinds["several graphs"] += verdict.graphs > 1
            kinds["values read"] += verdict.reads
            kinds["raises while traced"] += verdict.graphs == 0
            if verdict.graphs > 1 and options.forks > 0:
                options.forks -= 1
                print(f"--- seed {number}: {verdict.graphs} graphs\n{program.source}")
            continue
        reasons[f"{verdict.kind}: {reason(verdict.why)}"] += 1
        wanted = options.refusals if verdict.kind == "refused" else options.shrink
        if wanted <= 0:
            print(f"--- seed {number} {backend} grad={grad}: {verdict.kind}: {verdict.why[:300]}", flush=True)
            continue
        if verdict.kind == "refused":
            options.refusals -= 1
        else:
            options.shrink -= 1
        small = shrink(program, functools.partial(alike, verdict, number, grad, backend))
        again = judge(small, number, grad, backend)
        print(f"--- seed {number} {backend} grad={grad} {small.calls}: {again.kind}: {again.why[:900]}\n{small.source}",
              flush=True)
    print(f"{sum(kinds[kind] for kind in ('equal', 'refused', 'different', 'crash'))} programs in "
          f"{time.perf_counter() - start:.0f} s ({time.process_time():.0f} s of CPU): {dict(kinds)}")
    for why, count in reasons.most_common():
        print(f"{count:5} {why}")
    print("programs per construct:", {name: met[name] for name in TABLE})
    few = [name for name in TABLE if met[name] < ENOUGH]
    print(f"in fewer than {ENOUGH} programs: {', '.join(few) or 'none'}")
    programs = sum(kinds[kind] for kind in ("equal", "refused", "different", "crash"))
    sys.exit(int(bool(kinds["different"] or kinds["crash"] or kinds["refused"] > REFUSED * programs)))


if __name__ == "__main__":
    main()
