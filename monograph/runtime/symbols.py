"""Functions that native code may call, by name: OpenMP, libm, libc, SLEEF, and what this runtime offers.

OpenMP must be the very library torch uses: two thread pools fight for the cores, and
torch.set_num_threads would not reach ours.
"""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path

import torch

from monograph.runtime import threads

__all__ = ["Externals", "externals"]

_OPENMP_FILE = re.compile(r"lib(gomp|iomp5|omp)\b[^/]*$")
_OPENMP_NAME = re.compile(r"^(GOMP_|omp_)")


@functools.cache
def _openmp() -> tuple[ctypes.CDLL, ...]:
    """The OpenMP library already in this process (torch loaded it); empty when there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if path.startswith("/") and _OPENMP_FILE.search(path):
            return (ctypes.CDLL(path),)
    return ()


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    torch_cpu = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    paths: list[str | None] = ["libm.so.6", None]       # None: the process itself, hence libc
    if torch_cpu.exists():
        paths.append(str(torch_cpu))
    return tuple([ctypes.CDLL(path) for path in paths])


class Externals(dict[str, int]):
    """name -> address, looked up in the libraries on first use; KeyError where none has it."""

    def __missing__(self, name: str) -> int:
        for library in _openmp() if _OPENMP_NAME.match(name) else _libraries():
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
