"""Which line of the user's code is running, and which expression in it.

The user's frame is the innermost one outside torch, this package and the standard library's import
and functools machinery. Backward nodes have none; they get the line of the forward op whose
derivative they are, through autograd's sequence numbers.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

import torch

from monograph.source import SourceLoc

__all__ = ["expression", "is_user_code", "location", "user_frame"]

TORCH = os.path.dirname(torch.__file__) + os.sep
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
SKIPPED = (TORCH, OURS, "<frozen", os.path.dirname(os.__file__) + os.sep + "contextlib.py",
           os.path.dirname(os.__file__) + os.sep + "functools.py")

_user: dict[CodeType, bool] = {}
_locations: dict[tuple[CodeType, int], SourceLoc] = {}


def is_user_code(code: CodeType) -> bool:
    known = _user.get(code)
    if known is None:
        known = _user[code] = not code.co_filename.startswith(SKIPPED)
    return known


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame of the user's, starting `depth` callers up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and not is_user_code(frame.f_code):
        frame = frame.f_back
    return frame


def location(frame: FrameType | None) -> SourceLoc | None:
    """File, line and function of a frame."""
    if frame is None:
        return None
    code, line = frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
    known = _locations.get((code, line))
    if known is None:
        known = _locations[code, line] = SourceLoc(code.co_filename, line, code.co_qualname)
    return known


def expression(frame: FrameType | None) -> str:
    """The source text of the expression that `frame` is evaluating; the whole line where Python does not say."""
    if frame is None:
        return ""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno or 0, frame.f_globals).strip()
    positions = list(code.co_positions())
    start, end, left, right = positions[frame.f_lasti // 2]
    if start is None or end is None:
        return line
    lines = [linecache.getline(code.co_filename, n, frame.f_globals) for n in range(start, end + 1)]
    if not lines or not lines[0]:
        return line
    encoded = [text.encode() for text in lines]
    encoded[-1] = encoded[-1][:right]
    encoded[0] = encoded[0][left:]
    return _condition(" ".join(b"".join(encoded).decode().split()))


def _condition(text: str) -> str:
    """The condition alone, where Python names a whole `if` or `while` statement."""
    if not text.startswith(("if ", "elif ", "while ", "assert ")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == ":" and depth == 0:
            return text[:position]
    return text
