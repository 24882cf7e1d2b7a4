"""The machine's ways to read and write a vector: contiguous, strided, gathered, each whole or under a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from monograph.codegen import transpose
from monograph.codegen.text import Value, overload_suffix, type_name
from monograph.codegen.types import memory
from monograph.loops.nodes import Load

if TYPE_CHECKING:
    from monograph.codegen.function import Function

__all__ = [
    "lanes_of", "load_gathered", "load_strided", "load_vector", "offset_by", "scatter", "size_of", "store_vector",
    "zeros",
]


def offset_by(fn: Function, pointer: Value, element: str, offset: int) -> Value:
    """A pointer `offset` elements further."""
    return fn.text.emit("ptr", 0, f"getelementptr {element}, {pointer}, i64 {offset}") if offset else pointer


def zeros(fn: Function) -> Value:
    """Memory that may always be read: what masked loads are sent to."""
    fn.text.module.globals["mg.zeros"] = "@mg.zeros = private constant [256 x i8] zeroinitializer, align 64"
    return Value("@mg.zeros", "ptr")


def load_vector(fn: Function, element: str, at: Value, mask: Value | None) -> Value:
    text, lanes = fn.text, lanes_of(fn)
    kind = type_name(element, lanes)
    size = size_of(element)
    if mask is None:
        return text.emit(element, lanes, f"load {kind}, {at}, align {size}")
    if size >= 4 or fn.target.has_masks or mask.ref.startswith("<"):
        name = f"llvm.masked.load.{overload_suffix(element, lanes)}.p0"
        text.module.declare(name, kind, f"ptr, <{lanes} x i1>, {kind}")
        arguments = f"ptr align {size} {at.ref}, {mask}, {kind} zeroinitializer"
        return text.emit(element, lanes, f"call {kind} @{name}({arguments})")
    steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
    pointers = text.emit("ptr", lanes, f"getelementptr {element}, {at}, <{lanes} x i64> <{steps}>")
    return load_pointers(fn, element, pointers, mask)


def load_strided(
    fn: Function, expr: Load, element: str, base: Value, first: int, step: int, mask: Value | None
) -> Value:
    lanes = lanes_of(fn)
    place = transpose.position(fn, expr) if mask is None else None
    if place is not None:
        depth, column = place
        return _block(fn, depth, element, base, first - column, step)[column]
    if step == 2 and mask is None and lanes >= 4:
        # Two overlapping vectors that end at the last element, so that nothing beyond it is read.
        low = load_vector(fn, element, offset_by(fn, base, element, first), None)
        high = load_vector(fn, element, offset_by(fn, base, element, first + lanes - 1), None)
        half = lanes // 2
        return fn.text.shuffle(low, high, [2 * i for i in range(half)] + [lanes + 2 * i + 1 for i in range(half)])
    if mask is None:
        return _gather_lanes(fn, element, [offset_by(fn, base, element, first + lane * step) for lane in range(lanes)])
    at = offset_by(fn, base, element, first)
    steps = ", ".join(f"i64 {lane * step}" for lane in range(lanes))
    pointers = fn.text.emit("ptr", lanes, f"getelementptr {element}, {at}, <{lanes} x i64> <{steps}>")
    return load_pointers(fn, element, pointers, mask)


def _block(fn: Function, depth: int, element: str, base: Value, first: int, step: int) -> tuple[Value, ...]:
    """A transposed block, loaded in front of the copies that share it."""
    known = fn.scopes[depth].blocks
    key = (base.ref, element, first, step)
    if key not in known:
        made = fn.at(depth, lambda: transpose.rows(fn.text, element, lanes_of(fn), size_of(element), base, first, step))
        assert not isinstance(made, Value)
        known[key] = made
    return known[key]


def load_gathered(fn: Function, dtype: torch.dtype, pointers: Value, mask: Value | None) -> Value:
    element = memory(dtype)
    if fn.target.has_gather and size_of(element) >= 4:
        return _gather(fn, element, pointers, mask)
    return load_pointers(fn, element, pointers, mask)


def _gather(fn: Function, element: str, pointers: Value, mask: Value | None) -> Value:
    lanes = pointers.lanes
    kind = type_name(element, lanes)
    where = mask if mask is not None else Value("splat (i1 true)", "i1", lanes)
    name = f"llvm.masked.gather.{overload_suffix(element, lanes)}.v{lanes}p0"
    fn.text.module.declare(name, kind, f"<{lanes} x ptr>, <{lanes} x i1>, {kind}")
    arguments = f"{_aligned(pointers, size_of(element))}, {where}, {kind} zeroinitializer"
    return fn.text.emit(element, lanes, f"call {kind} @{name}({arguments})")


def _aligned(pointers: Value, size: int) -> str:
    return f"{pointers.type} align {size} {pointers.ref}"


def load_pointers(fn: Function, element: str, pointers: Value, mask: Value | None) -> Value:
    """One load per lane; lanes that are masked out read zeros."""
    text = fn.text
    if mask is not None:
        pointers = text.select(mask, pointers, fn.splat(zeros(fn), pointers.lanes))
    return _gather_lanes(fn, element, [text.extract(pointers, lane) for lane in range(pointers.lanes)])


def _gather_lanes(fn: Function, element: str, pointers: list[Value]) -> Value:
    text = fn.text
    result = Value("poison", element, len(pointers))
    for lane, at in enumerate(pointers):
        one = text.emit(element, 0, f"load {element}, {at}, align {size_of(element)}")
        result = text.insert(result, one, lane)
    return result


def store_vector(fn: Function, element: str, value: Value, at: Value, mask: Value | None) -> None:
    size = size_of(element)
    if mask is None:
        fn.text.line(f"store {value}, {at}, align {size}")
        return
    name = f"llvm.masked.store.{overload_suffix(element, value.lanes)}.p0"
    fn.text.module.declare(name, "void", f"{value.type}, ptr, <{value.lanes} x i1>")
    fn.text.line(f"call void @{name}({value}, ptr align {size} {at.ref}, {mask})")


def scatter(fn: Function, element: str, value: Value, pointers: Value, mask: Value | None) -> None:
    text, size = fn.text, size_of(element)
    if mask is None and not fn.target.has_gather:
        for lane in range(value.lanes):
            text.line(f"store {text.extract(value, lane)}, {text.extract(pointers, lane)}, align {size}")
        return
    where = mask if mask is not None else Value("splat (i1 true)", "i1", value.lanes)
    name = f"llvm.masked.scatter.{overload_suffix(element, value.lanes)}.v{value.lanes}p0"
    text.module.declare(name, "void", f"{value.type}, <{value.lanes} x ptr>, <{value.lanes} x i1>")
    text.line(f"call void @{name}({value}, {_aligned(pointers, size)}, {where})")


def lanes_of(fn: Function) -> int:
    assert fn.vector is not None
    return fn.vector.lanes


def size_of(element: str) -> int:
    return {"double": 8, "float": 4, "half": 2}.get(element) or int(element[1:]) // 8
