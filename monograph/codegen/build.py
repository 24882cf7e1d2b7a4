"""From LLVM IR text to objects and assembly, in parallel.

Kernels are spread over modules, one per worker; each worker has an LLVM context and target machine of its
own. LLVM itself needs no lock for that; llvmlite's is passed by (`compat.llvmlite_library`), and where it
cannot be, the same work is done under it. No mid-end passes run: vectors are explicit and code is hoisted by emission.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import llvmlite.binding as llvm

from monograph.codegen.llvm import emit_module
from monograph.codegen.target import Target, initialise
from monograph.compat import llvmlite_library
from monograph.errors import CompileError
from monograph.loops.nodes import Kernel

__all__ = ["Store", "assembly", "compile_kernels", "compile_text"]

Store: TypeAlias = Callable[[str, Callable[[], bytes]], bytes]
"""(what the object depends on, how to make it) -> the object."""

OPTIMISE = 3                    # of instruction selection and scheduling
SMALLEST_SHARE = 2              # kernels that make another thread worth starting


def compile_kernels(
    kernels: Sequence[Kernel], target: Target, jobs: int | None = None, store: Store | None = None
) -> list[bytes]:
    """ELF relocatable objects that define `i32 name(ptr)` for every kernel (names must differ).

    With a `store`, the name of a kernel must tell what it does: objects are looked up by the names in them.
    """
    if not kernels:
        return []
    workers = jobs if jobs is not None else os.cpu_count() or 1
    workers = max(1, min(workers, len(kernels) // SMALLEST_SHARE))
    shares = [list(kernels[i::workers]) for i in range(workers)]
    if workers == 1:
        return [_object(shares[0], target, store)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda share: _object(share, target, store), shares))


def _object(share: Sequence[Kernel], target: Target, store: Store | None) -> bytes:
    def make() -> bytes:
        return compile_text(emit_module(share, target), target)

    names = "\n".join(kernel.name for kernel in share)
    return make() if store is None else store(f"{target}\n{names}", make)


def assembly(kernel: Kernel, target: Target) -> str:
    """The machine code of one kernel, as text."""
    return compile_text(emit_module([kernel], target), target, assembly=True).decode()


def compile_text(text: str, target: Target, *, assembly: bool = False) -> bytes:
    """Object code (or assembly) of a module's text."""
    initialise()
    _set_options()
    library = _library()
    if library is None:
        return _compile_locked(text, target, assembly)
    return _compile_free(library, text, target, assembly)


@functools.cache
def _set_options() -> None:
    # Loop strength reduction takes half the time of compiling a register tile and gains nothing: emission has
    # hoisted the addresses already. (Measured on GEMM and convolution tiles: 57 -> 31 ms, equal speed.)
    llvm.set_option("monograph", "-disable-lsr")


def _compile_locked(text: str, target: Target, assembly: bool) -> bytes:
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=OPTIMISE, reloc="pic", codemodel="small",
    )
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses a kernel: {error}") from error
    code = machine.emit_assembly(module).encode() if assembly else machine.emit_object(module)
    return bytes(code)


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
        OPTIMISE, b"pic", b"small", 0, 0, b"",
    )
    if not machine:
        raise CompileError(f"LLVM has no machine for {target.triple} {target.cpu}")
    return machine


def _compile_free(library: Any, text: str, target: Target, assembly: bool) -> bytes:
    with _machine(library, target) as machine:
        return _emit(library, machine, text, assembly)


def _emit(library: Any, machine: Any, text: str, assembly: bool) -> bytes:
    context = library.LLVMPY_ContextCreate()
    message = ctypes.c_char_p()
    try:
        module = library.LLVMPY_ParseAssembly(context, text.encode(), ctypes.byref(message))
        if not module:
            raise CompileError(f"LLVM refuses a kernel: {(message.value or b'').decode()}")
        try:
            buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, int(not assembly), ctypes.byref(message))
            if not buffer:
                raise CompileError(f"LLVM emits no code: {(message.value or b'').decode()}")
            try:
                return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
            finally:
                library.LLVMPY_DisposeMemoryBuffer(buffer)
        finally:
            library.LLVMPY_DisposeModule(module)
    finally:
        library.LLVMPY_ContextDispose(context)
