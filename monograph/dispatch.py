"""One compiled callable: its entries, the check of every call, and what happens when none fits.

    Dispatcher ::= function  options  Entry*          newest hit first
    Entry      ::= guard  run(leaves, args, kwargs)   one captured graph and the facts it assumed

A call asks each entry's guard. When none holds the function is captured again and the reasons are kept. Under
an active mode (another capture, vmap, a user's dispatch mode) the plain function runs, so that the mode sees every op.
Runs take no lock; capture and compilation hold one.
"""

from __future__ import annotations

import logging
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree

from monograph import compat, wrappers
from monograph.capture import blame
from monograph.capture.guards import Guard
from monograph.capture.guards_ambient import modes_active
from monograph.capture.readset_hooks import LOCK
from monograph.capture.symbols import Place, Request
from monograph.config import Options
from monograph.errors import (
    CaptureError,
    DeviceError,
    InputError,
    RaisesInBackward,
    UninitializedError,
    UnsupportedError,
    WrongPath,
)
from monograph.ops.own import IN_REGION
from monograph.varying import History

__all__ = ["Call", "Dispatcher", "Entry", "Recompile", "TraceFailed", "argument", "check_arguments", "known",
           "plainly"]

Call: TypeAlias = Callable[[list[Any], tuple[Any, ...], dict[str, Any]], Any]     # (leaves, args, kwargs) -> result

LIMIT = 64      # entries of one callable; further signatures run eagerly
STREAK = 32      # new versions in a row of which none was used again: compiling more would not pay
STORM = 8       # versions that one callable may have before a warning says so
TRACED = "while it is traced, tensors have sizes but no values, and numbers stand for values"
logger = logging.getLogger("monograph")


class TraceFailed(Exception):
    """The program raised `error` while it was traced, maybe in its backward. Never leaves the dispatcher."""

    def __init__(self, error: Exception) -> None:
        self.in_backward = isinstance(error, RaisesInBackward)
        self.error: Exception = error.fault if isinstance(error, RaisesInBackward) else error
        super().__init__(error)


class TooMany(CaptureError):
    """Another version would be one too many."""


@dataclass
class Entry:
    """`report` holds what the pipeline did, for `explain`; `reads`: the values that the trace read, by number;
    `fixed`: sizes that were to be symbols but could not, and why."""

    guard: Guard
    run: Call
    report: Any = None
    reads: dict[Any, str] = field(default_factory=dict)
    fixed: dict[Place, str] = field(default_factory=dict)

    def changed(self, wrong: WrongPath) -> str:
        """In words: which value that the trace read is another one in this call."""
        read = self.reads.get(wrong.number)
        return f"{read} -> {', '.join(map(str, wrong.actual))}" if read is not None else str(wrong)


@dataclass(frozen=True)
class Recompile:
    """Why no entry fitted a call: the facts that each existing entry, newest hit first, found changed."""

    reasons: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return "; or ".join(", ".join(reasons[:3]) or "unknown" for reasons in self.reasons)

    @property
    def newest(self) -> str:
        """What the entry that was hit last found changed."""
        return str(Recompile(self.reasons[:1]))


@dataclass(eq=False)
class Dispatcher:
    """Calls like `function`. `build(function, args, kwargs, options, request, told) -> Entry` compiles."""

    function: Callable[..., Any]
    options: Options
    build: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Options, Request, bool], Entry]
    name: str = "function"
    entries: tuple[Entry, ...] = ()
    recompiles: list[Recompile] = field(default_factory=list)
    refused: set[Any] = field(default_factory=set)
    streak: int = 0
    warned: bool = False
    stormed: bool = False
    opens: bool = False                  # results are tensors around tensors
    variants: list[wrappers.Variant] = field(default_factory=list)      # for arguments that wrap tensors

    def __post_init__(self) -> None:
        self.history = History(self.options.dynamic)
        known.add(self)

    def reset(self) -> None:
        """As before the first call."""
        with LOCK:
            self.entries, self.streak, self.warned, self.stormed = (), 0, False, False
            self.recompiles.clear()
            self.variants.clear()
            self.opens = False
            self.refused.clear()
            self.history.clear()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        for entry in self.entries:
            leaves = entry.guard.check(args, kwargs)
            if leaves is not None:
                if entry is not self.entries[0]:
                    self._promote(entry)
                if self.streak:
                    self.streak = 0
                try:
                    return entry.run(leaves, args, kwargs)
                except WrongPath as wrong:
                    return self.another_path(entry, wrong, args, kwargs)
        return self.miss(args, kwargs)

    def another_path(self, tried: Entry, wrong: WrongPath, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tried` fits the call, but a value that its trace read differs: run or make the version for this one."""
        reasons = [tried.changed(wrong)]
        for entry in self.entries:
            leaves = entry.guard.check(args, kwargs) if entry is not tried else None
            if leaves is not None:
                try:
                    result = entry.run(leaves, args, kwargs)
                except WrongPath as another:
                    reasons.append(entry.changed(another))
                    continue
                self._promote(entry)
                return result
        with LOCK:
            made, refusal = self._compile(args, kwargs, reasons, told=wrong.number != IN_REGION)
        if made is None:
            return self._eager(args, kwargs, refusal)
        leaves = made.guard.check(args, kwargs)
        assert leaves is not None, made.guard.failures(args, kwargs)
        try:
            return made.run(leaves, args, kwargs)
        except WrongPath as again:
            why = UnsupportedError(f"the very call that was captured runs otherwise: {again}",
                                   why="the program reads something that changes by itself")
            return self._eager(args, kwargs, why)

    def _promote(self, entry: Entry) -> None:
        self.entries = (entry, *(other for other in self.entries if other is not entry))

    def miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """No entry fits: capture and compile for these arguments, or run plainly where that is right."""
        if modes_active():
            return plainly(self.function, args, kwargs)
        check_arguments(args, kwargs)
        if self.opens or wrappers.any_in(args, kwargs):
            return wrappers.call(self, self.variants, self._variant, args, kwargs)
        if self.refused and signature(args, kwargs) in self.refused:
            return plainly(self.function, args, kwargs)
        with LOCK:
            entry, leaves = self._find(args, kwargs)
            refusal = None
            if entry is None:
                entry, refusal = self._compile(args, kwargs)
        if entry is None:
            return self._eager(args, kwargs, refusal)
        if leaves is None:
            leaves = entry.guard.check(args, kwargs)
            assert leaves is not None, entry.guard.failures(args, kwargs)
        try:
            return entry.run(leaves, args, kwargs)
        except WrongPath as wrong:
            return self.another_path(entry, wrong, args, kwargs)

    def _variant(self, function: Callable[..., Any]) -> Dispatcher:
        """For the same function behind `function`, which opens wrappers; it counts among this one's versions."""
        return Dispatcher(function, self.options, self.build, self.name, recompiles=self.recompiles)

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 reasons: Sequence[str] = (), told: bool = True) -> tuple[Entry | None, Exception | None]:
        """A new entry, or why there is none; `reasons`: of the entries that fit, which values read by their traces
        differ; `told`: sizes that values decide may be symbols. An interrupt leaves no entry behind."""
        self._note(args, kwargs, reasons)
        if len(self.entries) >= LIMIT or self.streak >= STREAK:
            return None, TooMany(f"it was compiled {len(self.entries)} times, at last because of "
                                 f"{self.recompiles[-1].newest}")
        self.streak += 1
        try:
            request = self.history.request(args, kwargs)
            entry = self.build(self.function, args, kwargs, self.options, request, told)
        except TraceFailed as failed:
            return None, failed
        except UninitializedError as error:
            return None, error
        except CaptureError as error:
            if isinstance(error, UnsupportedError) and error.wraps and not isinstance(self.function, wrappers.Opened):
                self.opens = True
                return None, error
            if self.options.fullgraph or error.final:
                raise
            return None, error
        self.entries = (entry, *self.entries)
        self.history.note(args, kwargs, list(entry.fixed), entry.guard)
        if len(self.entries) > STORM and not self.stormed:
            self.stormed = True
            self._warn(f"{self.name} was compiled {len(self.entries)} times, at last because of "
                       f"{self.recompiles[-1].newest}. "
                       "Keep what changes out of Python: pass it in as a tensor, or compile a smaller function; "
                       "`recompiles` of the compiled object lists all reasons")
        return entry, None

    def _warn(self, text: str) -> None:
        """At the line of the user's that called."""
        loc = blame.location(blame.user_frame(2))
        warnings.warn_explicit(text, UserWarning, *(("<unknown>", 0) if loc is None else (loc.file, loc.line)))

    def _eager(self, args: tuple[Any, ...], kwargs: dict[str, Any], why: Exception | None) -> Any:
        """Run plainly; where results are tensors around tensors, by what those hold. What the program raises while it
        is traced it raises here too, in eager's own words, or when its backward runs."""
        if self.opens:
            return wrappers.call(self, self.variants, self._variant, args, kwargs)
        result = plainly(self.function, args, kwargs)
        if isinstance(why, UninitializedError):
            return result
        text = str(why)
        if isinstance(why, TraceFailed):
            where = "its backward" if why.in_backward else "tracing it"
            text = f"{where} raised {type(why.error).__name__}: {why.error}"
            if self.options.fullgraph and not why.in_backward:
                raise UnsupportedError(f"{self.name} runs eagerly, but {text}",
                                       loc=blame.raised_by_user(why.error), why=TRACED) from why.error
        if not self.warned:
            self._warn(f"{self.name} runs eagerly: {text}")
            self.warned = True
        if not isinstance(why, TooMany):
            self.refused.add(signature(args, kwargs))
        return result

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Entry | None, Any]:
        for entry in self.entries:
            leaves = entry.guard.check(args, kwargs)
            if leaves is not None:
                return entry, leaves
        return None, None

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any], values: Sequence[str] = ()) -> None:
        """Remember why no entry fits, of the entries used last."""
        if not self.entries or self.streak >= STREAK and self.warned:
            return
        reasons = tuple((value,) for value in values[:STREAK]) or tuple(
            tuple(entry.guard.failures(args, kwargs)) for entry in self.entries[:STREAK])
        recompile = Recompile(reasons)
        self.recompiles.append(recompile)
        if "recompiles" in self.options.log:
            print(f"[monograph] recompiling {self.name}: {recompile}", file=sys.stderr)


known: weakref.WeakSet[Dispatcher] = weakref.WeakSet()       # every dispatcher there is


def plainly(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the user's function as it is."""
    return function(*args, **kwargs)


def signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a refusal is remembered by: structure, tensor metadata, grad mode."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    return str(spec), torch.is_grad_enabled(), tuple(
        (x.dtype, tuple(x.shape), x.requires_grad) if isinstance(x, torch.Tensor) and compat.is_plain(x)
        else type(x) for x in leaves)


def check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """DeviceError for an argument that is elsewhere than in the CPU's memory, InputError for one that holds itself."""
    try:
        leaves = pytree.tree_leaves_with_path((args, kwargs))
    except RecursionError:
        where = _holds_itself((args, kwargs))
        if where is None:
            raise
        raise InputError(f"an argument is a {where} that holds itself",
                         hint="pass what it holds, or an object of a class of your own with it as attribute") from None
    for path, leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            continue
        with compat.no_torch_function():         # a subclass may answer by code of its own
            device = leaf.device
        if device.type != "cpu":
            raise DeviceError(f"{argument(path)} is on device {device}; only the CPU is supported",
                              hint="move it with .cpu(), or call the plain function: monograph.disable gives it back")


def argument(path: Any) -> str:
    """The name of a leaf of (args, kwargs)."""
    text = pytree.keystr(path)
    return "argument " + (text.replace("[0]", "args", 1) if text.startswith("[0]") else text.removeprefix("[1]"))


def _holds_itself(value: Any, around: tuple[int, ...] = ()) -> str | None:
    """The type of the first container on the way down that holds itself."""
    if type(value) not in pytree.SUPPORTED_NODES or len(around) > sys.getrecursionlimit():
        return None
    if id(value) in around:
        return type(value).__name__
    children, _ = pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)
    found = (_holds_itself(child, (*around, id(value))) for child in children)
    return next((name for name in found if name is not None), None)
