"""What a capture is.

    Captured  ::= graph  boundary  Binding*  joint?
    Binding   ::= argument(leaf)              leaf number in tree_flatten((args, kwargs)) of the call
                | tensor(object, path)        a tensor met while tracing: parameter, buffer, closure, global
                | tangent(result)             the gradient of a result (joint captures only)
    JointInfo ::= forward outputs, then gradient outputs, of one graph

There is one binding per graph input, in order. A joint graph computes the forward outputs from the
inputs that are not tangents, and the gradients from both; the partition is left to `monograph.autodiff`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from monograph.capture.symbols import Asked, Lying
from monograph.ir.boundary import Boundary
from monograph.ir.graph import Graph
from monograph.ir.printer import print_graph

__all__ = ["Binding", "Captured", "JointInfo", "of_length"]


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a graph input's tensor comes from at call time.

    `flat`: the input is the whole storage of the tensor as one dimension (`storage.view(dtype)`), made so
    because several tensors overlap in it. Writes then go to that flat view too.
    `length`: the leaf is an integer that is a symbol; the input has as many elements (`of_length`), which nobody reads.
    """

    kind: Literal["argument", "tensor", "tangent"]
    leaf: int = -1                        # argument: leaf index; tangent: index among boundary.results
    tensor: torch.Tensor | None = None    # tensor: the real object
    path: str = ""                        # `encoder.layer.0.weight`, `args[0]`, ...
    flat: bool = False
    length: bool = False

    def resolve(self, leaves: Sequence[Any], tangents: Sequence[Any] = ()) -> Any:
        """The tensor to pass for this input, given the leaves of the call's arguments."""
        if self.kind == "argument":
            tensor = leaves[self.leaf]
        elif self.kind == "tensor":
            tensor = self.tensor
        else:
            return tangents[self.leaf]
        return flat_view(tensor) if self.flat else of_length(tensor) if self.length else tensor


def flat_view(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage behind `tensor`, as one dimension of its dtype."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


def of_length(number: int) -> torch.Tensor:
    """A tensor of that many elements in the memory of one."""
    return torch.empty(1).expand(number)


@dataclass
class JointInfo:
    """How to read a graph that holds forward and backward.

    `graph.outputs[:forward_outputs]` are the outputs `boundary` speaks of; the rest are gradients.
    `tangents[r] = i`: result `r` of the boundary requires grad and its gradient is graph input `i`.
    `gradients[i] = j`: graph output `j` is the gradient of graph input `i` (a parameter or an argument).
    `origins[i]`: the results that the gradient of graph input `i` comes from.
    `leaf_gradients[r] = j`, `leaf_origins[r]`: the same of result `r`: a leaf that requires grad made by the program,
    or one that `retain_grad()` was called on.
    `absent[j] = k`: graph output `k` (bool[]) says that in this call there is no gradient where output `j` has zeros.
    `on_path[r] = k`: output `k` (bool[]), one of the forward's, says whether result `r` requires grad in this call.
    `backward_start`: number of nodes recorded before the backward trace began; later nodes belong to the backward.
    Results absent from `tangents` are not differentiable.
    """

    forward_outputs: int
    tangents: dict[int, int] = field(default_factory=dict)
    gradients: dict[int, int] = field(default_factory=dict)
    origins: dict[int, frozenset[int]] = field(default_factory=dict)
    leaf_gradients: dict[int, int] = field(default_factory=dict)
    leaf_origins: dict[int, frozenset[int]] = field(default_factory=dict)
    absent: dict[int, int] = field(default_factory=dict)
    on_path: dict[int, int] = field(default_factory=dict)
    backward_start: int = 0

    def keeping(self) -> tuple[list[int], list[int]]:
        """The results with a gradient of their own: new leaves, and those that retain theirs."""
        known = sorted(self.leaf_gradients)
        return [r for r in known if r not in self.tangents], [r for r in known if r in self.tangents]


@dataclass
class Captured:
    """`gradients`: tensors whose `.grad` the program read, and what it was.
    `lying`: the tensors whose sizes are symbols; `asked`: the answers about them that the program rests on;
    `told`: there are sizes that values of the program tell; `classes`: of subclasses of Tensor that came in, those
    with a say in what ops do; `objects`: objects among the arguments that may be others in each call, by id: where the
    leaves have them; `viewed`: arguments of which it matters whether their bases require grad; `refused`: torch
    raised on something, perhaps because of how an argument stands with autograd, and the program went on."""

    graph: Graph
    boundary: Boundary
    bindings: list[Binding]
    joint: JointInfo | None = None
    gradients: list[tuple[torch.Tensor, torch.Tensor | None]] = field(default_factory=list)
    lying: list[Lying] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    told: bool = False
    classes: frozenset[type] = frozenset()
    objects: dict[int, int] = field(default_factory=dict)
    viewed: list[torch.Tensor] = field(default_factory=list)
    refused: bool = False

    def __str__(self) -> str:
        return print_graph(self.graph)
