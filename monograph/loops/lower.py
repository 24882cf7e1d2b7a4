"""From an item of the schedule to a kernel.

    lower(item, schedule, name) -> Kernel
    Lowering(item, schedule)        the values of an item at any coordinates; templates write epilogues with it

What `lower` accepts: any set of nodes whose ops have a rule (`RULES`, one table per family). A kernel is

    map kernel    outputs computed point by point
    row kernel    several reductions or scans over the same rows, their prologues and what follows from them
    fill         a node that writes in an order of its own (`lower_fill`)
    (see `schedule.rows`, which says which sets of nodes make good kernels; lowering computes any set rightly, but a
    reduction that is read at other places than its own row is computed once for each of them)

Steps: each output is one root `out[c] = at(value, c)` over the points of its shape; `lower_domain` cuts, splits and
collapses the points; `lower_nest` makes loops; `lower_parallel` shares them among threads.
"""

from __future__ import annotations

import contextlib
import math as pymath
import sys
from collections.abc import Iterator, Sequence

from monograph.ir.graph import Value
from monograph.loops import (
    lower_domain,
    lower_fill,
    lower_index,
    lower_kept,
    lower_pointwise,
    lower_reduce,
    lower_scan,
    lower_view,
    lower_window,
)
from monograph.loops.lower_domain import Root
from monograph.loops.lower_nest import Nest
from monograph.loops.lower_parallel import parallelise
from monograph.loops.lower_value import Rule, Values, shape_of
from monograph.loops.nodes import Expr, Kernel, Var, index
from monograph.schedule.kernel import Fused, Schedule

__all__ = ["RULES", "Lowering", "lower"]

RULES: dict[str, Rule] = {
    **lower_view.RULES, **lower_pointwise.RULES, **lower_index.RULES, **lower_window.RULES, **lower_reduce.RULES,
    **lower_scan.RULES,
}


class Lowering(Values):
    """Values composed by the rules of every family."""

    rules = RULES


def lower(item: Fused, schedule: Schedule, name: str) -> Kernel:
    """The kernel of an item: arguments are its inputs, its outputs, and the error record if something is checked."""
    with _deep(len(item.nodes)):
        lowering = Lowering(item, schedule)
        filling = next((node for node in item.nodes if node.op.name in lower_fill.RULES), None)
        if filling is not None:
            body, scratch = lower_fill.fill(lowering, filling)
            return Kernel(name, lowering.arguments(), scratch, body)
        roots = _roots(lowering, item)
        if not lower_scan.orderable(lowering, [e for root in roots for e in lower_domain.expressions(root.statement)]):
            lowering = Lowering(item, schedule)
            lowering.ordered = False
            roots = _roots(lowering, item)
        shaped = lower_domain.shape(lowering, roots)
        nest = Nest(lowering)
        body = parallelise(lowering.affine, nest.build(shaped))
        return Kernel(name, lowering.arguments(), nest.scratch, body)


@contextlib.contextmanager
def _deep(nodes: int) -> Iterator[None]:
    """Chains of values recurse a few frames per node."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 2000 + 16 * nodes))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _roots(lowering: Lowering, item: Fused) -> list[Root]:
    roots = []
    for value, points in _points(lowering, item).items():
        statement, coordinates = lower_kept.changing(lowering, value, points)
        free = _free(lowering, list(coordinates))
        roots.append(Root(statement, tuple(v for v in lowering.affine.extents if v in free)))
    checks = [
        Root(check, tuple(sorted(_free(lowering, [check.condition, *check.values]), key=lambda v: v.name)))
        for check in lowering.checks
    ]
    return checks + roots


def _free(lowering: Lowering, exprs: list[Expr]) -> frozenset[Var]:
    return frozenset[Var]().union(*(lowering.free(expr) for expr in exprs))


def _points(lowering: Lowering, item: Fused) -> dict[Value, tuple[Expr, ...]]:
    """The coordinates each output is computed at. Outputs of one size share their variables where possible."""
    shape, reduced = item.domain.shape, item.domain.reduced
    atoms = _atoms(lowering, shape)
    kept = [d for d in range(len(shape)) if d not in reduced]
    full = lowering.affine.ravel(atoms, shape)
    row = lowering.affine.ravel([atoms[d] for d in kept], [shape[d] for d in kept])
    points, rows = pymath.prod(shape), pymath.prod(shape[d] for d in kept)
    result: dict[Value, tuple[Expr, ...]] = {}
    for value in item.outputs:
        own = shape_of(value)
        size = pymath.prod(own)
        if size == 0:
            continue
        spread = [n != 1 and stride == 0 for n, stride in zip(own, lowering.strides(value))]
        if any(spread) or size not in (points, rows):
            # Elements that share memory are equal: one of them is enough.
            seen = [1 if shared else n for n, shared in zip(own, spread)]
            result[value] = _atoms(lowering, seen)
        else:
            result[value] = lowering.affine.unravel(full if size == points else row, own)
    return result


def _atoms(lowering: Lowering, shape: Sequence[int]) -> tuple[Expr, ...]:
    """One variable per dim, none for size 1."""
    atoms: list[Expr] = []
    for size in shape:
        used = frozenset(atom for atom in atoms if isinstance(atom, Var))
        atoms.append(index(0) if size == 1 else lowering.variable(size, used))
    return tuple(atoms)
