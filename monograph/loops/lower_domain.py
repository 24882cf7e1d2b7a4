"""Shapes the iteration space before loops are made: cut, split, collapse.

    Root ::= (Store | Check) over a domain: Var*

cut        for v in 0..n with a choice at v < k  ->  two roots, 0..k and k..n, each without the choice
split      v // k and v % k disappear when v = (hi, lo) with lo of extent k
merge      a choice between two loads of one buffer becomes one load (`lower_choice`)
collapse   (u, v) become one variable where every index uses them only as u * extent(v) + v

After these, views have turned into plain strides wherever strides can express them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from monograph.ir.sized import gcd, known_less
from monograph.loops.affine import COMPARE
from monograph.loops.interpret import postorder
from monograph.loops.lower_choice import MergeChoices
from monograph.loops.lower_terms import Reduce, Rewriter, Scan
from monograph.loops.lower_value import Values
from monograph.loops.nodes import INDEX, Check, Const, Expr, Load, Op, Store, Var, number

__all__ = ["Root", "expressions", "rewrite", "shape"]

MAX_PIECES = 6
MAX_ALONG_ONE = 128      # a cat of many parts
SHORT = 8           # a loop this short is not worth the inner place


@dataclass(eq=False, slots=True)
class Root:
    """One statement to be executed for every point of its domain (outer variables first)."""

    statement: Store | Check
    domain: tuple[Var, ...]


def expressions(statement: Store | Check) -> list[Expr]:
    if isinstance(statement, Store):
        return [statement.index, statement.value, *([statement.mask] if statement.mask is not None else [])]
    return [statement.condition, *statement.values]


def rewrite(statement: Store | Check, rewriter: Rewriter) -> Store | Check:
    """The statement with every expression rewritten."""
    if isinstance(statement, Store):
        mask = rewriter(statement.mask) if statement.mask is not None else None
        if isinstance(mask, Const) and mask.value:
            mask = None
        return Store(statement.buffer, rewriter(statement.index), rewriter(statement.value), mask, statement.loc)
    return Check(rewriter(statement.condition), statement.code, [rewriter(value) for value in statement.values],
                 statement.loc, statement.exception, statement.message)


def shape(values: Values, roots: Sequence[Root]) -> list[Root]:
    """Cut, split and collapse until nothing changes."""
    shaped = [piece for root in roots for piece in _cut(values, root)]
    shaped = _split(values, shaped)
    merge = MergeChoices(values.affine, values.free, _contiguous(values, shaped))
    return _collapse(values, [Root(rewrite(root.statement, merge), root.domain) for root in shaped])


def _everything(roots: Iterable[Root]) -> list[Expr]:
    return postorder(expr for root in roots for expr in expressions(root.statement))


def _pinned(exprs: Iterable[Expr]) -> set[Var]:
    """Variables of scans: their loops run in order and stay whole."""
    return {expr.variable for expr in exprs if isinstance(expr, Scan)}


# Cut.

def _cut(values: Values, root: Root) -> list[Root]:
    if isinstance(root.statement, Check):
        return [root]
    exprs = _everything([root])
    fixed = _pinned(exprs) | {v for expr in exprs if isinstance(expr, Reduce) for v in expr.variables}
    cuts: dict[Var, set[int]] = {}
    for expr in exprs:
        if isinstance(expr, Op) and expr.name in COMPARE and expr.args[0].dtype is INDEX:
            found = _flip_points(values, expr)
            if found is not None and found[0] in root.domain and found[0] not in fixed:
                cuts.setdefault(found[0], set()).update(found[1])
    pieces = [root]
    inner = _contiguous(values, [root])         # there a choice costs most: cut first
    for variable, points in sorted(cuts.items(), key=lambda item: item[0] not in inner):
        extent = values.affine.extents[variable]
        inside = [point for point in points if known_less(0, point) and known_less(point, extent)]
        edges = [0, *sorted(inside), extent]
        if len(pieces) * (len(edges) - 1) <= (MAX_PIECES if len(cuts) > 1 else MAX_ALONG_ONE):
            pieces = [part for piece in pieces for part in _pieces(values, piece, variable, edges)]
    return pieces


def _flip_points(values: Values, comparison: Op) -> tuple[Var, list[int]] | None:
    """The variable a comparison is about, and where its truth changes."""
    affine = values.affine
    terms, constant = affine.linear(affine.add(comparison.args[0], affine.scale(comparison.args[1], -1)))
    if len(terms) != 1:
        return None
    (variable, c), = terms.items()
    if not isinstance(variable, Var):
        return None
    if c < 0:
        c, constant = -c, -constant
        flipped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(comparison.name, comparison.name)
    else:
        flipped = comparison.name
    first_not_below = -(constant // c)          # smallest v with c*v + constant >= 0
    first_above = -constant // c + 1            # smallest v with c*v + constant > 0
    if flipped in ("eq", "ne"):
        return variable, [first_not_below, first_above]
    return variable, [first_not_below if flipped in ("lt", "ge") else first_above]


def _pieces(values: Values, root: Root, variable: Var, edges: list[int]) -> list[Root]:
    """The root over each interval between edges; halved again and again, so that each half sheds its choices."""
    if len(edges) <= 2:
        return [root]
    result = []
    others = frozenset(root.domain) | {
        v for expr in _everything([root]) if isinstance(expr, Reduce) for v in expr.variables}
    middle = len(edges) // 2
    for part in (edges[:middle + 1], edges[middle:]):
        lo, extent = part[0], part[-1] - part[0]
        fresh = () if known_less(extent, 2) else (values.variable(extent, others),)
        rewriter = Rewriter(values.affine, {variable: values.affine.add(*fresh, lo)})
        domain = tuple(new for v in root.domain for new in (fresh if v is variable else (v,)))
        piece = Root(rewrite(root.statement, rewriter), domain)
        result += _pieces(values, piece, fresh[0], [edge - lo for edge in part]) if fresh else [piece]
    return result


# Split.

def _split(values: Values, roots: list[Root]) -> list[Root]:
    for _ in range(24):
        found = _split_point(values, roots)
        if found is None:
            break
        variable, inner = found
        extent = values.affine.extents[variable]
        used = frozenset(expr for expr in _everything(roots) if isinstance(expr, Var))
        used |= frozenset(v for root in roots for v in root.domain)
        used |= frozenset(v for e in _everything(roots) if isinstance(e, Reduce) for v in e.variables)
        high = values.variable(extent // inner, used)
        low = values.variable(inner, used | {high})
        whole = values.affine.add(values.affine.scale(high, inner), low)
        roots = _substitute(values, roots, {variable: whole}, {variable: (high, low)})
    return roots


def _substitute(
    values: Values, roots: list[Root], replace: Mapping[Expr, Expr], bound: dict[Var, tuple[Var, ...]]
) -> list[Root]:
    rewriter = Rewriter(values.affine, replace, bound)
    return [
        Root(rewrite(root.statement, rewriter), tuple(new for v in root.domain for new in bound.get(v, (v,))))
        for root in roots
    ]


def _split_point(values: Values, roots: list[Root]) -> tuple[Var, int] | None:
    """A variable and an inner extent that would take a division or remainder apart."""
    exprs = _everything(roots)
    pinned = _pinned(exprs)
    inner = _contiguous(values, roots)
    for expr in exprs:
        if not (isinstance(expr, Op) and expr.name in ("floordiv", "mod") and expr.dtype is INDEX):
            continue
        if not isinstance(expr.args[1], Const) or expr.args[1].value <= 0:
            continue
        k = number(expr.args[1])
        for term, c in values.affine.linear(expr.args[0])[0].items():
            if not isinstance(term, Var) or term in pinned:
                continue
            extent, size = values.affine.extents[term], k // gcd(c, k)
            divides = known_less(size, extent) and extent % size == 0 and known_less(1, size)
            if divides and not (known_less(size, SHORT) and term in inner):
                return term, size
    return None


def _contiguous(values: Values, roots: list[Root]) -> set[Var]:
    """Variables along which some root stores neighbours: better gathered from than chopped."""
    result: set[Var] = set()
    for root in roots:
        if isinstance(root.statement, Store):
            terms, _ = values.affine.linear(root.statement.index)
            result.update(v for v, c in terms.items() if isinstance(v, Var) and c == 1)
    return result


# Collapse.

def _collapse(values: Values, roots: list[Root]) -> list[Root]:
    while True:
        pair = _collapsible(values, roots)
        if pair is None:
            return roots
        outer, inner = pair
        size = values.affine.extents[inner]
        used = frozenset(v for root in roots for v in root.domain) | frozenset(
            v for e in _everything(roots) for v in (e.variables if isinstance(e, Reduce) else ()))
        both = values.variable(values.affine.extents[outer] * size, used)
        replace: dict[Expr, Expr] = {outer: values.affine.floordiv(both, size), inner: values.affine.mod(both, size)}
        roots = _substitute(values, roots, replace, {outer: (), inner: (both,)})


def _collapsible(values: Values, roots: list[Root]) -> tuple[Var, Var] | None:
    exprs = _everything(roots)
    groups = [frozenset(root.domain) for root in roots]
    groups += [frozenset(expr.variables) for expr in exprs if isinstance(expr, Reduce)]
    pinned = _pinned(exprs)
    sums = _sums(values, roots, exprs)
    for domain in dict.fromkeys([root.domain for root in roots]
                                + [expr.variables for expr in exprs if isinstance(expr, Reduce)]):
        for outer in domain:
            for inner in domain:
                if outer is inner or outer in pinned or inner in pinned:
                    continue
                size = values.affine.extents[inner]
                if all(terms.get(outer, 0) == size * terms.get(inner, 0) for terms in sums) and all(
                        (outer in group) == (inner in group) for group in groups):
                    return outer, inner
    return None


def _sums(values: Values, roots: list[Root], exprs: list[Expr]) -> list[dict[Expr, int]]:
    """The terms of every whole index sum: arguments of anything that is not itself part of a sum."""
    result: dict[Expr, dict[Expr, int]] = {}

    def note(expr: Expr) -> None:
        if expr.dtype is INDEX and expr not in result:
            terms, _ = values.affine.linear(expr)
            result[expr] = terms
            for term in terms:
                if term is not expr:
                    for arg in term.args:
                        note(arg)

    for root in roots:
        for expr in expressions(root.statement):
            note(expr)
    for expr in exprs:
        if isinstance(expr, (Load, Reduce, Scan)) or isinstance(expr, Op) and not _is_sum(values, expr):
            for arg in expr.args:
                note(arg)
    return list(result.values())


def _is_sum(values: Values, expr: Op) -> bool:
    return expr.dtype is INDEX and expr not in values.affine.linear(expr)[0]
