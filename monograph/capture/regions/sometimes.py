"""Variables that have a value on some paths only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monograph.capture.convert.operators import UNBOUND, Perhaps

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["OURS", "Sometimes", "split"]

OURS = "$"         # what names start with that are not the user's


class Sometimes(Perhaps):
    """`value`, where `bound` (a traced bool, or Python's) says that there is one."""

    def __init__(self, tracer: Tracer, bound: Any, value: Any) -> None:
        self.tracer = tracer
        self.bound = bound
        self.value = value

    def read(self, message: str) -> Any:
        if self.bound is False:
            raise UnboundLocalError(message)
        if self.bound is not True:
            self.tracer.check_value(self.bound.tensor, "UnboundLocalError", message)
        return self.value


def split(value: Any) -> tuple[Any, Any]:
    """Whether a variable has a value, and it; UNBOUND where it never has one."""
    if value is UNBOUND:
        return False, UNBOUND
    return (value.bound, value.value) if isinstance(value, Sometimes) else (True, value)
