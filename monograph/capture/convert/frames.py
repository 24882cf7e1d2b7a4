"""Frames that converted code has and its source has not.

A branch or a loop body runs in a function of its own (a region), called by an operator. In a traceback the frame of
the region stands for the function's: same file and name, the line that ran (`monograph.tracebacks`).
`warnings.warn(..., stacklevel=2)` means the caller of the user's function, wherever in it the call stands.
"""

from __future__ import annotations

import os
import sys
import types

__all__ = ["REGIONS", "level"]

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

# Code objects of functions that the source has not, by id; the cache of conversions keeps them.
REGIONS: set[int] = set()


def level(wanted: object) -> object:
    """A `stacklevel` counted from the caller's frame as its source would count it."""
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 2:
        return wanted
    frame: types.FrameType | None = sys._getframe(1)
    extra = 0
    while frame is not None and _of_ours(frame.f_code):
        extra += 1
        frame = frame.f_back
    return wanted + extra


def _of_ours(code: types.CodeType) -> bool:
    return id(code) in REGIONS or code.co_filename.startswith(HERE)
