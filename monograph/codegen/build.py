"""From LLVM IR text to objects and assembly, in parallel.

Kernels are spread over modules, one per worker: a process of `workers`, or a thread of this process with an LLVM
context and target machine of its own. LLVM itself needs no lock for the latter; llvmlite's is passed by
(`compat.llvmlite_library`), and where it cannot be, the same work is done under it. No mid-end passes run: vectors
are explicit and code is hoisted by emission.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from monograph.codegen import llvm_worker
from monograph.codegen.llvm import emit_module
from monograph.codegen.target import Target
from monograph.codegen.workers import Workers, refused
from monograph.compat import llvmlite_library
from monograph.errors import CompileError
from monograph.loops.nodes import Kernel

__all__ = ["Store", "assembly", "compile_kernels", "compile_text"]

Store: TypeAlias = Callable[[str, Callable[[], bytes]], bytes]
"""(what the object depends on, how to make it) -> the object."""

SMALLEST_SHARE = 2              # kernels that make another thread worth starting


def compile_kernels(
    kernels: Sequence[Kernel], target: Target, jobs: int | None = None, store: Store | None = None,
    team: Workers | None = None,
) -> list[bytes]:
    """ELF relocatable objects that define `i32 name(ptr)` for every kernel (names must differ).

    With a `store`, the name of a kernel must tell what it does: objects are looked up by the names in them.
    A `team` does LLVM's part where it can.
    """
    if not kernels:
        return []
    workers = jobs if jobs is not None else team.count if team is not None else os.cpu_count() or 1
    workers = max(1, min(workers, len(kernels) // SMALLEST_SHARE))
    shares = [list(kernels[i::workers]) for i in range(workers)]
    if workers == 1:
        return [_object(shares[0], target, store, team)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda share: _object(share, target, store, team), shares))


def _object(share: Sequence[Kernel], target: Target, store: Store | None, team: Workers | None) -> bytes:
    names = [kernel.name for kernel in share]

    def make() -> bytes:
        return compile_text(emit_module(share, target), target, names=names, team=team)

    lines = "\n".join(names)
    return make() if store is None else store(f"{target}\n{lines}", make)


def assembly(kernel: Kernel, target: Target) -> str:
    """The machine code of one kernel, as text."""
    return compile_text(emit_module([kernel], target), target, assembly=True).decode()


def compile_text(
    text: str, target: Target, *, assembly: bool = False, names: Sequence[str] = (), team: Workers | None = None
) -> bytes:
    """Object code (or assembly) of a module's text. CompileError with `names` in it where LLVM refuses."""
    made = team.compile(text, target, names) if team is not None and not assembly else None
    if made is not None:
        return made
    llvm_worker.binding()
    library = _library()
    if library is None:
        return _compile_locked(text, target, assembly, names)
    with _machine(library, target) as machine:
        return _emit(library, machine, text, assembly, names)


def _compile_locked(text: str, target: Target, assembly: bool, names: Sequence[str] = ()) -> bytes:
    try:
        return llvm_worker.compile_module(text, target.triple, target.cpu, target.features, assembly=assembly)
    except RuntimeError as error:
        raise refused(names, str(error)) from error


# -- the same through functions of our own

# Target machines that no thread uses now. Taking and giving back are single operations of a list, so no lock is
# needed, which a fork could leave locked.
_idle: dict[Target, list[Any]] = {}


@functools.cache
def _library() -> Any:
    """The library with the signatures we need, or None."""
    return _declare(llvmlite_library())


def _declare(library: Any) -> Any:
    if library is None:
        return None
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    out = ctypes.POINTER(ctypes.c_char_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "LLVMPY_ContextCreate": (pointer, []),
        "LLVMPY_ContextDispose": (None, [pointer]),
        "LLVMPY_ParseAssembly": (pointer, [pointer, text, out]),
        "LLVMPY_DisposeModule": (None, [pointer]),
        "LLVMPY_GetTargetFromTriple": (pointer, [text, out]),
        "LLVMPY_CreateTargetMachine": (pointer, [pointer, text, text, text, number, text, text, number, number, text]),
        "LLVMPY_TargetMachineEmitToMemory": (pointer, [pointer, pointer, number, out]),
        "LLVMPY_GetBufferStart": (pointer, [pointer]),
        "LLVMPY_GetBufferSize": (ctypes.c_size_t, [pointer]),
        "LLVMPY_DisposeMemoryBuffer": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name, None)
        if function is None:
            return None
        function.restype, function.argtypes = result, arguments
    return library


@contextlib.contextmanager
def _machine(library: Any, target: Target) -> Iterator[Any]:
    """A target machine that is the caller's alone for a while; they are kept for the next one."""
    idle = _idle.setdefault(target, [])
    try:
        machine = idle.pop()
    except IndexError:
        machine = _new_machine(library, target)
    yield machine
    idle.append(machine)


def _new_machine(library: Any, target: Target) -> Any:
    message = ctypes.c_char_p()
    described = library.LLVMPY_GetTargetFromTriple(target.triple.encode(), ctypes.byref(message))
    machine = described and library.LLVMPY_CreateTargetMachine(
        described, target.triple.encode(), target.cpu.encode(), target.features.encode(),
        llvm_worker.OPTIMISE, b"pic", b"small", 0, 0, b"",
    )
    if not machine:
        raise CompileError(f"LLVM has no machine for {target.triple} {target.cpu}")
    return machine


def _emit(library: Any, machine: Any, text: str, assembly: bool, names: Sequence[str]) -> bytes:
    context = library.LLVMPY_ContextCreate()
    message = ctypes.c_char_p()
    try:
        module = library.LLVMPY_ParseAssembly(context, text.encode(), ctypes.byref(message))
        if not module:
            raise refused(names, (message.value or b"").decode())
        try:
            buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, int(not assembly), ctypes.byref(message))
            if not buffer:
                raise refused(names, (message.value or b"").decode())
            try:
                return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
            finally:
                library.LLVMPY_DisposeMemoryBuffer(buffer)
        finally:
            library.LLVMPY_DisposeModule(module)
    finally:
        library.LLVMPY_ContextDispose(context)
