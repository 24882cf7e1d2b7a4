"""`torch._check` and its kin on a traced condition: a check that the program makes when it runs.

What they would say may need other values, and may be any code of the user's, so that a call in which the condition is
false runs in Python (`errors.Replay`). So does one that has written something, or drawn random numbers, by the time
it raises (`raise_in_python`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from monograph import compat
from monograph.capture import blame
from monograph.capture.number import TracedNumber
from monograph.ir.graph import Graph

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["REPLAY", "checks_of_values", "raise_in_python"]

REPLAY = "monograph.errors:Replay"


def raise_in_python(graph: Graph) -> None:
    """Whatever the checks of a program would raise is raised by Python, after what it does before."""
    for node in graph.walk():
        if node.op.name == "mono.check":
            node.attributes = {"error": REPLAY, "message": None}


def checks_of_values(tracer: Tracer) -> AbstractContextManager[None]:
    """Inside, in this thread, `torch._check(condition)` takes a traced condition."""
    thread = threading.get_ident()

    def replacement(original: Callable[..., None]) -> Callable[..., None]:
        def check(error: type[Exception], condition: Any, message: Any = None) -> None:
            if threading.get_ident() != thread:
                return original(error, condition, message)
            if not isinstance(condition, TracedNumber):
                with tracer.sizes.asserted():
                    return original(error, condition, message)
            if condition.kind is not bool:
                return original(error, condition.kind(), message)           # torch says that it wants a bool
            if blame.may_be_caught():
                return original(error, tracer.holds(condition.tensor), message)
            tracer.record.loc = blame.location(blame.user_frame())
            tracer.check_value(condition.tensor, REPLAY, None)
        return check

    return compat.checking_with(replacement)
