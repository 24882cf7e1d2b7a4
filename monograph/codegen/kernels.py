"""From an item of the schedule to its kernel: loops by lowering, templates with their operands and epilogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from monograph.codegen.epilogue import Epilogue, strided
from monograph.codegen.target import Target
from monograph.ir.sized import is_sized
from monograph.loops import counted, lower
from monograph.loops.counted import Rows
from monograph.loops.lower import Lowering
from monograph.loops.lower_value import dtype_of
from monograph.loops.nodes import INDEX, Buffer, Expr, Kernel, const, index, op
from monograph.schedule.kernel import Fused, Schedule, Template
from monograph.templates import attention, conv, gemm

__all__ = ["kernel"]


def kernel(item: Fused | Template, schedule: Schedule, name: str, target: Target, scheduled: int = 0) -> Kernel:
    """The kernel of an item; arguments are its inputs, its outputs, and the error record if something is checked.

    An item `scheduled` for a number of rows is made for any, which is an argument before the error record."""
    rows = Rows(scheduled, Buffer("count", INDEX, 1)) if scheduled else None
    if isinstance(item, Fused):
        made = lower.lower(item, schedule, name)
    else:
        made = TEMPLATES[item.name](item, Lowering(item, schedule), name, target, rows)
    if rows is not None:
        counted.count(made, rows)
    return made


def _operand(
    lowering: Lowering, item: Template, role: str, strides: tuple[int, ...] | None = None, group: int = 1
) -> gemm.Operand:
    operand = item.operands[role]
    return gemm.Operand(lowering.sources[operand.value], strides or operand.strides, operand.offset, group)


def _gemm(item: Template, lowering: Lowering, name: str, target: Target, rows: Rows | None) -> Kernel:
    p = item.parameters
    batch, m, n, k = p["batch"], p["m"], p["n"], p["k"]
    result = item.anchor.results[0]
    dtype = dtype_of(result)
    packed_strides = (0,) * (len(batch) + 2) if p["packed"] else None
    cut = gemm.plan(batch, m, n, k, dtype, target, panel=p["panel"] if p["packed"] else None)

    def finish(accumulated: Expr, coordinates: tuple[Expr, ...]) -> Expr:
        if p["alpha"] != 1:
            accumulated = op("mul", accumulated, const(float(p["alpha"]), dtype), dtype=dtype)
        if "bias" in item.operands:
            bias = strided(lowering, item.operands["bias"], coordinates)
            if p["beta"] != 1:
                bias = op("mul", bias, const(float(p["beta"]), dtype), dtype=dtype)
            accumulated = op("add", accumulated, bias, dtype=dtype)
        return accumulated

    epilogue = Epilogue(lowering, result, item.outputs, (*batch, m, n), finish)
    spec = gemm.Spec(
        batch, m, n, k, dtype, _operand(lowering, item, "a"), _operand(lowering, item, "b", packed_strides),
        p["packed"], tuple(lowering.arguments()), cut,
        _rows_there(batch, m, rows),
    )
    return gemm.build(name, spec, epilogue, target)


def _rows_there(batch: tuple[int, ...], m: int, rows: Rows | None) -> Expr | None:
    """The number of rows of a product, where only a run knows it or how many products there are."""
    if is_sized((*batch, m)):
        return index(m)
    return rows.times(m) if rows is not None and m % rows.scheduled == 0 else None


def _conv(item: Template, lowering: Lowering, name: str, target: Target, rows: Rows | None) -> Kernel:
    p = item.parameters
    fields = ("n", "c", "h", "w", "o", "oh", "ow", "kh", "kw", "stride", "padding", "dilation", "groups")
    shape = conv.Shape(**{field: p[field] for field in fields})
    result = item.anchor.results[0]
    dtype = dtype_of(result)
    x, w = item.operands["x"], item.operands["w"]
    cut = conv.plan(shape, x.strides, dtype, target, panel=None if shape.depthwise else p["panel"])

    def finish(accumulated: Expr, coordinates: tuple[Expr, ...]) -> Expr:
        if "bias" not in item.operands:
            return accumulated
        bias = strided(lowering, item.operands["bias"], (coordinates[1],))
        return op("add", accumulated, bias, dtype=dtype)

    epilogue = Epilogue(lowering, result, item.outputs, (shape.n, shape.o, shape.oh, shape.ow), finish)
    spec = conv.Spec(
        shape, dtype, lowering.sources[x.value], x.strides, lowering.sources[w.value],     # type: ignore[arg-type]
        tuple(lowering.arguments()), cut, x.offset, w.offset,
    )
    return conv.build(name, spec, epilogue, target)


def _attention(item: Template, lowering: Lowering, name: str, target: Target, rows: Rows | None) -> Kernel:
    p = item.parameters
    shape = attention.Shape(**{field: p[field] for field in ("b", "h", "s", "t", "d", "e", "causal")})
    result = item.anchor.results[0]
    dtype = dtype_of(result)
    stored = [value for value in item.outputs if value is result]
    epilogue = Epilogue(lowering, result, stored, (shape.b, shape.h, shape.s, shape.e))
    sums = None
    if p["lse"]:
        second = item.anchor.results[1]
        sums = Epilogue(lowering, second, [second], (shape.b, shape.h, shape.s))
    spec = attention.Spec(
        shape, dtype, _operand(lowering, item, "q"), _operand(lowering, item, "k", group=p["group"]),
        _operand(lowering, item, "v", group=p["group"]),
        _operand(lowering, item, "mask") if "mask" in item.operands else None, p["scale"],
        tuple(lowering.arguments()), attention.plan(shape, dtype, target),
    )
    return attention.build(name, spec, epilogue, target, logsumexp=sums)


TEMPLATES: dict[str, Callable[[Template, Lowering, str, Target, Rows | None], Any]] = {
    "gemm": _gemm, "conv": _conv, "depthwise": _conv, "attention": _attention,
}
