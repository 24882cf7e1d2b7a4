"""The expressions lowering works with before there are loops.

    Expr ::= ... | Reduce(combine, variables, body)           fold `body` over all values of `variables`
               | Scan(position, variable, inits, nexts)       value after step `variable` of a running computation
               | Slot(token, position)                        inside `nexts`: the state before the step

They are hash-consed like the others. `Reduce` binds its variables; a `Scan` is tied to the loop over its
variable, which runs in order. `loops.lower_nest` turns both into loops with carried values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from monograph.loops import nodes
from monograph.loops.affine import Affine
from monograph.loops.interpret import postorder
from monograph.loops.nodes import Combine, Const, Expr, Load, Op, Var, const

__all__ = [
    "Free", "Reduce", "Rewriter", "Scan", "Slot", "fold_op", "identity", "masked_load", "reduce", "scan", "slot",
]


class Reduce(Expr):
    """`combine` of `args[0]` over the ranges of `variables`."""

    __slots__ = ("combine", "variables")
    combine: Combine
    variables: tuple[Var, ...]


class Slot(Expr):
    """State `position` of the scan over `variable` that `token` names, before the step."""

    __slots__ = ("position", "token")
    token: str
    position: int


class Scan(Expr):
    """State `position` after the step; args are the initial states, then the next ones."""

    __slots__ = ("position", "token", "variable")
    token: str
    position: int
    variable: Var

    @property
    def inits(self) -> tuple[Expr, ...]:
        return self.args[:len(self.args) // 2]

    @property
    def nexts(self) -> tuple[Expr, ...]:
        return self.args[len(self.args) // 2:]


def reduce(combine: Combine, variables: tuple[Var, ...], body: Expr) -> Expr:
    """The fold of `body`; the body itself when there is nothing to fold over."""
    if not variables:
        return body
    return nodes.share(Reduce, (combine, variables, body), body.dtype, (body,), body.loc,
                       combine=combine, variables=variables)


def slot(token: str, position: int, dtype: torch.dtype) -> Expr:
    return nodes.share(Slot, (token, position), dtype, (), None, token=token, position=position)


def scan(token: str, position: int, variable: Var, inits: Sequence[Expr], nexts: Sequence[Expr]) -> Expr:
    """State `position` of the scan `token` after step `variable`. `nexts` speak of the state by `slot(token, i)`."""
    args = (*inits, *nexts)
    return nodes.share(Scan, (token, position, variable, *args), inits[position].dtype, args, nexts[position].loc,
                       token=token, position=position, variable=variable)


def identity(combine: Combine, dtype: torch.dtype) -> Const:
    """The value that changes nothing when folded in."""
    if combine is Combine.SUM or combine is Combine.XOR:
        return const(0.0 if dtype.is_floating_point else False if dtype is torch.bool else 0, dtype)
    if combine is Combine.PROD:
        return const(1.0 if dtype.is_floating_point else 1, dtype)
    if combine is Combine.AND:
        return const(True, dtype) if dtype is torch.bool else const(-1, dtype)
    if combine is Combine.OR:
        return const(False, dtype) if dtype is torch.bool else const(0, dtype)
    if dtype.is_floating_point:
        return const(float("-inf") if combine is Combine.MAX else float("inf"), dtype)
    info = torch.iinfo(dtype)
    return const(info.min if combine is Combine.MAX else info.max, dtype)


FOLDS = {
    Combine.SUM: "add", Combine.PROD: "mul", Combine.MAX: "max", Combine.MIN: "min",
    Combine.AND: "and", Combine.OR: "or", Combine.XOR: "xor",
}


def fold_op(affine: Affine, combine: Combine, x: Expr, y: Expr) -> Expr:
    """One step of a fold: `x` is what was folded so far, and stays where `y` equals it."""
    if combine in (Combine.MAX, Combine.MIN):
        x, y = y, x
    return affine.op(FOLDS[combine], x, y, dtype=x.dtype)


class Free:
    """Free variables of expressions, remembered."""

    def __init__(self) -> None:
        self._known: dict[Expr, frozenset[Var]] = {}

    def __call__(self, expr: Expr) -> frozenset[Var]:
        found = self._known.get(expr)
        if found is None:
            for each in postorder([expr]):
                if each not in self._known:
                    self._known[each] = self._compute(each)
            found = self._known[expr]
        return found

    def _compute(self, expr: Expr) -> frozenset[Var]:
        if isinstance(expr, Var):
            return frozenset((expr,))
        below = frozenset[Var]().union(*(self._known[arg] for arg in expr.args))
        if isinstance(expr, Reduce):
            return below.difference(expr.variables)
        return below | {expr.variable} if isinstance(expr, Scan) else below


class Rewriter:
    """Rebuilds expressions with some leaves replaced, simplifying again on the way up.

    `replace` maps variables and whole sub-expressions; `bound` tells what a variable bound by a `Reduce` turns into.
    """

    def __init__(
        self, affine: Affine, replace: Mapping[Expr, Expr], bound: Mapping[Var, tuple[Var, ...]] | None = None
    ) -> None:
        self.affine = affine
        self.bound = bound or {}
        self.done: dict[Expr, Expr] = dict(replace)

    def __call__(self, expr: Expr) -> Expr:
        done = self.done
        if expr in done:
            return done[expr]
        stack = [expr]
        while stack:
            top = stack[-1]
            if top in done:
                stack.pop()
                continue
            needed = self.needed(top)
            waiting = [arg for arg in needed if arg not in done]
            if waiting:
                stack.extend(waiting[:1] if needed[0] is waiting[0] else waiting)
                continue
            stack.pop()
            if len(needed) < len(top.args):
                done[top] = done[needed[0]]
                continue
            done[top] = self.rebuild(top, tuple(done[arg] for arg in top.args))
        return done[expr]

    def needed(self, expr: Expr) -> tuple[Expr, ...]:
        """What must be rewritten first: of a choice the condition, and once that is known only the side chosen."""
        if isinstance(expr, Op) and expr.name == "select":
            condition = self.done.get(expr.args[0])
            if isinstance(condition, Const):
                return expr.args[1:2] if condition.value else expr.args[2:]
        return expr.args

    def rebuild(self, expr: Expr, args: tuple[Expr, ...]) -> Expr:
        if isinstance(expr, Op):
            # Also with equal arguments: ranges may be narrower now.
            return self.affine.op(expr.name, *args, dtype=expr.dtype, loc=expr.loc)
        if isinstance(expr, Load):
            return masked_load(expr, *args)
        if isinstance(expr, Reduce):
            variables = tuple(new for old in expr.variables for new in self.bound.get(old, (old,)))
            return reduce(expr.combine, variables, args[0])
        if isinstance(expr, Scan):
            half = len(args) // 2
            return scan(expr.token, expr.position, expr.variable, args[:half], args[half:])
        return expr


def masked_load(old: Load, index: Expr, mask: Expr | None = None, other: Expr | None = None) -> Expr:
    """`old` with new arguments; a mask known by now goes away."""
    if isinstance(mask, nodes.Const):
        if not mask.value:
            assert other is not None
            return other
        mask = None
    return nodes.load(old.buffer, index, mask, other if mask is not None else None, loc=old.loc)
