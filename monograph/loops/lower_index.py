"""Ops that move elements: cat and pad (by a fixed rule), gathers (by computed positions), constants (from nothing).

A gather's positions are checked as eager does, then clamped, so that a load never leaves its buffer.
"""

from __future__ import annotations

import itertools

import torch

from monograph.errors import CompileError
from monograph.ir.graph import Node, Value
from monograph.loops.lower_pointwise import broadcast
from monograph.loops.lower_scalar import Scalars, number, opmath
from monograph.loops.lower_value import Coordinates, Rule, Values, dtype_of, shape_of
from monograph.loops.lower_view import dimension
from monograph.loops.nodes import Expr, index

__all__ = ["RULES"]

BOUNDS = "index {0} is out of bounds for dimension {1} with size {2}"
RANGE = "index out of range in self"
DATA_BOUNDS = "INDICES element is out of DATA bounds, id={0} axis_dim={2}"


def _scalars(values: Values, node: Node) -> Scalars:
    return Scalars(values.affine, torch.int64, node.loc)


# By a fixed rule.

def cat(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    """One piece after the other along `dim`; the old rule that 1-d empty tensors fit anywhere holds."""
    operands = node.operands[0]
    assert isinstance(operands, tuple)
    m, result = _scalars(values, node), dtype_of(node.result)
    parts = [part for part in operands if isinstance(part, Value) and shape_of(part) != (0,)] or operands[:1]
    dim = dimension(node.attributes["dim"], len(c))

    ends = list(itertools.accumulate(shape_of(part)[dim] for part in parts))

    def among(first: int, last: int) -> Expr:
        """One of the parts first..last-1: halved, so that each is a few choices away."""
        if last - first > 1:
            middle = (first + last) // 2
            return values.choose(values.below(c[dim], ends[middle - 1]),
                                 lambda: among(first, middle), lambda: among(middle, last))
        at = values.affine.add(c[dim], shape_of(parts[first])[dim] - ends[first])
        return m.cast(values.at(parts[first], (*c[:dim], at, *c[dim + 1:])), result)

    return among(0, len(parts))


def constant_pad(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    """Negative pads crop."""
    x = node.operands[0]
    assert isinstance(x, Value)
    shape, pad = shape_of(x), node.attributes["pad"]
    m = _scalars(values, node)
    point, inside = list(c), m.all()
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        point[dim] = values.affine.add(c[dim], -pad[2 * i])
        inside = m.all(inside, m.ge(point[dim], 0), m.lt(point[dim], shape[dim]))
    fill = number(node.attributes["value"], dtype_of(x))
    return values.choose(inside, lambda: values.at(x, tuple(point)), lambda: fill)


def triangle(upper: bool) -> Rule:
    def rule(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
        x = node.operands[0]
        assert isinstance(x, Value)
        m = _scalars(values, node)
        distance = values.affine.add(c[-1], values.affine.scale(c[-2], -1), -node.attributes["diagonal"])
        keep = m.ge(distance, 0) if upper else m.le(distance, 0)
        return m.select(keep, values.at(x, c), number(0, dtype_of(x)))

    return rule


# By computed positions.

def position(
    values: Values, node: Node, at: Expr, size: int, dim: int, *, wrap: bool = False,
    exception: str = "IndexError", message: str = RANGE,
) -> Expr:
    """A position along a dim of `size`, checked unless there is no exception; `wrap` counts negatives from the end."""
    m = _scalars(values, node)
    given = m.cast(at, torch.int64)
    where = m.select(m.lt(given, 0), m.add(given, size), given) if wrap else given
    if exception:
        values.check(m("and", m.ge(where, 0), m.lt(where, size)), exception, message,
                     (given, index(dim), index(size)), node)
    if values.affine.inside(where, size):
        return where
    return m("max", m("min", where, max(size - 1, 0)), 0)


def embedding(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    weight, indices = node.operands[:2]
    assert isinstance(weight, Value) and isinstance(indices, Value)
    row = position(values, node, values.at(indices, c[:-1]), shape_of(weight)[0], 0)
    return values.at(weight, (row, c[-1]))


def index_select(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    x, indices = node.operands
    assert isinstance(x, Value) and isinstance(indices, Value)
    shape = shape_of(x)
    dim = dimension(node.attributes["dim"], len(shape))
    if not shape:
        position(values, node, values.at(indices, (index(0),) * len(shape_of(indices))), 1, 0)
        return values.at(x, ())
    chosen = values.at(indices, c[dim:dim + 1] if shape_of(indices) else ())
    # torch takes another path, and has another message, along dim 1
    raises = ("RuntimeError", DATA_BOUNDS) if dim == 1 else ("IndexError", RANGE)
    at = position(values, node, chosen, shape[dim], dim, exception=raises[0], message=raises[1])
    return values.at(x, (*c[:dim], at, *c[dim + 1:]))


def gather(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    x, indices = node.operands
    assert isinstance(x, Value) and isinstance(indices, Value)
    shape = shape_of(x)
    dim = dimension(node.attributes["dim"], len(shape))
    chosen = values.at(indices, c if shape_of(indices) else ())
    if not shape:
        return values.at(x, ())
    at = position(values, node, chosen, shape[dim], dim, exception="RuntimeError", message=BOUNDS)
    return values.at(x, (*c[:dim], at, *c[dim + 1:]))


def index_tensor(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    """x[i, :, j]: the indices broadcast together; their dims stand first unless the indices were neighbours."""
    x, indices = node.operands
    assert isinstance(x, Value) and isinstance(indices, tuple)
    shape = shape_of(x)
    given = [i for i, entry in enumerate(indices) if isinstance(entry, Value)]
    rank = max(len(shape_of(indices[i])) for i in given)
    start = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    exception = "" if "_unsafe" in node.op.name else "IndexError"
    box, rest = c[start:start + rank], iter((*c[:start], *c[start + rank:]))
    point: list[Expr] = []
    for dim, size in enumerate(shape):
        entry = indices[dim] if dim < len(indices) else None
        if not isinstance(entry, Value):
            point.append(next(rest))
            continue
        if dtype_of(entry) in (torch.bool, torch.uint8):
            raise CompileError("a mask as an index has no kernel", loc=node.loc)
        # the message counts the indexed dims alone
        point.append(position(values, node, values.at(entry, broadcast(entry, box)), size, given.index(dim),
                              wrap=True, exception=exception, message=BOUNDS))
    return values.at(x, tuple(point))


# From nothing.

def full(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    name = next(name for name in ("fill_value", "value", "s") if name in node.attributes or _takes(node, name))
    fill = node.attributes[name] if name in node.attributes else node.operand(name)
    if isinstance(fill, Value):
        return _scalars(values, node).cast(values.at(fill, ()), dtype_of(node.result))
    return number(fill, dtype_of(node.result))      # type: ignore[arg-type]


def _takes(node: Node, name: str) -> bool:
    return any(parameter.name == name and parameter.is_operand for parameter in node.op.parameters)


def filled(value: int) -> Rule:
    return lambda values, node, k, c: number(value, dtype_of(node.result))


def arange(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    """start + i * step, in i64 or f64."""
    dtype = dtype_of(node.result)
    start, step = node.attributes.get("start", 0), node.attributes.get("step", 1)
    m = Scalars(values.affine, torch.float64 if dtype.is_floating_point else torch.int64, node.loc)
    return m.cast(m.add(m.mul(m.cast(c[0], m.dtype), m.lift(step)), m.lift(start)), dtype)


def linspace(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    """Counted from the nearer end, every step rounded to the result's dtype, as torch does."""
    dtype, steps = dtype_of(node.result), shape_of(node.result)[0]
    real = dtype if dtype.is_floating_point else torch.float64
    start, end = (torch.tensor(node.attributes[name], dtype=dtype).to(real) for name in ("start", "end"))
    if steps == 1:
        return number(start.item(), dtype)
    step = ((end - start) / torch.tensor(steps - 1, dtype=real)).item()
    m = Scalars(values.affine, opmath(real), node.loc, result=real)

    def times(count: Expr) -> Expr:
        return m.rounded(m.mul(m.rounded(m.cast(count, m.dtype)), step))

    up = m.add(start.item(), times(c[0]))
    down = m.sub(end.item(), times(values.affine.add(values.affine.scale(c[0], -1), steps - 1)))
    return m.cast(m.select(values.below(c[0], steps // 2), up, down), dtype)


def eye(values: Values, node: Node, k: int, c: Coordinates) -> Expr:
    m, dtype = _scalars(values, node), dtype_of(node.result)
    return m.select(m.eq(c[0], c[1]), number(1, dtype), number(0, dtype))


RULES: dict[str, Rule] = {
    "aten.cat.default": cat,
    "aten.constant_pad_nd.default": constant_pad,
    "aten.tril.default": triangle(False), "aten.triu.default": triangle(True),
    "aten.embedding.default": embedding,
    "aten.index_select.default": index_select,
    "aten.gather.default": gather,
    "aten.index.Tensor": index_tensor, "aten._unsafe_index.Tensor": index_tensor,
    "aten.full.default": full, "aten.full_like.default": full, "aten.scalar_tensor.default": full,
    "aten.new_full.default": full,
    "aten.zeros.default": filled(0), "aten.zeros_like.default": filled(0), "aten.new_zeros.default": filled(0),
    "aten.ones.default": filled(1), "aten.ones_like.default": filled(1), "aten.new_ones.default": filled(1),
    "aten.arange.default": arange, "aten.arange.start": arange, "aten.arange.start_step": arange,
    "aten.linspace.default": linspace,
    "aten.eye.default": eye, "aten.eye.m": eye,
}
