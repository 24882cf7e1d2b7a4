"""Where the matrices of a template lie."""

from __future__ import annotations

from dataclasses import dataclass

from monograph.loops.nodes import Buffer, Expr
from monograph.templates import arith
from monograph.templates.arith import add, mul

__all__ = ["Operand"]


@dataclass(frozen=True, slots=True)
class Operand:
    """Where a matrix lies: strides of the batch dims, then rows, then columns, in elements.

    `group` neighbours along the last batch dim share a matrix (heads of queries that share keys).
    """

    buffer: Buffer
    strides: tuple[int, ...]
    offset: int = 0
    group: int = 1

    def at(self, batch: tuple[Expr, ...], row: arith.Term, column: arith.Term) -> Expr:
        if self.group != 1:
            batch = (*batch[:-1], arith.floordiv(batch[-1], self.group))
        terms = [mul(b, stride) for b, stride in zip(batch, self.strides[:-2], strict=True)]
        return add(*terms, mul(row, self.strides[-2]), mul(column, self.strides[-1]), self.offset)
