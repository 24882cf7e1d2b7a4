"""MONOGRAPH_DEBUG=dir: everything a compilation made, as files one can read and compare.

    dir/001-name-forward/00-captured.txt  01-dce.txt  ...      the graph, and again after every pass that changed it
                         schedule.txt                          items in order, layouts, places: the memory plan
                         loops.txt  kernels.ll  kernels.s      loop IR, LLVM IR, assembly of every kernel
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from monograph.codegen import assemble
from monograph.codegen.build import assembly
from monograph.codegen.llvm import emit_module
from monograph.codegen.target import Target
from monograph.errors import InputError
from monograph.ir.graph import Graph, Value
from monograph.ir.printer import print_graph
from monograph.loops.printer import text
from monograph.schedule.kernel import Branch, Jump, Schedule

__all__ = ["Dump", "memory_plan"]

_numbers = itertools.count(1)


class Dump:
    """The files of one graph. InputError where the directory cannot be written."""

    def __init__(self, directory: Path, graph: Graph) -> None:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", graph.name).strip("_") or "graph"
        try:
            while True:
                self.folder = directory / f"{next(_numbers):03}-{name}"
                if not self.folder.exists():
                    break
            self.folder.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"MONOGRAPH_DEBUG: cannot write to {directory} ({error.strerror})") from error
        self.count = 0
        self.last = ""
        self.graph("captured", graph)

    def graph(self, stage: str, graph: Graph) -> None:
        """The graph after `stage`; nothing where it is the same as before."""
        printed = print_graph(graph)
        if printed != self.last:
            self.write(f"{self.count:02}-{stage}.txt", printed)
            self.last = printed
        self.count += 1

    def native(self, schedule: Schedule, target: Target) -> None:
        """Schedule, loops, LLVM IR and assembly."""
        self.write("schedule.txt", memory_plan(schedule))
        kernels = assemble.parts(schedule, target).kernels
        self.write("loops.txt", "\n".join(text(kernel) for kernel in kernels))
        if kernels:
            self.write("kernels.ll", emit_module(kernels, target))
            self.write("kernels.s", "\n".join(assembly(kernel, target) for kernel in kernels))

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content)


def memory_plan(schedule: Schedule) -> str:
    """Items in execution order with what they read and write, and where each value lies."""
    names: dict[Value, str] = {}
    lines = [f"arena {schedule.arena_bytes} bytes, intermediates {schedule.intermediate_bytes} bytes in sum", ""]
    for number, item in enumerate(schedule.items):
        ops = ", ".join(node.op.name.split(".")[1] for node in item.nodes)
        kind = type(item).__name__.lower() + (f" {item.name}" if hasattr(item, "name") else "")
        if isinstance(item, (Branch, Jump)):
            kind += f" to {item.target}"
        lines.append(f"{number:4} {kind}: {ops}")
        for role, values in (("reads", item.inputs), ("writes", item.outputs)):
            lines += [f"       {role} {_described(value, schedule, names)}" for value in values]
    return "\n".join(lines) + "\n"


def _described(value: Value, schedule: Schedule, names: dict[Value, str]) -> str:
    name = names.setdefault(value, value.name or f"v{len(names)}")
    place: Any = schedule.places.get(value)
    where = f"{place.kind} {place.position}" if place is not None else "nowhere"
    layout = schedule.layouts.get(value)
    return f"%{name}: {value.type} at {where}" + (f" strides {list(layout.strides)}" if layout is not None else "")
