"""`monograph.verify(fn, inputs=[...])`: compiled against eager, everything a user can see.

Each input is played twice from the same state (weights, buffers, attributes, random generator), once eagerly
and once compiled; results, changed arguments, changed state, shared memory and gradients are compared. On a
difference the graph is searched for the first node whose compiled value is not the reference's, and MismatchError
names it.

Each input is captured twice as well, and compared with every program made before whose guard accepts it: programs that
differ then hold a value of Python's that no guard watches (`unguarded`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from monograph import api
from monograph.build import build, capture_call, gather_inputs
from monograph.capture import blame
from monograph.config import Options
from monograph.dispatch import Entry, TraceFailed, argument, check_arguments
from monograph.errors import InputError, MismatchError, UnsupportedError
from monograph.tools.bisect import first_difference
from monograph.tools.compare import difference, shared_memory
from monograph.tools.unguarded import first_unguarded, moved

__all__ = ["Verified", "verify"]

GRADIENT_RTOL, GRADIENT_ATOL = 1e-3, 1e-4      # sums over everything a weight touches
UNGUARDED = "pass it as an argument, or keep it in an attribute, a global or the environment, which guards watch"


@dataclass(frozen=True)
class Verified:
    """What was compared."""

    calls: int
    graphs: int
    largest: float                # largest absolute difference of a floating point result

    def __str__(self) -> str:
        return f"{self.calls} calls equal to eager, {self.graphs} graphs, largest difference {self.largest:.3g}"


@dataclass
class State:
    """Tensors and Python attributes as they are now, to come back to."""

    tensors: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    tables: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    random: torch.Tensor = field(default_factory=torch.get_rng_state)

    @staticmethod
    def of(function: Any, tensors: Sequence[torch.Tensor]) -> State:
        state = State([(tensor, tensor.detach().clone()) for tensor in tensors])
        owner = getattr(function, "__self__", function)
        if isinstance(owner, nn.Module):
            for module in owner.modules():
                tables = [module.__dict__, module._parameters, module._buffers, module._modules]
                state.tables += [(table, dict(table)) for table in tables]
        return state

    def restore(self) -> None:
        for table, content in self.tables:
            table.clear()
            table.update(content)
        with torch.no_grad():
            for tensor, before in self.tensors:
                if not torch.equal(tensor, before):
                    tensor.copy_(before)
        torch.set_rng_state(self.random)


def verify(
    function: Callable[..., Any], inputs: Iterable[Any], *, rtol: float | None = None, atol: float | None = None,
    options: Options | None = None,
) -> Verified:
    """Compare on every entry of `inputs`: a tuple of positional arguments, a dict of keyword arguments, or a tensor.

    Tolerances default to the dtype's (f32: rtol 1e-4, atol 1e-5). Arguments and state are left as they were.
    `inputs` may be a generator: what it changes between two entries (a file, a variable, a counter) is what programs
    must not have taken for granted. Raises MismatchError naming the first node and the user's line that differ, or
    those with a value that reached the graph without a guard; TypeError where `inputs` is one tensor or no iterable,
    ValueError where it is empty.
    """
    if isinstance(inputs, (torch.Tensor, dict, str)) or not isinstance(inputs, Iterable):
        raise TypeError(f"inputs is a {type(inputs).__name__}: give a list of calls, each a tuple of positional "
                        "arguments, a dict of keyword arguments or a tensor: verify(model, inputs=[(x,), (y,)])")
    dispatcher = api.dispatcher_of(function)
    plain = function if dispatcher is None else dispatcher.function
    if options is None:
        options = Options.make() if dispatcher is None else dispatcher.options
    largest, entries = 0.0, list[Entry]()
    for number, given in enumerate(inputs):
        args, kwargs = _call_of(given)
        largest = max(largest, _check(entries, plain, args, kwargs, options, f"input {number}", rtol, atol))
    if not entries:
        raise ValueError("inputs is empty: nothing was compared")
    return Verified(len(entries), len(entries), largest)


def _check_guards(
    entries: Sequence[Entry], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    options: Options, name: str,
) -> None:
    """Capture the call again, and ask whether programs that are taken for it are what it makes."""
    crowd = moved()
    again = capture_call(function, args, kwargs, options).captured
    del crowd
    for entry in entries:
        if entry is not entries[-1] and entry.reads or entry.guard.check(args, kwargs) is None:
            continue                          # another value that was read is another program
        found = first_unguarded(entry.report.captured, entry.report.text, again)
        if found is not None:
            raise MismatchError(f"{name}: a value of Python's reached the graph without a guard: {found[0]}",
                                loc=found[1], hint=UNGUARDED)


def _call_of(entry: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(entry, dict):
        return (), entry
    return (tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)), {}


@dataclass
class Played:
    """One call and what it left behind."""

    result: Any
    arguments: Any
    state: list[torch.Tensor]
    shared: set[tuple[int, str, int, bool]]
    gradients: list[torch.Tensor | None]


def _check(
    entries: list[Entry], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    options: Options, name: str, rtol: float | None, atol: float | None,
) -> float:
    """One input; `entries` are the programs so far, to which its own is added."""
    check_arguments(args, kwargs)
    try:
        entry = build(function, args, kwargs, options)
        entries.append(entry)
        _check_guards(entries, function, args, kwargs, options, name)
    except TraceFailed as failed:
        args, kwargs = copied(args, kwargs)
        function(*args, **kwargs)            # raises too, in eager's own words
        raise UnsupportedError(f"eager runs it, but tracing it raised {type(failed.error).__name__}: {failed.error}",
                               loc=blame.raised_by_user(failed.error)) from failed.error
    bound = [b.tensor for b in entry.report.captured.bindings if b.tensor is not None]
    before = State.of(function, bound)

    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves = entry.guard.check(args, kwargs)
        assert leaves is not None, entry.guard.failures(args, kwargs)
        return entry.run(leaves, args, kwargs)

    try:
        want = _play(function, args, kwargs, bound)
        before.restore()
        got = _play(compiled, args, kwargs, bound)
    finally:
        before.restore()
    found = (difference(got.result, want.result, "the result", rtol=rtol, atol=atol)
             or difference(got.arguments, want.arguments, "an argument after the call", rtol=rtol, atol=atol)
             or difference(got.state, want.state, "a weight or buffer after the call", rtol=rtol, atol=atol)
             or difference(got.gradients, want.gradients, "a gradient", rtol=rtol or GRADIENT_RTOL,
                           atol=atol or GRADIENT_ATOL))
    if found is None and got.shared != want.shared:
        found = f"results share memory as {sorted(got.shared)}, eager {sorted(want.shared)}"
    if found is not None:
        raise _mismatch(function, args, kwargs, options, f"{name}: {found}", rtol, atol)
    return _largest(got.result, want.result)


def copied(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments again, sharing among them what they share. InputError, by name, for one that cannot be copied."""
    memo: dict[int, Any] = {}
    hint = "verify plays each call twice, from the same arguments; pass what is read from it"
    for path, leaf in pytree.tree_leaves_with_path((args, kwargs)):
        if isinstance(leaf, torch.Tensor) and not leaf.is_leaf:
            memo[id(leaf)] = leaf.detach().clone(memory_format=torch.preserve_format).requires_grad_()
            continue
        try:
            copy.deepcopy(leaf, memo)
        except Exception as error:           # objects say in any way they like that they cannot be copied
            raise InputError(f"{argument(path)} is a {type(leaf).__name__} and cannot be copied: {error}",
                             hint=hint) from error
    return copy.deepcopy((args, kwargs), memo)


def _play(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], bound: Sequence[torch.Tensor],
) -> Played:
    args, kwargs = copied(args, kwargs)
    given = pytree.tree_leaves((args, kwargs))
    result = function(*args, **kwargs)
    shared = shared_memory(pytree.tree_leaves(result), [*given, *bound])
    gradients = _gradients(result, [*given, *bound])
    with torch.no_grad():
        return Played(result, (args, kwargs), [tensor.detach().clone() for tensor in bound], shared, gradients)


def _gradients(result: Any, sources: Sequence[Any]) -> list[torch.Tensor | None]:
    """Gradients of a weighted sum of the results by every leaf that requires grad; none where nothing was recorded."""
    leaves = [source for source in sources
              if isinstance(source, torch.Tensor) and source.requires_grad and source.is_leaf]
    loss: Any = 0
    for value in pytree.tree_leaves(result):
        if isinstance(value, torch.Tensor) and value.grad_fn is not None and value.is_floating_point():
            weights = torch.linspace(0.5, 1.5, max(value.numel(), 1), dtype=value.dtype)
            loss = loss + (value.reshape(-1) * weights[:value.numel()]).sum().double()
    if isinstance(loss, int) or not leaves:
        return []
    return list(torch.autograd.grad(loss, leaves, allow_unused=True))


def _largest(got: Any, want: Any) -> float:
    found = 0.0
    for mine, theirs in zip(pytree.tree_leaves(got), pytree.tree_leaves(want)):
        if isinstance(theirs, torch.Tensor) and theirs.is_floating_point() and theirs.numel():
            gap = (mine.detach().double() - theirs.detach().double()).abs().nan_to_num(0.0, 0.0, 0.0)
            found = max(found, float(gap.max()))
    return found


def _mismatch(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options, found: str,
    rtol: float | None, atol: float | None,
) -> MismatchError:
    """The error, with the place where the compiled graph leaves the reference, or the word that capture is at fault."""
    with torch.no_grad():
        captured = capture_call(function, args, kwargs, options, grad=False).captured
        inputs = gather_inputs(captured.bindings)(pytree.tree_leaves((args, kwargs)))
        inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
        fault = first_difference(captured.graph, inputs, options, rtol=rtol, atol=atol)
    if fault is None:
        return MismatchError(found, hint="every node alone equals the reference: capture or the boundary is at fault")
    position = captured.graph.nodes.index(fault.node)
    return MismatchError(f"{found}\n  first wrong node: number {position}, {fault.node.op.name}: {fault.what}",
                         loc=fault.node.loc)


