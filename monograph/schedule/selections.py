"""What values select, opened into work of a known size and a number told by a value.

    nonzero(x)              -> places, count = compact(x != 0);  v = number(count);  places[:v]
    x[mask]                 -> the same, and a gather from the places
    x[mask] = y             -> where(mask, y, x), for each true element the next of y if there are as many
    repeat_interleave(n)    -> v = number(sum(n));  spread(n; v)
    unique_consecutive(x)   -> the places where x is not what it was before, and a gather from them
    scalar(size)            -> full([], size)
    sized(x; n, ..)         -> expect(scalar(size of x); n);  x[:n]

All of it has kernels; nothing has a size before the number is told that the sizes of `x` do not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from monograph.ir import symbolic
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.symbolic import Dim, Expr, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.ops import families, table
from monograph.schedule.kernel import is_held

__all__ = ["is_selection", "open_selections"]

MOST_ELEMENTS = 1 << 24

# Of floats, zeros and NaNs come in torch's own order.
KEYS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def is_selection(node: Node) -> bool:
    """Is it one that tells no size, so that nothing else about it is unusual?"""
    return node.op.name == "aten.index_put.default" and any(
        value.tensor.dtype in families.MASKS for value in node.inputs[1:])


def open_selections(graph: Graph) -> bool:
    """Open selections in `graph`, a copy of the user's, and in its regions."""
    changed = False
    for node in list(graph.nodes):
        for region in node.regions:
            changed |= open_selections(region)
        rule = RULES.get(node.op.name)
        if rule is None or _is_large(node):
            continue
        opened = _Opened(graph, node)
        made = rule(opened, node)
        if made is None:
            continue
        place = next(at for at, other in enumerate(graph.nodes) if other is node)
        graph.nodes[place:place + 1] = opened.nodes
        for old, new in zip(node.results, made, strict=True):
            if new.node in opened.nodes:        # an output is laid out as the old one was
                new.type = replace(new.tensor, strides=old.tensor.strides)
        graph.replace(dict(zip(node.results, made, strict=True)))
        changed = True
    return changed


def _is_large(node: Node) -> bool:
    """Would the places of all elements that may be selected take too much memory? The last operand selects."""
    size = node.inputs[-1].tensor.numel if node.inputs and isinstance(node.inputs[-1].type, TensorType) else 0
    return isinstance(size, int) and size > MOST_ELEMENTS and not node.op.name.startswith("mono.")


class _Opened:
    """Nodes in the place of one; types are given, so that sizes are named as the results of the old node name them."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.loc = graph, node.loc
        self.nodes: list[Node] = []

    def __call__(self, name: str, *args: Any, type: Type, **kwargs: Any) -> Any:
        """The result of op `name`, of `type`."""
        return self.several(name, args, [type], **kwargs)[0]

    def several(self, name: str, args: Sequence[Any], types: Sequence[Type], **kwargs: Any) -> tuple[Value, ...]:
        op = table.lookup(name)
        operands, attributes = table.bind(op, args, kwargs)
        self.nodes.append(Node(op, operands, attributes, types, loc=self.loc))
        return self.nodes[-1].results

    def viewed(self, x: Value, shape: Sequence[Dim]) -> Value:
        shape = tuple(shape)
        if x.tensor.shape == shape:
            return x
        return self("aten.reshape.default", x, shape, type=_like(x, shape))

    def truth(self, x: Value) -> Value:
        if x.tensor.dtype is torch.bool:
            return x
        return self("aten.ne.Scalar", x, 0, type=TensorType(torch.bool, x.tensor.shape))

    def compact(self, mask: Value) -> tuple[Value, Value]:
        points = symbolic.product(mask.tensor.shape)
        places, count = self.several(
            "mono.compact", (mask,), [TensorType(torch.int64, (points,)), TensorType(torch.int64, ())])
        return places, count

    def told(self, count: Value, size: Symbol) -> None:
        self("mono.number", count, symbol=size.name, lo=0, type=ScalarType("int", size.name))

    def places(self, mask: Value, size: Symbol) -> Value:
        """The flat positions of the true elements, as many as `size` from here on."""
        places, count = self.compact(mask)
        self.told(count, size)
        return self.cut(places, 0, size, size)

    def cut(self, x: Value, start: Dim, end: Dim, size: Dim, dim: int = 0) -> Value:
        """x[start:end] along `dim`, which has `size` elements."""
        shape = (*x.tensor.shape[:dim], size, *x.tensor.shape[dim + 1:])
        made: Value = self("aten.slice.Tensor", x, dim, start, end, type=_like(x, shape))
        return made

    def scalar(self, size: Dim, dtype: torch.dtype = torch.int64) -> Value:
        made: Value = self("aten.full.default", (), size, dtype=dtype, type=TensorType(dtype, ()))
        return made

    def rows(self, x: Value, places: Value, dim: int = 0) -> Value:
        """x[places] along `dim`, all of them inside."""
        shape = x.tensor.shape
        made: Value = self("aten._unsafe_index.Tensor", x, (*(None,) * dim, places),
                           type=_like(x, (*shape[:dim], *places.tensor.shape, *shape[dim + 1:])))
        return made

    def integers(self, name: str, x: Value, *args: Any, **kwargs: Any) -> Value:
        made: Value = self(name, x, *args, type=TensorType(torch.int64, x.tensor.shape), **kwargs)
        return made


def _like(x: Value, shape: Sequence[Dim]) -> TensorType:
    return TensorType(x.tensor.dtype, tuple(shape))


def _nonzero(opened: _Opened, node: Node) -> Sequence[Value] | None:
    x, size = node.inputs[0], node.results[0].tensor.shape[0]
    shape = x.tensor.shape
    if not isinstance(size, Symbol) or not shape:
        return None
    places = opened.places(opened.truth(x), size)
    columns = []
    for dim, extent in enumerate(shape):
        column, inner = places, symbolic.product(shape[dim + 1:])
        if inner != 1:
            column = opened.integers("aten.div.Tensor_mode", column, inner, rounding_mode="floor")
        if dim:
            column = opened.integers("aten.remainder.Scalar", column, extent)
        columns.append(opened.viewed(column, (1, size)))
    if len(columns) == 1:
        return [opened.viewed(columns[0], (size, 1))]
    lines = opened("aten.cat.default", tuple(columns), type=TensorType(torch.int64, (len(shape), size)))
    return [opened("aten.t.default", lines, type=TensorType(torch.int64, (size, len(shape))))]


def _index(opened: _Opened, node: Node) -> Sequence[Value] | None:
    """One mask; what stands in front of it stays."""
    x, indices = node.operands[:2]
    assert isinstance(x, Value) and isinstance(indices, tuple)
    given = [(dim, entry) for dim, entry in enumerate(indices) if isinstance(entry, Value)]
    if len(given) != 1 or given[0][1].tensor.dtype not in families.MASKS:
        return None
    (dim, mask), = given
    rank = mask.tensor.rank
    size = node.results[0].tensor.shape[dim]
    if not isinstance(size, Symbol) or not rank:
        return None
    shape = x.tensor.shape
    flat = opened.viewed(x, (*shape[:dim], symbolic.product(shape[dim:dim + rank]), *shape[dim + rank:]))
    return [opened.rows(flat, opened.places(opened.truth(mask), size), dim)]


def _masked_select(opened: _Opened, node: Node) -> Sequence[Value] | None:
    x, mask = node.inputs
    size = node.results[0].tensor.shape[0]
    if not isinstance(size, Symbol) or x.tensor.shape != mask.tensor.shape or not x.tensor.shape:
        return None
    points = (symbolic.product(x.tensor.shape),)
    return [opened.rows(opened.viewed(x, points), opened.places(mask, size))]


def _repeat_interleave(opened: _Opened, node: Node) -> Sequence[Value] | None:
    repeats, result = node.inputs[0], node.results[0]
    size = result.tensor.shape[0]
    if not isinstance(size, Symbol) or node.attributes.get("output_size") is not None:
        return None
    fits = opened("aten.ge.Scalar", repeats, 0, type=TensorType(torch.bool, repeats.tensor.shape))
    opened.several("mono.check", (opened("aten.all.default", fits, type=TensorType(torch.bool, ())),), (),
                   error="RuntimeError", message="repeats can not be negative")
    opened.told(opened("aten.sum.default", repeats, type=TensorType(torch.int64, ())), size)
    return [opened("mono.spread", repeats, size=(size,), type=result.tensor)]


def _unique_consecutive(opened: _Opened, node: Node) -> Sequence[Value] | None:
    x = node.inputs[0]
    points = symbolic.product(x.tensor.shape)
    if node.attributes["dim"] is not None or not symbolic.known_le(1, points):
        return None
    return _runs(opened, node, opened.viewed(x, (points,)), None)


def _unique(opened: _Opened, node: Node) -> Sequence[Value] | None:
    """The runs of equal elements in order."""
    x = node.inputs[0]
    points = symbolic.product(x.tensor.shape)
    if x.tensor.dtype not in KEYS or not symbolic.known_le(1, points):
        return None
    elements, places = opened.several("mono.sort", (opened.viewed(x, (points,)),), [
        TensorType(x.tensor.dtype, (2 * points,)), TensorType(torch.int64, (2 * points,))])
    return _runs(opened, node, opened.cut(elements, 0, points, points), opened.cut(places, 0, points, points))


def _runs(opened: _Opened, node: Node, flat: Value, order: Value | None) -> Sequence[Value] | None:
    """The first of each run of equal elements; for each element (`flat` has them in this `order`) the number of its
    run; how long the runs are."""
    (points,), size = flat.tensor.shape, node.results[0].tensor.shape[0]
    if not isinstance(size, Symbol):
        return None
    before, after = opened.cut(flat, 0, points - 1, points - 1), opened.cut(flat, 1, points, points - 1)
    changes = opened("aten.ne.Tensor", before, after, type=TensorType(torch.bool, (points - 1,)))
    first = opened("aten.full.default", (1,), True, dtype=torch.bool, type=TensorType(torch.bool, (1,)))
    starts = opened("aten.cat.default", (first, changes), type=TensorType(torch.bool, (points,)))
    places = opened.places(starts, size)
    none = opened("aten.full.default", (0,), 0, dtype=torch.int64, type=TensorType(torch.int64, (0,)))
    inverse = counts = none
    if node.attributes["return_inverse"]:
        ends = opened("aten.cumsum.default", starts, 0, type=TensorType(torch.int64, (points,)))
        inverse = opened.integers("aten.sub.Scalar", ends, 1)
        if order is not None:
            inverse = opened.integers("mono.place", inverse, order)
        inverse = opened.viewed(inverse, node.results[1].tensor.shape)
    if node.attributes["return_counts"]:
        counts = opened.integers("aten.sub.Tensor", _ends(opened, places, size, points), places)
    return [opened.rows(flat, places), inverse, counts]


def _ends(opened: _Opened, places: Value, size: Symbol, points: Dim) -> Value:
    """The place after each run of equal elements: where the next one starts, or the end."""
    line = TensorType(torch.int64, (size,))
    number = opened("aten.arange.start_step", 1, size + 1, 1, dtype=torch.int64, type=line)
    is_last = opened("aten.ge.Scalar", number, size, type=TensorType(torch.bool, (size,)))
    here = opened.integers("aten.clamp_max.default", number, size - 1)
    following = opened.rows(places, here)
    made: Value = opened("aten.where.ScalarSelf", is_last, points, following, type=line)
    return made


def _index_put(opened: _Opened, node: Node) -> Sequence[Value] | None:
    """One mask over the first dims, one element for all of it or one for each of its true elements."""
    x, indices, value = node.operands[:3]
    assert isinstance(x, Value) and isinstance(indices, tuple) and isinstance(value, Value)
    mask = indices[0]
    if len(indices) != 1 or not isinstance(mask, Value) or mask.tensor.dtype not in families.MASKS:
        return None
    if value.tensor.dtype is not x.tensor.dtype or not mask.tensor.shape:
        return None
    shape, rank = x.tensor.shape, mask.tensor.rank
    rest = shape[rank:]
    mask = opened.truth(mask)
    if value.tensor.rank > len(rest):
        if value.tensor.rank != len(rest) + 1 or not is_held(value) or value.tensor.shape[1:] != rest:
            return None
        points = symbolic.product(shape[:rank])
        true = opened.viewed(mask, (points,))
        number = opened.integers("aten.sub.Scalar", opened.integers("aten.cumsum.default", true, 0), 1)
        value = opened.rows(value, opened.integers("aten.clamp_min.default", number, 0))
        value = opened.viewed(value, shape)
    if node.attributes["accumulate"]:       # a mask has no place twice
        value = opened("aten.add.Tensor", x, value, type=_like(x, shape))
    wide = opened.viewed(mask, (*shape[:rank], *(1 for _ in rest)))
    return [opened("aten.where.self", wide, value, x, type=_like(x, shape))]


def _scalar(opened: _Opened, node: Node) -> Sequence[Value] | None:
    size, dtype = node.operands[0], node.attributes["dtype"]
    if not isinstance(size, Expr):
        return None
    return [opened.scalar(size, dtype)]


def _sized(opened: _Opened, node: Node) -> Sequence[Value] | None:
    x, number = node.inputs[0], node.attributes["number"]
    sizes, dtype = node.attributes["size"], node.attributes["dtype"]
    if number < 0 or dtype not in (None, x.tensor.dtype) or len(sizes) != x.tensor.rank:
        return None
    if not all(isinstance(size, int) for size in sizes):
        return None
    for dim, size in enumerate(sizes):
        actual = x.tensor.shape[dim]
        if isinstance(actual, Expr):
            opened.several("mono.expect", (opened.scalar(actual),), (), value=(size,), number=number)
            x = opened.cut(x, 0, size, size, dim)
    return [x]


RULES: dict[str, Callable[[_Opened, Node], Sequence[Value] | None]] = {
    "aten.nonzero.default": _nonzero,
    "aten.index.Tensor": _index,
    "aten.masked_select.default": _masked_select,
    "aten.repeat_interleave.Tensor": _repeat_interleave,
    "aten.unique_consecutive.default": _unique_consecutive,
    "aten._unique2.default": _unique,
    "aten.index_put.default": _index_put,
    "mono.scalar": _scalar,
    "mono.sized": _sized,
}
