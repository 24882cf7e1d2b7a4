"""What leaves a compiled callable shows the user's frames as eager does, and none of this package's.

    try:
        return dispatcher(...)
    except BaseException as error:
        tracebacks.leave(error)
        raise                       # without a new entry for this frame

Errors that are faults of ours keep every frame, and so do all under MONOGRAPH_DEBUG. Exceptions with which parts of
the package speak to each other vanish from `__context__`. Text that was generated from the user's (Dynamo's graphs) is
shown as the line behind it. Before Python 3.11 the frame that raises again stays.
"""

from __future__ import annotations

import types
from collections.abc import Iterator

from monograph.capture import blame
from monograph.capture.convert import frames
from monograph.config import shows_all_frames
from monograph.dispatch import TraceFailed, plainly
from monograph.errors import CompileError, MonographError, RaisesInBackward, Replay, VerificationError, WrongPath
from monograph.ops import own
from monograph.source import stand_in

__all__ = ["leave"]

INTERNAL = (RaisesInBackward, Replay, TraceFailed, WrongPath)
PROGRAM = (plainly.__code__, own.check.__code__)      # of ours, where what the program raises may begin
Trace = types.TracebackType


def leave(error: BaseException, *, of_program: bool = False) -> None:
    """Make the traceback of an error, and of those it came from, what eager's would be; a refusal that does not say
    where gets the user's innermost line. `of_program`: the program raised it, however it looks."""
    if shows_all_frames() or not of_program and _is_fault(error):
        return
    if isinstance(error, MonographError):
        error.locate(blame.raised_by_user(error) or blame.location(blame.user_frame(2)))
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _forget_context(one)
        pending += [one.__cause__, one.__context__]
        if _passed_us(one) and not (one is not error and _is_fault(one)):
            one.__traceback__ = _chain(_of_user(one.__traceback__))


def _is_fault(error: BaseException) -> bool:
    """Whether an error tells of a fault of this package, which its frames help to find."""
    if isinstance(error, MonographError):
        return isinstance(error, (CompileError, VerificationError))
    return blame.raised_by_us(error) and _codes(error)[-1] not in PROGRAM


def _passed_us(error: BaseException) -> bool:
    return any(blame.is_ours(code) for code in _codes(error))


def _codes(error: BaseException) -> list[types.CodeType]:
    return [entry.tb_frame.f_code for entry in _entries(error.__traceback__)]


def _entries(trace: Trace | None) -> Iterator[Trace]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _forget_context(error: BaseException) -> None:
    """A context that this package made goes: its signals, and what it was dealing with when it refused."""
    while (context := error.__context__) is not None and context is not error.__cause__ and (
            isinstance(context, INTERNAL) or isinstance(error, MonographError) and _passed_us(context)):
        error.__context__ = context.__context__


def _of_user(trace: Trace | None) -> list[Trace]:
    """The entries to show: all but ours and what stands between two of them, and behind the user's last one nothing
    that we called. A region of converted code stands for the function that it belongs to."""
    entries = list(_entries(trace))
    last = max((i for i, entry in enumerate(entries) if _is_programs(entry.tb_frame.f_code)), default=-1)
    shown: list[Trace] = []
    held: list[Trace] = []              # of torch and the standard library, since the last entry of others
    ours = False                        # that one was ours
    for i, entry in enumerate(entries):
        code = entry.tb_frame.f_code
        if blame.is_ours(code):
            shown += [] if ours else held
            if i > last:
                return shown
            held, ours = [], True
        elif blame.is_user_code(code):
            if id(code) in frames.REGIONS:
                while shown and not blame.is_user_code(shown.pop().tb_frame.f_code):
                    pass
                held = []
            behind = blame.line_behind(code, entry.tb_lineno)
            shown += [*held, entry if behind is None else stand_in(behind)]
            held, ours = [], False
        else:
            held.append(entry)
    return shown + held


def _is_programs(code: types.CodeType) -> bool:
    return blame.is_user_code(code) or code is plainly.__code__


def _chain(entries: list[Trace]) -> Trace | None:
    result: Trace | None = None
    for entry in reversed(entries):
        result = Trace(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result

