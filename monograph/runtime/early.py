"""Steps made ready where a call begins, beside its outputs, in front of the one native call.

`early(program)` says which: what follows from the sizes of the inputs alone (memory for results of symbolic size,
numbers for kernels, blocks, pointers to inputs) and is done once in every call, whatever path that takes. The runner
goes past them. `late(program)`: those that wait for sizes that values tell, with memory made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from monograph.ir import symbolic
from monograph.ir.symbolic import Expr
from monograph.runtime.held import names_told
from monograph.runtime.program import (
    AnySize,
    Branch,
    Jump,
    Library,
    Move,
    Native,
    Point,
    Program,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    SlotRef,
    Step,
    sizes_of,
)

__all__ = ["early", "kept", "late", "python_steps", "symbols_of"]


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
    outlives = _outlives(program)
    for number, step in enumerate(program.steps):
        again = any(target <= number < jump for target, jump in returns)
        # Memory made once does for every round where nothing of one is left in the next.
        is_once = not again or (isinstance(step, AnySize) and outlives.isdisjoint(
            program.slots[slot].position for slot, _ in step.results))
        if isinstance(step, (Branch, Jump, RowsNext)):
            reached = max(reached, step.target)
        elif isinstance(step, (AnySize, RowsStart, Point)) and is_once:
            needs = {slot for slot, _ in step.given} if not isinstance(step, Point) else {step.slot}
            made = {slot for slot, _ in step.results} if not isinstance(step, Point) else set()
            is_sure = reached <= number or again
            if is_sure and needs <= there and symbols_of(program, step) <= told:
                found.add(number)
                there |= made
                loose |= made
            elif isinstance(step, AnySize) and step.symbol and needs <= loose:
                finished.add(number)
                loose |= made
    return frozenset(found), frozenset(finished)


def kept(program: Program) -> frozenset[int]:
    """Numbers of the held values that are made once for all rounds of a loop: no round forgets them."""
    once, returns = frozenset[int]().union(*_ahead(program)), _returns(program)
    return frozenset(program.slots[slot].position for number, step in enumerate(program.steps)
                     if number in once and isinstance(step, AnySize | RowsStart)
                     and any(target <= number < jump for target, jump in returns)
                     for slot, _ in step.results)


def _outlives(program: Program) -> set[int]:
    """Numbers of the held values that are handed on as they are, from round to round or out of a branch."""
    handed = [source for step in program.steps if isinstance(step, Move) for source, _ in step.pairs]
    handed += [slot for step in program.steps if isinstance(step, Record) for slot in step.carried]
    found, pending = set[int](), set(handed)
    while pending:                           # what a library gives may lie in what it was given
        found |= pending
        pending = {slot for step in program.steps if isinstance(step, Library) and not found.isdisjoint(step.results)
                   for slot in _operands(step.operands)} - found
    return {program.slots[slot].position for slot in found if program.slots[slot].kind == "held"}


def _operands(value: Any) -> Iterator[int]:
    """The slots among the operands of a library call."""
    if isinstance(value, SlotRef):
        yield value.slot
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from _operands(entry)


def _returns(program: Program) -> list[tuple[int, int]]:
    """Jumps back: where to, and from where."""
    return [(step.target, number) for number, step in enumerate(program.steps)
            if isinstance(step, Jump) and step.target <= number]


def symbols_of(program: Program, step: AnySize | RowsStart | Point) -> set[str]:
    """The symbols that what a step does depends on."""
    return set().union(*(symbolic.free_symbols(dim) for dim in sizes_of(program, step) if isinstance(dim, Expr)))
