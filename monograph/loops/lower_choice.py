"""Two loads of one buffer, one of them chosen, become one load at a chosen place.

    select(c, x[i] where c, x[j] where not c) -> x[select(c, i, j)]

Only where the choice is the same for all lanes: then the masks vanish and one load is left. (A choice between lanes
is better cut into pieces, or left as two contiguous loads, than turned into a gather.)
"""

from __future__ import annotations

from collections.abc import Collection

import torch

from monograph.loops.affine import Affine
from monograph.loops.lower_terms import Free, Rewriter
from monograph.loops.nodes import INDEX, Expr, Load, Op, Var, load

__all__ = ["MergeChoices"]


class MergeChoices(Rewriter):
    """Rewrites expressions of a loop nest whose lanes run along `lanes`."""

    def __init__(self, affine: Affine, free: Free, lanes: Collection[Var]) -> None:
        super().__init__(affine, {})
        self.free = free
        self.lanes = frozenset(lanes)

    def rebuild(self, expr: Expr, args: tuple[Expr, ...]) -> Expr:
        if isinstance(expr, Op) and expr.name == "select":
            condition, x, y = args
            if isinstance(x, Load) and isinstance(y, Load) and x.buffer is y.buffer:
                merged = None if self.free(condition) & self.lanes else self.merge(condition, x, y)
                if merged is not None:
                    return merged
        return super().rebuild(expr, args)

    def merge(self, condition: Expr, x: Load, y: Load) -> Expr | None:
        """One load for two, or None when what is left of their masks differs."""
        opposite = self.affine.op("not", condition, dtype=torch.bool)
        left = _terms(x.mask).keys() - _terms(condition).keys()
        right = _terms(y.mask).keys() - _terms(opposite).keys()
        if left != right or (left and x.other is not y.other):
            return None
        at = self.affine.op("select", condition, x.index, y.index, dtype=INDEX)
        mask: Expr | None = None
        for term in _terms(x.mask):
            if term in left:
                mask = term if mask is None else self.affine.op("and", mask, term, dtype=torch.bool)
        return load(x.buffer, at, mask, x.other if mask is not None else None, loc=x.loc)


def _terms(mask: Expr | None) -> dict[Expr, None]:
    """The conditions a mask is made of, in order."""
    if mask is None:
        return {}
    if isinstance(mask, Op) and mask.name == "and" and mask.dtype is torch.bool:
        return _terms(mask.args[0]) | _terms(mask.args[1])
    return {mask: None}
