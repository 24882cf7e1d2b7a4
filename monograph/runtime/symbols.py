"""Functions that native code may call, by name: OpenMP, libm, libc, SLEEF, and what this runtime offers.

OpenMP must be the very library torch uses, though others may be loaded: two thread pools fight for the cores,
and torch.set_num_threads would not reach ours. So it is looked up from libtorch_cpu, which finds its own.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

from monograph.runtime import threads

__all__ = ["Externals", "externals"]

_OPENMP_PREFIXES = ("GOMP_", "omp_")


@functools.cache
def _libraries(is_openmp: bool) -> tuple[ctypes.CDLL, ...]:
    """Where to look, in order. A library's dependencies are searched with it; None is the process, hence libc."""
    torch_cpu = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    paths: list[str | None] = [str(torch_cpu)] if torch_cpu.exists() else []
    if not is_openmp:
        paths[:0] = ["libm.so.6", None]
    return tuple([ctypes.CDLL(path) for path in paths or [None]])


class Externals(dict[str, int]):
    """name -> address, looked up in the libraries on first use; KeyError where none has it."""

    def __missing__(self, name: str) -> int:
        for library in _libraries(name.startswith(_OPENMP_PREFIXES)):
            try:
                address = ctypes.cast(library[name], ctypes.c_void_p).value
            except AttributeError:
                continue
            if address:
                self[name] = address
                return address
        raise KeyError(name)


@functools.cache
def externals() -> Externals:
    """The table of this process."""
    return Externals({"monograph_threads": threads.cell_address()})
