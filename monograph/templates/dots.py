"""Products of few rows with columns that lie along k: one dot product after the other.

    parallel task over (batch, groups of columns):
      for each column: a vector loop along k sums all rows' products
      for each row: the epilogue over the group's columns

Copying such columns into panels would cost more than the product.
"""

from __future__ import annotations

import math

from monograph.ir.sized import is_sized
from monograph.loops.nodes import (
    Buffer,
    Carried,
    Combine,
    Expr,
    For,
    Kernel,
    Stmt,
    Store,
    carry,
    const,
    fresh_var,
    index,
    load,
    op,
)
from monograph.templates import arith, tile
from monograph.templates.arith import add, mul
from monograph.templates.operand import Operand
from monograph.templates.tile import Epilogue

__all__ = ["MOST_ROWS", "build"]

MOST_ROWS = 4
COLUMNS = 64                 # per task


def build(
    name: str, batch: tuple[int, ...], m: int, n: int, k: int, a: Operand, b: Operand, arguments: tuple[Buffer, ...],
    epilogue: Epilogue, *, parallel: bool,
) -> Kernel:
    """`epilogue(acc, (*batch, m, n))` as for other products."""
    dtype = a.buffer.dtype
    sums = Buffer("sums", dtype, m * COLUMNS, "scratch")
    sizes = (*batch, arith.ceil_div(n, COLUMNS))
    tasks = math.prod(sizes)
    many = parallel and (is_sized(tasks) or tasks > 1)
    task = For(fresh_var("task"), index(0), index(tasks), "parallel" if many else "serial")
    *where, group = arith.unravel(task.var, sizes)
    first = mul(group, COLUMNS)
    count = arith.remaining(first, COLUMNS, n)

    def column(i: Expr) -> list[Stmt]:
        lane = For(fresh_var("k"), index(0), index(k), "vector", unroll=4)
        lane.carried = [Carried(f"dot{row}", dtype, const(0.0, dtype), Combine.SUM) for row in range(m)]
        factor = load(b.buffer, b.at(tuple(where), lane.var, add(first, i)))
        lane.yields = [
            op("mul", load(a.buffer, a.at(tuple(where), row, lane.var)), factor, dtype=dtype) for row in range(m)
        ]
        return [lane, *(Store(sums, add(i, row * COLUMNS), carry(lane, row)) for row in range(m))]

    def finish(row: Expr) -> list[Stmt]:
        lane = For(fresh_var("n"), index(0), count, "vector")
        value = load(sums, add(mul(row, COLUMNS), lane.var))
        lane.body = epilogue(value, (*where, row, add(first, lane.var)))
        return [lane]

    task.body = tile.serial("i", 0, count, column) + tile.serial("row", 0, m, finish)
    return Kernel(name, list(arguments), [sums], [task] if tasks else [])
