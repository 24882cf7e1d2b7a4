"""Gradients of gradients: the forward graph once more, op by op in torch, with autograd recording.

    Again(captured).gradients(inputs, tangents) -> gradients that are themselves differentiable

The compiled backward program has no derivative of its own. Where `create_graph` asks for one, the captured forward
is evaluated on the real inputs under autograd and differentiated by torch. The result is compared with the
compiled gradients: a forward that autograd would not differentiate as the user's code did (a custom
Function, a random draw) is refused rather than answered wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from monograph.capture.captured import Captured
from monograph.errors import UnsupportedError
from monograph.ir.boundary import Fresh
from monograph.ir.edit import clone
from monograph.ir.graph import Graph
from monograph.ir.op import Trait
from monograph.ops.evaluate import evaluate
from monograph.results import is_whole

__all__ = ["Again"]

RTOL, ATOL = 1e-3, 1e-5


class Again:
    """The forward of a joint capture, kept for a second derivative. `forward` is its graph before the passes."""

    def __init__(self, captured: Captured, forward: Graph, differentiable: Sequence[int]) -> None:
        results = [captured.boundary.results[position] for position in differentiable]
        types = [value.type for value in captured.graph.outputs]
        self.outputs = [result.output if isinstance(result, Fresh) and is_whole(result, types[result.output]) else None
                        for result in results]
        self.graph = clone(forward)
        self.is_random = any(node.op.has(Trait.RANDOM) for node in self.graph.walk())

    def gradients(
        self, inputs: Sequence[Any], wanted: Sequence[int], tangents: Sequence[torch.Tensor | None],
        computed: Sequence[torch.Tensor],
    ) -> list[torch.Tensor | None]:
        """Differentiable gradients of the inputs numbered `wanted`; `computed` are those of the backward program."""
        if self.is_random or None in self.outputs:
            raise refusal()
        with torch.enable_grad():
            outputs = evaluate(self.graph, inputs, grad=True)
            pairs = [(outputs[number], tangent) for number, tangent in zip(self.outputs, tangents)
                     if number is not None and tangent is not None and outputs[number].requires_grad]
            sources = [inputs[number] for number in wanted]
            needed = [source for source in sources if source.requires_grad]
            found = iter(torch.autograd.grad(
                [output for output, _ in pairs], needed, [tangent for _, tangent in pairs],
                create_graph=True, allow_unused=True) if pairs and needed else [None] * len(needed))
        gradients = [next(found) if source.requires_grad else None for source in sources]
        for mine, theirs in zip(gradients, computed):
            if mine is not None and not torch.allclose(mine.detach(), theirs, rtol=RTOL, atol=ATOL, equal_nan=True):
                raise refusal()
        return gradients


def refusal() -> UnsupportedError:
    return UnsupportedError("this second derivative through a compiled function is not supported",
                            hint="compute the first derivative inside the function that is compiled")
