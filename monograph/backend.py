"""What runs a graph: native code, or torch op by op.

    compile_graph(graph, options, written) -> Half          passes, then the backend
    Half ::= graph  run(inputs) -> outputs  pass records  schedule?  program?

`run` takes the values of the graph's inputs as they were before the passes, in that order.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from monograph import cache
from monograph.capture import blame
from monograph.codegen import assemble, target, workers
from monograph.codegen.build import Store
from monograph.config import Options
from monograph.errors import MonographError, Replay, WrongPath
from monograph.ir.graph import Graph
from monograph.ir.sized import Undecided
from monograph.ir.types import TensorType
from monograph.loops.counted import Uncountable
from monograph.ops.evaluate import evaluate, special
from monograph.runtime import heap
from monograph.runtime.execute import Executable
from monograph.runtime.program import Library
from monograph.schedule.anysize import Kind, OneSize
from monograph.schedule.kernel import Schedule
from monograph.schedule.plan import plan
from monograph.transform.pipeline import pipeline
from monograph.transform.runner import PassRecord, run

__all__ = ["Half", "Run", "compile_graph"]

Run: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


class Observer(Protocol):
    """Sees a compilation go by: see tools.dump."""

    def graph(self, stage: str, graph: Graph) -> None: ...

    def native(self, schedule: Schedule, target: target.Target) -> None: ...


# Makes the observer of a graph from Options.debug_dir; the package's face sets it, because tools stand above.
observer: Callable[[Path, Graph], Observer] | None = None


@dataclass
class Half:
    """One compiled graph, forward or backward. Schedule and program are None for the reference backend."""

    graph: Graph
    run: Run
    passes: list[PassRecord]
    schedule: Any = None
    program: Any = None
    executable: Any = None
    raises: bool = True           # on some values
    seconds: dict[str, float] = field(default_factory=dict)


def compile_graph(graph: Graph, options: Options, *, written: Collection[int] = (), again: bool = False) -> Half:
    """Optimise `graph` in place and make it runnable. `written`: inputs the program writes back to. `again`: what it
    raises it raises as Replay."""
    before = list(graph.inputs)
    watch = observer(options.debug_dir, graph) if options.debug_dir is not None and observer is not None else None
    weight = _weight(graph) if options.backend == "llvm" else 0
    with workers.opened(weight) as team:
        half = _passes(graph, options, written, watch)
        if options.backend == "llvm":
            _native(half, options, team)
    if weight >= workers.LARGE:
        heap.give_back()            # before the first call makes copies of the weights
    if options.backend == "llvm" and watch is not None:
        watch.native(half.schedule, target.host())
    half.run = _select(before, graph, half.run)
    if again and half.raises:
        half.run = _replayed(half.run)
    return half


def _replayed(run: Run) -> Run:
    def replayed(inputs: Sequence[Any]) -> Sequence[Any]:
        try:
            return run(inputs)
        except (MonographError, WrongPath, Replay):
            raise
        except Exception as error:      # whatever eager raises on such values
            raise Replay from error

    return replayed


def _weight(graph: Graph) -> int:
    """Bytes of the inputs: nearly all are weights where it matters."""
    return sum(math.prod(t.shape) * t.dtype.itemsize for t in (v.type for v in graph.inputs)
               if isinstance(t, TensorType) and all(isinstance(size, int) for size in t.shape))


def _passes(graph: Graph, options: Options, written: Collection[int], watch: Observer | None) -> Half:
    """The graph optimised; torch op by op runs it."""
    start = time.perf_counter()
    records = run(graph, pipeline(written=written, derive=options.weights != "live"),
                  observe=watch.graph if watch is not None else None)
    seconds = {"passes": time.perf_counter() - start}
    if "passes" in options.log:
        for record in records:
            print(f"[monograph] {record.name}: {record.before} -> {record.after} nodes, "
                  f"{record.seconds * 1e3:.1f} ms", file=sys.stderr)
    return Half(graph, _reference(graph), records, seconds=seconds)


def _native(half: Half, options: Options, team: workers.Workers | None) -> None:
    """Schedule, object code, a program made ready to run."""
    start = time.perf_counter()
    machine = target.host(team.host if team is not None else None)
    pack, store = options.weights != "live", _store(options.cache_dir)
    half.schedule, parts = _parts(half.graph, machine, pack)
    planned = time.perf_counter()
    half.program = assemble.compiled(parts, machine, store=store, team=team)
    compiled = time.perf_counter()
    if "kernels" in options.log:
        for step in half.program.steps:
            print(f"[monograph] {type(step).__name__.lower()} {step.label}", file=sys.stderr)
    policy: Any = options.weights
    half.executable = Executable(half.program, weights=policy, resolve=special)
    half.run = half.executable.run
    half.raises = bool(half.program.errors) or any(isinstance(step, Library) for step in half.program.steps)
    half.seconds |= {"schedule": planned - start, "codegen": compiled - planned, "load": time.perf_counter() - compiled}


def _parts(graph: Graph, machine: target.Target, pack: bool) -> tuple[Schedule, assemble.Parts]:
    """A schedule with its kernels; without those that were asked for any number of rows, or any size, and cannot be."""
    count = True
    refused: frozenset[Kind] | None = frozenset()
    while True:
        try:
            schedule = plan(graph, target=machine, pack=pack, count=count, refused=refused)
            return schedule, assemble.parts(schedule, machine)
        except Uncountable:
            count = False
        except OneSize as error:
            refused = refused | error.kinds if refused is not None and not error.kinds <= refused else None
        except Undecided:
            refused = None


def _warn(text: str) -> None:
    blame.warn(text, RuntimeWarning)


@functools.cache
def _store(directory: Path | None) -> Store | None:
    """Objects on disk, looked up by what they depend on."""
    opened = cache.opened(directory, _warn)
    if opened is None:
        return None
    return lambda text, make: opened.get_or_make(cache.key(text), make)


def _reference(graph: Graph) -> Run:
    def reference(inputs: Sequence[Any]) -> Sequence[Any]:
        return evaluate(graph, inputs)

    return reference


def _select(before: list[Any], graph: Graph, run: Run) -> Run:
    """Passes may drop inputs and add derived ones, which the backend makes itself."""
    numbers = {value: number for number, value in enumerate(before)}
    wanted = [numbers[value] for value, source in zip(graph.inputs, graph.sources) if source.kind != "derived"]
    if wanted == list(range(len(before))):
        return run
    return lambda inputs: run([inputs[number] for number in wanted])
