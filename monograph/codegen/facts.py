"""What can be read off a kernel before any code is written.

    leaves(e)     the variables, carried values and buffers that `e` depends on
    linear(e)     an i64 expression as sum(coefficient * atom) + constant
    stored(loop)  the buffers a loop writes
    varying       which carried values inside a vector loop have one value per lane
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch

from monograph.codegen.intervals import Intervals
from monograph.loops.nodes import Buffer, Carry, Check, Const, Expr, For, Kernel, Load, Op, Stmt, Store, Var, carry

__all__ = ["Facts", "Leaf", "Linear", "expressions", "operands", "static_trips", "walk"]

Leaf = Var | Carry | Buffer
NOTHING: frozenset[Leaf] = frozenset()


@dataclass(slots=True)
class Linear:
    """sum(coefficient * atom) + constant; atoms are expressions that are no sums themselves."""

    terms: dict[Expr, int] = field(default_factory=dict)
    constant: int = 0

    def add(self, other: Linear, factor: int) -> None:
        self.constant += factor * other.constant
        for atom, coefficient in other.terms.items():
            total = self.terms.get(atom, 0) + factor * coefficient
            if total:
                self.terms[atom] = total
            else:
                self.terms.pop(atom, None)


class Facts:
    """Memoised facts about the expressions of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.mutable = frozenset(s.buffer for s in kernel.statements() if isinstance(s, Store))
        self._leaves: dict[Expr, frozenset[Leaf]] = {}
        self._linear: dict[Expr, Linear] = {}
        self.intervals = Intervals(kernel)
        self._stored: dict[For, frozenset[Buffer]] = {}
        for expr in walk((e for s in kernel.statements() for e in operands(s)), ()):
            self._leaves[expr] = self._own_leaves(expr)

    def leaves(self, expr: Expr) -> frozenset[Leaf]:
        found = self._leaves.get(expr)
        if found is None:
            if any(a not in self._leaves for a in expr.args):
                for part in walk(expr.args, self._leaves):
                    self._leaves[part] = self._own_leaves(part)
            found = self._leaves[expr] = self._own_leaves(expr)
        return found

    def _own_leaves(self, expr: Expr) -> frozenset[Leaf]:
        if isinstance(expr, (Var, Carry)):
            return frozenset((expr,))
        sets = [self._leaves[a] for a in expr.args]
        if isinstance(expr, Load):
            sets.append(frozenset((expr.buffer,)))
        sets = [s for s in sets if s]
        return frozenset().union(*sets) if len(sets) > 1 else (sets[0] if sets else NOTHING)

    def linear(self, expr: Expr) -> Linear:
        found = self._linear.get(expr)
        if found is None:
            if any(a not in self._linear for a in expr.args):
                for part in walk(expr.args, self._linear):
                    self._linear[part] = self._own_linear(part)
            found = self._linear[expr] = self._own_linear(expr)
        return found

    def _own_linear(self, expr: Expr) -> Linear:
        if isinstance(expr, Const):
            return Linear({}, int(expr.value)) if not expr.dtype.is_floating_point else Linear({expr: 1})
        if isinstance(expr, Op) and expr.dtype is torch.int64 and expr.name in ("add", "sub", "mul", "neg"):
            parts = [self._linear[a] for a in expr.args]
            result = Linear()
            if expr.name == "neg":
                result.add(parts[0], -1)
                return result
            a, b = parts
            if expr.name != "mul":
                result.add(a, 1)
                result.add(b, 1 if expr.name == "add" else -1)
                return result
            if not a.terms or not b.terms:
                result.add(b if not a.terms else a, a.constant if not a.terms else b.constant)
                return result
        return Linear({expr: 1})

    def stored(self, loop: For) -> frozenset[Buffer]:
        found = self._stored.get(loop)
        if found is None:
            found = frozenset(s.buffer for s in _statements(loop.body) if isinstance(s, Store))
            self._stored[loop] = found
        return found

    def has_check(self, loop: For) -> bool:
        return any(isinstance(s, Check) for s in _statements(loop.body))

    def varying(self, loop: For) -> set[Leaf]:
        """The leaves with lanes inside vector loop `loop`: its variable, and carried values that depend on it."""
        lanes: set[Leaf] = {loop.var}
        inner = [s for s in _statements(loop.body) if isinstance(s, For)]
        changed = True
        while changed:
            changed = False
            for statement in inner:
                for position, carried in enumerate(statement.carried):
                    own = carry(statement, position)
                    sources = (carried.init, statement.yields[position])
                    if own not in lanes and any(not lanes.isdisjoint(self.leaves(s)) for s in sources):
                        lanes.add(own)
                        changed = True
        return lanes

    def dtypes(self, loop: For, varying: set[Leaf]) -> set[torch.dtype]:
        """The dtypes computed with per lane in vector loop `loop`; index arithmetic does not count."""
        used: set[torch.dtype] = set()
        seen: set[Expr] = set()
        for statement in [loop, *_statements(loop.body)]:
            if isinstance(statement, For):
                used |= {c.dtype for c in statement.carried}
            elif isinstance(statement, Store):
                used.add(statement.buffer.dtype)
            for expr in self._computed(expressions(statement), seen):
                if varying.isdisjoint(self.leaves(expr)):
                    continue
                if isinstance(expr, Load) or (isinstance(expr, Op) and expr.dtype.is_floating_point):
                    used.add(expr.dtype)
        return used


    def _computed(self, roots: list[Expr], seen: set[Expr]) -> Iterator[Expr]:
        """The expressions below `roots`, without those that only say where to load from."""
        stack = list(roots)
        while stack:
            expr = stack.pop()
            if expr not in seen:
                seen.add(expr)
                yield expr
                stack.extend(expr.args[1:] if isinstance(expr, Load) else expr.args)


def walk(roots: Iterable[Expr], known: Iterable[Expr] | dict[Expr, object] | set[Expr]) -> Iterator[Expr]:
    """Every expression below `roots` that is not in `known`, arguments first, each once."""
    seen: set[Expr] = set()
    for root in roots:
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in seen or expr in known:
                stack.pop()
                continue
            missing = [a for a in expr.args if a not in seen and a not in known]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            seen.add(expr)
            yield expr


def expressions(statement: Stmt) -> list[Expr]:
    """The expressions a statement evaluates, without its body; stores' indices are left out."""
    if isinstance(statement, For):
        return [*(c.init for c in statement.carried), *statement.yields]
    if isinstance(statement, Check):
        return [statement.condition, *statement.values]
    return [statement.value] if statement.mask is None else [statement.value, statement.mask]


def operands(statement: Stmt) -> list[Expr]:
    """Every expression of a statement, indices and bounds included."""
    extra = [statement.index] if isinstance(statement, Store) else []
    if isinstance(statement, For):
        extra = [statement.lo, statement.hi]
    return [*expressions(statement), *extra]


def static_trips(loop: For) -> int | None:
    """How many iterations, where that is known: the bounds are constants, or hi is lo plus a constant."""
    lo, hi = loop.lo, loop.hi
    if isinstance(lo, Const) and isinstance(hi, Const):
        extent = int(hi.value) - int(lo.value)
    elif isinstance(hi, Op) and hi.name == "add" and lo in hi.args:
        other = hi.args[1] if hi.args[0] is lo else hi.args[0]
        if not isinstance(other, Const):
            return None
        extent = int(other.value)
    else:
        return None
    return max(0, -(-extent // loop.step))


def _statements(body: list[Stmt]) -> Iterator[Stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from _statements(statement.body)
