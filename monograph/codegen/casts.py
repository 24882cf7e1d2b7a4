"""Conversions between dtypes, and between registers and memory.

Rules (as `loops.math` states them): float -> int truncates as x86 does, integers narrower than 32 bits go
through i32; f64 -> f16 and bf16 go through f32; rounding is to nearest even and keeps NaN.
"""

from __future__ import annotations

import torch

from monograph.codegen.intervals import ANY, Interval
from monograph.codegen.mathbuilder import Math
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


def cast(m: Math, value: Value, source: torch.dtype, target: torch.dtype, bounds: Interval = ANY) -> Value:
    """`value` of dtype `source` as a `target`; an integer is known to lie within `bounds`."""
    text = m.text
    if source is target:
        return value
    if target is torch.bool:
        return _to_bool(text, value)
    if source.is_floating_point:
        if target.is_floating_point:
            return _float_to_float(text, value, source, target)
        return _float_to_int(m, value, target)
    if target.is_floating_point:
        return _int_to_float(m, value, source, target, bounds)
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


# Note [64-bit integers in vectors]
# Before AVX-512, x86 converts vectors of i32 only. Integers below 2^51 fit in the low bits of a double around
# 1.5 * 2^52, so they convert by an addition; other values, which are rare, take the scalar instruction.
MAGIC, MAGIC_BITS, SMALL = 6755399441055744.0, 0x4338000000000000, 1 << 51


def _by_parts(m: Math, value: Value) -> bool:
    return bool(value.lanes) and not m.target.has_masks


def _float_to_int(m: Math, value: Value, target: torch.dtype) -> Value:
    text = m.text
    element = register(target)
    wide = "i32" if WIDTH[element] <= 32 and target is not torch.uint32 else "i64"
    if wide == "i64" and _by_parts(m, value):
        return resize(text, _float_to_i64(m, value), element, unsigned=False)
    return resize(text, text.convert("fptosi", value, wide), element, unsigned=False)


def _float_to_i64(m: Math, value: Value) -> Value:
    """See Note [64-bit integers in vectors]."""
    text = m.text
    if value.element == "float":
        fast = text.convert("sext", text.convert("fptosi", value, "i32"), "i64")
        inside = m.compare("olt", m.abs(value), 2.0**31)
    else:
        shifted = m.add(text.intrinsic("trunc", value), MAGIC)
        fast = m.whole("sub", m.bits(shifted), MAGIC_BITS)
        inside = m.compare("olt", m.abs(value), float(SMALL))
    unusual = text.binary("xor", inside, m.all_true(inside))
    return m.rarely(unusual, fast, lambda: text.convert("fptosi", value, "i64"))


def _int_to_float(m: Math, value: Value, source: torch.dtype, target: torch.dtype, bounds: Interval) -> Value:
    text = m.text
    element = register(target)
    unsigned = is_unsigned(source)
    if WIDTH[value.element] < 32:
        value, unsigned = resize(text, value, "i32", unsigned=unsigned), False
    if value.element == "i64" and _by_parts(m, value) and not unsigned:
        result = _i64_to_float(m, value, element, bounds)
    else:
        result = text.convert("uitofp" if unsigned else "sitofp", value, element)
    return round_half(text, result, target) if target in HALF else result


def _i64_to_float(m: Math, value: Value, element: str, bounds: Interval) -> Value:
    """See Note [64-bit integers in vectors]."""
    text = m.text
    if bounds[0] >= -(1 << 31) and bounds[1] < 1 << 31:
        return text.convert("sitofp", text.convert("trunc", value, "i32"), element)
    fast = m.sub(m.from_bits(m.whole("add", value, MAGIC_BITS)), MAGIC)
    if element == "float":
        fast = text.convert("fptrunc", fast, "float")
    if bounds[0] >= -SMALL and bounds[1] < SMALL:
        return fast
    beyond = m.whole_compare("ugt", m.whole("add", value, SMALL), 2 * SMALL - 1)
    return m.rarely(beyond, fast, lambda: text.convert("sitofp", value, element))


def bitcast(text: Text, value: Value, source: torch.dtype, target: torch.dtype) -> Value:
    """The same bits read as another dtype of the same size."""
    raw = to_memory(text, value, source)
    wanted = memory(target)
    if raw.element != wanted:
        raw = text.convert("bitcast", raw, wanted)
    return from_memory(text, raw, target)
