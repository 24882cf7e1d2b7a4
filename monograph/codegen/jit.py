"""Runs kernels on tensors in this process, through LLJIT: for tests and for choosing between candidates.

Programs are loaded by `runtime`, which needs no LLVM.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import itertools
import os
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import torch

from monograph.codegen.build import compile_kernels
from monograph.codegen.target import Target, host
from monograph.loops.nodes import Kernel

__all__ = ["load"]

_serial = itertools.count()
ERROR_WORDS = 8


def load(kernels: Sequence[Kernel], target: Target | None = None) -> dict[str, Callable[..., list[int] | None]]:
    """Compile `kernels`; each becomes a function of a list of tensors, one per argument that is not the error record.

    A tensor's memory from its first element on is the buffer. The result is None, or the values of the failed check
    behind its code.
    """
    target = target or host()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small", jit=True
    )
    jit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=False)
    builder = llvm.JITLibraryBuilder().add_current_process()
    for data in compile_kernels(kernels, target, jobs=1):
        builder.add_object_img(data)
    for name, address in _openmp().items():
        builder.import_symbol(name, address)
    for kernel in kernels:
        builder.export_symbol(kernel.name)
    library = builder.link(jit, f"kernels{next(_serial)}")
    return {kernel.name: _callable(kernel, library[kernel.name], (jit, library)) for kernel in kernels}


@functools.cache
def _openmp() -> dict[str, int]:
    """The functions of torch's own libgomp."""
    found = glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libgomp*.so*"))
    library = ctypes.CDLL(found[0] if found else "libgomp.so.1")
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    return {name: _address(library, name) for name in names}


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def _callable(kernel: Kernel, address: int, keep: object) -> Callable[..., list[int] | None]:
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)

    def call(tensors: Sequence[torch.Tensor]) -> list[int] | None:
        record = (ctypes.c_int64 * ERROR_WORDS)()
        rest = iter(tensors)
        pointers = (ctypes.c_void_p * max(1, len(kernel.arguments)))()
        for position, buffer in enumerate(kernel.arguments):
            if buffer.kind == "error":
                pointers[position] = ctypes.addressof(record)
            else:
                tensor = next(rest)
                if tensor.dtype is not buffer.dtype:
                    raise TypeError(f"{buffer!r} is {buffer.dtype}, not {tensor.dtype}")
                pointers[position] = tensor.data_ptr()
        failed = function(ctypes.addressof(pointers))
        return list(record) if failed else None

    call.keep = keep        # type: ignore[attr-defined]
    return call
