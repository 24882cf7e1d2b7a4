"""Writes one LLVM function: scopes, and where an expression is computed.

A scope is a loop body (or one unrolled copy of it). An expression is computed once, in the outermost
scope where everything it depends on is defined: `Function.value` finds that scope and writes the code
there, in front of the inner loop being written. Loads stay behind the stores they may depend on, and
inside every loop that may run zero times.

    Lanes ::= Value (the same for all lanes: a scalar) | tuple of Value (jammed vectors)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from monograph.codegen import access, operations
from monograph.codegen.facts import Facts, Leaf
from monograph.codegen.target import Target
from monograph.codegen.text import Lines, Module, Text, Value
from monograph.codegen.types import constant
from monograph.errors import CompileError
from monograph.loops.nodes import Buffer, Carry, Const, Expr, For, Load, Op, Stmt, Var

__all__ = ["Bound", "Function", "Lanes", "Scope", "VectorLoop"]

Lanes: TypeAlias = Value | tuple[Value, ...]


@dataclass(slots=True)
class Scope:
    """What is known inside one region of code."""

    values: dict[Expr, Lanes] = field(default_factory=dict)
    splats: dict[tuple[str, int], Value] = field(default_factory=dict)
    addresses: dict[object, Value] = field(default_factory=dict)
    blocks: dict[object, tuple[Value, ...]] = field(default_factory=dict)
    readers: dict[Buffer, list[Expr]] = field(default_factory=dict)     # cached values that depend on a mutable buffer
    before_child: Lines | None = None                                   # where hoisted code goes
    undo: list[tuple[Leaf, int | None]] = field(default_factory=list)   # how `Function.depths` was before


@dataclass(frozen=True, slots=True)
class Bound:
    """A loop variable: `base + offset`; base None: a constant. Defined at scope `depth`."""

    base: Value | None
    offset: int
    depth: int


@dataclass(slots=True)
class VectorLoop:
    """The vector loop being written: `lanes` per vector, `jam` vectors at once, each with a mask or None."""

    loop: For
    lanes: int
    varying: set[Leaf]
    block: Callable[[Function, Sequence[Stmt]], None]
    jam: int = 1
    masks: tuple[Value | None, ...] = (None,)


class Function:
    """The state while one function is written; `loops` writes statements with it."""

    def __init__(self, module: Module, facts: Facts, target: Target, pointers: dict[Buffer, Value]) -> None:
        self.text = Text(module)
        self.facts = facts
        self.target = target
        self.pointers = pointers
        self.scopes: list[Scope] = [Scope()]
        self.depths: dict[Leaf, int] = {}           # the scope a leaf is defined (or pinned) in; absent: the outermost
        self.known_depths: dict[Expr, int] = {}     # of expressions, until `depths` changes
        self.variables: dict[Var, Bound] = {}
        self.groups: dict[Var, int] = {}            # variables of unrolled loops -> copies, inside these
        self.carried: dict[Carry, Lanes] = {}
        self.homes: dict[str, int] = {}             # ref of a uniform value -> its scope
        self.vector: VectorLoop | None = None
        self.fail_label: str | None = None          # where a failed check jumps to
        self.error: tuple[Value, Value] | None = None    # error record, flag that it is taken

    # -- scopes

    def open(self) -> int:
        """Begin a scope inside the current one; returns its depth."""
        self.scopes[-1].before_child = self.text.reserve()
        self.scopes.append(Scope())
        return len(self.scopes) - 1

    def close(self) -> None:
        scope = self.scopes.pop()
        self.known_depths.clear()
        for leaf, depth in reversed(scope.undo):
            if depth is None:
                self.depths.pop(leaf, None)
            else:
                self.depths[leaf] = depth
        self.scopes[-1].before_child = None

    def pin(self, leaf: Leaf) -> None:
        """`leaf` is defined in (or may not leave) the current scope."""
        scope = self.scopes[-1]
        self.known_depths.clear()
        scope.undo.append((leaf, self.depths.get(leaf)))
        self.depths[leaf] = len(self.scopes) - 1

    def enter(self, loop: For, *, certain: bool) -> None:
        """The current scope is (part of) the body of `loop`: pin the loads that may not leave it.

        Those are loads of what it stores; and all loads where the body may never run, or where a check in it
        stands between the outside and the load.
        """
        everything = not certain or self.facts.has_check(loop)
        for buffer in self.pointers if everything else self.facts.stored(loop):
            if buffer.kind != "sizes":          # there whatever happens
                self.pin(buffer)

    def bind(self, variable: Var, bound: Bound | Value) -> None:
        """In this scope the variable is `bound`, or a value made here."""
        self.pin(variable)
        if isinstance(bound, Value):
            self.homes[bound.ref] = len(self.scopes) - 1
            bound = Bound(bound, 0, len(self.scopes) - 1)
        self.variables[variable] = bound

    def start(self, loop: For, offset: int = 0) -> Bound:
        """What the variable of `loop` is, `offset` past its first value."""
        lo = self.scalar(loop.lo)
        if not lo.ref.startswith("%"):
            return Bound(None, int(lo.ref) + offset, 0)
        return Bound(lo, offset, self.homes.get(lo.ref, len(self.scopes) - 1))

    def number(self, bound: Bound) -> Value:
        """The value of a variable so bound, as a scalar."""
        offset = Value(str(bound.offset), "i64")
        if bound.base is None:
            return offset
        return self.text.binary("add", bound.base, offset) if bound.offset else bound.base

    def bind_carry(self, carry: Carry, value: Lanes) -> None:
        self.pin(carry)
        self.carried[carry] = value
        if isinstance(value, Value) and value.ref.startswith("%"):
            self.homes[value.ref] = len(self.scopes) - 1

    def forget(self, buffers: frozenset[Buffer]) -> None:
        """`buffers` were (or are about to be) written: cached values that read them are stale."""
        for scope in self.scopes:
            for buffer in buffers:
                for expr in scope.readers.pop(buffer, ()):
                    scope.values.pop(expr, None)

    # -- expressions

    def depth_of(self, expr: Expr) -> int:
        """The scope `expr` is computed in: the innermost of those its leaves are defined in."""
        found = self.known_depths.get(expr)
        if found is None:
            found = 0
            depths = self.depths
            for leaf in self.facts.leaves(expr):
                depth = depths.get(leaf, 0)
                if depth > found:
                    found = depth
            self.known_depths[expr] = found
        return found

    def is_varying(self, expr: Expr) -> bool:
        return self.vector is not None and not self.vector.varying.isdisjoint(self.facts.leaves(expr))

    def value(self, expr: Expr) -> Lanes:
        """The value of `expr` now; computed where it belongs."""
        found = self._known(expr)
        if found is not None:
            return found
        stack = [expr]
        while stack:
            top = stack[-1]
            if self._known(top) is not None:
                stack.pop()
                continue
            missing = [a for a in self._needs(top) if self._known(a) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._compute(top)
        found = self._known(expr)
        assert found is not None
        return found

    def _known(self, expr: Expr) -> Lanes | None:
        if isinstance(expr, Const):
            return constant(expr.value, expr.dtype)
        if isinstance(expr, Carry):
            return self.carried[expr]
        return self.scopes[self.depth_of(expr)].values.get(expr)

    def _needs(self, expr: Expr) -> tuple[Expr, ...]:
        if isinstance(expr, Load):
            return access.needs(self, expr)
        if isinstance(expr, Op):
            return operations.needs(self, expr)
        return expr.args

    def _compute(self, expr: Expr) -> None:
        depth = self.depth_of(expr)
        scope = self.scopes[depth]
        value: Lanes = self.at(depth, lambda: self._code(expr))
        scope.values[expr] = value
        if isinstance(value, Value) and value.ref.startswith("%"):
            self.homes.setdefault(value.ref, depth)
        for leaf in self.facts.leaves(expr):
            if leaf in self.facts.mutable:
                scope.readers.setdefault(leaf, []).append(expr)   

    def _code(self, expr: Expr) -> Lanes:
        if isinstance(expr, Var):
            return self._variable(expr)
        if isinstance(expr, Load):
            return access.load(self, expr)
        if isinstance(expr, Op):
            return operations.apply(self, expr)
        raise CompileError(f"no code for {type(expr).__name__}")

    def _variable(self, variable: Var) -> Lanes:
        scalar = self.scalar_variable(variable)
        vector = self.vector
        if vector is None or vector.loop.var is not variable:
            return scalar
        base = self.text.splat(scalar, vector.lanes)
        result = []
        for u in range(vector.jam):
            steps = ", ".join(f"i64 {u * vector.lanes + lane}" for lane in range(vector.lanes))
            result.append(self.text.binary("add", base, Value(f"<{steps}>", "i64", vector.lanes)))
        return tuple(result)

    def scalar_variable(self, variable: Var) -> Value:
        """The variable (of a vector loop: its first lane) as a scalar."""
        return self.number(self.variables[variable])

    # -- helpers for those who write code

    def at(self, depth: int, write: Callable[[], Lanes]) -> Lanes:
        """Run `write` with its code going to scope `depth`."""
        if depth == len(self.scopes) - 1:
            return write()
        place = self.scopes[depth].before_child
        assert place is not None
        saved, self.text.out = self.text.out, place
        try:
            return write()
        finally:
            self.text.out = saved

    def splat(self, value: Value, lanes: int) -> Value:
        """A uniform value in all lanes, made where the value is."""
        if not value.ref.startswith("%"):
            return self.text.splat(value, lanes)
        depth = self.homes.get(value.ref)
        if depth is None or depth >= len(self.scopes):
            return self.text.splat(value, lanes)
        known = self.scopes[depth].splats
        found = known.get((value.ref, lanes))
        if found is None:
            made = self.at(depth, lambda: self.text.splat(value, lanes))
            assert isinstance(made, Value)
            found = known[value.ref, lanes] = made
        return found

    def scalar(self, expr: Expr) -> Value:
        """The value of a uniform expression."""
        value = self.value(expr)
        assert isinstance(value, Value), f"{expr} has lanes"
        return value

    def spread(self, value: Lanes) -> tuple[Value, ...]:
        """`value` as jammed vectors of the vector loop being written."""
        assert self.vector is not None
        if not isinstance(value, Value):
            return value
        return (self.splat(value, self.vector.lanes),) * self.vector.jam
