"""What a value is.

    TensorType(dtype, shape: Dim*, device, strides: Dim* | None)     strides only at the boundary
    ScalarType(kind: int | float | bool)                             a number computed at run time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from monograph.ir import dtypes
from monograph.ir.symbolic import Dim, product

__all__ = ["ScalarType", "TensorType", "Type"]


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype, shape and device of a tensor value.

    `strides` (in elements) is part of the type only where the outside world sees the value
    (graph inputs and outputs); inside, the compiler chooses and it is None.
    """

    dtype: torch.dtype
    shape: tuple[Dim, ...]
    device: str = "cpu"
    strides: tuple[Dim, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> Dim:
        return product(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(size, int) for size in self.shape)

    @property
    def nbytes(self) -> Dim:
        return self.numel * dtypes.itemsize(self.dtype)

    def __str__(self) -> str:
        parts = [str(size) for size in self.shape]
        if self.strides is not None:
            parts.append(f"strides=[{', '.join(str(stride) for stride in self.strides)}]")
        if self.device != "cpu":
            parts.append(f"device={self.device}")
        return f"{dtypes.name(self.dtype)}[{', '.join(parts)}]"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A Python number known only at run time; `symbol` names it inside dims and attributes."""

    kind: Literal["int", "float", "bool"]
    symbol: str | None = None

    def __str__(self) -> str:
        return self.kind if self.symbol is None else f"{self.kind}({self.symbol})"


Type: TypeAlias = TensorType | ScalarType
