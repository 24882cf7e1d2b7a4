"""The loop IR: what one kernel does, still independent of the machine.

    Kernel   ::= name(Buffer*) scratch: Buffer* { Stmt* }
    Stmt     ::= For(var, lo, hi, step, kind, carried: Carried*) { Stmt*; yield Expr* }
               | Store(buffer, index, value, mask?)
               | Check(condition, error, values)             stop with an error where condition is false
    kind     ::= serial(unroll) | parallel | vector(unroll)
    Carried  ::= (name, dtype, init, combine?)               combine: None (exact order) or a reduction
    Expr     ::= Const | Var | Carry | Load(buffer, index, mask?, other?) | Op(name, args)

Expressions are immutable and hash-consed: equal expressions are the same object, each carries its
dtype and the user's line. An expression is computed where its deepest variable is defined: code
generation hoists what a loop does not change. Loads of a buffer that the kernel also stores to are
never moved across those stores.

Index expressions are i64 expressions over loop variables, in elements of the buffer's dtype.

Vector loops. Inside `For(kind=vector)` an expression that depends on the loop's variable has one
lane per iteration; all others are uniform. Vector loops do not nest, but serial loops may stand
inside one (that is what a register tile is). `unroll` vectors are computed at once ("jammed"), so
with L lanes a step covers L * unroll iterations; a remainder is masked by code generation, and
`step` is 1. How many lanes a vector has is the target's choice: see `codegen.target`. Where constant
bounds show that no remainder is left, none is emitted.

Serial loops. `unroll` is a hint: that many iterations are emitted one after the other per trip, each
complete before the next begins (so a register tile stays in its registers), and the rest of the
iterations in a loop of single ones, which constant bounds may show to be empty. A loop over
`0 .. where(c, 1, 0)` is how a uniform condition is written.

Carried values. Inside the loop `Carry(loop, i)` is the value at the start of the iteration, after the
loop it is the final one. With `combine` the yielded expression is the new element and the loop
folds it in, in any order (per lane, then across lanes: the result is uniform); without, the
yielded expression is the next value and the order is exact (a scan, a GEMM accumulator). In a
vector loop every carried value needs `combine`. A carried value of a serial loop inside a vector
loop has lanes when its init or its yield has.

A parallel loop is outermost in the kernel; iterations are independent; `scratch` buffers are
private to a thread.
"""

from __future__ import annotations

import enum
import itertools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch

from monograph.ir.sized import Sized
from monograph.source import SourceLoc

__all__ = [
    "Buffer", "Carried", "Carry", "Check", "Combine", "Const", "Expr", "For", "Kernel", "Load",
    "Op", "Stmt", "Store", "Var", "carry", "const", "index", "load", "number", "op", "var",
]

INDEX = torch.int64


class Combine(enum.Enum):
    """How a reduction folds a new element into the carried value. Floats follow torch: NaN wins in MAX and MIN."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory a kernel reads or writes: `size` elements of `dtype`.

    kind `argument`: passed by the caller, never overlapping another buffer that is stored to;
    kind `scratch`: private to each thread, undefined at the start of each parallel iteration;
    kind `error`: the error record (see runtime.program);
    kind `sizes`: numbers that hold for the whole run (see `loops.sizes`).
    """

    name: str
    dtype: torch.dtype
    size: int
    kind: Literal["argument", "scratch", "error", "sizes"] = "argument"

    def __repr__(self) -> str:
        return f"%{self.name}"


class Expr:
    """One expression; build with the functions below, which share equal ones."""

    __slots__ = ("__weakref__", "args", "dtype", "key", "loc")

    dtype: torch.dtype
    args: tuple[Expr, ...]
    loc: SourceLoc | None

    def __init__(self, dtype: torch.dtype, args: tuple[Expr, ...], key: tuple[Any, ...], loc: SourceLoc | None) -> None:
        self.dtype = dtype
        self.args = args
        self.key = key
        self.loc = loc


class Const(Expr):
    """A number of dtype `dtype`."""

    __slots__ = ("value",)
    value: int | float | bool


class Var(Expr):
    """The variable of a loop (i64)."""

    __slots__ = ("name",)
    name: str


class Carry(Expr):
    """Carried value `position` of `loop`."""

    __slots__ = ("loop", "position")
    loop: For
    position: int


class Load(Expr):
    """buffer[index]; where `mask` is false nothing is read and the value is `other`. args: index, mask?, other?"""

    __slots__ = ("buffer",)
    buffer: Buffer

    @property
    def index(self) -> Expr:
        return self.args[0]

    @property
    def mask(self) -> Expr | None:
        return self.args[1] if len(self.args) > 1 else None

    @property
    def other(self) -> Expr | None:
        return self.args[2] if len(self.args) > 2 else None


class Op(Expr):
    """An operation from the table in `loops.math` applied to `args`."""

    __slots__ = ("name",)
    name: str


_table: weakref.WeakValueDictionary[tuple[Any, ...], Expr] = weakref.WeakValueDictionary()


def share(
    cls: type, key: tuple[Any, ...], dtype: torch.dtype, args: tuple[Expr, ...], loc: SourceLoc | None, **fields: Any
) -> Any:
    full = (cls, dtype, *key)
    found = _table.get(full)
    if found is None:
        found = cls(dtype, args, full, loc)
        for name, value in fields.items():
            setattr(found, name, value)
        _table[full] = found
    return found


def const(value: int | float | bool, dtype: torch.dtype) -> Expr:
    """A constant; `0.0` and `-0.0`, and the NaNs, are told apart. A `Sized` number is one of index arithmetic."""
    if isinstance(value, Sized) and dtype is not INDEX:
        return op("cast", index(value), dtype=dtype)
    made: Const = share(Const, (type(value), repr(value)), dtype, (), None, value=value)
    return made


def index(value: int) -> Const:
    """An i64 constant for index arithmetic."""
    made = const(value, INDEX)
    assert isinstance(made, Const)
    return made


def number(expr: Expr) -> int:
    """The value of an index constant; a `Sized` one stays what it is."""
    assert isinstance(expr, Const) and isinstance(expr.value, int), expr
    return expr.value


def var(name: str) -> Var:
    return share(Var, (name,), INDEX, (), None, name=name)


def carry(loop: For, position: int) -> Carry:
    return share(Carry, (id(loop), position), loop.carried[position].dtype, (), None, loop=loop, position=position)


def load(
    buffer: Buffer, index: Expr, mask: Expr | None = None, other: Expr | None = None, *, loc: SourceLoc | None = None
) -> Load:
    """`buffer[index]`; with `mask`, `other` where it is false (zero of the buffer's dtype by default)."""
    args: tuple[Expr, ...] = (index,)
    if mask is not None:
        zero = const(False if buffer.dtype is torch.bool else 0, buffer.dtype)
        args = (index, mask, other if other is not None else zero)
    return share(Load, (id(buffer), *args), buffer.dtype, args, loc, buffer=buffer)


def op(name: str, *args: Expr, dtype: torch.dtype, loc: SourceLoc | None = None) -> Op:
    """Operation `name` of the table in `loops.math`, with result type `dtype`."""
    return share(Op, (name, *args), dtype, args, loc, name=name)


@dataclass(eq=False, slots=True)
class Carried:
    """A value a loop hands from one iteration to the next."""

    name: str
    dtype: torch.dtype
    init: Expr
    combine: Combine | None = None


_fresh = itertools.count()


@dataclass(eq=False)
class For:
    """`for var in range(lo, hi, step)`. `yields` has one expression per carried value.

    `alone`: a vector loop that had better share no registers with what stands around it (a register tile):
    a hint to emit it as a function of its own.
    `ahead`: elements an iteration may ask memory for because later ones need them; the index may be out of bounds.
    """

    var: Var
    lo: Expr
    hi: Expr
    kind: Literal["serial", "parallel", "vector"] = "serial"
    step: int = 1
    unroll: int = 1
    carried: list[Carried] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    yields: list[Expr] = field(default_factory=list)
    alone: bool = False
    ahead: list[tuple[Buffer, Expr]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Store:
    """buffer[index] = value, where `mask` (bool) holds."""

    buffer: Buffer
    index: Expr
    value: Expr
    mask: Expr | None = None
    loc: SourceLoc | None = None


@dataclass(eq=False, slots=True)
class Check:
    """Where `condition` is false: write `code` and the i64 `values` to the error record and stop the program.

    `code` numbers the checks of one kernel from 1; what it means stands beside it: the exception eager
    raises, `message` being a format string over `values`.
    """

    condition: Expr
    code: int
    values: Sequence[Expr]
    loc: SourceLoc | None = None
    exception: str = "RuntimeError"
    message: str = ""


Stmt: TypeAlias = For | Store | Check


@dataclass(eq=False)
class Kernel:
    """One native function: `i32 name(ptr* args)`, args in the order of `arguments`; 0 when all went well."""

    name: str
    arguments: list[Buffer]
    scratch: list[Buffer] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)

    def statements(self) -> Iterator[Stmt]:
        """Every statement, loops before their bodies."""
        stack: list[Stmt] = list(reversed(self.body))
        while stack:
            statement = stack.pop()
            yield statement
            if isinstance(statement, For):
                stack.extend(reversed(statement.body))


def fresh_var(hint: str = "i") -> Var:
    """A loop variable with a name of its own."""
    return var(f"{hint}{next(_fresh)}")
