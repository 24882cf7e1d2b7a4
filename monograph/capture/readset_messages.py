"""What user code says while it is traced, to be said again at every call.

    Message ::= print(values, sep, end, stream)  |  warning(message, category, file, line, module, registry)
              | what readset_logging keeps

What is printed becomes results of the program, so that tensors and numbers are printed with the values of each call.
A warning is issued from the user's line, so that the filters and the once-per-line rule work as in eager.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph.capture.readset_logging import Logged, Written, is_remembered
from monograph.capture.tree import is_size
from monograph.errors import UnsupportedError
from monograph.source import SourceLoc

__all__ = ["Message", "Printed", "Warned", "frozen", "keep_print", "keep_warn"]

Frame = Callable[[], Any]


@dataclass(frozen=True)
class Printed:
    values: tuple[Any, ...]
    sep: str | None
    end: str | None
    stream: str = "stdout"
    once: bool = False

    def say(self, values: tuple[Any, ...]) -> None:
        """Print `values`, which are `self.values` as they are in this call."""
        print(*values, sep=self.sep, end=self.end, file=getattr(sys, self.stream))


@dataclass(frozen=True)
class Warned:
    message: Any
    category: type[Warning]
    file: str
    line: int
    module: str
    globals: dict[str, Any]
    values: tuple[Any, ...] = ()
    once: bool = False

    def say(self, values: tuple[Any, ...]) -> None:
        registry = self.globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(self.message, self.category, self.file, self.line, self.module, registry)


Message = Printed | Warned | Logged | Written


def keep_print(messages: list[Message], user_frame: Frame, old: Any) -> Any:
    def print(*values: Any, sep: str | None = None, end: str | None = None, file: Any = None, **more: Any) -> None:
        frame = user_frame()
        if frame is None or file not in (None, sys.stdout, sys.stderr):
            return old(*values, sep=sep, end=end, file=file, **more)
        stream = "stderr" if file is not None and file is sys.stderr else "stdout"
        messages.append(Printed(frozen(values, frame, "printed"), sep, end, stream, is_remembered(frame)))

    return print


def frozen(values: Any, frame: Any, what: str) -> Any:
    """`values` as they are now: a tensor may be written to later on."""
    if any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in pytree.tree_leaves(values)):
        raise UnsupportedError(f"a tensor that requires grad is {what} while the program is captured",
                               loc=location(frame), why="what is printed is made after the run, without its history",
                               hint="give `tensor.detach()`")
    return pytree.tree_map_only(torch.Tensor, torch.clone, values, is_leaf=is_size)


def keep_warn(messages: list[Message], user_frame: Frame, old: Any) -> Any:
    def warn(message: Any, category: Any = None, stacklevel: int = 1, *rest: Any, **more: Any) -> None:
        frame = user_frame()
        if frame is None:
            return old(message, category, stacklevel + 1, *rest, **more)
        if isinstance(message, Warning):
            category = type(message)
        for _ in range(stacklevel - 1):
            frame = frame.f_back or frame
        messages.append(Warned(message, category or UserWarning, frame.f_code.co_filename, frame.f_lineno,
                               frame.f_globals.get("__name__", "<string>"), frame.f_globals))

    return warn


def location(frame: Any) -> SourceLoc:
    return SourceLoc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
