"""Parallel loops: the body is a function of a range, run by torch's OpenMP pool.

    region.range(buffers..., data, lo, hi)   the iterations lo .. hi
    region.thread(data)                      one thread's part: contiguous, as even as can be

`data` holds the buffers' pointers, the range, the error flag and the values the region uses from outside.
Small work is not worth waking threads for: then `region.range` is called directly.
"""

from __future__ import annotations

from monograph.codegen.cost import fewest_trips, is_small
from monograph.codegen.facts import operands, static_trips, walk
from monograph.codegen.function import Function
from monograph.codegen.text import Module, Text, Value
from monograph.loops.nodes import Carry, Expr, For, Stmt

__all__ = ["FLAG", "captured", "launch", "thread_function"]

LO, HI, FLAG, FIRST = 0, 1, 2, 3          # words of `data`; then pointers, then captured values


def captured(loop: For) -> list[Carry]:
    """Carried values of earlier loops that the region uses."""
    inside: set[For] = set()
    used: dict[Expr, None] = {}

    def visit(statement: Stmt) -> None:
        used.update((e, None) for e in walk(operands(statement), set()) if isinstance(e, Carry))
        if isinstance(statement, For):
            inside.add(statement)
            for entry in statement.body:
                visit(entry)

    for entry in loop.body:
        visit(entry)
    return [e for e in used if isinstance(e, Carry) and e.loop not in inside]


def launch(fn: Function, loop: For, name: str, pointers: list[Value], flag: Value, values: list[Value]) -> None:
    """Fill `data` and run the region."""
    text = fn.text
    lo, hi = fn.scalar(loop.lo), fn.scalar(loop.hi)
    arguments = ", ".join(map(str, [*pointers, flag, *values, lo, hi]))
    trips = static_trips(loop)
    if is_small(loop, trips):
        text.line(f"call void @{name}.range({arguments})")
        return
    words = [lo, hi, flag, *pointers, *values]
    data = text.emit("ptr", 0, f"alloca [{len(words)} x i64], align 16")
    for position, word in enumerate(words):
        at = text.emit("ptr", 0, f"getelementptr i64, {data}, i64 {position}")
        text.line(f"store {word}, {at}, align 8")
    text.module.declare("GOMP_parallel", "void", "ptr, ptr, i32, i32")
    threads = Value("0", "i32")
    if trips is None:
        limit = Value(str(fewest_trips(loop) * loop.step), "i64")
        small = text.compare("slt", text.binary("sub", hi, lo), limit)
        threads = text.convert("zext", small, "i32")
    text.line(f"call void @GOMP_parallel(ptr @{name}.thread, {data}, {threads}, i32 0)")


def thread_function(module: Module, name: str, pointers: int, values: list[Value], step: int) -> str:
    """`region.thread`: this thread's share of the iterations."""
    text = Text(module)
    data = Value("%data", "ptr")

    def word(position: int, element: str) -> Value:
        at = text.emit("ptr", 0, f"getelementptr i64, {data}, i64 {position}")
        return text.emit(element, 0, f"load {element}, {at}, align 8")

    lo, hi, flag = word(LO, "i64"), word(HI, "i64"), word(FLAG, "ptr")
    buffers = [word(FIRST + i, "ptr") for i in range(pointers)]
    passed = [word(FIRST + pointers + i, v.element) for i, v in enumerate(values)]
    me = text.convert("zext", text.call("omp_get_thread_num", "i32", 0), "i64")
    team = text.convert("zext", text.call("omp_get_num_threads", "i32", 0), "i64")
    span = text.binary("add", text.binary("sub", hi, lo), Value(str(step - 1), "i64"))
    trips = text.binary("sdiv", span, Value(str(step), "i64"))
    bounds = []
    for index in (me, text.binary("add", me, Value("1", "i64"))):
        share = text.binary("udiv", text.binary("mul", trips, index), team)
        bounds.append(text.binary("add", lo, text.binary("mul", share, Value(str(step), "i64"))))
    end = text.call("llvm.smin.i64", "i64", 0, bounds[1], hi, attributes="")
    some = text.compare("slt", bounds[0], end)
    text.line(f"br {some}, label %work, label %done")
    text.place("work")
    text.line(f"call void @{name}.range({', '.join(map(str, [*buffers, flag, *passed, bounds[0], end]))})")
    text.line("br label %done")
    text.place("done")
    text.line("ret void")
    return f"define internal void @{name}.thread(ptr %data) nounwind {{\n{text.body()}\n}}\n"
