"""From roots to loops.

A block is what happens with some loops open: first the reductions that depend on nothing but those loops, by
levels (one pass over the row for all of a level that fold the same variables), then the statements whose domain
is open, then one loop for each group of the remaining statements.

Expensive values that one pass over a row computes and a later one needs again are kept in a scratch row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import torch

from monograph.ir.sized import example, is_sized
from monograph.loops import math
from monograph.loops.interpret import postorder
from monograph.loops.lower_domain import Root, expressions, rewrite
from monograph.loops.lower_order import Order, accesses, order, pick_vector
from monograph.loops.lower_terms import Reduce, Rewriter, Scan, identity, slot
from monograph.loops.lower_value import Values
from monograph.loops.nodes import (
    Buffer,
    Carried,
    Combine,
    Expr,
    For,
    Op,
    Stmt,
    Store,
    Var,
    carry,
    index,
    load,
    op,
)

__all__ = ["Nest"]

HEAVY = 8                   # operations per element that are worth a scratch row
SCRATCH_BYTES = 1 << 18     # larger rows would leave the cache: recompute instead
BLOCK = 4096                # floats summed by lanes before the partial sums are put aside, for accuracy
SERIAL_BLOCK = 256          # the same for sums in order

Known = dict[Expr, Expr]


class Nest:
    """Builds the loops of one kernel; `scratch` fills as it goes."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.scratch: list[Buffer] = []
        self._names = itertools.count()

    def build(self, roots: Sequence[Root]) -> list[Stmt]:
        return self.block((), list(roots), {}, False)

    # Blocks.

    def block(self, opened: tuple[Var, ...], roots: list[Root], known: Known, in_vector: bool) -> list[Stmt]:
        """Everything the roots need with the loops `opened` around; `known` replaces what is already computed."""
        body: list[Stmt] = []
        known = dict(known)
        roots = [Root(rewrite(root.statement, Rewriter(self.values.affine, known)), root.domain) for root in roots]
        keep = _Keep(self, opened, in_vector or not opened)
        passes = self.passes(opened, roots)
        here = [root for root in roots if set(root.domain) <= set(opened)]
        rest = [root for root in roots if root not in here]
        keep.plan([*passes, *(expressions(root.statement) for root in rest)])
        for group in passes:
            body += self.fold(opened, group, known, in_vector, keep)
        known.update(keep.known)
        rewriter = Rewriter(self.values.affine, known)
        body += [rewrite(root.statement, rewriter) for root in here]
        for ordering, members in self.groups(opened, rest, in_vector):
            body.append(self.loop(opened, ordering, members, known, in_vector))
        return body

    def passes(self, opened: tuple[Var, ...], roots: Iterable[Root]) -> list[list[Reduce]]:
        """Reductions that depend on open loops alone, by level, then by what they fold over."""
        exprs = postorder(e for root in roots for e in expressions(root.statement))
        ready = [e for e in exprs if isinstance(e, Reduce) and self.values.free(e) <= set(opened)]
        level: dict[Expr, int] = {}
        for expr in ready:                      # postorder: what it uses comes first
            below = [level[e] for e in postorder([expr.args[0]]) if e in level]
            level[expr] = 1 + max(below, default=0)
        groups: dict[tuple[int, frozenset[Var]], list[Reduce]] = {}
        for expr in sorted(ready, key=lambda e: level[e]):
            groups.setdefault((level[expr], frozenset(expr.variables)), []).append(expr)
        return list(groups.values())

    def groups(self, opened: tuple[Var, ...], roots: list[Root], in_vector: bool) -> list[tuple[Order, list[Root]]]:
        """Roots that share the next loop."""
        by_first: dict[tuple[Var, bool], tuple[Order, list[Root]]] = {}
        for family in self.families(opened, roots):
            orders = order(self.values, family, frozenset(opened), in_vector)
            for root, ordering in zip(family, orders):
                first = ordering.variables[0]
                by_first.setdefault((first, first is ordering.vector), (ordering, []))[1].append(root)
        return list(by_first.values())

    def families(self, opened: tuple[Var, ...], roots: list[Root]) -> list[list[Root]]:
        """Roots that want to be ordered together: they share a reduction or have the same open domain."""
        families: list[tuple[set[object], list[Root]]] = []
        for root in roots:
            marks: set[object] = {frozenset(v for v in root.domain if v not in opened)}
            marks.update(e for e in postorder(expressions(root.statement)) if isinstance(e, Reduce))
            joined = [family for family in families if family[0] & marks]
            members = [member for family in joined for member in family[1]] + [root]
            families = [family for family in families if family not in joined]
            families.append((marks.union(*(family[0] for family in joined)), members))
        return [members for _, members in families]

    # Loops.

    def loop(
        self, opened: tuple[Var, ...], ordering: Order, roots: list[Root], known: Known, in_vector: bool
    ) -> For:
        """The loop over the first variable of an order, with all the roots inside."""
        variable = ordering.variables[0]
        vector = variable is ordering.vector
        loop = self.open(variable, "vector" if vector else "serial")
        exprs = [e for root in roots for e in expressions(root.statement)]
        inner = self.scans(loop, variable, exprs, known)
        loop.body = self.block((*opened, variable), roots, inner, in_vector or vector)
        if vector:
            loop.unroll = self.unroll(variable, exprs)
        return loop

    def unroll(self, variable: Var, exprs: Sequence[Expr]) -> int:
        """Vectors side by side: enough to hide the latency of sums inside, few where there is much to compute."""
        cost = self.cost(exprs)
        folds = any(isinstance(e, Reduce) for e in postorder(exprs))
        if folds and cost < 30 and example(self.values.affine.extents[variable]) >= 32:
            return 4
        return 1 if cost > 60 else 2

    def open(self, variable: Var, kind: str) -> For:
        return For(variable, index(0), index(self.values.affine.extents[variable]), kind)   # type: ignore[arg-type]

    def scans(self, loop: For, variable: Var, exprs: Iterable[Expr], known: Known) -> Known:
        """Carry the scans over `variable` in `loop`; what is known inside it.

        Pieces of one domain run scans of one name over different elements: what tells scans apart is what they compute.
        """
        inner = dict(known)
        steps: dict[tuple[Expr, ...], list[Expr]] = {}
        for expr in postorder(exprs):
            if isinstance(expr, Scan) and expr.variable is variable and expr not in inner:
                if expr.args not in steps:
                    steps[expr.args] = self.step(loop, expr, known, inner)
                inner[expr] = steps[expr.args][expr.position]
        return inner

    def step(self, loop: For, scan: Scan, known: Known, inner: Known) -> list[Expr]:
        """Add the states of a scan to `loop`; the states after one step."""
        before = Rewriter(self.values.affine, known)
        states: Known = {}
        for position, init in enumerate(scan.inits):
            loop.carried.append(Carried(f"scan{next(self._names)}", init.dtype, before(init)))
            states[slot(scan.token, position, init.dtype)] = carry(loop, len(loop.carried) - 1)
        after = Rewriter(self.values.affine, {**inner, **states})
        results = [after(e) for e in scan.nexts]
        loop.yields += results
        return results

    # Reductions.

    def fold(
        self, opened: tuple[Var, ...], group: list[Reduce], known: Known, in_vector: bool, keep: _Keep
    ) -> list[Stmt]:
        """One pass: loops over the folded variables that compute every reduction of the group."""
        variables = list(group[0].variables)
        bodies = [expr.args[0] for expr in group]
        scanned = [v for v in variables if any(isinstance(e, Scan) and e.variable is v for e in postorder(bodies))]
        free = [v for v in variables if v not in scanned]
        vector: Var | None = None
        if not in_vector and not scanned:
            vector = pick_vector(self.values, free, accesses((), postorder(bodies)))
        chain = [v for v in free if v is not vector] + ([vector] if vector else []) + scanned
        results, statements = self.chain(opened, chain, vector, group, known | keep.known, in_vector, keep)
        known.update(zip(group, results))
        return statements

    def chain(
        self, opened: tuple[Var, ...], chain: list[Var], vector: Var | None, group: list[Reduce], known: Known,
        in_vector: bool, keep: _Keep,
    ) -> tuple[list[Expr], list[Stmt]]:
        """Nested loops over `chain`; the folded values after the outermost, and the statements."""
        if not chain:
            return self.innermost(opened, group, known, in_vector, keep)
        variable, rest = chain[0], chain[1:]
        block = BLOCK if variable is vector else SERIAL_BLOCK
        scanned = any(isinstance(e, Scan) and e.variable is variable for e in postorder(group))
        extent = self.values.affine.extents[variable]
        if (is_sized(extent) or extent >= 4 * block) and not scanned and any(
                e.combine is Combine.SUM and e.dtype.is_floating_point for e in group):
            return self.blocked(opened, chain, block, vector, group, known, in_vector, keep)
        loop = self.open(variable, "vector" if variable is vector else "serial")
        inner = self.scans(loop, variable, [e.args[0] for e in group], known)
        return self.close(loop, (*opened, variable), rest, vector, group, inner, in_vector, keep)

    def close(
        self, loop: For, opened: tuple[Var, ...], rest: list[Var], vector: Var | None, group: list[Reduce],
        known: Known, in_vector: bool, keep: _Keep,
    ) -> tuple[list[Expr], list[Stmt]]:
        """Fill a loop of a chain and give it the carried values of the group."""
        scans = list(loop.yields)
        is_vector = loop.kind == "vector"
        values, body = self.chain(opened, rest, vector, group, known, in_vector or is_vector, keep)
        first = len(loop.carried)
        for expr in group:
            start = identity(expr.combine, expr.dtype)
            loop.carried.append(Carried(f"fold{next(self._names)}", expr.dtype, start, expr.combine))
        loop.yields = scans + values
        loop.body = body
        if is_vector:
            loop.unroll = 4 if self.cost([e.args[0] for e in group]) < 60 else 2
        return [carry(loop, first + i) for i in range(len(group))], [loop]

    def blocked(
        self, opened: tuple[Var, ...], chain: list[Var], block: int, vector: Var | None, group: list[Reduce],
        known: Known, in_vector: bool, keep: _Keep,
    ) -> tuple[list[Expr], list[Stmt]]:
        """A long sum as a sum of blocks: rounding errors grow with the blocks, not with the elements."""
        variable, rest = chain[0], chain[1:]
        extent = self.values.affine.extents[variable]
        bound = frozenset(v for e in postorder(group) if isinstance(e, Reduce) for v in e.variables)
        outer = self.open(self.values.variable(-(-extent // block), bound.union(opened, chain)), "serial")
        lo = self.values.affine.scale(outer.var, block)
        hi = self.values.affine.add(lo, block)
        if extent % block:
            hi = op("min", hi, index(extent), dtype=torch.int64)
        loop = For(variable, lo, hi, "vector" if variable is vector else "serial")
        values, body = self.close(
            loop, (*opened, outer.var, variable), rest, vector, group, known, in_vector, keep)
        for expr in group:
            start = identity(expr.combine, expr.dtype)
            outer.carried.append(Carried(f"fold{next(self._names)}", expr.dtype, start, expr.combine))
        outer.yields, outer.body = values, body
        return [carry(outer, i) for i in range(len(group))], [outer]

    def innermost(
        self, opened: tuple[Var, ...], group: list[Reduce], known: Known, in_vector: bool, keep: _Keep
    ) -> tuple[list[Expr], list[Stmt]]:
        """The elements to fold, reductions nested in them first."""
        known = dict(known)
        rewriter = Rewriter(self.values.affine, known)
        bodies = [rewriter(expr.args[0]) for expr in group]
        body: list[Stmt] = []
        nested = [Root(Store(_NOWHERE, index(0), e), opened) for e in bodies]
        for inner in self.passes(opened, nested):
            body += self.fold(opened, inner, known, in_vector, _Keep(self, opened, True))
        rewriter = Rewriter(self.values.affine, known)
        body += keep.stores(group, rewriter)
        return [rewriter(e) for e in bodies], body

    # Costs.

    def cost(self, exprs: Iterable[Expr]) -> int:
        """Operations of one evaluation, index arithmetic apart."""
        return sum(math.TABLE[e.name].cost for e in postorder(exprs)
                   if isinstance(e, Op) and e.dtype is not torch.int64)


_NOWHERE = Buffer("nowhere", torch.float32, 0)


class _Keep:
    """Values of a row that are worth keeping between its passes.

    Scratch belongs to one thread: where no loop is open nothing is kept, so that every pass may become parallel.
    `plan` sees the expressions of every pass; `stores` writes what a pass is the first to compute, `known` then
    reads it back.
    """

    def __init__(self, nest: Nest, opened: tuple[Var, ...], off: bool) -> None:
        self.nest = nest
        self.opened = set(opened)
        self.off = off
        self.known: Known = {}
        self._first: dict[Expr, Reduce] = {}

    def plan(self, passes: Sequence[Sequence[Expr]]) -> None:
        if self.off or len(passes) < 2:
            return
        seen: dict[Expr, int] = {}
        shared: set[Expr] = set()
        owner: dict[Expr, Reduce] = {}
        for number, exprs in enumerate(passes):
            for expr in self.visible([e.args[0] if isinstance(e, Reduce) else e for e in exprs]):
                if expr in seen and seen[expr] != number:
                    shared.add(expr)
                elif expr not in seen:
                    seen[expr] = number
                    if isinstance(exprs[0], Reduce):
                        owner[expr] = exprs[0]
        heavy = [e for e in shared if e in owner and isinstance(e, Op) and self.worth(e)]
        inner = {arg for e in heavy for arg in postorder(e.args)}
        for expr in heavy:
            if expr not in inner:
                self._first[expr] = owner[expr]

    def visible(self, roots: Iterable[Expr]) -> list[Expr]:
        """Everything computed per element: not what lies inside reductions done before."""
        seen: dict[Expr, None] = {}
        stack = list(roots)
        while stack:
            expr = stack.pop()
            if expr in seen or isinstance(expr, Reduce):
                continue
            seen[expr] = None
            stack.extend(expr.args)
        return list(seen)

    def worth(self, expr: Expr) -> bool:
        values = self.nest.values
        inside = values.free(expr) - self.opened
        if not inside or expr.dtype is torch.bool:
            return False
        size = expr.dtype.itemsize
        for variable in inside:
            size *= values.affine.extents[variable]
        if is_sized(size):
            return False
        work = sum(math.TABLE[e.name].cost for e in self.visible([expr])
                   if isinstance(e, Op) and e.dtype is not torch.int64 and values.free(e) - self.opened)
        return size <= SCRATCH_BYTES and work >= HEAVY

    def stores(self, group: list[Reduce], rewriter: Rewriter) -> list[Stmt]:
        """Write what this pass computes first; from now on it is read."""
        result: list[Stmt] = []
        values = self.nest.values
        for expr, first in self._first.items():
            if first is not group[0]:
                continue
            inside = sorted(values.free(expr) - self.opened, key=lambda v: v.name)
            extents = [values.affine.extents[v] for v in inside]
            size = 1
            for extent in extents:
                size *= extent
            buffer = Buffer(f"row{len(self.nest.scratch)}", expr.dtype, size, "scratch")
            self.nest.scratch.append(buffer)
            at = values.affine.ravel(inside, extents)
            result.append(Store(buffer, at, rewriter(expr)))
            self.known[expr] = load(buffer, at)
        return result
