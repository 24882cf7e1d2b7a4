"""Tiles for transpositions: a kernel with the same meaning whose memory accesses stay near each other.

    for i: vector j { out[.., j] = f(in[.. + stride * j + i]) }
        ->  for i0 step T: vector j { for i in i0 .. i0 + T, unrolled { ... } }

In the first form each cache line of `in` is visited once per i; in the second, T neighbours are read together,
and `transpose` turns blocks of them in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monograph.codegen.facts import Facts, expressions, static_trips, walk
from monograph.loops.nodes import INDEX, Expr, For, Kernel, Load, Stmt, Store, fresh_var, index, op

__all__ = ["tiled"]

TILE = 64               # iterations of the outer loop in one tile: four cache lines of f32
UNROLL = 8
FEWEST_TILES = 8        # of a parallel loop


def tiled(kernel: Kernel) -> Kernel:
    """`kernel`, or a copy of it with tiles."""
    facts = Facts(kernel)
    body = [_statement(facts, s) for s in kernel.body]
    return replace(kernel, body=body) if any(a is not b for a, b in zip(body, kernel.body, strict=True)) else kernel


def _statement(facts: Facts, statement: Stmt) -> Stmt:
    if not isinstance(statement, For):
        return statement
    if statement.kind == "vector":
        return statement if statement.carried else _unrolled(facts, statement)
    width = _tile_width(facts, statement)
    if width:
        return _tile(statement, width)
    body = [_statement(facts, s) for s in statement.body]
    if all(a is b for a, b in zip(body, statement.body, strict=True)) or statement.carried:
        return statement
    return replace(statement, body=body)


def _tile_width(facts: Facts, outer: For) -> int:
    """How many iterations of `outer` to take together; 0: it is not that kind of loop."""
    trips = static_trips(outer)
    if trips is None or trips < UNROLL or outer.step != 1 or outer.carried or len(outer.body) != 1:
        return 0
    inner = outer.body[0]
    if not isinstance(inner, For) or inner.kind != "vector" or inner.carried or inner.alone:
        return 0
    if outer.ahead or inner.ahead:
        return 0
    if outer.var in walk([inner.lo, inner.hi], ()) or not _moves(facts, inner.body, outer, inner):
        return 0
    if not all(_distinct(facts, s, outer, inner) for s in inner.body if isinstance(s, Store)):
        return 0
    width = min(TILE, trips // UNROLL * UNROLL)
    while outer.kind == "parallel" and width > UNROLL and trips // width < FEWEST_TILES:
        width //= 2
    return width // UNROLL * UNROLL


def _unrolled(facts: Facts, vector: For) -> For:
    """A vector loop around a serial one that already has the right order: only unrolled."""
    inner = vector.body[0] if len(vector.body) == 1 else None
    if not isinstance(inner, For) or inner.carried or inner.step != 1 or inner.unroll >= UNROLL or inner.ahead:
        return vector
    trips = static_trips(inner)
    if trips is None or trips < UNROLL or not _moves(facts, inner.body, inner, vector):
        return vector
    return replace(vector, body=[replace(inner, unroll=UNROLL)])


def _moves(facts: Facts, body: Sequence[Stmt], neighbours: For, lanes: For) -> bool:
    """Whether `body` only stores, loads nothing that is stored, and some load is better turned."""
    if not all(isinstance(s, Store) for s in body):
        return False
    loads = [e for e in walk((e for s in body for e in expressions(s)), ()) if isinstance(e, Load)]
    if any(e.buffer in facts.mutable for e in loads):
        return False
    return any(_turns(facts, e, neighbours, lanes) for e in loads)


def _turns(facts: Facts, load: Load, outer: For, inner: For) -> bool:
    """Neighbours in `outer`, strided in `inner`."""
    terms = facts.linear(load.index).terms
    stride = terms.get(inner.var, 0)
    return load.mask is None and abs(stride) > 1 and terms.get(outer.var) == 1


def _distinct(facts: Facts, store: Store, outer: For, inner: For) -> bool:
    """Whether no two iterations of the two loops write the same element, whatever their order."""
    terms = facts.linear(store.index).terms
    a, b = abs(terms.get(outer.var, 0)), abs(terms.get(inner.var, 0))
    if any(not facts.leaves(e).isdisjoint((outer.var, inner.var)) for e in terms if e not in (outer.var, inner.var)):
        return False
    outer_trips, inner_trips = static_trips(outer), static_trips(inner)
    if not a or not b or outer_trips is None or inner_trips is None:
        return False
    return a >= b * inner_trips or b >= a * outer_trips


def _tile(outer: For, width: int) -> For:
    inner = outer.body[0]
    assert isinstance(inner, For)
    first = fresh_var("tile")
    trips = static_trips(outer)
    assert trips is not None
    last: Expr = op("add", first, index(width), dtype=INDEX)
    if trips % width:
        last = op("min", last, outer.hi, dtype=INDEX)
    rows: Sequence[Stmt] = [For(outer.var, first, last, "serial", unroll=UNROLL, body=inner.body)]
    columns = For(inner.var, inner.lo, inner.hi, "vector", body=list(rows))
    return For(first, outer.lo, outer.hi, outer.kind, step=width, body=[columns])
