"""How dtypes look in registers and in memory.

    dtype          register      memory
    f64 f32        double float  the same
    bf16 f16       float         i16 / half     the f32 value is always one that bf16 / f16 can hold
    i64 .. u8      i64 .. i8     the same       the sign is the operation's business
    bool           i1            i8             0 or 1

`lanes_of` chooses how many lanes the vectors of a loop have: all vectors of a loop have the same number.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from monograph.codegen.target import Target
from monograph.codegen.text import Value, float_literal, literal_vector
from monograph.errors import CompileError
from monograph.ir import dtypes

__all__ = ["MEMORY", "REGISTER", "constant", "is_signed", "is_unsigned", "lanes_of", "memory", "register"]

REGISTER: dict[torch.dtype, str] = {
    torch.float64: "double", torch.float32: "float", torch.bfloat16: "float", torch.float16: "float",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint64: "i64", torch.uint32: "i32", torch.uint16: "i16", torch.uint8: "i8", torch.bool: "i1",
}
MEMORY: dict[torch.dtype, str] = {**REGISTER, torch.bfloat16: "i16", torch.float16: "half", torch.bool: "i8"}
UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})


def register(dtype: torch.dtype) -> str:
    try:
        return REGISTER[dtype]
    except KeyError as error:
        raise CompileError(f"no kernels for {dtypes.name(dtype)}") from error


def memory(dtype: torch.dtype) -> str:
    try:
        return MEMORY[dtype]
    except KeyError as error:
        raise CompileError(f"no kernels for {dtypes.name(dtype)}") from error


def is_unsigned(dtype: torch.dtype) -> bool:
    return dtype in UNSIGNED or dtype is torch.bool


def is_signed(dtype: torch.dtype) -> bool:
    return dtypes.is_integer(dtype) and dtype not in UNSIGNED


def constant(value: float | int | bool, dtype: torch.dtype, lanes: int = 0) -> Value:
    """A literal of `dtype`, rounded or wrapped to it as a cast in torch would."""
    element = register(dtype)
    if dtype is torch.bool:
        scalar = Value("true" if value else "false", element)
    elif dtype.is_floating_point:
        if dtype in (torch.bfloat16, torch.float16):
            value = torch.tensor(float(value), dtype=torch.float32).to(dtype).item()
        scalar = Value(float_literal(float(value), element), element)
    else:
        bits = dtype.itemsize * 8
        wrapped = int(value) & ((1 << bits) - 1)
        scalar = Value(str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped), element)
    return literal_vector(scalar, lanes) if lanes else scalar


def lanes_of(dtypes_used: Iterable[torch.dtype], target: Target, extent: int | None) -> int:
    """Lanes for a loop over these dtypes: full registers of the widest float, or else of the widest integer.

    Short loops of known extent get no more lanes than they need.
    """
    used = set(dtypes_used)
    floats = [dtype for dtype in used if dtype.is_floating_point]
    others = [dtype for dtype in used if dtype is not torch.bool] or list(used) or [torch.int64]
    lanes = min(target.lanes(dtype) for dtype in (floats or others))
    while extent is not None and lanes > 2 and lanes // 2 >= extent:
        lanes //= 2
    return lanes
