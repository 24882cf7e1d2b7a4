"""Steps made ready where a call begins, beside its outputs, in front of the one native call.

`early(program)` says which: what follows from the sizes of the inputs alone (memory for results of symbolic size,
numbers for kernels, blocks, pointers to inputs) and is done once in every call, whatever path that takes. The runner
goes past them. `late(program)`: those that wait for sizes that values tell, with memory made beforehand.
"""

from __future__ import annotations

from monograph.ir import symbolic
from monograph.ir.symbolic import Expr
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
    sizes_of,
)

__all__ = ["early", "late", "python_steps", "symbols_of"]


def python_steps(program: Program) -> list[Step]:
    """The steps that run from Python between native ones, in a call that raises nothing, each once."""
    before = early(program) | late(program)
    return [step for number, step in enumerate(program.steps)
            if number not in before and _stops_the_runner(program, step)]


def _stops_the_runner(program: Program, step: Step) -> bool:
    if isinstance(step, Library):
        return not step.raises and not step.symbol
    if isinstance(step, Record):
        return step.action != "round" or step.counter < 0
    if isinstance(step, Branch):
        return program.slots[step.slot].kind == "held"
    return not isinstance(step, (Native, Jump, RowsNext, RowAt))


def early(program: Program) -> frozenset[int]:
    """Numbers of the steps of a call's beginning."""
    return _ahead(program)[0]


def late(program: Program) -> frozenset[int]:
    """Numbers of the steps whose kernels do what is left to do of them once values have told their sizes; the rest
    is done where a call begins."""
    return _ahead(program)[1]


def _ahead(program: Program) -> tuple[frozenset[int], frozenset[int]]:
    told = frozenset[str]().union(*map(names_told, program.inputs))
    there = {slot for _, slot in program.held_inputs}       # held values that a call has where it begins
    loose = set(there)      # and those that have their memory there, whatever their size will be
    found: set[int] = set()
    finished: set[int] = set()
    reached = 0         # steps before that one may be jumped over
    returns = _returns(program)
    for number, step in enumerate(program.steps):
        again = any(target <= number < jump for target, jump in returns)
        is_sure = reached <= number and not again
        if isinstance(step, (Branch, Jump, RowsNext)):
            reached = max(reached, step.target)
        elif is_sure and isinstance(step, (AnySize, RowsStart, Point)):
            needs = {slot for slot, _ in step.given} if not isinstance(step, Point) else {step.slot}
            if needs <= there and symbols_of(program, step) <= told:
                found.add(number)
                there |= set() if isinstance(step, Point) else {slot for slot, _ in step.results}
                loose |= there
        waits = isinstance(step, AnySize) and bool(step.symbol) and number not in found and not again
        if waits and isinstance(step, AnySize) and {slot for slot, _ in step.given} <= loose:
            finished.add(number)
            loose |= {slot for slot, _ in step.results}
    return frozenset(found), frozenset(finished)


def _returns(program: Program) -> list[tuple[int, int]]:
    """Jumps back: where to, and from where."""
    return [(step.target, number) for number, step in enumerate(program.steps)
            if isinstance(step, Jump) and step.target <= number]


def symbols_of(program: Program, step: AnySize | RowsStart | Point) -> set[str]:
    """The symbols that what a step does depends on."""
    return set().union(*(symbolic.free_symbols(dim) for dim in sizes_of(program, step) if isinstance(dim, Expr)))
