"""Shares the outermost loops of a kernel among threads.

A nest with enough work becomes one parallel loop: over as many outer serial loops as are perfectly nested, so that
there are iterations enough for many threads, or over blocks of a vector loop that stands alone. Nothing depends on
the number of threads: equal inputs give equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from monograph.ir.sized import example, guessing, maximum
from monograph.loops import math
from monograph.loops.affine import Affine
from monograph.loops.interpret import postorder
from monograph.loops.lower_domain import expressions, rewrite
from monograph.loops.lower_order import LANES
from monograph.loops.lower_terms import Rewriter
from monograph.loops.nodes import Const, Expr, For, Kernel, Load, Op, Stmt, Store, fresh_var, index, number, op

__all__ = ["parallelise", "work"]

ENOUGH = 1 << 15            # operations below which a second thread costs more than it brings
ITERATIONS = 64             # parallel iterations worth having
SMALLEST = 1 << 12          # operations in one parallel iteration


def work(body: Sequence[Stmt]) -> int:
    """Operations of one execution, roughly."""
    total = 0
    for statement in body:
        if isinstance(statement, For):
            total += _extent(statement) * (work(statement.body) + _cost(statement.yields))
        else:
            total += _cost(expressions(statement)) + 1
    return total


def _extent(loop: For) -> int:
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const):
        return maximum(number(loop.hi) - number(loop.lo), 0)
    return 4096


def _cost(exprs: Sequence[Expr]) -> int:
    total = 0
    for expr in postorder(exprs):
        if isinstance(expr, Load):
            total += 1
        elif isinstance(expr, Op) and expr.dtype is not torch.int64:
            total += math.TABLE[expr.name].cost
    return total


def parallelise(affine: Affine, body: list[Stmt]) -> list[Stmt]:
    """The same statements, large nests parallel."""
    with guessing():
        return [_parallel(affine, s) if isinstance(s, For) and work([s]) >= ENOUGH else s for s in body]


def _parallel(affine: Affine, loop: For) -> Stmt:
    if loop.carried or loop.kind == "parallel" or _reads_scratch(loop):
        return loop
    if loop.kind == "vector":
        return _blocks(loop)
    chain = [loop]
    while _count(chain) < ITERATIONS and len(chain[-1].body) == 1:
        inner = chain[-1].body[0]
        if not isinstance(inner, For) or inner.carried or inner.kind != "serial":
            break
        chain.append(inner)
    if len(chain) == 1:
        loop.kind = "parallel"
        return loop
    return _merged(affine, chain)


def _reads_scratch(loop: For) -> bool:
    """Does the loop read scratch memory that it has not written? Scratch is private to a thread."""
    body = Kernel("", [], body=[loop])
    written = {s.buffer for s in body.statements() if isinstance(s, Store)}
    exprs = [e for s in body.statements() for e in (s.yields if isinstance(s, For) else expressions(s))]
    return any(isinstance(e, Load) and e.buffer.kind == "scratch" and e.buffer not in written for e in postorder(exprs))


def _count(chain: Sequence[For]) -> int:
    total = 1
    for loop in chain:
        total *= _extent(loop)
    return total


def _merged(affine: Affine, chain: list[For]) -> For:
    """One parallel loop over the product of the chain's ranges."""
    both = fresh_var("p")
    total = _count(chain)
    affine.extents[both] = total
    replace: dict[Expr, Expr] = {}
    rest = total
    for loop in chain:
        extent = _extent(loop)
        rest //= extent
        replace[loop.var] = affine.mod(affine.floordiv(both, rest), extent)
    rewriter = Rewriter(affine, replace)
    body = chain[-1].body
    _rewrite_body(body, rewriter)
    return For(both, index(0), index(total), "parallel", body=body)


def _rewrite_body(body: list[Stmt], rewriter: Rewriter) -> None:
    """Rewrite statements in place: loops keep their identity, carried values refer to them."""
    for i, statement in enumerate(body):
        if isinstance(statement, For):
            statement.lo, statement.hi = rewriter(statement.lo), rewriter(statement.hi)
            for entry in statement.carried:
                entry.init = rewriter(entry.init)
            _rewrite_body(statement.body, rewriter)
            statement.yields = [rewriter(e) for e in statement.yields]
        else:
            body[i] = rewrite(statement, rewriter)


def _blocks(loop: For) -> For:
    """A vector loop cut into blocks, such as the columns of a table that is folded downwards."""
    extent = _extent(loop)
    each = max(work([loop]) // max(extent, 1), 1)
    size = max(-(-extent // ITERATIONS), -(-SMALLEST // each))
    # whole cache lines at least; more where little is done per element
    line = 16 if each >= 256 else 64 if each >= 32 else 256
    size = -(-size // line) * line
    if size >= extent:
        return loop
    block = fresh_var("p")
    lo = op("mul", block, index(size), dtype=torch.int64)
    hi = op("add", lo, index(size), dtype=torch.int64)
    if extent % size:
        hi = op("min", hi, index(extent), dtype=torch.int64)
    inner = For(loop.var, lo, hi, "vector", unroll=min(loop.unroll, max(example(size) // LANES, 1)), body=loop.body)
    return For(block, index(0), index(-(-extent // size)), "parallel", body=[inner])
