"""Values read while tracing: what they are in this very call, and the check that they are so in later ones.

Where neither a region nor a number of the program can stand for a value (a function without source, branches that
leave different objects, a number that Python itself needs), the program so far is evaluated on the real
inputs and the trace goes on with the value found. A `mono.expect` node keeps it: a call in
which the value differs raises WrongPath before anything is written, and is captured on its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.layout import Layout
from monograph.capture.regions.errors import Unmergeable
from monograph.ir.graph import Graph, Value
from monograph.ir.op import Op
from monograph.ir.symbolic import evaluate as evaluate_dim
from monograph.ops import evaluate, table

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Paths"]

LONGEST = 512      # reads of one program
LARGEST = 256      # elements of one read


class Paths:
    """The reads of one trace."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer: Tracer = weakref.proxy(tracer)     # no cycle: fakes end with the trace
        self.noted: list[Any] = []
        self.count = 0                           # values read
        self.values: dict[Value, Any] = {}       # of the nodes evaluated so far
        self.symbols: dict[str, Any] = tracer.sizes.numbers
        self.done = 0                            # nodes of the graph that are
        self.generator: torch.Tensor | None = None
        self.drew = False                        # the last `run` did

    def can_read(self, tensor: torch.Tensor) -> bool:
        """A few real numbers."""
        return (self.can_run and not tensor.dtype.is_complex and Layout.of(tensor).numbers.numel <= LARGEST
                and self.count < LONGEST)

    @property
    def can_run(self) -> bool:
        """Outside of regions, and before a gradient is there that only a later call has."""
        return not self.tracer.in_region and all(binding.kind != "tangent" for binding in self.tracer.bindings)

    def note(self, found: Any) -> int:
        """The number of something that later calls are compared with."""
        self.noted.append(found)
        return self.last

    @property
    def last(self) -> int:
        return len(self.noted) - 1

    def read(self, tensor: torch.Tensor, asserted: bool = False) -> torch.Tensor:
        """The numbers of a traced tensor in this call; `asserted`: eager raises where they are others."""
        tracer = self.tracer
        value = tracer.memory.read(tensor)
        real = self.evaluate(value)
        with compat.plain_torch():
            numbers = tuple(real.reshape(-1).tolist())
        self.count += 1
        attributes = {"value": numbers, "number": self.note(numbers), "asserted": asserted}
        tracer.record.node(table.lookup("mono.expect"), (value,), attributes, ())
        return real

    def run(self, op: Op, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
        """What `function` gives for the operands and attributes of `op`, in this call; and the operands' values.

        `drew`: whether that took random numbers. `found` is to follow once the node of `op` is recorded.
        """
        operands, attributes = table.bind(op, args, kwargs)
        with self._in_order():
            real = _values(operands, self.values)
            before = torch.default_generator.get_state()
            given, named = table.unbind(op, real, attributes)
            result = function(*given, **named)
            self.drew = not torch.equal(before, torch.default_generator.get_state())
        return result, real

    def found(self, values: Sequence[Value], results: Sequence[Any]) -> None:
        """The last node of the graph gives `results`; it need not run."""
        for value, result in zip(values, results, strict=True):
            self.values[value] = result
            evaluate.bind_symbols(value, result, self.symbols)
        self.done = len(self.tracer.graph.nodes)

    def evaluate(self, value: Value) -> Any:
        """What a value of the program is in this call."""
        self.run_all()
        return self.values[value]

    def run_all(self) -> None:
        """Run the program so far in this call."""
        with self._in_order():
            pass

    def taken(self, test: Value, first: Graph, second: Graph) -> tuple[bool, dict[str, Any]]:
        """Which of two branches, not recorded yet, this call takes, and what symbols are at its end. What it draws is
        drawn again."""
        if not self.can_run:
            raise Unmergeable("the size of what a branch leaves is asked for in a backward")
        with self._in_order():
            before = torch.default_generator.get_state()
            ran, symbols = bool(self.values[test]), dict(self.symbols)
            try:
                evaluate.run_nodes((first if ran else second).nodes, dict(self.values), symbols)
            except Exception as error:       # of the program's own: the path of the call tells
                raise Unmergeable(f"{type(error).__name__} in a branch") from error
            torch.default_generator.set_state(before)
        return ran, symbols

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        """Run what was recorded since the last time, in order, so that random draws are those of the call.

        What runs inside draws what the call draws next. A gradient that is not known yet counts as ones.
        """
        tracer = self.tracer
        with compat.plain_torch(), torch.random.fork_rng(devices=[]):
            torch.default_generator.set_state(tracer.draws.start if self.generator is None else self.generator)
            for binding, given in zip(tracer.bindings, tracer.graph.inputs, strict=True):
                if given not in self.values:
                    tangent = binding.kind == "tangent"
                    self.values[given] = _ones(given, tracer.sizes.numbers) if tangent else tracer.resolve(binding)
            evaluate.run_nodes(tracer.graph.nodes[self.done:], self.values, self.symbols)
            self.done = len(tracer.graph.nodes)
            yield
            self.generator = torch.default_generator.get_state()


def _ones(tangent: Value, numbers: Mapping[str, int]) -> torch.Tensor:
    return torch.ones([evaluate_dim(size, numbers) for size in tangent.tensor.shape], dtype=tangent.tensor.dtype)      # type: ignore[arg-type]


def _values(operand: Any, values: dict[Value, Any]) -> Any:
    if isinstance(operand, tuple):
        return tuple(_values(entry, values) for entry in operand)
    return values[operand] if isinstance(operand, Value) else operand
