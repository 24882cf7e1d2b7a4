"""Steps made ready where a call begins, beside its outputs, in front of the one native call.

`early(program)` says which: what follows from the sizes of the inputs alone (memory for results of symbolic size,
numbers for kernels, blocks, pointers to inputs) and is done once in every call, whatever path that takes. The runner
goes past them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from monograph.ir import symbolic
from monograph.ir.symbolic import Expr
from monograph.ir.types import TensorType
from monograph.runtime.held import names_told
from monograph.runtime.program import (
    AnySize,
    Branch,
    Jump,
    Library,
    Native,
    Point,
    Program,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    Step,
)

__all__ = ["early", "python_steps", "symbols_of"]


def python_steps(program: Program) -> list[Step]:
    """The steps that run from Python between native ones, in a call that raises nothing, each once."""
    before = early(program)
    return [step for number, step in enumerate(program.steps)
            if number not in before and _stops_the_runner(program, step)]


def _stops_the_runner(program: Program, step: Step) -> bool:
    if isinstance(step, Library):
        return not step.raises
    if isinstance(step, Record):
        return step.action != "round" or step.counter < 0
    if isinstance(step, Branch):
        return program.slots[step.slot].kind == "held"
    return not isinstance(step, (Native, Jump, RowsNext, RowAt))


def early(program: Program) -> frozenset[int]:
    """Numbers of the steps of a call's beginning."""
    told = frozenset[str]().union(*map(names_told, program.inputs))
    there = {slot for _, slot in program.held_inputs}       # held values that a call has where it begins
    found: set[int] = set()
    reached = 0         # steps before that one may be jumped over
    returns = _returns(program)
    for number, step in enumerate(program.steps):
        is_sure = reached <= number and not any(target <= number < jump for target, jump in returns)
        if isinstance(step, (Branch, Jump, RowsNext)):
            reached = max(reached, step.target)
        elif is_sure and isinstance(step, (AnySize, RowsStart, Point)):
            needs = {slot for slot, _ in step.given} if not isinstance(step, Point) else {step.slot}
            if needs <= there and symbols_of(program, step) <= told:
                found.add(number)
                there |= set() if isinstance(step, Point) else {slot for slot, _ in step.results}
    return frozenset(found)


def _returns(program: Program) -> list[tuple[int, int]]:
    """Jumps back: where to, and from where."""
    return [(step.target, number) for number, step in enumerate(program.steps)
            if isinstance(step, Jump) and step.target <= number]


def symbols_of(program: Program, step: AnySize | RowsStart | Point) -> set[str]:
    """The symbols that what a step does depends on."""
    return set().union(*(symbolic.free_symbols(dim) for dim in _dims(program, step) if isinstance(dim, Expr)))


def _dims(program: Program, step: AnySize | RowsStart | Point) -> Iterator[Any]:
    if isinstance(step, Point):
        return
    for slot, _ in step.results:
        kind = program.slots[slot].type
        yield from kind.shape if isinstance(kind, TensorType) else ()
    if isinstance(step, RowsStart):
        yield step.size
        return
    yield from (dim for _, dim in step.sizes)
    yield from (size for _, size, _, _ in step.blocks)
    yield from step.margins
    yield from (dim for _, *pair in step.rooms for dim in pair)

