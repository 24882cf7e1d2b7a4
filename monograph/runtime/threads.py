"""How many threads native code may use.

Kernels start their parallel regions with `GOMP_parallel(fn, data, 0, 0)`: 0 asks for as many threads as
`torch.set_num_threads` allows. The loader connects that name to `monograph_parallel` of the runner, which
first reads one cell in this process: 0 leaves the choice to OpenMP, 1 means "run on this thread".

# Note [Threads after fork]
A forked child inherits the parent's OpenMP pool without its threads: the first parallel region would
wait for them forever (torch's own parallel ops do; DataLoader workers avoid it by
`torch.set_num_threads(1)`). So a child sets the cell to 1 before it runs anything else, and kernels there
run on the calling thread. Where a program needs torch's own ops (library steps, derived weights), it first
sets torch's number of threads to 1 in the child. A child whose parent never used OpenMP pays with one
thread; nothing hangs. (Whether the pool exists cannot be asked, nor told from the number of threads: the BLAS of
numpy has some.)
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import torch

__all__ = ["after_fork", "cell_address", "make_torch_safe", "prepare"]

_cell = ctypes.c_int32(0)
_resets: list[Callable[[], None]] = []

prepare: Callable[[], int] = torch.get_num_threads
"""Make OpenMP on the calling thread follow torch.set_num_threads.

A thread that never ran a parallel op of torch still has OpenMP's default, one thread per core; asking torch
for the number is what sets it.
"""


def cell_address() -> int:
    """Where the runner reads the limit (i32)."""
    return ctypes.addressof(_cell)


def make_torch_safe() -> None:
    """Before torch ops that may be parallel: in a forked child, keep them on this thread."""
    if _cell.value == 1 and torch.get_num_threads() > 1:
        torch.set_num_threads(1)


def after_fork(reset: Callable[[], None]) -> None:
    """Call `reset` in every forked child: for locks another thread may hold at that moment."""
    _resets.append(reset)


def _enter_child() -> None:
    _cell.value = 1
    for reset in _resets:
        reset()


os.register_at_fork(after_in_child=_enter_child)
