"""Random programs on tensors, compiled and eager: differences, refusals, forks, and which constructs ran.

    python -m benchmarks.fuzz --seed 0 --count 1000 [--llvm 0.1] [--grad 0.2] [--keep DIR] [--json FILE]
    python -m benchmarks.fuzz --rerun DIR/17.py
    python -m benchmarks.fuzz --sum FILE...

A run is a chunk: programs `seed` to `seed + count`, each made from its number alone. Prints each difference with a
shrunk program, then a table: programs equal, refused (by reason) and different; how many are one graph, several, or
rest on values read from the call; the constructs that eager ran through in programs that were equal, and which of them
fewer than ENOUGH programs have. Exits with 1 where a program differs or more than REFUSED are refused.

A number gives the same program only with the same generator: `--keep` writes each program that is not equal into a
file of its own, which any later version runs again. `--json` keeps the figures of a chunk, `--sum` adds chunks up.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import torch

from tests.capture.programs import Program
from tests.capture.regions.constructs import TABLE, constructs
from tests.capture.regions.differ import Verdict, compare, shrink
from tests.capture.regions.tensor_programs import write

ENOUGH = 100        # programs with each construct
REFUSED = 0.02
EVERY = 50          # programs between two lines of progress
SWEEP = 10          # and two sweeps of the heap
KINDS = ("equal", "refused", "different", "crash")
HEADER = re.compile(r"# program (\d+), (\w+), grad (\w+), calls (.*)\n")


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


def reported(program: Program, number: int, backend: str, grad: bool, verdict: Verdict, small: bool) -> None:
    """Prints a program that is not equal, made smaller if wanted."""
    if small:
        program = shrink(program, functools.partial(alike, verdict, number, grad, backend))
        verdict = judge(program, number, grad, backend)
    print(f"--- seed {number} {backend} grad={grad} {program.calls}: {verdict.kind}: {verdict.why[:900]}"
          + f"\n{program.source}" * small, flush=True)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The chunk; its figures."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    met: Counter[str] = Counter()
    start, cpu = time.perf_counter(), time.process_time()
    number = options.seed
    for number in range(options.seed, options.seed + options.count):
        done = number - options.seed
        if done % EVERY == 0:
            print(f"{done} programs, {time.perf_counter() - start:.0f} s: {dict(kinds)}", flush=True)
        if done % SWEEP == 0:
            gc.collect()
            gc.freeze()                     # what stays need not be looked through by every compilation
        if time.perf_counter() - start > options.seconds:
            break
        random = Random(number)
        backend = "llvm" if random.random() < options.llvm else "reference"
        grad = random.random() < options.grad
        program = write(random, grad=grad, deepest=options.deepest, rewriting=grad)
        verdict = judge(program, number, grad, backend)
        kinds[verdict.kind] += 1
        if verdict.kind == "equal":
            met.update(constructs(program.source, verdict.lines))
            kinds["one graph"] += verdict.graphs == 1
            kinds["several graphs"] += verdict.graphs > 1
            kinds["values read"] += verdict.reads
            kinds["raises while traced"] += verdict.graphs == 0
            kinds["native"] += backend == "llvm"
            kinds["grad"] += grad
            continue
        reasons[f"{verdict.kind}: {reason(verdict.why)}"] += 1
        if options.keep:
            kept(program, number, backend, grad, Path(options.keep))
        left = "refusals" if verdict.kind == "refused" else "shrink"
        small = getattr(options, left) > 0
        setattr(options, left, getattr(options, left) - 1)
        reported(program, number, backend, grad, verdict, small)
    else:
        number += 1
    return {"seeds": [[options.seed, number]], "kinds": dict(kinds), "reasons": dict(reasons), "met": dict(met),
            "seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def kept(program: Program, number: int, backend: str, grad: bool, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    calls = [seed for seed, in program.calls]
    (folder / f"{number}.py").write_text(f"# program {number}, {backend}, grad {grad}, calls {calls}\n{program.source}")


def rerun(file: Path, small: int) -> bool:
    """Whether a kept program is equal now."""
    text = file.read_text()
    header = HEADER.match(text)
    assert header is not None, f"{file} has no header"
    number, backend, grad, calls = header.groups()
    program = Program(text[header.end():], "program", [(seed,) for seed in json.loads(calls)], Counter())
    verdict = judge(program, int(number), grad == "True", backend)
    if verdict.kind == "equal":
        print(f"--- seed {number}: equal")
    else:
        reported(program, int(number), backend, grad == "True", verdict, small > 0)
    return verdict.kind == "equal"


def added(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {"seeds": [seeds for chunk in chunks for seeds in chunk["seeds"]]}
    for part in ("kinds", "reasons", "met"):
        total[part] = sum((Counter(chunk[part]) for chunk in chunks), Counter())
    return {**total, **{part: sum(chunk[part] for chunk in chunks) for part in ("seconds", "cpu")}}


def shown(figures: dict[str, Any]) -> bool:
    """Prints the table; whether all is as it should be."""
    kinds, met = Counter(figures["kinds"]), Counter(figures["met"])
    programs = sum(kinds[kind] for kind in KINDS)
    print(f"seeds {', '.join(f'{first} to {end - 1}' for first, end in figures['seeds'])}: {programs} programs in "
          f"{figures['seconds']:.0f} s ({figures['cpu']:.0f} s of CPU)")
    for kind in (*KINDS, "native", "grad", "one graph", "several graphs", "values read", "raises while traced"):
        print(f"{kinds[kind]:7} {100 * kinds[kind] / max(1, programs):5.1f} %  {kind}")
    for why, count in Counter(figures["reasons"]).most_common():
        print(f"{count:7} {why}")
    print("programs that ran through each construct, and were equal:")
    for name in TABLE:
        print(f"{met[name]:7} {name}")
    few = [name for name in TABLE if met[name] < ENOUGH]
    print(f"in fewer than {ENOUGH} programs: {', '.join(few) or 'none'}")
    return not (kinds["different"] or kinds["crash"] or kinds["refused"] > REFUSED * programs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program (%(default)s)")
    parser.add_argument("--llvm", type=float, default=0.1, help="share run as native code (%(default)s)")
    parser.add_argument("--grad", type=float, default=0.2, help="share run under autograd (%(default)s)")
    parser.add_argument("--deepest", type=int, default=3, help="how deep statements nest")
    parser.add_argument("--shrink", type=int, default=5, help="differences to shrink")
    parser.add_argument("--refusals", type=int, default=0, help="refused programs to shrink and print")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no program after this long")
    parser.add_argument("--keep", help="where to write programs that are not equal")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--rerun", type=Path, nargs="+", help="programs kept before")
    parser.add_argument("--sum", type=Path, nargs="+", help="figures of chunks, to add up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if options.rerun:
        sys.exit(int(not all([rerun(file, options.shrink) for file in options.rerun])))
    if options.sum:
        figures = added([json.loads(file.read_text()) for file in options.sum])
    else:
        figures = run(options)
        if options.json:
            options.json.write_text(json.dumps(figures))
    sys.exit(int(not shown(figures)))


if __name__ == "__main__":
    main()
