"""One random program, compiled and eager, side by side on several calls: everything a caller can see.

    compare(program, number, ...) -> Verdict      equal, refused, or a difference in words
    shrink(program, differs) -> Program           statements taken away while it still differs
"""

from __future__ import annotations

import ast
import contextlib
import io
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

import monograph
from monograph.errors import CompileError, MonographError, VerificationError
from tests.capture.harness import alias_relation, normal
from tests.capture.programs import Program
from tests.capture.regions import tensor_programs

__all__ = ["Verdict", "compare", "shrink"]

UNUSABLE = "what eager returns cannot be used"       # views that it forbids to use after a write
SECONDS = 60       # of the processor's time, for one program
EXACT = {"reference": dict(rtol=1e-6, atol=1e-6), "llvm": dict(rtol=1e-4, atol=1e-4)}


@dataclass
class Verdict:
    """`kind`: equal, refused, different. `graphs`: programs made; `reads`: whether one rests on values read.
    `lines`: those of the program that eager reached."""

    kind: str
    why: str = ""
    graphs: int = 0
    reads: bool = False
    lines: set[int] = field(default_factory=set)


class TooLong(BaseException):
    """A program takes too much time."""


@dataclass
class Seen:
    """What one call leaves. `ended`: what was returned or raised."""

    ended: Any
    arguments: Any
    state: Any
    relation: Any
    random: torch.Tensor
    printed: str
    after: Any = None


def compare(program: Program, number: int, *, grad: bool, backend: str) -> Verdict:
    (make, plain_globals), (make_other, other_globals) = (tensor_programs.load(program, number) for _ in range(2))
    plain = make()
    with quiet():
        fast = monograph.compile(make_other(), backend=backend)
    verdict = Verdict("equal")
    with limited(SECONDS), torch.set_grad_enabled(grad):
        for seed, in [*program.calls, program.calls[0]]:
            try:
                with reached(tensor_programs.file_of(number), verdict.lines):
                    expected = observe(plain, plain_globals, seed, grad)
            except TooLong:
                return replace(verdict, why="eager takes too long")
            try:
                found = observe(fast, other_globals, seed, grad)
            except (CompileError, VerificationError) as fault:
                return replace(verdict, kind="different", why=f"{type(fault).__name__}: {fault}")
            except MonographError as refusal:
                verdict = replace(verdict, kind="refused", why=f"{type(refusal).__name__}: {refusal}")
                break
            except TooLong:
                return replace(verdict, kind="different", why="it takes too long")
            why = difference(expected, found, EXACT[backend], grad)
            if why is not None:
                return replace(verdict, kind="different", why=f"call {seed}: {why}")
    entries = monograph.api.dispatcher_of(fast).entries
    verdict.graphs = len(entries)
    verdict.reads = any(node.op.name == "mono.expect" for entry in entries
                        for node in entry.report.captured.graph.walk())
    return verdict


def observe(function: Any, known: dict[str, Any], seed: int, grad: bool) -> Seen:
    """Call with fresh arguments and look at everything. Refusals pass."""
    leaves = [x.requires_grad_(grad and isinstance(x, torch.Tensor) and x.is_floating_point())
              if isinstance(x, torch.Tensor) else x for x in tensor_programs.arguments(seed)]
    given = [x * 1 if isinstance(x, torch.Tensor) and x.requires_grad else x for x in leaves] if seed % 2 else \
        list(leaves)
    torch.manual_seed(seed)
    result: Any = None
    with io.StringIO() as out, contextlib.redirect_stdout(out):
        try:
            result = function(*given)
            ended: Any = None
        except MonographError:
            raise
        except Exception as error:
            ended = type(error), str(error)
        printed = out.getvalue()
    random = torch.get_rng_state()
    held = state(function, known)
    tensors = [x for x in pytree.tree_leaves((given, held, result)) if isinstance(x, torch.Tensor)]
    seen = Seen(ended if ended is not None else shown(result), shown(given), shown(held),
                alias_relation(tensors), random, printed)
    if ended is None:
        seen.after = gradients((result, given), leaves, function) if grad else writes(result, given)
    clear(function)
    return seen


def state(function: Any, known: dict[str, Any]) -> Any:
    """What a program's module and its globals hold."""
    of_globals = {key: known[key] for key in ("notes", "tally")}
    if not isinstance(function, torch.nn.Module):
        return of_globals
    held = {key: value for key, value in vars(function).items() if key in ("count", "seen", "last")}
    return {**held, **of_globals, "total": function.total}


def clear(function: Any) -> None:
    """Gradients do not pile up; `last` has no history."""
    for parameter in getattr(function, "parameters", list)():
        parameter.grad = None


def shown(value: Any) -> Any:
    """A copy of a value to compare later."""
    def copy(x: Any) -> Any:
        return (x.dtype, tuple(x.shape), normal(x) if x.numel() > 1 else [], x.requires_grad,
                x.detach().clone())
    leaves, spec = pytree.tree_flatten(value)
    return str(spec), [copy(x) if isinstance(x, torch.Tensor) else (type(x), x) for x in leaves]


def gradients(result: Any, leaves: list[Any], function: Any) -> Any:
    """Those of a loss made of all results; zeros where no result requires grad."""
    made = [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
    wanted = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
    wanted += list(getattr(function, "parameters", list)())
    if not made:
        return shown([torch.zeros_like(x) for x in wanted])
    try:
        loss = sum((x * torch.arange(1, x.numel() + 1).view(x.shape)).sum() for x in made)
    except RuntimeError:
        return UNUSABLE
    try:
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
    except RuntimeError as error:
        return type(error), str(error)[:40]
    return shown([torch.zeros_like(x) if g is None else g.contiguous() for x, g in zip(wanted, found, strict=True)])


def writes(result: Any, given: list[Any]) -> Any:
    """What else changes when a result is written: each in turn, seen through all others."""
    tensors = [x for x in pytree.tree_leaves((result, given)) if isinstance(x, torch.Tensor)]
    for number, x in enumerate(tensors):
        if x.is_floating_point():
            try:
                x.add_(number + 1)
            except RuntimeError:          # several of its elements share a place
                continue
    return shown(tensors)


def difference(expected: Seen, found: Seen, close: dict[str, float], grad: bool) -> str | None:
    for name in ("ended", "arguments", "state", "after"):
        a, b = getattr(expected, name), getattr(found, name)
        if not alike(a, b, close) and a != UNUSABLE:
            return f"{name}: {apart(a, b, close)}"
    if expected.printed != found.printed:
        return f"printed: eager {expected.printed!r}, compiled {found.printed!r}"
    if not torch.equal(expected.random, found.random):
        return "the generator is elsewhere"
    if not grad and expected.relation != found.relation:       # under grad a result of a branch is a tensor of its own
        return f"aliases: {apart(expected.relation, found.relation, close)}"
    return None


def apart(a: Any, b: Any, close: dict[str, float]) -> str:
    """The first parts of two values that differ."""
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return next(f"[{i}]{apart(x, y, close)}" for i, (x, y) in enumerate(zip(a, b, strict=True))
                    if not alike(x, y, close))
    return f" eager {a}, compiled {b}"


def alike(a: Any, b: Any, close: dict[str, float]) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, equal_nan=True, **close)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y, close) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return a == b or a != a and b != b or abs(a - b) <= close["atol"] + close["rtol"] * abs(a)
    return bool(a == b)


@contextlib.contextmanager
def reached(file: str, lines: set[int]) -> Iterator[None]:
    """Adds the lines of a file that run inside."""
    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename == file else None

    def line(frame: types.FrameType, event: str, argument: Any) -> Any:
        lines.add(frame.f_lineno)
        return line
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()):
        yield


# -- shrinking --------------------------------------------------------------------------


def shrink(program: Program, differs: Callable[[Program], bool], seconds: float = 40) -> Program:
    """A smaller program that still differs."""
    end = time.perf_counter() + seconds
    for calls in ([call] for call in program.calls):
        candidate = replace(program, calls=calls)
        if differs(candidate):
            program = candidate
            break
    again = True
    while again:
        again = False
        for source in sorted(set(smaller(program.source)), key=len):
            if time.perf_counter() > end:
                break
            candidate = replace(program, source=source)
            if len(source) < len(program.source) and differs(candidate):
                program, again = candidate, True
                break
    return program


def smaller(source: str) -> Iterator[str]:
    """The program without one statement, or with a part in place of a whole."""
    count = sum(isinstance(node, (ast.stmt, ast.expr)) for node in ast.walk(ast.parse(source)))
    for position in range(count):
        for change in ("drop", "body", "left", "right"):
            changer = _Change(position, change)
            made = changer.visit(ast.parse(source))
            if not changer.done:
                continue
            try:
                text = ast.unparse(ast.fix_missing_locations(made)) + "\n"
                compile(text, "<smaller>", "exec")
            except (SyntaxError, ValueError):
                continue
            yield text


class _Change(ast.NodeTransformer):
    def __init__(self, position: int, change: str) -> None:
        self.position, self.change, self.count, self.done = position, change, -1, False

    def generic_visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.stmt, ast.expr)) and not self.done:
            self.count += 1
            if self.count == self.position:
                made = self.changed(node)
                if made is not node:
                    self.done = True
                    return made
        return super().generic_visit(node)

    def changed(self, node: Any) -> Any:
        if isinstance(node, ast.stmt):
            if self.change == "drop" and getattr(node, "name", "") not in ("program", "forward"):
                return ast.Pass()
            if self.change == "body" and isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
                return node.body
            if self.change == "right" and isinstance(node, ast.If) and node.orelse:
                return ast.If(node.test, node.body, [])
            return node
        parts = [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
        if not parts or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        return {"left": parts[0], "right": parts[-1]}.get(self.change, node)
