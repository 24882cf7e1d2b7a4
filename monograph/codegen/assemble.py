"""From a schedule to a program: slots, steps, derived weights, errors, object code.

    program(schedule, target) -> Program
    parts(schedule, target) -> Parts         the same with its kernels, before they are compiled
    compiled(parts, target) -> Program

Equal kernels are made and compiled once. Inputs of the program are those of the graph that are not derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from monograph.codegen import cells, kernels, telling
from monograph.codegen.build import Store, compile_kernels, compile_text
from monograph.codegen.derived import derived_weights
from monograph.codegen.identity import digest, label, symbol
from monograph.codegen.runner import IR
from monograph.codegen.target import Target
from monograph.codegen.workers import Workers
from monograph.ir import symbolic
from monograph.ir.edit import symbols_told
from monograph.ir.graph import Value
from monograph.ir.sized import Undecided, expression
from monograph.ir.symbolic import Dim, Expr
from monograph.ir.types import TensorType, Type
from monograph.loops import sizes
from monograph.loops.nodes import Check, Kernel
from monograph.runtime import program as programs
from monograph.runtime.program import Error, Library, Native, Program, Slot, SlotRef, Step
from monograph.schedule import anysize, checks
from monograph.schedule.extent import extent_bytes
from monograph.schedule.kernel import (
    AnySize,
    Branch,
    Fused,
    Item,
    Jump,
    LibraryCall,
    Move,
    Point,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    Schedule,
    Strided,
    Template,
    is_held,
)
from monograph.schedule.views import strides_seen

__all__ = ["Parts", "compiled", "parts", "program"]


@dataclass
class Parts:
    """A program without object code, its kernels, and the item behind each step."""

    program: Program
    kernels: list[Kernel] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)


def program(
    schedule: Schedule, target: Target, jobs: int | None = None, store: Store | None = None,
    team: Workers | None = None,
) -> Program:
    """The program of a schedule, compiled for `target`: by `team`, if given.

    Objects are taken from `store` where it has them.
    """
    return compiled(parts(schedule, target), target, jobs, store, team)


def compiled(
    made: Parts, target: Target, jobs: int | None = None, store: Store | None = None, team: Workers | None = None,
) -> Program:
    """The program of `made`, with object code."""
    if made.kernels or made.program.derived or made.program.row_words:
        objects = compile_kernels(made.kernels, target, jobs, store, team)
        made.program.objects = [*objects, runner(target, store, team)]
    return made.program


_runners: dict[tuple[Target, Store | None], bytes] = {}


def runner(target: Target, store: Store | None = None, team: Workers | None = None) -> bytes:
    """The object of the step runner."""
    def make() -> bytes:
        return compile_text(IR, target, names=["the step runner"], team=team)

    found = _runners.get((target, store))
    if found is None:
        found = _runners[target, store] = make() if store is None else store(f"{target}\n{IR}", make)
    return found


def parts(schedule: Schedule, target: Target) -> Parts:
    """Everything but the object code."""
    return _Assembly(schedule, target).run()


class _Assembly:
    def __init__(self, schedule: Schedule, target: Target) -> None:
        graph = schedule.graph
        self.schedule = schedule
        self.target = target
        self.numbers = telling.numbers(schedule.items)          # symbols that kernels tell, and the numbers
        self.told = set(self.numbers).union(*(symbols_told(value.type) for value in graph.inputs))
        self.cells: dict[str, int] = {}                         # words of symbols
        self.machine = f"{target.cpu} {target.features} {target.vector_bits}"
        given = [v for v, source in zip(graph.inputs, graph.sources, strict=True) if source.kind != "derived"]
        held = {place.position for place in schedule.places.values() if place.kind == "held"}
        self.program = Program(
            inputs=[self.laid(value) for value in given], arena_bytes=schedule.arena_bytes,
            outputs=[self.outward(value) for value in graph.outputs], literals=list(schedule.literals),
            derived=derived_weights(schedule), held=len(held),
            row_words=schedule.row_words,
        )
        self.parts = Parts(self.program)
        self.slots: dict[Any, int] = {}
        self.program.held_inputs = [(n, self.slot(value)) for n, value in enumerate(given) if is_held(value)]
        self.program.held_outputs = [(n, self.slot(value)) for n, value in enumerate(graph.outputs) if is_held(value)]
        self.kernels: dict[str, Kernel] = {}
        self.errors: dict[tuple[Any, ...], int] = {}
        self.taken: dict[str, tuple[Expr, ...]] = {}            # by kernel: the sizes it takes
        self.started: programs.AnySize | None = None            # the step before the kernels at hand
        self.sizes: dict[tuple[Expr, ...], int] = {}            # their tables: first words

    def run(self) -> Parts:
        for item in self.schedule.items:
            self.program.steps.append(self.step(item))
            self.parts.items.append(item)
        for step in self.program.steps:
            if isinstance(step, programs.AnySize):
                self.wait(step)
        self.program.cells = [(name, word, self.position(name)) for name, word in self.cells.items()]
        self.parts.kernels = list(self.kernels.values())
        words = any(isinstance(step, programs.AnySize) for step in self.program.steps) or bool(self.cells)
        self.program.row_words += words     # a pair
        return self.parts

    # Slots.

    def laid(self, value: Value) -> Type:
        """The type of a value, with the strides it has where it is materialised."""
        if is_held(value):
            return value.type
        shape, strides = value.tensor.shape, tuple(self.schedule.layouts[value].strides)
        return replace(value.tensor, shape=tuple(map(expression, shape)), strides=tuple(map(expression, strides)))

    def outward(self, value: Value) -> Type:
        """The type of a graph output with the strides the caller sees."""
        return value.type if is_held(value) else replace(value.tensor, strides=strides_seen(value))

    def slot(self, value: Value) -> int:
        """The number of the slot of a materialised value."""
        if value not in self.slots:
            place = self.schedule.places[value]
            self.slots[value] = len(self.program.slots)
            self.program.slots.append(Slot(place.kind, place.position, self.laid(value)))
        return self.slots[value]

    def word(self, number: int) -> int:
        """The number of the slot of a word of the frame."""
        if number not in self.slots:
            self.slots[number] = len(self.program.slots)
            self.program.slots.append(Slot("word", number, TensorType(torch.int64, (1,), strides=(1,))))
        return self.slots[number]

    def view(self, operand: Strided) -> int:
        """The number of a slot for a view of a materialised value."""
        if is_held(operand.value):
            return self.slot(operand.value)
        key = (operand.value, operand.shape, operand.strides, operand.offset)
        if key not in self.slots:
            place = self.schedule.places[operand.value]
            dtype = operand.value.tensor.dtype
            assert not operand.offset or place.kind == "arena", place
            position = place.position + operand.offset * dtype.itemsize if place.kind == "arena" else place.position
            self.slots[key] = len(self.program.slots)
            laid = TensorType(dtype, operand.shape, strides=operand.strides)
            self.program.slots.append(Slot(place.kind, position, laid))
        return self.slots[key]

    # Steps: one per item, so that targets of jumps are the same.

    def step(self, item: Item) -> Step:
        if isinstance(item, LibraryCall):
            return self.library(item)
        if isinstance(item, Branch):
            return programs.Branch(self.view(item.predicate), item.target, item.node.op.name.split(".")[1])
        if isinstance(item, Jump):
            return programs.Jump(item.target, item.node.op.name.split(".")[1])
        if isinstance(item, Move):
            pairs = tuple((self.slot(source), self.slot(target)) for source, target in item.pairs)
            return programs.Move(pairs, tuple(map(self.slot, item.binds)), drops=self.drops(item))
        if isinstance(item, Record):
            carried, results = tuple(map(self.slot, item.carried)), tuple(map(self.slot, item.results))
            return programs.Record(item.action, carried, results, item.counter, tuple(item.words))
        if isinstance(item, RowsStart):
            return self.rows_start(item)
        if isinstance(item, AnySize):
            return self.any_size(item)
        if isinstance(item, Point):
            return programs.Point(self.slot(item.stack), item.word, item.counter, tuple(item.users))
        if isinstance(item, RowAt):
            at = (item.node.loc.file, item.node.loc.line) if item.node.loc is not None else ("", 0)
            size = extent_bytes(item.outputs[0], self.schedule.layouts[item.outputs[0]])
            stack, index = self.slot(item.point.stack), self.view(item.index)
            return programs.RowAt(stack, item.point.word, item.point.counter, index, item.word, size, *at)
        if isinstance(item, RowsNext):
            return programs.RowsNext(item.counter, tuple(item.pointers), item.target)
        return self.native(item)

    def rows_start(self, item: RowsStart) -> programs.RowsStart:
        slots = [self.slot(value) for value in (*item.inputs, *item.outputs)]
        pairs = list(zip(slots, item.words, strict=True))
        given = len(item.inputs)
        sizes = item.node.attributes["chunks"]
        chunks = tuple((most, at, fewest) for (most, fewest), at in zip(sizes, item.counters, strict=True))
        size, results = item.node.attributes["size"], tuple(pairs[given:])
        return programs.RowsStart(size, tuple(pairs[:given]), results, chunks, tuple(item.roomy))

    def any_size(self, item: AnySize) -> programs.AnySize:
        held = [value for value in (*item.inputs, *item.outputs) if is_held(value)]
        pairs = list(zip(map(self.slot, held), item.words, strict=True))
        given = len(item.inputs)
        blocks = tuple((word, expression(size), first, last) for word, size, first, last in item.blocks)
        rooms = tuple((room.word, expression(room.rows), expression(room.row_bytes)) for room in item.rooms)
        margins = tuple(map(expression, item.margins))
        self.sizes = {}
        self.started = programs.AnySize(tuple(pairs[:given]), tuple(pairs[given:]), blocks, rooms, margins)
        return self.started

    def table(self, sizes: tuple[Expr, ...]) -> int:
        """The slot of the words that a kernel of the region at hand takes its sizes from."""
        if sizes not in self.sizes:
            assert self.started is not None
            first = self.program.row_words
            self.sizes[sizes] = first
            self.program.row_words += len(sizes)
            self.started.sizes += tuple(enumerate(sizes, first))
        return self.word(self.sizes[sizes])

    def drops(self, item: LibraryCall | Move) -> tuple[int, ...]:
        return tuple(self.schedule.places[value].position for value in item.drops)

    def native(self, item: Fused | Template) -> Native:
        rows, word = self.schedule.counts.get(item, (0, 0))
        name = symbol(item, self.schedule, f"{self.machine} {rows} rows" if rows else self.machine)
        kernel = self.kernels.get(name)
        if kernel is None:
            kernel = self.kernels[name] = self.kernel(item, name, rows)
        slots = tuple(self.slot(value) for value in (*item.inputs, *item.outputs))
        if rows:
            slots = (*slots, self.word(word))
        if self.taken[name]:
            slots = (*slots, self.table(self.taken[name]))
        errors = self.checks(kernel)
        return Native(name, slots, bool(errors), label(item), errors)

    def kernel(self, item: Fused | Template, name: str, rows: int) -> Kernel:
        try:
            made = kernels.kernel(item, self.schedule, name, self.target, rows)
        except Undecided as error:
            raise anysize.OneSize(str(error), item.nodes) from error
        self.taken[name] = sizes.take(made)
        return made

    def checks(self, kernel: Kernel) -> tuple[int, ...]:
        """What each check code of a kernel means, by position; code 0 is none."""
        checks = [statement for statement in kernel.statements() if isinstance(statement, Check)]
        meaning = [0] * (1 + max((check.code for check in checks), default=-1))
        for check in checks:
            loc = check.loc
            key = (check.exception, check.message, loc)
            if key not in self.errors:
                self.errors[key] = len(self.program.errors)
                self.program.errors.append(Error(
                    check.exception, check.message, loc.file if loc else "", loc.line if loc else 0,
                ))
            meaning[check.code] = self.errors[key]
        return tuple(meaning)

    def library(self, item: LibraryCall) -> Library:
        node = item.node

        def read(operand: Any) -> Any:
            if isinstance(operand, Value):
                strided = item.operands.get(operand)
                return SlotRef(self.slot(operand) if strided is None else self.view(strided))
            return tuple(read(entry) for entry in operand) if isinstance(operand, tuple) else operand

        stored = set(item.outputs)
        results = tuple(self.slot(value) if value in stored else None for value in node.results)
        operands = tuple(read(operand) for operand in node.operands)
        label = node.op.name.split(".")[1]
        at = (node.loc.file, node.loc.line) if node.loc is not None else ("", 0)
        raises = checks.is_guarded(node)
        step = Library(node.op.name, operands, dict(node.attributes), results, label, self.drops(item), raises, *at)
        if node.op.name == "mono.number" and node.attributes["symbol"] in self.numbers:
            count, attributes = node.inputs[0], node.attributes
            word = self.cell(attributes["symbol"])
            step.symbol = self.over_words(
                "number", (count.tensor.dtype, word, attributes["lo"]), lambda name: cells.told(
                    name, count.tensor.dtype, word, self.program.row_words, attributes["lo"]))
            step.slots = operands[0].slot, self.word(0)
        elif node.op.name == "mono.require" and self.has_cells(node.operands):
            left, right = (operand for operand in node.operands)
            self.give_cells(node.operands)
            relation = node.attributes["relation"]
            step.symbol = self.over_words(
                "require", (left, right, relation), lambda name: cells.related(
                    name, left, right, relation, self.cells, self.program.row_words))
            step.slots = self.word(0),
        return step

    # Kernels over the words of the frame.

    def position(self, name: str) -> int:
        """The number of the held value that a symbol is, if a kernel tells it."""
        return self.schedule.places[self.numbers[name]].position if name in self.numbers else -1

    def cell(self, name: str) -> int:
        """The word of a symbol."""
        if name not in self.cells:
            self.cells[name] = self.program.row_words
            self.program.row_words += 1
        return self.cells[name]

    def has_cells(self, dims: Iterable[Any]) -> bool:
        """Do inputs and kernels tell all symbols of these numbers?"""
        return all(isinstance(dim, (int, Expr)) and symbolic.free_symbols(dim) <= self.told for dim in dims)

    def give_cells(self, dims: Iterable[Dim]) -> None:
        for name in sorted(set().union(*map(symbolic.free_symbols, dims))):
            self.cell(name)

    def over_words(self, what: str, identity: Any, made: Callable[[str], Kernel]) -> str:
        """The name of a kernel that `made` makes."""
        name = f"{what}_{digest((identity, sorted(self.cells.items()), self.machine))}"
        if name not in self.kernels:
            self.kernels[name] = made(name)
        return name

    def wait(self, step: programs.AnySize) -> None:
        """Give a step a kernel for the sizes that values tell, where there are any."""
        dims = [dim for dim in programs.sizes_of(self.program, step) if isinstance(dim, Expr)]
        waiting = sorted(set().union(*map(symbolic.free_symbols, dims)).intersection(self.numbers))
        if not waiting or not self.has_cells(dims) or not all(telling.is_bounded(dim, waiting) for dim in dims):
            return
        self.give_cells(dims)
        limits = []
        for name in waiting:
            limits.append((name, self.program.row_words))
            self.program.row_words += 1
        sizes = tuple((word, dim) for word, dim in step.sizes if not symbolic.free_symbols(dim).isdisjoint(waiting))
        step.limits = tuple(limits)
        step.symbol = self.over_words("sizes", (sizes, limits), lambda name: cells.sized(
            name, sizes, limits, self.cells, self.program.row_words))
        step.slots = self.word(0),
