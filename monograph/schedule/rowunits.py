"""Units, what hangs on them row by row, and how many rows are done at once: see `schedule.rowwise`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from monograph.ir.graph import Graph, Operand, Value
from monograph.ir.symbolic import Dim, Sum, product
from monograph.ir.types import TensorType
from monograph.ops import families, templates
from monograph.schedule import roles
from monograph.schedule.roles import Role

__all__ = ["Rows", "Unit", "counted_rows", "cut_rows", "fixed_chunks", "rows_of"]

Unit: TypeAlias = tuple[Dim, ...]

MOST_ROWS = 64          # of a chunk
STEP = 8                # how much smaller the next chunk is
ELEMENTS = 1 << 15      # of the widest value of a chunk, roughly
COUNTED = (1021, 1019, 509, 503, 251, 241, 127, 113, 61, 59, 37, 31)      # rows of a chunk that counts its own
COUNTED_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Rows:
    """How a value hangs on a unit: its dims before `lead` are rows, each of `elements`; `factor` of them for one of the
    unit, or 0 where the unit stands there dim by dim."""

    lead: int
    elements: int
    factor: int


def rows_of(value: Operand, unit: Unit) -> Rows | None:
    """None where `value` has no rows over `unit`."""
    if not isinstance(value, Value) or not isinstance(value.type, TensorType) or value.type.device != "cpu":
        return None
    shape, size = value.type.shape, product(unit)
    if value.type.dtype not in families.DTYPES:
        return None
    ones = next((d for d, dim in enumerate(shape) if dim != 1), len(shape))
    if shape[ones:ones + len(unit)] == unit:
        lead, factor = ones + len(unit), 0
    else:
        lead, factor = ones + 1, _factor(shape[ones], size) if ones < len(shape) else 0
        if not factor:
            return None
    rest = [dim for dim in shape[lead:] if isinstance(dim, int)]
    return Rows(lead, max(factor, 1) * math.prod(rest), factor) if len(rest) == len(shape) - lead else None


def cut_rows(value: Value, unit: Unit, count: int) -> tuple[int, ...]:
    """The shape of `count` rows of a row value."""
    rows = rows_of(value, unit)
    assert rows is not None
    shape: tuple[int, ...] = value.tensor.shape     # type: ignore[assignment]
    return (*[1] * (rows.lead - 1), max(rows.factor, 1) * count, *shape[rows.lead:])


def _factor(dim: Dim, size: Dim) -> int:
    """c where `dim` is c times `size`, else 0."""
    if dim == size:
        return 1
    if not isinstance(dim, Sum) or dim.constant or len(dim.terms) != 1:
        return 0
    (_, coefficient), = dim.terms
    return coefficient if coefficient > 0 and dim == coefficient * size else 0


def fixed_chunks(elements: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers of rows, falling to one; `elements` are those of a row of each value."""
    widest = max(elements)
    rows = MOST_ROWS
    while rows > 1 and rows * widest > ELEMENTS:
        rows //= STEP
    chunks = []
    while rows >= 1:
        chunks.append((rows, rows))
        rows //= STEP
    return tuple(chunks)


def counted_rows(elements: Sequence[int], region: Graph) -> int | None:
    """The most rows of a region that takes any number of them; None where kernels cannot stop at any row.

    `elements` are those of a row of what stays inside; `region` is the one for a single row.
    """
    for node in region.nodes:
        capability = templates.match(node)
        is_conv = capability is not None and capability.template == "conv"
        if is_conv or roles.role(node) in (Role.LIBRARY, Role.REGION):
            return None
    said = (entry for node in region.nodes for entry in (node.operands, *node.attributes.values()))
    shapes = (value.tensor.shape for node in region.nodes for value in (*node.inputs, *node.results))
    numbers = set(_numbers((*said, *shapes)))
    widest = max(elements, default=1)
    fitting = [most for most in COUNTED if most * widest <= COUNTED_ELEMENTS] or COUNTED[-2:]
    return next((most for most in fitting if all(number % most or not number for number in numbers)), None)


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, (tuple, list)):
        for entry in value:
            yield from _numbers(entry)
    elif type(value) is int:
        yield value
