"""What `torch.compile(model, backend="monograph")` calls: a frame that Dynamo has traced, compiled by our own pipeline.

    Frame ::= fx.GraphModule  places of the module's own tensors  Dispatcher per set of those

Dynamo hands over parameters and buffers as arguments. They are bound again, as attributes of a module, so that derived
weights and their rules hold as under `monograph.compile`. Sizes that Dynamo made symbolic arrive as ints. Where Dynamo
broke the user's function into several graphs a warning says so, once for each function.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn

from monograph import compat, tracebacks
from monograph.build import build
from monograph.capture import blame
from monograph.config import Options
from monograph.dispatch import Dispatcher
from monograph.source import SourceLoc

__all__ = ["Frame", "compile_frame", "forget_warnings"]

SETS = 8                 # sets of weights of one frame that are bound; beyond that all are arguments
RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
STACK_LINE = re.compile(r'File "(.+)", line (\d+), in (.+)')
ASSIGNED = re.compile(r"\s+(\w+)\s*(?::[^=]+)?= ")

_warned: set[tuple[str, str]] = set()       # (file, function) that Dynamo is known to break


def compile_frame(graph: fx.GraphModule, inputs: Sequence[Any], *, mode: str = "default",
                  options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """A function of the graph's inputs; `options` are those of `monograph.compile`."""
    _warn_of_break(graph)
    for module in graph.modules():
        if isinstance(module, fx.GraphModule):
            _know_lines(module)
    return Frame(graph, inputs, Options.make(mode=mode, **(options or {})))


class Frame:
    """The compiled graph. `inputs` are those of the first call."""

    def __init__(self, graph: fx.GraphModule, inputs: Sequence[Any], options: Options) -> None:
        self.graph = graph
        self.options = options
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        self.bound = {i: names[i] for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)
                      and (isinstance(value, nn.Parameter) or compat.is_static_input(value))}
        self.free = [i for i in range(len(inputs)) if i not in self.bound]
        self.dispatchers: dict[tuple[int, ...], Dispatcher] = {}
        self.general: Dispatcher | None = None

    def __call__(self, *inputs: Any) -> Any:
        dispatcher = self.dispatchers.get(tuple([id(inputs[i]) for i in self.bound]))
        try:
            if dispatcher is None:
                dispatcher = self._for(inputs)
                if dispatcher is self.general:
                    return dispatcher(*inputs)
            return dispatcher(*[inputs[i] for i in self.free])
        except BaseException as error:
            tracebacks.leave(error)
            raise

    def _for(self, inputs: Sequence[Any]) -> Dispatcher:
        """The dispatcher for these weights, which the module keeps alive while it is in the table."""
        if len(self.dispatchers) < SETS:
            module = Bound(self.graph, {i: (name, inputs[i]) for i, name in self.bound.items()}, len(inputs))
            made = Dispatcher(module, self.options, build, self._name())
            self.dispatchers[tuple([id(inputs[i]) for i in self.bound])] = made
            return made
        if self.general is None:
            self.general = Dispatcher(Bound(self.graph, {}, len(inputs)), self.options, build, self._name())
        return self.general

    def _name(self) -> str:
        reason = getattr(self.graph, "compile_subgraph_reason", None)
        stack = reason.user_stack if reason is not None else ()
        return _plain(stack[0].name) if stack else "frame"


class Bound(nn.Module):
    """The graph with some of its inputs as parameters and buffers."""

    def __init__(self, graph: fx.GraphModule, tensors: dict[int, tuple[str, torch.Tensor]], count: int) -> None:
        super().__init__()
        self.graph = graph
        for name, tensor in tensors.values():
            (self._parameters if isinstance(tensor, nn.Parameter) else self._buffers)[name] = tensor
        self.places = tuple(tensors[i][0] if i in tensors else None for i in range(count))

    def forward(self, *free: Any) -> Any:
        given = iter(free)
        # Not `self.graph(...)`: fx would print an error of the program to stderr, and take its traceback.
        return self.graph.forward(*[next(given) if name is None else getattr(self, name) for name in self.places])


# Lines


def _know_lines(graph: fx.GraphModule) -> None:
    """The user's lines stand for those of the text that fx generates."""
    assert graph.code                        # writes the text, which is lazy
    code = type(graph).forward.__code__
    nodes = {node.name: _user_line(node) for node in graph.graph.nodes}
    text = linecache.getlines(code.co_filename, type(graph).forward.__globals__)
    lines: dict[int, SourceLoc] = {}
    known = None
    for number, line in enumerate(text, 1):
        assigned = ASSIGNED.match(line)
        known = nodes.get(assigned.group(1)) or known if assigned is not None else known
        if known is not None:
            lines[number] = known
    blame.know_lines(code.co_filename, lines)


def _user_line(node: fx.Node) -> SourceLoc | None:
    found = STACK_LINE.findall(node.stack_trace or "")
    if not found:
        return None
    file, line, function = found[-1]
    return SourceLoc(file, int(line), _plain(function))


def _plain(function: str) -> str:
    """The user's function, of which Dynamo may run a rest."""
    resumed = RESUMED.fullmatch(function)
    return resumed.group(1) if resumed is not None else function


# Warnings


def _warn_of_break(graph: fx.GraphModule) -> None:
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break or not reason.user_stack:
        return
    frame = reason.user_stack[-1]
    function = _plain(frame.name)
    if (frame.filename, function) in _warned:
        return
    _warned.add((frame.filename, function))
    text = (f"torch.compile broke {function} into several graphs before Monograph saw it, here first "
            f"({reason.reason.splitlines()[0]}); monograph.compile(model) compiles it as one graph")
    warnings.warn_explicit(text, UserWarning, frame.filename, frame.lineno)


def forget_warnings() -> None:
    """Say again what was said once."""
    _warned.clear()
