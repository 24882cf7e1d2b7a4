"""A kernel as LLVM IR text.

    i32 @name(ptr args)                     loads the pointers, runs the statements, returns 0 or 1
    void @name.N.range(pointers, flag, captured values, lo, hi)
                                            all statements (lo, hi unused), or part of a parallel loop
    void @name.N.thread(ptr data)           see `parallel`

Every piece takes the buffers as `noalias` arguments: the loop IR promises that a buffer that is stored
to overlaps no other. Scratch memory is on the stack of each piece, or from malloc where it is large.
"""

from __future__ import annotations

from collections.abc import Sequence

from monograph.codegen import loops, parallel
from monograph.codegen.facts import Facts, operands, static_trips, walk
from monograph.codegen.function import Function
from monograph.codegen.target import Target
from monograph.codegen.text import Module, Text, Value
from monograph.codegen.tiling import tiled
from monograph.codegen.types import register
from monograph.loops.nodes import Buffer, Carry, For, Kernel, Load, Stmt, Store

__all__ = ["emit", "emit_module"]

STACK_LIMIT = 256 * 1024        # bytes of scratch a thread keeps on its stack


def emit(kernel: Kernel, target: Target) -> str:
    """The whole module of one kernel."""
    return emit_module([kernel], target)


def emit_module(kernels: Sequence[Kernel], target: Target) -> str:
    """One module that defines every kernel."""
    module = Module()
    for kernel in kernels:
        _Writer(module, tiled(kernel), target).write()
    header = [f'target triple = "{target.triple}"', f'target datalayout = "{target.layout}"']
    tables = (module.declarations, module.globals, module.helpers)
    return "\n".join([*header, *(entry for table in tables for entry in table.values()), *module.functions]) + "\n"


class _Writer:
    """The functions of one kernel."""

    def __init__(self, module: Module, kernel: Kernel, target: Target) -> None:
        self.module = module
        self.kernel = kernel
        self.target = target
        self.facts = Facts(kernel)
        self.error = next((b for b in kernel.arguments if b.kind == "error"), None)
        self.pieces = 0
        self.release: list[Value] = []

    def write(self) -> None:
        kernel, arguments = self.kernel, self.kernel.arguments
        has_parallel = any(_is_parallel(s) for s in kernel.body)
        if not has_parallel:
            self._piece(f"{kernel.name}.0", kernel.body, [], None)
        main = Text(self.module)
        fn = Function(self.module, self.facts, self.target, {})
        fn.text = main
        pointers = []
        for position in range(len(arguments)):
            at = main.emit("ptr", 0, f"getelementptr ptr, ptr %args, i64 {position}")
            pointers.append(main.emit("ptr", 0, f"load ptr, {at}, align 8"))
        fn.pointers = dict(zip(arguments, pointers, strict=True))
        flag = main.emit("ptr", 0, "alloca i32, align 4")
        main.line(f"store i32 0, {flag}, align 4")
        if self.error is not None:
            fn.error = (fn.pointers[self.error], flag)
        if has_parallel:
            self._statements(fn, pointers, flag)
        else:
            passed = ", ".join(map(str, [*pointers, flag, Value("0", "i64"), Value("0", "i64")]))
            main.line(f"call void @{kernel.name}.0.range({passed})")
        main.line("br label %leave")
        main.place("leave")
        self._free(fn, self.release)
        result = main.emit("i32", 0, f"load i32, {flag}, align 4")
        main.line(f"ret {result}")
        self.module.functions.append(f"define i32 @{kernel.name}(ptr %args) nounwind {{\n{main.body()}\n}}\n")

    def _statements(self, fn: Function, pointers: list[Value], flag: Value) -> None:
        """The kernel's statements with parallel loops among them; the others run on the calling thread."""
        fn.fail_label = "leave"
        serial = [s for s in self.kernel.body if not _is_parallel(s)]
        self.release = self._scratch(fn, _used_scratch(self.kernel, serial))
        for statement in self.kernel.body:
            if isinstance(statement, For) and statement.kind == "parallel":
                self._region(fn, statement, pointers, flag)
                if self.error is not None:
                    self._stop_on_error(fn, flag)
            else:
                loops.statement(fn, statement)

    def _stop_on_error(self, fn: Function, flag: Value) -> None:
        going = fn.text.label("going")
        state = fn.text.emit("i32", 0, f"load i32, {flag}, align 4")
        fine = fn.text.compare("eq", state, Value("0", "i32"))
        fn.text.line(f"br {fine}, label %{going}, label %leave")
        fn.text.place(going)

    def _region(self, fn: Function, loop: For, pointers: list[Value], flag: Value) -> None:
        name = f"{self.kernel.name}.{self.pieces}"
        self.pieces += 1
        outside = parallel.captured(loop)
        values = [fn.scalar(c) for c in outside]
        if static_trips(loop) == 0:
            return
        fn.forget(self.facts.stored(loop))
        self._piece(name, [loop], outside, loop)
        self.module.functions.append(
            parallel.thread_function(self.module, name, len(pointers), values, loop.step)
        )
        parallel.launch(fn, loop, name, pointers, flag, values)

    def _piece(self, name: str, body: Sequence[Stmt], outside: list[Carry], region: For | None) -> None:
        """The function `name.range`: `body`, or iterations lo .. hi of parallel loop `region`."""
        kernel = self.kernel
        pointers = {b: Value(f"%p{i}", "ptr") for i, b in enumerate(kernel.arguments)}
        fn = Function(self.module, self.facts, self.target, pointers)
        flag = Value("%flag", "ptr")
        if self.error is not None:
            fn.error = (pointers[self.error], flag)
            fn.fail_label = "leave"
        captures = []
        for position, outer in enumerate(outside):
            value = Value(f"%c{position}", register(outer.dtype))
            captures.append(value)
            fn.bind_carry(outer, value)
        release = self._scratch(fn, _used_scratch(kernel, body))
        if region is None:
            loops.block(fn, body)
        else:
            loops.region(fn, region, Value("%lo", "i64"), Value("%hi", "i64"))
        fn.text.line("br label %leave")
        fn.text.place("leave")
        self._free(fn, release)
        fn.text.line("ret void")
        parameters = [f"ptr noalias {pointers[b].ref}" for b in kernel.arguments]
        parameters += [f"ptr noalias {flag.ref}", *map(str, captures), "i64 %lo", "i64 %hi"]
        self.module.functions.append(
            f"define internal void @{name}.range({', '.join(parameters)}) nounwind {{\n{fn.text.body()}\n}}\n"
        )

    def _free(self, fn: Function, release: Sequence[Value]) -> None:
        for pointer in release:
            self.module.declare("free", "void", "ptr", "nounwind")
            fn.text.line(f"call void @free({pointer})")

    def _scratch(self, fn: Function, buffers: Sequence[Buffer]) -> list[Value]:
        """Memory for scratch buffers; returns what must be freed."""
        release = []
        used = 0
        for buffer in buffers:
            size = max(1, buffer.size) * buffer.dtype.itemsize
            if used + size <= STACK_LIMIT:
                used += size
                fn.pointers[buffer] = fn.text.emit("ptr", 0, f"alloca [{size} x i8], align 64")
                continue
            raw = fn.text.call("malloc", "ptr", 0, Value(str(size + 64), "i64"))
            release.append(raw)
            address = fn.text.emit("i64", 0, f"ptrtoint {raw} to i64")
            up = fn.text.binary("and", fn.text.binary("add", address, Value("63", "i64")), Value("-64", "i64"))
            shift = fn.text.binary("sub", up, address)
            fn.pointers[buffer] = fn.text.emit("ptr", 0, f"getelementptr i8, {raw}, {shift}")
        return release


def _is_parallel(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.kind == "parallel"


def _used_scratch(kernel: Kernel, body: Sequence[Stmt]) -> list[Buffer]:
    """The scratch buffers that `body` touches."""
    part = Kernel(kernel.name, [], [], list(body))
    used: set[Buffer] = set()
    for statement in part.statements():
        if isinstance(statement, Store):
            used.add(statement.buffer)
        used.update(e.buffer for e in walk(operands(statement), set()) if isinstance(e, Load))
    return [b for b in kernel.scratch if b in used]


