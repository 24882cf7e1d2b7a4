"""Short names, sizes and kinds of the element types.

The IR uses `torch.dtype` objects themselves; this file gives what torch does not: the short
names that the printer writes (`f32`, `bf16`, `i64`, `bool`) and the kind that lowering asks for.
"""

from __future__ import annotations

import torch

__all__ = ["BY_NAME", "NAMES", "is_complex", "is_float", "is_integer", "itemsize", "name"]

NAMES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
    torch.complex32: "c32",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
}
BY_NAME: dict[str, torch.dtype] = {short: dtype for dtype, short in NAMES.items()}


def name(dtype: torch.dtype) -> str:
    """`f32` for `torch.float32`; a dtype without a short name keeps torch's own."""
    return NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def is_complex(dtype: torch.dtype) -> bool:
    return dtype.is_complex


def is_integer(dtype: torch.dtype) -> bool:
    """True for the integers; bool is not an integer here."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def itemsize(dtype: torch.dtype) -> int:
    """Bytes per element."""
    return dtype.itemsize
