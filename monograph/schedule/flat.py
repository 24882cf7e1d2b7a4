"""Blocks within blocks become one list of items with branches and jumps.

    cond    branch else; <then>; jump end; else: <otherwise>; end:
    while   test: <condition>; branch end; <body>; jump test; end:
    rows    start; next: rows end; <chunk>; jump next; end:         for each size of a chunk
    any_size    any size; <region>

`homes` says which values share memory: those carried by a loop from the initial value to the result, and the results
of both regions of a cond. Held values are moved instead. Here it is decided whether a loop's body may write its next
value over the present one: where nobody reads the present one afterwards. Where somebody does, the next value is
copied over it at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from monograph.ir import edit
from monograph.ir.graph import Node, Value
from monograph.schedule import rowat
from monograph.schedule.block import Block, Control, Part
from monograph.schedule.extent import extent_bytes
from monograph.schedule.inplace import overwrites
from monograph.schedule.kernel import (
    AnySize,
    Branch,
    Domain,
    Fused,
    Item,
    Jump,
    Layout,
    LibraryCall,
    Move,
    Point,
    Record,
    Room,
    RowAt,
    RowsNext,
    RowsStart,
    Strided,
    Template,
    is_held,
)
from monograph.schedule.outputs import copy_of
from monograph.schedule.roles import Role
from monograph.schedule.views import shape_of

__all__ = ["Flat", "flatten"]

Arrange = Callable[[Block], list[Part]]


@dataclass
class Flat:
    items: list[Item] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)      # ranges of items that repeat, inner ones first
    arms: list[tuple[int, int, int]] = field(default_factory=list)  # of conds: [first, second) or [second, third) runs
    homes: dict[Value, Value] = field(default_factory=dict)
    layouts: dict[Value, Layout] = field(default_factory=dict)      # of the copies made here
    roles: dict[Node, Role] = field(default_factory=dict)
    rows: dict[Value, int] = field(default_factory=dict)            # what rows take and give -> word of the pointer
    row_words: int = 0
    counts: dict[Item, tuple[int, int]] = field(default_factory=dict)    # rows it is scheduled for, word with theirs
    points: dict[Value, Point] = field(default_factory=dict)       # of held values that single rows are read of

    def home(self, value: Value) -> Value:
        """The value that stands for all that share memory with `value`."""
        while value in self.homes:
            value = self.homes[value]
        return value

    def may_follow(self, early: int, late: int) -> bool:
        """Within the block at hand, may item `late` run after item `early`?"""
        if any(start <= early < end and start <= late < end for start, end in self.loops):
            return True         # in the next round
        apart = any(first <= early < second <= late < third for first, second, third in self.arms)
        return late > early and not apart

    def extended(self, first: int, last: int) -> tuple[int, int]:
        """The life of a value used from item `first` to item `last`: all of every loop that only a part of it is in."""
        for start, end in self.loops:
            if not (start <= first and last < end) and first < end and start <= last:
                first, last = min(first, start), max(last, end - 1)
        return first, last


def flatten(block: Block, layouts: dict[Value, Layout], arrange: Arrange) -> Flat:
    """The items of `block` and of those inside it, each in the order that `arrange` gives."""
    flat = Flat(layouts=layouts)
    flattener = _Flattener(flat, arrange)
    flattener.find_stacks(block)
    flattener.point(block.flow.graph.inputs)
    flattener.block(block)
    return flat


class _Flattener:
    def __init__(self, flat: Flat, arrange: Arrange) -> None:
        self.flat = flat
        self.arrange = arrange

    def block(self, block: Block) -> None:
        self.flat.roles.update(block.flow.role)
        for part in self.arrange(block):
            if isinstance(part, LibraryCall) and rowat.is_row(part.node):
                self.row(part)
            elif not isinstance(part, Control):
                self.flat.items.append(part)
                self.point(part.outputs)
            elif part.is_loop:
                self.loop(part)
            elif part.is_rows:
                self.rows(part)
            elif part.is_any_size:
                self.any_size(part)
            else:
                self.cond(part)

    def cond(self, part: Control) -> None:
        items, homes = self.flat.items, self.flat.homes
        assert part.predicate is not None
        then, otherwise = part.blocks
        results = part.node.results
        for block in part.blocks:
            homes.update(
                (value, result) for value, result in zip(block.returns, results, strict=True) if not is_held(result)
            )
        branch = Branch(part.node, part.predicate)
        items.append(branch)
        first = len(items)
        self.block(then)
        self.move(part.node, zip(then.returns, results, strict=True), results)
        jump = Jump(part.node)
        if otherwise.items or any(map(is_held, results)):
            items.append(jump)
        branch.target = len(items)
        self.block(otherwise)
        self.move(part.node, zip(otherwise.returns, results, strict=True), results)
        jump.target = len(items)
        self.flat.arms.append((first, branch.target, jump.target))
        self.point(results)

    def rows(self, part: Control) -> None:
        flat, node = self.flat, part.node
        counters = [self.words(3) for _ in part.blocks]
        words = [self.words() for _ in (*node.inputs, *node.results)]
        begin = RowsStart(node, counters, words)
        flat.items.append(begin)
        self.point(node.results)
        for block, region, counter, (rows, fewest) in zip(
            part.blocks, node.regions, counters, node.attributes["chunks"], strict=True
        ):
            held = [*region.inputs, *block.returns]
            flat.rows.update(zip(held, words, strict=True))
            bytes_per_row = [extent_bytes(value, flat.layouts[value]) // rows for value in held]
            start = len(flat.items)
            head = RowsNext(node, counter, list(zip(words, bytes_per_row, strict=True)))
            flat.items.append(head)
            self.block(block)
            if fewest < rows:
                made = flat.items[start:]
                self.count(made, rows, counter + 2)
                begin.roomy += [word for word, value in zip(words, region.inputs) if _is_tiled(made, value)]
            flat.items.append(Jump(node, start))
            head.target = len(flat.items)
            flat.loops.append((start, head.target))

    def any_size(self, part: Control) -> None:
        flat, node = self.flat, part.node
        (block,), (region,) = part.blocks, node.regions
        results = list(zip(block.returns, node.results, strict=True))
        held = [*region.inputs, *(value for value, result in results if is_held(result))]
        flat.homes.update((value, result) for value, result in results if not is_held(result))
        words = [self.words() for _ in held]
        flat.rows.update(zip(held, words, strict=True))
        begin = AnySize(node, words)
        flat.items.append(begin)
        self.point(node.results)
        start = len(flat.items)
        self.block(block)
        begin.end = len(flat.items)
        _make_room(begin, flat.items[start:], dict(zip(region.inputs, words)))

    def count(self, items: Sequence[Item], rows: int, word: int) -> None:
        """The number of rows that `items` work on is in `word`; they are scheduled for `rows`."""
        for item in items:
            if isinstance(item, (Fused, Template)):
                self.flat.counts[item] = rows, word

    def find_stacks(self, block: Block) -> None:
        """Words for every held value that single rows are read of."""
        for part in block.items:
            if isinstance(part, LibraryCall) and rowat.is_row(part.node):
                stack = part.node.inputs[0]
                if stack not in self.flat.points:
                    self.flat.points[stack] = Point(part.node, stack, self.words(), self.words(), [])
            elif isinstance(part, Control):
                for inner in part.blocks:
                    self.find_stacks(inner)

    def point(self, values: Iterable[Value]) -> None:
        """`values` are there from here on."""
        self.flat.items += [self.flat.points[value] for value in values if value in self.flat.points]

    def row(self, part: LibraryCall) -> None:
        stack, index = part.node.inputs
        point, result, word = self.flat.points[stack], part.node.results[0], self.words()
        strides = self.flat.layouts[index].strides if index in self.flat.layouts else ()
        where = part.operands.get(index) or Strided(index, shape_of(index), strides)
        point.users.append(word)
        self.flat.rows[result] = word
        self.flat.items.append(RowAt(part.node, point, where, word))

    def words(self, count: int = 2) -> int:
        """Words of the frame: where the rows at hand are, and the first; or how many are done, how many are, how many
        at once."""
        self.flat.row_words += count
        return self.flat.row_words - count

    def loop(self, part: Control) -> None:
        items, homes, node = self.flat.items, self.flat.homes, part.node
        condition, body = part.blocks
        assert condition.predicate is not None
        asked, given = (region.inputs for region in node.regions)
        for values in (asked, given):
            homes.update(zip(values, node.results, strict=False))
        homes.update((v, r) for v, r in zip(node.inputs, node.results, strict=False) if not is_held(r))
        counter, stacks = self.stacks(node)
        self.record(node, "start", [], counter, stacks)
        self.move(node, zip(node.inputs, asked, strict=True), asked)
        start = len(items)
        self.point(asked)
        self.block(condition)
        branch = Branch(node, condition.predicate)
        items.append(branch)
        first = len(items)
        self.move(node, [], given)
        self.point(given)
        self.record(node, "round", given, counter, stacks)
        self.block(body)
        for value, carried in zip(body.returns, given, strict=True):
            if value is not carried and not is_held(carried):
                self.carry(value, carried, first)
        handed = zip(body.returns, given, asked, strict=True)
        self.move(node, [(value, again) for value, old, again in handed if value is not old], asked)
        items.append(Jump(node, start))
        branch.target = len(items)
        self.flat.loops.append((start, len(items)))
        self.move(node, [], node.results[:len(given)])
        self.record(node, "finish", node.results, counter, stacks)
        self.point(node.results)

    def move(self, node: Node, pairs: Iterable[tuple[Value, Value]], binds: Iterable[Value]) -> None:
        """Hand on what is held, and tell the symbols of it."""
        moved = [(source, target) for source, target in pairs if is_held(target)]
        bound = [value for value in binds if edit.symbols_in(value.type)]
        if moved or bound:
            self.flat.items.append(Move(node, moved, bound))

    def stacks(self, node: Node) -> tuple[int, list[int]]:
        """Words for a counter and for each stack, where the runner can record the rounds of a loop."""
        history = [node.results[position] for position in node.attributes["history"]]
        if node.attributes["trips"] is None or any(map(is_held, history)):
            return -1, []
        return self.words(), [self.words() for _ in history]

    def record(
        self, node: Node, action: Literal["start", "round", "finish"], values: Sequence[Value], counter: int,
        words: list[int],
    ) -> None:
        if node.attributes["trips"] is not None:
            carried = [values[position] for position in node.attributes["history"]] if values else []
            results = list(node.results[len(node.inputs):])
            self.flat.items.append(Record(node, action, carried, results, counter, words))

    def carry(self, value: Value, carried: Value, start: int) -> None:
        """Make `value` the next `carried`; the body's items begin at `start`."""
        flat = self.flat
        if self.may_write_over(value, carried, start):
            flat.homes[value] = flat.home(carried)
            return
        node = copy_of(value)
        flat.layouts[node.result] = flat.layouts[carried]
        flat.homes[node.result] = flat.home(carried)
        flat.items.append(Fused([node], [value], [node.result], Domain(shape_of(value))))

    def may_write_over(self, value: Value, carried: Value, start: int) -> bool:
        """Is `carried` nowhere read after, or while, `value` is written, but at the element being written?"""
        flat = self.flat
        mine, other = flat.home(value), flat.home(carried)
        writes = [at for at, item in enumerate(flat.items[start:], start) if _has(flat, item.outputs, mine)]
        reads = [at for at, item in enumerate(flat.items[start:], start) if _has(flat, item.inputs, other)]
        for write, read in itertools.product(writes, reads):
            if read == write and not flat.may_follow(write, read):
                item = flat.items[write]
                stored = next(v for v in item.outputs if flat.home(v) is mine)
                taken = next(v for v in item.inputs if flat.home(v) is other)
                if not overwrites(flat.roles, item, stored, taken, flat.layouts):
                    return False
            elif flat.may_follow(write, read):
                return False
        return True


def _is_tiled(items: Sequence[Item], value: Value) -> bool:
    """Does a product read `value` by tiles, which may reach past its last row?"""
    products = [item for item in items if isinstance(item, Template) and "a" in item.operands]
    return any(item.operands["a"].value is value for item in products)


def _make_room(begin: AnySize, items: Sequence[Item], words: dict[Value, int]) -> None:
    """Note what tiles of few rows read past the end of their operands, those in `words` and others."""
    for item in items:
        if isinstance(item, Template):
            operand = item.operands["q" if item.name == "attention" else "a"]
            row_bytes = operand.strides[-2] * operand.value.tensor.dtype.itemsize
            if operand.value in words:
                begin.rooms.append(Room(words[operand.value], operand.shape[-2], row_bytes))
            else:
                begin.margins.append(row_bytes)
    begin.rooms = list(dict.fromkeys(begin.rooms))
    begin.margins = list(dict.fromkeys(begin.margins))


def _has(flat: Flat, values: Iterable[Value], home: Value) -> bool:
    return any(flat.home(value) is home for value in values)
