"""What `make demo` shows: two real models, compiled, in one table.

    python -m benchmarks.demo
"""

from __future__ import annotations

import copy
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

import monograph
from benchmarks.models import MODELS
from benchmarks.report import facts, largest_difference
from benchmarks.timing import interleave, ratio

DEMO = ("BERT-base", "ResNet-50")
COLUMNS = (
    "model", "nodes", "kernels", "library calls", "compile s", "eager ms", "compiled ms", "ratio",
    "peak arena MB", "sum of intermediates MB", "largest difference",
)


def row(name: str) -> tuple[str, ...]:
    """Build, compile, compare and time one model."""
    model, inputs = MODELS[name]()
    compiled = monograph.compile(copy.deepcopy(model))
    with torch.no_grad():
        start = time.perf_counter()
        actual = compiled(**inputs)
        seconds = time.perf_counter() - start
        difference = largest_difference(actual, model(**inputs))
        times = interleave({"eager": lambda: model(**inputs), "compiled": lambda: compiled(**inputs)}, calls=6)
    what = facts(compiled)
    return (
        name, str(what.nodes), str(what.kernels), str(what.library), f"{seconds:.2f}",
        f"{1e3 * statistics.median(times['eager']):.1f}", f"{1e3 * statistics.median(times['compiled']):.1f}",
        str(ratio(times["eager"], times["compiled"])),
        f"{what.arena_bytes / 1e6:.2f}", f"{what.intermediate_bytes / 1e6:.2f}", f"{difference:.1e}",
    )


def main() -> None:
    console = Console(width=max(Console().width, 160))
    table = Table(*COLUMNS, title=f"Monograph {monograph.__version__}, torch {torch.__version__}, "
                                  f"{torch.get_num_threads()} threads")
    for name in DEMO:
        with console.status(f"{name}: building, compiling, timing"):
            table.add_row(*row(name))
    console.print(table)


if __name__ == "__main__":
    main()
