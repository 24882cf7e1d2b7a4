"""Conversions between dtypes, and between registers and memory.

Rules (as `loops.math` states them): float -> int truncates as x86 does, integers narrower than 32 bits go
through i32; f64 -> f16 and bf16 go through f32; rounding is to nearest even and keeps NaN.
"""

from __future__ import annotations

import torch

from monograph.codegen.text import Text, Value, float_literal, literal_vector
from monograph.codegen.types import is_unsigned, memory, register

__all__ = ["bitcast", "cast", "from_memory", "to_memory"]

HALF = (torch.bfloat16, torch.float16)
WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def literal(ref: str, element: str, lanes: int) -> Value:
    scalar = Value(ref, element)
    return literal_vector(scalar, lanes) if lanes else scalar


def from_memory(text: Text, raw: Value, dtype: torch.dtype) -> Value:
    """The register form of a value just loaded."""
    if dtype is torch.bool:
        return text.compare("ne", raw, literal("0", "i8", raw.lanes))
    if dtype is torch.bfloat16:
        wide = text.convert("zext", raw, "i32")
        return text.convert("bitcast", text.binary("shl", wide, literal("16", "i32", raw.lanes)), "float")
    if dtype is torch.float16:
        return text.convert("fpext", raw, "float")
    return raw


def to_memory(text: Text, value: Value, dtype: torch.dtype) -> Value:
    """The form in which a value of `dtype` is stored; exact."""
    if dtype is torch.bool:
        return text.convert("zext", value, "i8")
    if dtype is torch.bfloat16:
        bits = text.convert("bitcast", value, "i32")
        return text.convert("trunc", text.binary("lshr", bits, literal("16", "i32", value.lanes)), "i16")
    if dtype is torch.float16:
        return text.convert("fptrunc", value, "half")
    return value


def round_half(text: Text, value: Value, dtype: torch.dtype) -> Value:
    """The f32 `value` rounded to what `dtype` (bf16 or f16) can hold."""
    if dtype is torch.float16:
        return text.convert("fpext", text.convert("fptrunc", value, "half"), "float")
    lanes = value.lanes
    bits = text.convert("bitcast", value, "i32")
    odd = text.binary("and", text.binary("lshr", bits, literal("16", "i32", lanes)), literal("1", "i32", lanes))
    up = text.binary("add", text.binary("add", bits, literal("32767", "i32", lanes)), odd)
    cut = text.binary("and", up, literal("-65536", "i32", lanes))
    # Adding to a NaN's bits could carry into its sign and exponent; torch makes every NaN 0x7fc0.
    nan = literal(float_literal(float("nan"), "float"), "float", lanes)
    return text.select(text.compare("uno", value, value), nan, text.convert("bitcast", cut, "float"))


def cast(text: Text, value: Value, source: torch.dtype, target: torch.dtype) -> Value:
    """`value` of dtype `source` as a `target`."""
    if source is target:
        return value
    if target is torch.bool:
        return _to_bool(text, value)
    if source.is_floating_point:
        if target.is_floating_point:
            return _float_to_float(text, value, source, target)
        return _float_to_int(text, value, target)
    if target.is_floating_point:
        return _int_to_float(text, value, source, target)
    return resize(text, value, register(target), unsigned=is_unsigned(source))


def resize(text: Text, value: Value, element: str, *, unsigned: bool) -> Value:
    """An integer truncated or extended to `element`."""
    old, new = WIDTH[value.element], WIDTH[element]
    if old == new:
        return value
    opcode = "trunc" if new < old else ("zext" if unsigned else "sext")
    return text.convert(opcode, value, element)


def _to_bool(text: Text, value: Value) -> Value:
    if value.element == "i1":
        return value
    if value.element in ("float", "double"):
        return text.compare("une", value, literal(float_literal(0.0, value.element), value.element, value.lanes))
    return text.compare("ne", value, literal("0", value.element, value.lanes))


def _float_to_float(text: Text, value: Value, source: torch.dtype, target: torch.dtype) -> Value:
    if target is torch.float64:
        return text.convert("fpext", value, "double")
    if value.element == "double":
        value = text.convert("fptrunc", value, "float")
    return round_half(text, value, target) if target in HALF else value


def _float_to_int(text: Text, value: Value, target: torch.dtype) -> Value:
    element = register(target)
    wide = "i32" if WIDTH[element] <= 32 and target is not torch.uint32 else "i64"
    return resize(text, text.convert("fptosi", value, wide), element, unsigned=False)


def _int_to_float(text: Text, value: Value, source: torch.dtype, target: torch.dtype) -> Value:
    element = register(target)
    unsigned = is_unsigned(source)
    if WIDTH[value.element] < 32:
        value, unsigned = resize(text, value, "i32", unsigned=unsigned), False
    result = text.convert("uitofp" if unsigned else "sitofp", value, element)
    return round_half(text, result, target) if target in HALF else result


def bitcast(text: Text, value: Value, source: torch.dtype, target: torch.dtype) -> Value:
    """The same bits read as another dtype of the same size."""
    raw = to_memory(text, value, source)
    wanted = memory(target)
    if raw.element != wanted:
        raw = text.convert("bitcast", raw, wanted)
    return from_memory(text, raw, target)
