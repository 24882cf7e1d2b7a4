"""What still runs from Python in repeated calls of functions with control flow.

    python -m benchmarks.python_steps [name ...]

One line per function of `tests/capture/regions`: how many programs its inputs made, and the steps of each that run
from Python, library calls among them. Functions whose inputs have several sizes are compiled for any.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

import monograph
from monograph import api
from monograph.runtime.early import python_steps
from tests.capture.regions import functions, functions_loops, functions_objects, functions_selected, functions_sizes

CASES = functions.CASES + functions_loops.CASES + functions_objects.CASES + functions_selected.CASES
SIZES = functions_sizes.CASES


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def steps(
    function: Any, inputs: Sequence[tuple[torch.Tensor, ...]], dynamic: bool | None = None
) -> list[Counter[str]]:
    """By program: what runs from Python, with how many steps."""
    fast = monograph.compile(copy.deepcopy(function), dynamic=dynamic)
    with torch.no_grad():
        for given in inputs:
            try:
                fast(*[x.clone() for x in given])
            except Exception as error:      # what eager raises
                print(f"    {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
    dispatcher = api.dispatcher_of(fast)
    assert dispatcher is not None
    halves = [half for entry in dispatcher.entries for half in entry.report.halves.values()]
    return [Counter(step.label for step in python_steps(half.program)) for half in halves if half.program is not None]


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    every = native = 0
    for function, inputs, dynamic in [(*case, None) for case in CASES] + [(*case, True) for case in SIZES]:
        name = name_of(function)
        if names and name not in names:
            continue
        found = steps(function, inputs, dynamic)
        every += len(found)
        native += sum(not counted for counted in found)
        print(f"{name:34} {len(found)} programs: " + "; ".join(
            ", ".join(f"{label} x{count}" for label, count in counted.items()) or "0" for counted in found), flush=True)
    print(f"{native} of {every} programs run nothing from Python")


if __name__ == "__main__":
    main(sys.argv[1:])
