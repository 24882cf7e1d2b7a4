"""What the outside world sees of a program: how results are made and what is written back.

    Boundary ::= Result* tree  Write*  Relayout*  Require*
    Result   ::= Fresh(output, sizes, strides, offset, dtype)     new storage computed by the graph, or a view of it
               | InputItself(input)                               the caller gets back the very object
               | InputView(input, sizes, strides, offset, dtype)  a view of an input's storage, after write-back
               | Choice((output, Result)*, Result)                the first whose output (a bool) is true, else the last
               | Literal(value)                                   a Python object fixed at capture
               | Size(value)                                      an int or torch.Size, of sizes that are symbols
               | Number(output)                                   output.item(), of an f64[], i64[] or bool[]
    Write    ::= (input, output)                                  inputs[i].copy_(outputs[j]) after the run
               | (input, output, grown)                           the storage of inputs[i] grows to hold outputs[j]
               | (input, output, result)                          under autograd: inputs[i] gets the history of result r
    Relayout ::= (input, Fresh | InputView)                       after the writes, inputs[i] becomes that view
    Require  ::= (input, bool)                                    inputs[i] starts or ceases to require grad

Two `Fresh` results with the same `output` share one storage, as they did in eager. Offsets are in elements:
of `Fresh` from the start of the output's storage, of `InputView` from the input's own first element
(may be negative). Equal results with equal `object` number are one object. `conj` and `neg`: the result
is torch's lazy conjugate or negative of the memory it lies over. `leaf`: it starts to require grad in the program;
`parameter`: it is an nn.Parameter. `detached`: it does not require grad though the input it is a view of does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from monograph.ir.edit import symbols_in
from monograph.ir.symbolic import Dim

__all__ = ["Boundary", "Choice", "Fresh", "InputItself", "InputView", "Literal", "Number", "Relayout", "Require",
           "Result", "Size", "Write", "boundary_symbols", "own_result"]


@dataclass(frozen=True, slots=True)
class Fresh:
    """Result laid over graph output `output`; when the layout equals the output's type it is the output itself."""

    output: int
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim
    dtype: torch.dtype
    object: int = -1
    conj: bool = False
    neg: bool = False
    leaf: bool = False
    parameter: bool = False


@dataclass(frozen=True, slots=True)
class InputItself:
    input: int


@dataclass(frozen=True, slots=True)
class InputView:
    input: int
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim
    dtype: torch.dtype
    object: int = -1
    conj: bool = False
    neg: bool = False
    leaf: bool = False
    parameter: bool = False
    detached: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Size:
    """A number made of sizes that are symbols, or a torch.Size of such."""

    value: Dim | tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Number:
    output: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A tensor that is one of several, which only the run knows: after a branch or a loop."""

    alternatives: tuple[tuple[int, Result], ...]
    otherwise: Result
    object: int = -1


Result: TypeAlias = Fresh | InputItself | InputView | Choice | Literal | Size | Number


@dataclass(frozen=True, slots=True)
class Write:
    """After the run, graph output `output` becomes the content of input `input` (in place, as `copy_` does).

    `grown`: the program resized the input; the output, one dimension, is what its storage holds from the start.
    `result`: the program wrote under autograd; the result of that number, which nobody sees, has the new history."""

    input: int
    output: int
    grown: bool = False
    result: int | None = None


@dataclass(frozen=True, slots=True)
class Relayout:
    """After the writes, input `input` (the object) is laid out as `place`, as by `.data =`.

    The program transposed, resized or set it in place.
    """

    input: int
    place: Fresh | InputView


@dataclass(frozen=True, slots=True)
class Require:
    """The caller's tensor requires grad as `requires` says, as by `requires_grad_()` or `detach_()`. Where it starts
    to, it does so before the program runs, whose results are to lead to it."""

    input: int
    requires: bool


@dataclass
class Boundary:
    """`tree.unflatten(leaves)` builds the result from its leaves, which are `results` in order, without the last ones
    (`hidden`): new histories of inputs."""

    results: list[Result] = field(default_factory=list)
    tree: Any = None
    writes: list[Write] = field(default_factory=list)
    relayouts: list[Relayout] = field(default_factory=list)
    requires: list[Require] = field(default_factory=list)
    hidden: int = 0

    @property
    def shown(self) -> int:
        """The number of leaves that the caller gets."""
        return len(self.results) - self.hidden

    @property
    def rewritten(self) -> dict[int, int]:
        """The inputs that get a history, with the results that have it."""
        return {write.input: write.result for write in self.writes if write.result is not None}


def own_result(result: Result) -> Result:
    """What a result is where it is none of those that a choice may be."""
    return result.otherwise if isinstance(result, Choice) else result


def boundary_symbols(boundary: Boundary) -> set[str]:
    """Names of the symbols that results and relayouts speak of."""
    found: set[str] = set()
    pending: list[Result] = [*boundary.results, *(move.place for move in boundary.relayouts)]
    while pending:
        result = pending.pop()
        if isinstance(result, Choice):
            pending += [result.otherwise, *(other for _, other in result.alternatives)]
        elif isinstance(result, Fresh | InputView):
            found |= symbols_in((result.sizes, result.strides, result.offset))
        elif isinstance(result, Size):
            found |= symbols_in(result.value)
    return found
