"""A compiled program: plain data that the runtime executes without the compiler.

    Program ::= Slot* Step* objects(bytes*) arena_bytes
    Slot    ::= input(i) | output(j) | derived(k) | literal(bytes) | arena(offset)      a place for one tensor
              | held(k)                                     a number, or a tensor of a size that only a call knows
              | rows(word)                                  some rows of a held tensor, where the word points to
              | word(word)                                  the word itself: a number of rows
    Step    ::= Native(symbol, slots, scratch)          one kernel of the objects, `i32 symbol(ptr* args)`
                                                        (others have one as well: Python's way is for where it fails)
              | Library(op, operands, attributes, results)    one ATen call on tensors laid over the slots
              | Branch(slot, target) | Jump(target)         go on at another step
              | Move(pairs, binds) | Record(action, carried, results)     held values handed on
              | RowsStart(...) | RowsNext(...)              the rows of held tensors, some at a time
              | AnySize(...)                                what the kernels that follow need: sizes and memory
              | Point(...) | RowAt(...)                     one row of a held tensor

Native steps, branches and jumps run in one native call as long as nothing else comes (`runtime.native`): they are
records, kernels of function address and pointers, that a loop written once in LLVM walks (`codegen.runner`: its
object is one of `objects` in any program with native steps or derived weights). A kernel returns 0, or non-zero after
it wrote `ErrorRecord` = i64[8]: code, code, values... where code is that of the failed `Check`: kernels know nothing
of the program, so `Native.errors[code]` is the index into `Program.errors`.

Programs serialise to bytes (JSON header plus object code, no pickle): see `runtime.serialise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from monograph.ir.types import TensorType, Type

__all__ = [
    "ERROR_WORDS", "FIRST_ERROR_VALUE", "ROOM", "AnySize", "Branch", "Derived", "Error", "Jump", "Library", "Move",
    "Native", "Program", "Point", "Record", "RowAt", "RowsNext", "RowsStart", "Slot", "SlotRef", "Step",
    "sizes_of",
]

ERROR_WORDS = 8
ROOM = 16                   # rows that a kernel may read though they do not count
FIRST_ERROR_VALUE = 2        # word of the record where the values start


@dataclass(slots=True)
class Slot:
    """A place for one tensor: its type with concrete strides, and where its memory is.

    position   input: index among the program's inputs; output: index among its outputs;
               derived: index among `Program.derived`; arena: byte offset; literal: index into `Program.literals`
               held: number among the values a call holds, which several slots may share; rows, word: number of a word
    `type.strides` is never None, sizes and strides are numbers, except for what is held: writing it binds the symbols
    of its type.
    """

    kind: Literal["input", "output", "derived", "literal", "arena", "held", "rows", "word"]
    position: int
    type: Type

    @property
    def tensor(self) -> TensorType:
        """The type of a slot that is not held."""
        assert isinstance(self.type, TensorType), self
        return self.type


@dataclass(slots=True)
class Native:
    """Call kernel `symbol` with the data pointers of `slots`, then the error record when `can_fail`."""

    symbol: str
    slots: tuple[int, ...]
    can_fail: bool = False
    label: str = ""              # for explain and profile: the ops fused, short
    errors: tuple[int, ...] = ()     # Check code -> index into `Program.errors`; empty: the codes are those indices


@dataclass(slots=True)
class Library:
    """results = op(operands; attributes) by torch, results copied into their slots.

    With `symbol`, a kernel of `slots` does it where it returns 0: it tells a number, or sees that nothing is raised.

    `operands` has one entry per operand slot of the op: a Slot number wrapped in `SlotRef`, a number, an expression,
    None, or a tuple of these. Expressions, in attributes too, are computed from the symbols bound so far.
    """

    op: str
    operands: tuple[Any, ...]
    attributes: dict[str, Any]
    results: tuple[int | None, ...]   # slot numbers; None where nobody reads the result
    label: str = ""
    drops: tuple[int, ...] = ()       # held values to forget afterwards
    raises: bool = False              # comes after a branch, and only to raise
    file: str = ""                    # the user's line
    line: int = 0
    symbol: str = ""
    slots: tuple[int, ...] = ()


@dataclass(slots=True)
class Branch:
    """Go on with the next step where the one element of `slot` is true, as `bool(tensor)` has it; else at `target`."""

    slot: int
    target: int
    label: str = "branch"


@dataclass(slots=True)
class Jump:
    """Go on at step `target`."""

    target: int
    label: str = "jump"


@dataclass(slots=True)
class Move:
    """Slot := slot for all (source, target) at once: targets are held, sources that are not are copied. Then the
    types of the held slots in `binds` tell their symbols."""

    pairs: tuple[tuple[int, int], ...]
    binds: tuple[int, ...] = ()
    label: str = "move"
    drops: tuple[int, ...] = ()


@dataclass(slots=True)
class Record:
    """A loop counts its rounds and stacks values: "start" before it, "round" before each run of the body, "finish".

    `results` are held: the count, then one stack for each slot of `carried`. With a `counter` (a row word: rounds done,
    rounds that there is room for) the step runner does the rounds, as long as there is room: it copies each carried
    value, as it lies, to where its word of `words` points, and moves that on.
    """

    action: Literal["start", "round", "finish"]
    carried: tuple[int, ...]
    results: tuple[int, ...]
    counter: int = -1
    words: tuple[int, ...] = ()
    label: str = "record"


@dataclass(slots=True)
class RowsStart:
    """Make the held `results`; point the words of `given` and `results`, each (slot, word), to their first row, and
    note that row in the word after. `chunks` are (most rows, word of a counter, fewest rows): the first that `size` is
    enough for gets it in the word after its counter, the others 0, and in the word after that how many rows are done
    at once: `most`, or where fewer may be, even parts. Words of `given` in `roomy` point to memory of at least
    `ROOM` rows."""

    size: Any                           # an expression
    given: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]
    chunks: tuple[tuple[int, int, int], ...]
    roomy: tuple[int, ...] = ()
    label: str = "rows"


@dataclass(slots=True)
class RowsNext:
    """Point to the next rows, the last of which is no further than the last there is; where all are done go on
    at `target`. `counter` is the word with the number of rows done, `pointers` are (word, bytes of a row)."""

    counter: int
    pointers: tuple[tuple[int, int], ...]
    target: int
    label: str = "rows"


@dataclass(slots=True)
class AnySize:
    """Before kernels that take sizes. Make the held `results`; point the words of `given` and `results`, each (slot,
    word), to their memory, and those of `blocks`, each (word, bytes, first step, last step), into the frame's, where
    blocks needed at one time do not overlap. Words of `sizes`, each (word, expression), get their numbers.

    A given value in `rooms`, each (word, rows, bytes of a row), must be readable as if it had `ROOM` rows; `margins`
    are the bytes of rows of blocks that must. All numbers are expressions.

    Where a value tells some of the symbols, `symbol` is a kernel of `slots` that computes the words of `sizes` that
    depend on them; it fails where one of `limits`, each (symbol, word), is less than the symbol. Memory is made for
    these limits beforehand."""

    given: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]
    blocks: tuple[tuple[int, Any, int, int], ...] = ()
    rooms: tuple[tuple[int, Any, Any], ...] = ()
    margins: tuple[Any, ...] = ()
    sizes: tuple[tuple[int, Any], ...] = ()
    label: str = "any size"
    symbol: str = ""
    slots: tuple[int, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Point:
    """The held tensor in `slot` is there: the word after `word` is its memory, `counter` has its number of rows, and
    the words in `users` will point into it."""

    slot: int
    word: int
    counter: int
    users: tuple[int, ...]
    label: str = "point"


@dataclass(slots=True)
class RowAt:
    """Point `word` to row number `index` (a slot: one i64) of the tensor that the `Point` of `stack` is about, with
    `row_bytes` a row; the word after it to its first. Raises as torch does where there is no such row."""

    slot: int
    stack: int
    counter: int
    index: int
    word: int
    row_bytes: int
    file: str = ""
    line: int = 0
    label: str = "row"


Step = Native | Library | Branch | Jump | Move | Record | RowsStart | RowsNext | AnySize | Point | RowAt


@dataclass(frozen=True, slots=True)
class SlotRef:
    slot: int


@dataclass(slots=True)
class Derived:
    """A copy made from weights: folded, packed. `sources` are input numbers or ("derived", k) of earlier ones.

    `compute(*source tensors) -> tensor` is rebuilt from `recipe` (JSON data) when a program is loaded.
    """

    sources: tuple[Any, ...]
    recipe: dict[str, Any]
    compute: Callable[..., torch.Tensor]
    type: TensorType


@dataclass(slots=True)
class Error:
    """What a failed check means: the exception eager would raise. `message` is a format string over `values`."""

    exception: str               # IndexError, RuntimeError, ZeroDivisionError
    message: str
    file: str = ""
    line: int = 0


@dataclass
class Program:
    slots: list[Slot] = field(default_factory=list)
    inputs: list[Type] = field(default_factory=list)      # with strides
    outputs: list[Type] = field(default_factory=list)     # with strides; those of a held output may be left to torch
    steps: list[Step] = field(default_factory=list)
    objects: list[bytes] = field(default_factory=list)          # ELF relocatable objects
    literals: list[torch.Tensor] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    arena_bytes: int = 0
    row_words: int = 0
    held: int = 0                                               # how many values a call holds
    held_inputs: list[tuple[int, int]] = field(default_factory=list)        # (input, slot)
    held_outputs: list[tuple[int, int]] = field(default_factory=list)       # (output, slot)
    # Symbols with words of their own: (symbol, word, number of the held value that is it or -1: inputs tell it)
    cells: list[tuple[str, int, int]] = field(default_factory=list)


def sizes_of(program: Program, step: AnySize | RowsStart | Point) -> Iterator[Any]:
    """The numbers, expressions among them, that what a step does depends on."""
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
