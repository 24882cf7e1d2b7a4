"""What scheduling decides.

    Schedule ::= Item* in execution order, a Layout for every materialised value, a Place for each, Pack* of operands
    Item     ::= Fused(nodes, inputs, outputs, domain)              one loop kernel over a set of nodes
               | Template(name, anchor, nodes, operands, ...)       GEMM, convolution, attention with fused neighbours
               | LibraryCall(node)                                  no kernel for this op: torch runs it
               | Branch(predicate, target) | Jump(target)           what regions become; targets are positions of items
               | Move(pairs) | Record(node)                         held values handed on in Python
               | RowsStart(node) | RowsNext(target)                 rows, some at a time: see schedule.rowwise
               | AnySize(node)                                      what kernels for any size need: see schedule.anysize
               | Point(stack) | RowAt(stack, index)                 one row: see schedule.rowat
    Domain   ::= shape, reduced dims                                see schedule.rows for what one kernel may hold
    Strided  ::= value, shape, strides, offset                      an affine view of a materialised value
    Pack     ::= source -> steps -> packed value                    an operand rearranged for a template
    Layout   ::= strides in elements, per logical dim
    Place    ::= input(i) | output(j) | derived(k) | literal(l) | arena(offset in bytes) | held(k)
               | rows(word of the frame that points to the rows at hand)

Control flow. A schedule is flat: a cond is a branch around its regions, a loop a branch out of it and a jump back to
its condition. Values carried by a loop live in one place: the initial value, the regions' inputs, what the body returns
and the result of the loop share it. So do the results of both regions of a cond and the result of the cond.

Held values. Numbers, and tensors with a size known only at run time, have no layout: each call holds them as torch
has them (`is_held`), and every node that touches one is a library call. Handing one on is a Move.

A value that is only read through views, or inside the item that makes it, is not materialised: it
has no layout and no place. `nodes` of an item is in topological order and holds everything between
its inputs and its outputs: views included, and cheap nodes that other items compute as well.
Values read without being an input of the item or a result of its nodes do not exist: constants are
nodes (`aten.full`, `aten.arange`, ...) or literals with a place.

In place. An output may share its place with an input of the same item, and only when that input is
read by this item at exactly the element being written (same dtype, same layout, same flat index),
the item has one output, and (templates) the capability says `in_place`. Kernels must therefore not
store an element before their last load of that same element; nothing else is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.types import TensorType

__all__ = [
    "AnySize", "Branch", "Domain", "Fused", "Item", "Jump", "Layout", "LibraryCall", "Move", "Pack", "Place", "Point",
    "Record", "Room", "RowAt", "RowsNext", "RowsStart", "Schedule", "Strided", "Template", "is_held",
]


@dataclass(slots=True)
class Layout:
    """Strides in elements, one per logical dim; static."""

    strides: tuple[int, ...]


@dataclass(slots=True)
class Place:
    kind: Literal["input", "output", "derived", "literal", "arena", "held", "rows"]
    position: int


@dataclass(frozen=True, slots=True)
class Domain:
    """The points a loop kernel visits: the flat, row-major index space of `shape`. Dims in `reduced` are
    folded by the kernel's reductions and scans (all of them fold exactly these); the others are its rows."""

    shape: tuple[int, ...]
    reduced: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class Fused:
    nodes: list[Node]
    inputs: list[Value]         # materialised values read
    outputs: list[Value]        # values other items (or the caller) read
    domain: Domain = Domain(())


@dataclass(frozen=True, eq=False, slots=True)
class Strided:
    """Element (i, j, ...) of an operand is element `offset + i*strides[0] + j*strides[1] + ...` of `value`'s buffer."""

    value: Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(eq=False, slots=True)
class Template:
    """`anchor` is the composite node. `nodes` holds it, the views between `inputs` and it, and the pointwise
    neighbours pulled in as epilogue. `operands` gives by role (see ops.templates) where the anchor's operands lie."""

    name: str                   # gemm, conv, attention: a key of the capability table in ops.templates
    anchor: Node
    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]
    parameters: dict[str, Any] = field(default_factory=dict)    # sizes and scalars of the template: ops.templates
    operands: dict[str, Strided] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class LibraryCall:
    """`operands` tells where the node's operands lie, where they are views or copies of the materialised `inputs`."""

    node: Node
    inputs: list[Value]
    outputs: list[Value]
    operands: dict[Value, Strided] = field(default_factory=dict)
    drops: list[Value] = field(default_factory=list)        # held values that nobody needs afterwards

    @property
    def nodes(self) -> list[Node]:
        return [self.node]


class _Step:
    """An item that computes nothing: what it reads, makes and covers, where it does."""

    __slots__ = ()

    @property
    def inputs(self) -> list[Value]:
        return []

    @property
    def outputs(self) -> list[Value]:
        return []

    @property
    def nodes(self) -> list[Node]:
        return []


@dataclass(eq=False, slots=True)
class Branch(_Step):
    """Go on at item `target` unless the one element of `predicate` is true (as `bool(tensor)` has it). Of a held
    predicate only `value` counts."""

    node: Node                  # the cond or while
    predicate: Strided
    target: int = -1

    @property
    def inputs(self) -> list[Value]:
        return [self.predicate.value]


@dataclass(eq=False, slots=True)
class Jump(_Step):
    """Go on at item `target`."""

    node: Node
    target: int = -1


@dataclass(eq=False, slots=True)
class Move(_Step):
    """target := source, for all pairs at once; a source that is not held is copied. Then the types of `binds`, held
    values, tell the symbols in them."""

    node: Node
    pairs: list[tuple[Value, Value]]
    binds: list[Value]
    drops: list[Value] = field(default_factory=list)

    @property
    def inputs(self) -> list[Value]:
        return [*(source for source, _ in self.pairs), *self.binds]

    @property
    def outputs(self) -> list[Value]:
        return [target for _, target in self.pairs]


@dataclass(eq=False, slots=True)
class Record(_Step):
    """What a loop with `trips` remembers: "start" before it, "round" before each run of its body, "finish" after it.

    Results `trips` and the stacks of `node` are held; `carried` are the values recorded. Where these are not held,
    the runner does the rounds: `counter` is the word with the number of rounds done, `words` point to the ends of the
    stacks.
    """

    node: Node
    action: Literal["start", "round", "finish"]
    carried: list[Value]
    results: list[Value]
    counter: int = -1
    words: list[int] = field(default_factory=list)

    @property
    def inputs(self) -> list[Value]:
        return self.carried

    @property
    def outputs(self) -> list[Value]:
        return self.results


@dataclass(eq=False, slots=True)
class RowsStart(_Step):
    """Before the rows of `node`: make its results, point `words` (given values, then results) to the first row.

    Of `counters`, one per chunk size, the one to be used gets the number of rows, the others none. Words in `roomy`
    need memory of some rows more."""

    node: Node
    counters: list[int]
    words: list[int]
    roomy: list[int] = field(default_factory=list)

    @property
    def inputs(self) -> list[Value]:
        return list(self.node.inputs)

    @property
    def outputs(self) -> list[Value]:
        return list(self.node.results)


@dataclass(eq=False, slots=True)
class RowsNext(_Step):
    """Point to the next rows; `pointers` are words with the bytes of a row. At the end go on at `target`."""

    node: Node
    counter: int
    pointers: list[tuple[int, int]]
    target: int = -1


@dataclass(eq=False, slots=True)
class AnySize(_Step):
    """Before the items up to `end`, which take sizes when they run: make the held results of `node`, point `words`
    (given values, then held results) to their memory, and place `blocks`, what only these items see: (word, bytes,
    first and last item). Tiles of few rows read past the end of their operand: `rooms` has those given, `margins` the
    bytes of a row of the others."""

    node: Node
    words: list[int]
    end: int = -1
    rooms: list[Room] = field(default_factory=list)
    margins: list[int] = field(default_factory=list)
    blocks: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def inputs(self) -> list[Value]:
        return list(self.node.inputs)

    @property
    def outputs(self) -> list[Value]:
        return list(self.node.results)


@dataclass(frozen=True, slots=True)
class Room:
    """What `word` points to has so many rows of so many bytes, and is read as if it had those of a tile."""

    word: int
    rows: int
    row_bytes: int


@dataclass(eq=False, slots=True)
class Point(_Step):
    """A held `stack` is there: `word` points to its first row, the word `counter` has their number. `users` are the
    words of rows of it."""

    node: Node | None
    stack: Value
    word: int
    counter: int
    users: list[int]

    @property
    def inputs(self) -> list[Value]:
        return [self.stack]


@dataclass(eq=False, slots=True)
class RowAt:
    """`word` points to row `index` of the stack that `point` is about."""

    node: Node
    point: Point
    index: Strided
    word: int

    @property
    def inputs(self) -> list[Value]:
        return [self.point.stack, self.index.value]

    @property
    def outputs(self) -> list[Value]:
        return list(self.node.results)

    @property
    def nodes(self) -> list[Node]:
        return [self.node]


Item = (
    Fused | Template | LibraryCall | Branch | Jump | Move | Record | RowsStart | RowsNext | AnySize | Point | RowAt
)


def is_held(value: Value) -> bool:
    """Is it known only at run time what memory the value takes?"""
    return not (isinstance(value.type, TensorType) and value.type.is_static)


@dataclass(frozen=True, eq=False, slots=True)
class Pack:
    """`packed` (a value of no graph, contiguous) is `steps` applied to `source`, a weight: made once, not per call.

    A step is ("pad", amounts as torch.nn.functional.pad takes them) | ("reshape", shape) | ("permute", dims)
    | ("slice", (dim, start, stop)).
    """

    packed: Value
    source: Value
    steps: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass
class Schedule:
    graph: Graph
    items: list[Item] = field(default_factory=list)
    layouts: dict[Value, Layout] = field(default_factory=dict)
    places: dict[Value, Place] = field(default_factory=dict)
    packs: list[Pack] = field(default_factory=list)
    literals: list[Any] = field(default_factory=list)   # tensors behind Place("literal", l)
    arena_bytes: int = 0
    row_words: int = 0              # words of places "rows"
    counts: dict[Item, tuple[int, int]] = field(default_factory=dict)   # scheduled for so many rows -> see `Flat`
    intermediate_bytes: int = 0     # the sum of all materialised intermediates, for the report
