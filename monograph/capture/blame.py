"""Which line of the user's code is running, and which expression in it.

The user's frame is the innermost one outside torch, this package and the standard library's import
and functools machinery. Backward nodes have none; they get the line of the forward op whose
derivative they are, through autograd's sequence numbers.
"""

from __future__ import annotations

import dis
import importlib.util
import linecache
import os
import sys
import warnings
from types import CodeType, FrameType
from typing import Any

import torch

from monograph.source import SourceLoc

__all__ = ["ALGEBRA", "asking", "asking_frame", "expression", "has_reached_user", "is_of_torch", "is_ours", "is_trace",
           "is_user_code", "know_lines", "line_behind", "location", "raised_by_us", "raised_by_user", "raises_at",
           "reads_attribute", "site", "user_frame", "warn"]

TORCH = os.path.dirname(torch.__file__) + os.sep
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
ALGEBRA = tuple(os.path.dirname(found.origin) + os.sep for found in map(importlib.util.find_spec, ("sympy", "mpmath"))
                if found is not None and found.origin is not None)         # torch computes with sizes by their means
SKIPPED = (TORCH, OURS, *ALGEBRA, "<frozen", os.path.dirname(os.__file__) + os.sep + "contextlib.py",
           os.path.dirname(os.__file__) + os.sep + "functools.py", os.path.dirname(importlib.__file__) + os.sep)

ENDS = frozenset("CHECK_EXC_MATCH CHECK_EG_MATCH WITH_EXCEPT_START POP_EXCEPT RAISE_VARARGS RETURN_VALUE".split())
JUMPS = frozenset("JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT".split())

_user: dict[int, tuple[CodeType, bool]] = {}         # by identity: the hash of code is that of all its constants
_locations: dict[tuple[int, int], tuple[CodeType, SourceLoc]] = {}       # by identity of the code, and line
_lines: dict[str, dict[int, SourceLoc]] = {}        # of generated text: the user's line behind each


def is_user_code(code: CodeType) -> bool:
    known = _user.get(id(code))
    if known is None:
        known = _user[id(code)] = code, not code.co_filename.startswith(SKIPPED)
    return known[1]


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(OURS)


def is_trace(code: CodeType) -> bool:
    """Whether what `code` calls is traced."""
    return code.co_name == "_trace" and is_ours(code)


def is_of_torch(code: CodeType) -> bool:
    return code.co_filename.startswith(TORCH)


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame of the user's, starting `depth` callers up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        known = _user.get(id(frame.f_code))
        if known[1] if known is not None else is_user_code(frame.f_code):
            return frame
        frame = frame.f_back
    return None


# Python files of torch that only pass a question on.
ITERATES = torch.Tensor.__iter__.__code__
PASS_ON = (TORCH + "_tensor.py", TORCH + "overrides.py", TORCH + "utils", TORCH + "_ops.py", TORCH + "_jit_internal.py",
           TORCH + "_dynamo", TORCH + "_compile.py", TORCH + "_subclasses", TORCH + "autograd")


def asking_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame, torch's own included, that may have asked for a value: the next one to convert."""
    return asking(sys._getframe(depth))


def asking(frame: FrameType | None) -> FrameType | None:
    """The first such one among `frame` and its callers."""
    while frame is not None and frame.f_code.co_filename.startswith((OURS, "<frozen", *PASS_ON)):
        frame = frame.f_back
    return frame


def looping_frame() -> FrameType | None:
    """As `asking_frame`, where the tensor that is asked is being iterated over."""
    frame, found = asking_frame(), sys._getframe(1)
    while found is not frame and found.f_back is not None:
        if found.f_code is ITERATES:
            return frame
        found = found.f_back
    return None


def site(kind: str) -> Any:
    """What a trace that starts again knows a statement or expression by: the one of the user's that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return kind, frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lineno, frame.f_lasti


def reads_attribute(frame: FrameType, name: str) -> bool:
    """Whether the instruction that runs in `frame` is `x.name`."""
    code, at = frame.f_code, frame.f_lasti
    if dis.opname[code.co_code[at]] != "LOAD_ATTR":
        return False
    argument = code.co_code[at + 1]
    if code.co_code[at - 2] == dis.EXTENDED_ARG:
        argument |= code.co_code[at - 1] << 8
    return code.co_names[argument >> int(sys.version_info >= (3, 12))] == name      # the low bit is a flag since then


def raises_at(code: CodeType, instruction: int) -> bool:
    """Whether the instruction at byte offset `instruction` is a `raise`."""
    return dis.opname[code.co_code[instruction]] in ("RAISE_VARARGS", "RERAISE")


def raise_location(error: BaseException) -> SourceLoc | None:
    """Where an exception was raised: the innermost line of its traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    code = trace.tb_frame.f_code
    return SourceLoc(code.co_filename, trace.tb_lineno, code.co_qualname)


def has_reached_user(error: BaseException) -> bool:
    """Whether an exception came as far as a frame of the user's code: the outermost that it passed."""
    trace = error.__traceback__
    return trace is not None and is_user_code(trace.tb_frame.f_code)


def may_be_caught() -> bool:
    """Whether an exception raised here could meet a handler of the user's that ends it (`except`, a `with` that looks
    at it). A `finally` raises it again."""
    frame = user_frame(2)
    while frame is not None:
        code = frame.f_code
        if is_user_code(code) and _may_end(code, frame.f_lasti):
            return True
        if is_trace(code):
            return False
        frame = frame.f_back
    return False


def _may_end(code: CodeType, instruction: int) -> bool:
    """Whether code that handles an exception of an instruction may go on without it, or raise another one."""
    if sys.version_info < (3, 11):       # it has no table of handlers: look for any at all
        return any(entry.opname == "SETUP_FINALLY" for entry in dis.get_instructions(code))
    table: Any = dis._parse_exception_table(code)      # type: ignore[attr-defined]

    def handlers(offset: int) -> list[int]:
        return [entry.target for entry in table if entry.start <= offset < entry.end]

    pending, seen = handlers(instruction), set[int]()
    steps = list(dis.get_instructions(code)) if pending else []
    places = {step.offset: place for place, step in enumerate(steps)}
    while pending:
        place = places[pending.pop()]
        if place in seen:
            continue
        seen.add(place)
        step, name = steps[place], steps[place].opname
        if name in ENDS and not (name == "POP_EXCEPT" and steps[place + 1].opname == "RERAISE"):
            return True
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            pending.append(step.argval)
        if name == "RERAISE":
            pending += handlers(step.offset)
        elif name not in JUMPS:
            pending.append(steps[place + 1].offset)
    return False


def know_lines(file: str, lines: dict[int, SourceLoc]) -> None:
    """`file` is text generated from the user's: `lines` are those behind it."""
    _lines[file] = lines


def line_behind(code: CodeType, line: int) -> SourceLoc | None:
    """The user's line behind a line of generated text; None for any other."""
    return _lines.get(code.co_filename, {}).get(line)


def location(frame: FrameType | None) -> SourceLoc | None:
    """File, line and function of a frame."""
    if frame is None:
        return None
    code, line = frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
    known = _locations.get((id(code), line))
    if known is None:
        found = line_behind(code, line) or SourceLoc(code.co_filename, line, code.co_qualname)
        known = _locations[id(code), line] = code, found
    return known[1]


def raised_by_user(error: BaseException) -> SourceLoc | None:
    """The user's innermost line that an exception passed through."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_user_code(code):
            found = line_behind(code, trace.tb_lineno) or SourceLoc(code.co_filename, trace.tb_lineno, code.co_qualname)
        trace = trace.tb_next
    return found


def raised_by_us(error: BaseException) -> bool:
    """Whether the innermost line that an exception passed through is this package's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_ours(trace.tb_frame.f_code)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the line of the user's that is running."""
    loc = location(user_frame(2))
    warnings.warn_explicit(text, category, *(("<unknown>", 0) if loc is None else (loc.file, loc.line)))


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
