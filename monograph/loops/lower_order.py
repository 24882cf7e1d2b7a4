"""In which order the variables of a group of roots become loops, and which of them has lanes.

    rows        variables that reductions of the group depend on: outermost, so that each row is reduced once
    the vector  the variable along which most accesses are neighbours; either inside a row (each pass over the row
                is a vector loop) or a row variable itself (each lane is a row, the passes are serial loops inside)
    scans       the loop of a scan runs in order and stands innermost
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monograph.ir.sized import example, known_less
from monograph.loops.interpret import postorder
from monograph.loops.lower_domain import Root, expressions
from monograph.loops.lower_terms import Reduce, Scan
from monograph.loops.lower_value import Values
from monograph.loops.nodes import Expr, Load, Store, Var

__all__ = ["LANES", "Order", "accesses", "order", "pick_vector"]

LANES = 8            # of f32 in 256 bits: loops shorter than this gain little from lanes


@dataclass(slots=True)
class Order:
    """Loops from the outside in; `vector` is the one with lanes, if it is one of these."""

    variables: tuple[Var, ...]
    vector: Var | None


def accesses(roots: Iterable[Root], exprs: Iterable[Expr]) -> list[tuple[Expr, int]]:
    """Index expressions of all loads and stores, with a weight."""
    result: list[tuple[Expr, int]] = [(expr.index, 2) for expr in exprs if isinstance(expr, Load)]
    result += [(root.statement.index, 3) for root in roots if isinstance(root.statement, Store)]
    return result


def score(values: Values, variable: Var, found: Iterable[tuple[Expr, int]]) -> float:
    """How well lanes along `variable` fit the accesses: neighbours count for, strides and gathers against."""
    total = 0.0
    for expr, weight in found:
        if variable not in values.free(expr):
            continue
        terms, _ = values.affine.linear(expr)
        c = terms.get(variable, 0)
        hidden = any(variable in values.free(term) for term in terms if term is not variable)
        if hidden:
            total -= weight
        elif c == 1:
            total += 2 * weight
        else:
            total -= 0.5 * weight
    return total * min(1.0, example(values.affine.extents[variable]) / LANES)


def pick_vector(values: Values, candidates: Sequence[Var], found: list[tuple[Expr, int]]) -> Var | None:
    """The best of the candidates (the last of equals); None when there is none worth lanes."""
    best: Var | None = None
    best_score = 0.0
    for variable in candidates:
        if known_less(values.affine.extents[variable], 2):
            continue
        worth = score(values, variable, found)
        if best is None or worth >= best_score:
            best, best_score = variable, worth
    return best


def order(values: Values, roots: Sequence[Root], opened: frozenset[Var], in_vector: bool) -> list[Order]:
    """One order for each root; roots of one group agree on the variables they share."""
    exprs = postorder(e for root in roots for e in expressions(root.statement))
    reduces = [expr for expr in exprs if isinstance(expr, Reduce)]
    scanned = {expr.variable for expr in exprs if isinstance(expr, Scan)}
    remaining = [tuple(v for v in root.domain if v not in opened) for root in roots]
    every = list(dict.fromkeys(v for rest in remaining for v in rest))
    rows = [v for v in every if v not in scanned and any(v in values.free(r) for r in reduces)]
    inner = [v for v in every if v not in rows and v not in scanned]
    found = accesses(roots, exprs)
    vector: Var | None = None
    if not in_vector:
        vector = _vector(values, reduces, rows, inner, scanned, found)
    ordered = _arrange(rows, inner, [v for v in every if v in scanned], vector)
    return [Order(tuple(v for v in ordered if v in rest), vector if vector in rest else None) for rest in remaining]


def _vector(
    values: Values, reduces: list[Reduce], rows: list[Var], inner: list[Var], scanned: set[Var],
    found: list[tuple[Expr, int]],
) -> Var | None:
    if not reduces:
        return pick_vector(values, rows + inner, found)
    folded = list(dict.fromkeys(v for r in reduces for v in r.variables))
    inside = [v for v in inner + folded if v not in rows and v not in scanned]
    # What happens once per row does not count beside what happens along it.
    found = [(expr, weight) for expr, weight in found if values.free(expr).intersection(inside)] or found
    along = max((score(values, v, found) for v in inside if example(values.affine.extents[v]) > 1), default=-1e9)
    row = pick_vector(values, rows, found)
    if row is not None and score(values, row, found) > along:
        return row
    if row is not None and max((example(values.affine.extents[v]) for v in inside), default=1) < 4:
        return row
    return pick_vector(values, inner, found)


def _arrange(rows: list[Var], inner: list[Var], scanned: list[Var], vector: Var | None) -> list[Var]:
    """Rows, then the rest; the vector last among its kind; scans innermost."""
    if vector in rows:
        rows = [v for v in rows if v is not vector] + [vector]
    elif vector in inner:
        inner = [v for v in inner if v is not vector] + [vector]
    return rows + inner + scanned
