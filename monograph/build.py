"""From a callable and one call's arguments to an entry that runs it: every stage in order.

    capture   the user's Python, once, on fakes; what it read becomes the guard
    passes    `transform.pipeline`, verified, timed, recorded
    backend   native code or the reference (`monograph.backend`)
    entry     guard, run, boundary epilogue, effects

A joint capture is partitioned, and both halves go through passes and backend (`monograph.training`).
"""

from __future__ import annotations

import itertools
import linecache
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.autodiff.absence import Absence
from monograph.autodiff.regions import gradients
from monograph.autodiff.vjp import traced
from monograph.backend import Half, Run, compile_graph
from monograph.capture.captured import Binding, Captured, flat_view, of_length
from monograph.capture.checks import raise_in_python
from monograph.capture.collector import rarely_collecting
from monograph.capture.driver import trace
from monograph.capture.guards import Guard
from monograph.capture.guards_ambient import ambient_facts
from monograph.capture.readset import ReadSet
from monograph.capture.readset_effects import Traced
from monograph.capture.readset_random import put_states, states_of
from monograph.capture.symbols import Request
from monograph.config import Options
from monograph.dispatch import Call, Entry, TraceFailed, plainly
from monograph.errors import CaptureError, MonographError, Replay, UnsupportedError, WrongPath
from monograph.guarding import below_classes, guarded
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Trait
from monograph.ir.printer import print_graph
from monograph.ops.build import Builder
from monograph.ops.own import IN_REGION
from monograph.results import Finish, finisher
from monograph.training import differentiable
from monograph.wrappers import Opened

__all__ = ["Capture", "Report", "build", "capture_call", "gather_inputs"]

NO_SYMBOLS: Request = MappingProxyType({})
ATTEMPTS = 3        # at a trace, while other threads run


@dataclass
class Capture:
    """One call captured: the graph with its boundary, the facts it rests on, the Python writes it makes."""

    captured: Captured
    guard: Guard
    traced: Traced
    seconds: float


@dataclass
class Report:
    """What happened on the way, for `explain` and the log. `text` is the graph as it was captured."""

    captured: Captured
    text: str
    facts: int
    effects: list[str]
    halves: dict[str, Half] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def build(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options,
          request: Request = NO_SYMBOLS, told: bool = True) -> Entry:
    """Compile `function` for calls like this one; `request`: which of its sizes are to be symbols; `told`: those that
    values decide may be.

    Where a program with symbols cannot be made, for whatever reason, one for these very sizes is."""
    if not request:
        return _build(function, args, kwargs, options, NO_SYMBOLS, told)
    try:
        return _build(function, args, kwargs, options, request, told)
    except Exception as error:           # the program for these sizes tells whether the user's code is at fault
        if isinstance(error, CaptureError) and error.final:
            raise
        entry = _build(function, args, kwargs, options, NO_SYMBOLS, told)
        entry.fixed = dict.fromkeys(request, f"{type(error).__name__}: {error}")
        return entry


def _build(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options,
           request: Request, told: bool) -> Entry:
    capture = capture_call(function, args, kwargs, options, request=request, told=told)
    try:
        return _compiled(function, capture, options, request)
    except Exception:                    # without sizes that values tell there may be a program
        if not capture.captured.told:
            raise
    capture = capture_call(function, args, kwargs, options, request=request, told=False)
    return _compiled(function, capture, options, request)


@compat.no_class_functions()
def _compiled(function: Callable[..., Any], capture: Capture, options: Options, request: Request) -> Entry:
    captured = capture.captured
    report = Report(captured, print_graph(captured.graph), len(capture.guard.facts), capture.traced.describe(),
                    seconds={"capture": capture.seconds})
    reads = values_read(captured.graph)
    draws = any(node.op.has(Trait.RANDOM) for node in captured.graph.walk())
    gather = gather_inputs(captured.bindings)
    if captured.joint is not None:
        call = differentiable(captured, gather, options, report.halves)
    else:
        finish = finisher(captured)                  # speaks of the inputs as captured, so before the passes
        half = report.halves["forward"] = compile_graph(captured.graph, options, written=written(captured), again=True)
        call = _inference(gather, half.run, finish)
    for half in report.halves.values():
        for stage, seconds in half.seconds.items():
            report.seconds[stage] = report.seconds.get(stage, 0.0) + seconds
    if "timing" in options.log:
        print("[monograph] " + ", ".join(f"{k} {v:.3f} s" for k, v in report.seconds.items()), file=sys.stderr)
    if captured.classes:
        call = below_classes(call)
    drawn = capture.traced.reads.hooks.outside.states.owners
    if reads or any(node.attributes.get("number") == IN_REGION for node in captured.graph.walk()):
        call = _one_path(call, drawn)
    call = _with_effects(call, capture.traced, captured.objects)
    if report.halves["forward"].raises:
        call = _or_in_python(call, function, draws, drawn)
    symbols = {(tensor.key, axis) for tensor in captured.lying for axis in tensor.sizes}
    fixed = {place: "the program needs its number" for place in request
             if place not in symbols and isinstance(place[0], str)}
    return Entry(capture.guard, call, report, reads, fixed)


def values_read(graph: Graph) -> dict[Any, str]:
    """The values that the trace read, by number: the user's line, and what it found there."""
    found = {}
    for node in graph.walk():
        number = node.attributes.get("number")
        if number is not None and number >= 0:
            then = _read_then(node)
            line = linecache.getline(node.loc.file, node.loc.line).strip() if node.loc is not None else "a value"
            where = f" at {node.loc.short}" if node.loc is not None else ""
            found.setdefault(number, f"`{line}`{where}: {then}")
    return found


def _read_then(node: Node) -> str:
    """What the trace read, or took for granted of it."""
    if node.op.name == "mono.require":
        left, right = node.operands
        return f"{left} {node.attributes['relation']} {right}"
    if node.op.name == "mono.number":
        return f"{node.attributes['symbol']} >= {node.attributes['lo']}"
    return ", ".join(map(str, node.attributes["value"] if node.op.name == "mono.expect" else node.attributes["size"]))


@rarely_collecting()
def capture_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options, *,
    grad: bool | None = None, request: Request = NO_SYMBOLS, told: bool = True,
) -> Capture:
    """Trace one call and state what the trace took for granted; `told`: sizes that values decide may be symbols.
    TraceFailed wraps what the user's program raises."""
    start = time.perf_counter()
    leaves = pytree.tree_leaves((args, kwargs))
    user = function.function if isinstance(function, Opened) else function
    ambient = ambient_facts()
    for attempt in itertools.count(1):
        reads = ReadSet(user, [type(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves])
        traced = Traced(function, reads)
        try:
            captured = trace(traced.call, args, kwargs, grad=grad, request=request, hooks=[reads],
                             roots=[user, *leaves], derivative=_derivative, absence=_absence, told=told)
            break
        except UnsupportedError as error:
            if attempt >= ATTEMPTS or not error.may_pass:
                raise
        except MonographError:
            raise
        except Exception as error:
            raise TraceFailed(error) from error
    late = [f"writes to {change.path}" for change in reads.journal.changes()]
    late += ["prints, warns or logs"] * (len(reads.messages) > traced.said)
    if late:
        reads.journal.rollback()
        raise UnsupportedError(f"a custom autograd.Function {late[0]} in the backward",
                               hint="do it in a hook")
    captured.graph.name = getattr(function, "__name__", type(function).__name__)
    if leaves_traces(captured) or traced.has_effects:
        raise_in_python(captured.graph)
    captured, guard = guarded([*ambient, *reads.facts.values()], captured, traced, args, kwargs)
    return Capture(captured, guard, traced, time.perf_counter() - start)


def _derivative(node: Node, cotangents: dict[Value, Value], wrt: set[Value], graph: Graph, root: Graph
                ) -> dict[Value, Value]:
    """Of a region, as a capture asks for it."""
    return gradients(node, cotangents, wrt, traced, Builder(graph, loc=node.loc), root)


def _absence(graph: Graph, start: int, gradient: Value) -> Value | None:
    """The flag of a gradient that a call may not have; node `start` is the first of the backward."""
    flag = Absence(graph, start).of(gradient)
    return None if isinstance(flag, bool) else flag


def leaves_traces(captured: Captured) -> bool:
    """Whether the program changes more than its results: its inputs, the generator."""
    changed = captured.boundary.writes or captured.boundary.relayouts
    return bool(changed) or any(node.op.has(Trait.RANDOM) for node in captured.graph.walk())


def written(captured: Captured) -> set[int]:
    """Numbers of the inputs that the program changes."""
    return {write.input for write in captured.boundary.writes}


# Calls


def gather_inputs(bindings: Sequence[Binding]) -> Callable[[Sequence[Any]], list[Any]]:
    """`gather(leaves)`: the values of the graph's inputs, tangents left out."""
    bindings = [binding for binding in bindings if binding.kind != "tangent"]
    template = [None if binding.kind == "argument" else binding.tensor for binding in bindings]
    moves = [(i, binding.leaf) for i, binding in enumerate(bindings) if binding.kind == "argument"]
    flat = [i for i, binding in enumerate(bindings) if binding.flat]
    lengths = [i for i, binding in enumerate(bindings) if binding.length]

    def gather(leaves: Sequence[Any]) -> list[Any]:
        inputs = template.copy()
        for i, leaf in moves:
            inputs[i] = leaves[leaf]
        for i in flat:
            tensor: Any = inputs[i]
            inputs[i] = flat_view(tensor)
        for i in lengths:
            number: Any = inputs[i]
            inputs[i] = of_length(number)
        return inputs

    return gather


def _inference(gather: Callable[[Sequence[Any]], list[Any]], run: Run, finish: Finish) -> Call:
    def call(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = gather(leaves)
        return finish(inputs, run(inputs), leaves)

    return call


def _one_path(call: Call, drawn: Sequence[Any]) -> Call:
    """A call that turns out to take another path than the program's has drawn no random number, nor from `drawn`, which
    are generators of Python's and numpy's."""
    def one_path(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state, others = torch.get_rng_state(), states_of(drawn)
        try:
            return call(leaves, args, kwargs)
        except WrongPath:
            torch.set_rng_state(state)
            put_states(others)
            raise

    return one_path


def _or_in_python(call: Call, function: Callable[..., Any], draws: bool, drawn: Sequence[Any]) -> Call:
    """A call that raises runs again in Python, which finds eager's words, or the handler of the user's that goes on
    from there; the program has changed nothing yet, but where it `draws` the generator, and those of `drawn`."""
    def or_in_python(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state, others = torch.get_rng_state() if draws else None, states_of(drawn)
        try:
            return call(leaves, args, kwargs)
        except Replay:
            pass
        if state is not None:
            torch.set_rng_state(state)
        put_states(others)
        return plainly(function, args, kwargs)

    return or_in_python


def _with_effects(call: Call, traced: Traced, objects: Mapping[int, int]) -> Call:
    if not traced.has_effects:
        return call
    replay = traced.replay(objects)

    def with_effects(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return replay(call(leaves, args, kwargs), leaves, args, kwargs)

    return with_effects
