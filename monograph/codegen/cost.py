"""A rough count of what a loop costs, to decide whether threads are worth waking."""

from __future__ import annotations

import math

from monograph.codegen.facts import expressions, static_trips, walk
from monograph.loops.math import TABLE
from monograph.loops.nodes import Expr, For, Load, Op, Stmt, Store

__all__ = ["body_cost", "fewest_trips", "is_small", "worthwhile_jam"]

# Additions (of f32, vectorised) that take about as long as it takes to start and join the threads.
SMALL = 300_000
UNKNOWN_TRIPS = 64
LONG_BODY = 48
SCALAR_PENALTY = 4


def body_cost(body: list[Stmt], seen: set[Expr], lanes: bool = False) -> float:
    """Additions for one run of `body`; an expression counts where it first occurs. `lanes`: inside a vector loop."""
    total = 0.0
    for statement in body:
        own = 0.0
        for expr in walk(expressions(statement), seen):
            seen.add(expr)
            if isinstance(expr, Op):
                own += TABLE[expr.name].cost if expr.name in TABLE else 1
            elif isinstance(expr, Load):
                own += 1
        if isinstance(statement, Store):
            own += 1
        if isinstance(statement, For):
            trips = static_trips(statement)
            vector = lanes or statement.kind == "vector"
            own += body_cost(statement.body, seen, vector)
            own *= trips if trips is not None else UNKNOWN_TRIPS
            if not vector and not any(isinstance(s, For) for s in statement.body):
                own *= SCALAR_PENALTY
        total += own
    return total


def worthwhile_jam(loop: For) -> int:
    """How many vectors of `loop` to compute at once, at most `loop.unroll`.

    A long body fills the machine by itself: more vectors only make more code. A register tile (a loop
    inside) gets what it asks for.
    """
    if any(isinstance(s, For) for s in loop.body):
        return loop.unroll
    seen: set[Expr] = set()
    cost = body_cost(loop.body, seen)
    cost += sum(TABLE[e.name].cost for e in walk(loop.yields, seen) if isinstance(e, Op) and e.name in TABLE)
    return min(loop.unroll, 1 if cost > LONG_BODY else (2 if cost > LONG_BODY // 4 else loop.unroll))


def fewest_trips(loop: For) -> int:
    """From how many iterations on a parallel loop is worth a second thread."""
    return max(2, math.ceil(SMALL / max(body_cost(loop.body, set()), 1.0)))


def is_small(loop: For, trips: int | None) -> bool:
    """Whether parallel loop `loop` should run on the calling thread."""
    if trips is not None and trips <= 1:
        return True
    return trips is not None and trips * body_cost(loop.body, set()) < SMALL
