"""What one loop kernel may hold: the contract between `schedule.fuse` and `loops.lower`.

A kernel (`Fused`) has a Domain (shape S, reduced dims D). Its rows are the points of the kept dims of S in
row-major order; I is the number of points of the reduced dims.

    map kernel   D is empty. Every output has as many elements as S and is computed point by point:
                 out[flat i] for each i. Members: pointwise, views, gathers, cat, pad, windows (pooling), constants.
    row kernel   D is not empty. Every reduction and scan of the kernel has a source of shape S (or, when D is the
                 trailing dims, a source whose leading dims have the same number of points as the rows and whose
                 other dims have I points) and folds exactly D (dims of size 1 do not count). Every output has
                 rows * I elements ("full") or one element per row ("row"); element i of a full output belongs to
                 row i // I when D is trailing, and the output has exactly shape S when D is not.

A value that depends on a reduction or scan of its own kernel is *bound to its row*: fuse makes sure that every use
of it, through any chain of views and broadcasts, is at the row being computed. So lowering never checks:

    row value    (a reduction's result, and whatever is computed from row values only): one number per row;
                 reading it at any coordinates means reading the current row's number.
    full value   computed point by point along the row. In a row kernel with trailing D it may be read at another
                 position of the same row through permute, slice, flip, pad or cat over the dims inside the row,
                 except when it depends on a scan: a scan's result is only read at the position being computed.

Values that depend on no reduction of the kernel may be read at any coordinates, through any view, gather or cat.
The level of a reduction is 1 + the largest level of what it folds.

Nodes that may raise (index out of range, integer division by zero) are only put where every element of their
result is visited: no slice, select, gather, cat or pad of the same kernel reads them.
Windows (pooling) read their first operand again and again: its base is an input of the kernel or a constant.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence

from monograph.ir.graph import Node, Value
from monograph.schedule import roles, views
from monograph.schedule.flow import Flow, size
from monograph.schedule.kernel import Domain
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["SERIAL_ROW", "domain"]

SERIAL_ROW = 32768      # with fewer than 4 rows, longer rows are worth more threads than one kernel gives them
FOLDS = (Role.REDUCTION, Role.SCAN)


class Bound(enum.Enum):
    """How a value hangs on its row; PART: a slice of a row, not of its full length."""

    FREE = "free"
    ROW = "row"
    FULL = "full"
    PART = "part"
    SCAN = "scan"


def domain(flow: Flow, nodes: Sequence[Node], outputs: Collection[Value]) -> Domain | None:
    """The domain of a kernel of `nodes` (in order, no views) that stores `outputs`; None if it may not be one."""
    inside = set(nodes)
    folds = [node for node in nodes if flow.role[node] in FOLDS]
    if not _reads_well(flow, nodes, inside):
        return None
    if not folds:
        sizes = {size(value) for value in outputs}
        return Domain(shape_of(next(iter(outputs)))) if len(sizes) == 1 else None
    rows = _Rows(flow, folds[0])
    if len(nodes) > 1 and rows.points == 0:
        return None
    if not all(rows.add(node, inside) for node in nodes):
        return None
    if not all(rows.may_store(value) for value in outputs):
        return None
    return Domain(rows.shape, rows.dims)


def _reads_well(flow: Flow, nodes: Sequence[Node], inside: set[Node]) -> bool:
    """Windows read memory; what may raise is read whole."""
    risky: set[Value] = set()      # depends on a node of this kernel that may raise
    for node in nodes:
        role = flow.role[node]
        for k, value in enumerate(node.inputs):
            base = flow.base_of(value)
            if base.node not in inside:
                continue
            if k == 0 and role is Role.WINDOW:
                return False
            if base in risky:
                if role in (Role.GATHER, Role.WINDOW, Role.MAP) or not all(s.covers for s in flow.path_of(value)):
                    return False
                risky.update(node.results)
        if roles.may_raise(node):
            risky.update(node.results)
    return True


class _Rows:
    """The rows of a kernel, and how each of its values hangs on them."""

    def __init__(self, flow: Flow, fold: Node) -> None:
        self.flow = flow
        self.shape = shape_of(fold.inputs[0])
        self.dims = roles.reduced_dims(fold)
        self.inner = math.prod(self.shape[d] for d in self.dims)
        self.rows = math.prod(n for d, n in enumerate(self.shape) if d not in self.dims)
        self.points = self.rows * self.inner
        self.trailing = _is_trailing(self.shape, self.dims)
        self.bound: dict[Value, Bound] = {}

    def add(self, node: Node, inside: set[Node]) -> bool:
        """Note how the results of `node` hang on the rows; False when they cannot."""
        role = self.flow.role[node]
        shape = shape_of(node.results[0])
        kinds = []
        for value in node.inputs:
            if self.flow.base_of(value).node not in inside:
                kinds.append(Bound.FREE)
                continue
            kind = self.read(value)
            if kind is not None and kind is not Bound.FREE and role is Role.POINTWISE:
                source = shape_of(value)
                kind = self.moved(kind, views.broadcast(views.contiguous(source), shape), math.prod(source))
            if kind is None:
                return False
            kinds.append(kind)
        kind = self.result(node, role, kinds)
        if kind is None:
            return False
        for result in node.results:
            self.bound[result] = kind
        return True

    def read(self, value: Value) -> Bound | None:
        """How `value`, a view of a value of this kernel, hangs on the rows."""
        kind: Bound | None = self.bound[self.flow.base_of(value)]
        for step in self.flow.path_of(value):
            if kind is None or kind is Bound.FREE:
                break
            if not step.in_order:
                kind = self.moved(kind, step.affine, step.operand_size)
            elif not self.trailing and kind is not Bound.ROW and step.affine.shape != self.shape:
                kind = None
        return kind

    def moved(self, kind: Bound, affine: Affine, operand_size: int) -> Bound | None:
        """`kind` seen through a map of indices."""
        if affine.numel == operand_size and views.same_order(affine) and not affine.offset:
            return kind if self.trailing or kind is Bound.ROW or affine.shape == self.shape else None
        if not self.trailing:
            return Bound.FULL if kind is Bound.ROW and self._spreads(affine) else None
        if kind is Bound.SCAN or not _stays_in_row(affine, operand_size, self.rows):
            return None
        return self.sized(affine.numel)

    def sized(self, points: int) -> Bound:
        return Bound.ROW if points == self.rows else Bound.FULL if points == self.points else Bound.PART

    def _spreads(self, affine: Affine) -> bool:
        """Is `affine`, over one element per row, each row's element at every point of its row?"""
        kept = [n for d, n in enumerate(self.shape) if d not in self.dims]
        steps = iter(views.row_major(tuple(kept)))
        wanted = [0 if d in self.dims else next(steps) for d in range(len(self.shape))]
        return affine.shape == self.shape and not affine.offset and all(
            n == 1 or stride == plain for n, stride, plain in zip(affine.shape, affine.strides, wanted, strict=True)
        )

    def result(self, node: Node, role: Role, kinds: list[Bound]) -> Bound | None:
        """How the results of `node` hang on the rows, given its operands."""
        tied = [kind for kind in kinds if kind is not Bound.FREE]
        if role in FOLDS:
            # with one point per row a source is both row and full
            right = {Bound.FULL, Bound.ROW} if self.inner == 1 else {Bound.FULL}
            if not self.folds_rows(node) or not right.issuperset(tied):
                return None
            return Bound.ROW if role is Role.REDUCTION else Bound.SCAN
        if not tied:
            return Bound.FREE
        if role is Role.POINTWISE:
            if Bound.SCAN in tied:
                return Bound.SCAN
            if all(kind is Bound.ROW for kind in tied):
                return self.sized(size(node.results[0])) if self.trailing else self._row_or_full(node)
            return self.sized(size(node.results[0]))
        if role is Role.MAP and self.trailing and Bound.SCAN not in tied and self.moves_inside(node):
            return self.sized(size(node.results[0]))
        return None

    def _row_or_full(self, node: Node) -> Bound | None:
        result = node.results[0]
        if shape_of(result) == self.shape and self.inner != 1:
            return Bound.FULL
        return Bound.ROW if size(result) == self.rows else None

    def folds_rows(self, node: Node) -> bool:
        """Does a reduction or scan fold the rows of this kernel?"""
        shape = shape_of(node.inputs[0])
        dims = roles.reduced_dims(node)
        if not self.trailing:
            return shape == self.shape and _large(shape, dims) == _large(shape, self.dims)
        inner = math.prod(shape[d] for d in dims)
        return _is_trailing(shape, dims) and inner == self.inner and math.prod(shape) == self.points

    def moves_inside(self, node: Node) -> bool:
        """Does a cat, pad or flip move elements only along dims inside the rows?"""
        dims = roles.moved_dims(node)
        split = _split(shape_of(node.results[0]), self.rows)
        return dims is not None and split is not None and all(d >= split for d in dims)

    def may_store(self, value: Value) -> bool:
        kind = self.bound[value]
        points = size(value)
        if points == self.rows and kind in (Bound.FREE, Bound.ROW):
            return True
        if points != self.points or kind is Bound.PART or (not self.trailing and shape_of(value) != self.shape):
            return False
        return kind in (Bound.FREE, Bound.SCAN) or self.rows >= 4 or self.inner <= SERIAL_ROW


def _large(shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [d for d in dims if shape[d] != 1]


def _is_trailing(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Do the dims `dims` come last, dims of size 1 aside?"""
    kept = [d for d, n in enumerate(shape) if n != 1 and d not in dims]
    folded = _large(shape, dims)
    return not kept or not folded or kept[-1] < folded[0]


def _split(shape: Sequence[int], rows: int) -> int | None:
    """How many leading dims have `rows` points together; None if no number of them has."""
    points, split = 1, 0
    while points < rows and split < len(shape):
        points *= shape[split]
        split += 1
    return split if points == rows else None


def _stays_in_row(affine: Affine, operand_size: int, rows: int) -> bool:
    """Does element i of each row of the result come from the same row of the operand?"""
    split = _split(affine.shape, rows)
    if split is None:
        return False
    inner = step = operand_size // rows
    for n, stride in zip(reversed(affine.shape[:split]), reversed(affine.strides[:split]), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    reach = sum((n - 1) * stride for n, stride in zip(affine.shape[split:], affine.strides[split:], strict=True))
    return affine.offset + reach < inner
