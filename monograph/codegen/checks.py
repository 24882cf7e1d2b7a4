"""`Check`: where a condition fails, fill in the error record (the first failure wins) and leave the function.

The record is i64[8]: code, code (the index into `Program.errors`), values...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monograph.codegen.text import Value, type_name
from monograph.errors import CompileError
from monograph.loops.nodes import Check

if TYPE_CHECKING:
    from monograph.codegen.function import Function

__all__ = ["FIRST_VALUE", "check"]

FIRST_VALUE = 2
WORDS = 8


def check(fn: Function, statement: Check) -> None:
    if fn.error is None:
        raise CompileError("a kernel with checks has no error record among its arguments")
    condition = fn.value(statement.condition)
    values = [fn.value(v) for v in statement.values][: WORDS - FIRST_VALUE]
    text = fn.text
    fine = text.label("fine")
    if isinstance(condition, Value):
        failed = text.label("failed")
        text.line(f"br {condition}, label %{fine}, label %{failed}")
        text.place(failed)
        _leave(fn, statement.code, [v if isinstance(v, Value) else text.extract(v[0], 0) for v in values])
        text.place(fine)
        return
    assert fn.vector is not None
    for u, (holds, mask) in enumerate(zip(condition, fn.vector.masks, strict=True)):
        bad = text.binary("xor", holds, Value("splat (i1 true)", "i1", holds.lanes))
        if mask is not None:
            bad = text.binary("and", bad, mask)
        _check_vector(fn, statement, bad, [v if isinstance(v, Value) else v[u] for v in values])


def _check_vector(fn: Function, statement: Check, bad: Value, values: list[Value]) -> None:
    text = fn.text
    fine, failed = text.label("fine"), text.label("failed")
    bits = text.emit(f"i{bad.lanes}", 0, f"bitcast {bad} to i{bad.lanes}")
    text.line(f"br {text.compare('eq', bits, Value('0', bits.element))}, label %{fine}, label %{failed}")
    text.place(failed)
    first = text.call(f"llvm.cttz.{bits.element}", bits.element, 0, bits, Value("true", "i1"), attributes="")
    lane = first if bits.element == "i64" else text.convert("zext" if bad.lanes < 64 else "trunc", first, "i64")
    _leave(fn, statement.code, [text.extract(v, lane) if v.lanes else v for v in values])
    text.place(fine)


def _leave(fn: Function, code: int, values: list[Value]) -> None:
    """Write the record unless another failure already did, then go to the function's exit."""
    assert fn.error is not None and fn.fail_label is not None
    text = fn.text
    record, flag = fn.error
    pair = text.emit("{ i32, i1 }", 0, f"cmpxchg {flag}, i32 0, i32 1 acq_rel monotonic")
    won = text.emit("i1", 0, f"extractvalue {pair}, 1")
    write = text.label("write")
    text.line(f"br {won}, label %{write}, label %{fn.fail_label}")
    text.place(write)
    words = [Value(str(code), "i64"), Value(str(code), "i64"), *values]
    for position, word in enumerate(words):
        at = text.emit("ptr", 0, f"getelementptr i64, {record}, i64 {position}")
        text.line(f"store {_word(fn, word)}, {at}, align 8")
    text.line(f"br label %{fn.fail_label}")


def _word(fn: Function, value: Value) -> Value:
    if value.element == "i64":
        return value
    assert value.element.startswith("i"), type_name(value.element, value.lanes)
    return fn.text.convert("sext", value, "i64")


