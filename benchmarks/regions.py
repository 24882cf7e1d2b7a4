"""Loops and branches in native programs against the evaluator, which runs the same graph op by op in torch.

    python -m benchmarks.regions [rounds]

Prints microseconds per round of a small loop: counting, a cond inside, a product of matrices carried.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from monograph.codegen import assemble, target
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse
from monograph.runtime.execute import Executable
from monograph.schedule import plan

LOOP = """
graph {{
    input %x: f32[{shape}]
    input %w: f32[16, 16, strides=[16, 1]] = parameter w
    input %n: i64[strides=[]]
    %zero: i64[] = aten.full.default([], 0, dtype=i64)
    %i: i64[], %y: f32[{size}] = mono.while([%zero, %x]) {{
        condition {{
            input %i0: i64[]
            input %y0: f32[{size}]
            %p: bool[] = aten.lt.Tensor(%i0, %n)
            return %p
        }}
        body {{
            input %i1: i64[]
            input %y1: f32[{size}]
            %i2: i64[] = aten.add.Scalar(%i1, 1)
{body}
            return %i2, %y2
        }}
    }}
    return %y
}}
"""
CASES = {
    "pointwise": ("16", "16, strides=[1]", """
            %a = aten.sin.default(%y1)
            %b = aten.mul.Scalar(%a, 0.9)
            %y2: f32[16] = aten.add.Scalar(%b, 0.1)"""),
    "cond": ("16", "16, strides=[1]", """
            %s = aten.sum.default(%y1)
            %q = aten.gt.Scalar(%s, 1.0)
            %y2: f32[16] = mono.cond(%q) {
                then {
                    %a = aten.mul.Scalar(%y1, 0.5)
                    return %a
                }
                otherwise {
                    %b = aten.add.Scalar(%y1, 0.5)
                    return %b
                }
            }"""),
    "matrix": ("8, 16", "8, 16, strides=[16, 1]", """
            %a = aten.linear.default(%y1, %w)
            %y2: f32[8, 16] = aten.tanh.default(%a)"""),
}


def per_round(run: Callable[[Sequence[Any]], Any], inputs: Sequence[Any], rounds: int) -> float:
    """The best of three, in microseconds."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        run(inputs)
        best = min(best, time.perf_counter() - start)
    return best / rounds * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=1000, help="of each loop (%(default)s)")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print(f"{'':12}{'native':>10}{'evaluator':>12}  us per round, {rounds} rounds")
    for name, (size, shape, body) in CASES.items():
        graph = parse(LOOP.format(size=size, shape=shape, body=body.strip("\n")))
        executable = Executable(assemble.program(plan(graph, target=target.host()), target.host(), jobs=1))
        rows = tuple(int(entry) for entry in size.split(","))
        inputs = [torch.randn(rows), torch.randn(16, 16) * 0.2, torch.tensor(rounds)]
        torch.testing.assert_close(executable.run(inputs)[0], evaluate(graph, inputs)[0], rtol=1e-3, atol=1e-3)
        native = per_round(executable.run, inputs, rounds)
        slow = per_round(lambda given, graph=graph: evaluate(graph, given), inputs, rounds)
        print(f"{name:12}{native:10.2f}{slow:12.2f}  {slow / native:.0f}x")


if __name__ == "__main__":
    main()
