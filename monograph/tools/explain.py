"""`monograph.explain(fn, *args)`: what the compiler made of a call.

    Explanation ::= graph  kernels (ops and user lines of each)  library calls  Python steps  memory  passes
                    fusion rate  seconds
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monograph import api, tracebacks
from monograph.build import Report, build
from monograph.config import Options
from monograph.dispatch import Dispatcher, Entry, TraceFailed
from monograph.ir.printer import print_graph
from monograph.runtime.early import python_steps
from monograph.schedule.kernel import Schedule
from monograph.tools.fusion import Row, fusion_rate, rows

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """`print` it, or read the parts. `halves` are "forward" and, where gradients were asked for, "backward"."""

    report: Report
    recompiles: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()          # sizes that vary but could not be symbols, and why

    @property
    def schedules(self) -> dict[str, Schedule]:
        return {name: half.schedule for name, half in self.report.halves.items() if half.schedule is not None}

    @property
    def graph(self) -> str:
        """The graph as captured."""
        return self.report.text

    @property
    def optimised(self) -> str:
        """The graphs after the passes."""
        return "\n".join(print_graph(half.graph) for half in self.report.halves.values())

    @property
    def kernels(self) -> dict[str, list[Row]]:
        return {name: rows(schedule) for name, schedule in self.schedules.items()}

    @property
    def library_calls(self) -> Counter[str]:
        """The ops without a kernel, with how often each is called."""
        return Counter(row.ops[0] if row.ops else "view" for table in self.kernels.values() for row in table
                       if row.kind == "library")

    @property
    def python_steps(self) -> Counter[str]:
        """What runs from Python in a call that raises nothing, each step once; empty when all is native."""
        programs = [half.program for half in self.report.halves.values() if half.program is not None]
        return Counter(step.label for program in programs for step in python_steps(program))

    @property
    def fusion_rate(self) -> float:
        return fusion_rate(list(self.schedules.values()))

    @property
    def arena_bytes(self) -> int:
        return sum(schedule.arena_bytes for schedule in self.schedules.values())

    @property
    def intermediate_bytes(self) -> int:
        return sum(schedule.intermediate_bytes for schedule in self.schedules.values())

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        report = self.report
        lines = [report.text.rstrip(), ""]
        for name, half in report.halves.items():
            fired = [f"{r.name} {r.before}->{r.after}" for r in half.passes if r.changed]
            lines.append(f"{name}: {len(half.graph.nodes)} nodes; passes that fired: {', '.join(fired) or 'none'}")
        for name, table in self.kernels.items():
            lines += ["", f"{name}: {len(table)} steps"] + [_line(number, row) for number, row in enumerate(table)]
        if self.schedules:
            library = ", ".join(f"{op} x{count}" for op, count in self.library_calls.items()) or "none"
            saved = max(0.0, 1 - self.arena_bytes / self.intermediate_bytes) if self.intermediate_bytes else 0.0
            lines += ["", f"library calls: {library}", f"steps that run from Python: {self.python_steps.total()}",
                      f"memory: arena {_bytes(self.arena_bytes)}, intermediates {_bytes(self.intermediate_bytes)} "
                      f"in sum ({saved:.0%} saved)",
                      f"fusion rate: {self.fusion_rate:.0%}"]
        lines.append(f"guard: {report.facts} facts")
        if report.effects:
            lines.append(f"effects: {'; '.join(report.effects)}")
        lines += [f"recompiled: {reason}" for reason in self.recompiles]
        lines += [f"no symbol: {reason}" for reason in self.fixed]
        seconds = ", ".join(f"{stage} {value:.2f}" for stage, value in report.seconds.items())
        return [*lines, f"seconds: {seconds}"]


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Compile `function(*args, **kwargs)`, or take what a compiled one has for such a call, and describe it.

    Nothing is run: arguments and state are left alone.
    """
    dispatcher = api.dispatcher_of(function)
    if dispatcher is None:
        return Explanation(_report(function, args, kwargs, Options.make()))
    entry = _matching(dispatcher, args, kwargs)
    report = entry.report if entry is not None else _report(dispatcher.function, args, kwargs, dispatcher.options)
    fixed = {f"size {axis} of {path}: {why.splitlines()[0]}": None
             for each in dispatcher.entries for (path, axis), why in each.fixed.items()}
    return Explanation(report, tuple(str(recompile) for recompile in dispatcher.recompiles), tuple(fixed))


def _matching(dispatcher: Dispatcher, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry | None:
    return next((entry for entry in dispatcher.entries if entry.guard.check(args, kwargs) is not None), None)


def _report(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Report:
    try:
        return build(function, args, kwargs, options).report
    except TraceFailed as failed:
        error = failed.error
    tracebacks.leave(error, of_program=True)
    raise error


def _line(number: int, row: Row) -> str:
    ops = Counter(row.ops)
    text = " ".join(name if count == 1 else f"{name}*{count}" for name, count in ops.items())
    where = f"  [{', '.join(row.lines)}]" if row.lines else ""
    return f"{number:4}  {row.kind:9} {text}  -> {row.shape}{where}"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e5 else f"{count} B"
