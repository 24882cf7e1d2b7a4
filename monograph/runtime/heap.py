"""Free memory of the C library's heap, given back to the system.

What tracing, building and compiling freed stays with the process as pages that weights, which are mapped on their own,
cannot use: some 20 MB where a model's construction left them. Asking takes about 2 ms. (glibc only. Python's cyclic
collector would find nothing more worth its 100 ms: graphs are kept for `explain`.)
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

__all__ = ["give_back"]


def give_back() -> bool:
    """Return free pages to the system. False where the C library has no such function, or nothing was free."""
    trim = _trim()
    return bool(trim is not None and trim(0))


@functools.cache
def _trim() -> Any:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):      # TypeError: Windows has no "whole process" to look in
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim
