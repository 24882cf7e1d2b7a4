"""A rough count of what a loop costs, to decide whether threads are worth waking."""

from __future__ import annotations

from monograph.codegen.facts import expressions, static_trips, walk
from monograph.loops.math import TABLE
from monograph.loops.nodes import Expr, For, Load, Op, Stmt, Store

__all__ = ["body_cost", "is_small"]

# Additions (of f32, vectorised) that take about as long as it takes to start and join the threads.
SMALL = 40_000
UNKNOWN_TRIPS = 64


def body_cost(body: list[Stmt], seen: set[Expr]) -> float:
    """Additions for one run of `body`; an expression counts where it first occurs."""
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
            own += body_cost(statement.body, seen)
            own *= trips if trips is not None else UNKNOWN_TRIPS
            if statement.kind != "vector":
                own *= 4 if not any(isinstance(s, For) for s in statement.body) else 1
        total += own
    return total


def is_small(loop: For, trips: int | None) -> bool:
    """Whether parallel loop `loop` should run on the calling thread."""
    return trips is not None and trips * body_cost(loop.body, set()) < SMALL
