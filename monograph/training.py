"""Forward and backward of a joint capture as one autograd node.

    forward(inputs)  -> results;  what backward needs is saved through autograd, which checks versions
    backward(tangents) -> gradients of the inputs

The node's outputs are the results that require grad; all others are handed over beside it.
Where gradients are to be differentiated again (`create_graph`), `monograph.second_order` makes them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from monograph.autodiff.partition import BackwardInput, split
from monograph.backend import Half, Run, compile_graph
from monograph.capture.captured import Captured
from monograph.config import Options
from monograph.dispatch import Call
from monograph.results import Finish, gatherer, placer
from monograph.second_order import Again, refusal

__all__ = ["differentiable"]


@dataclass
class Plan:
    """What a call of the node needs to know."""

    forward: Run
    backward: Run
    place: Finish
    backward_inputs: list[BackwardInput]
    tangent_types: list[Any]                  # TensorType of each backward input that is a tangent, else None
    gradients: list[int]                      # forward input of each backward output
    origins: list[int]                        # per backward output: the results it comes from, as bits
    differentiable: list[int]                 # results that require grad, in order
    written: set[int]
    weights: list[Any]                        # per forward input: the tensor, None for an argument
    again: Again


@dataclass
class Box:
    """One call in flight: what goes in beside the tensors, and the results that come out."""

    plan: Plan
    inputs: list[Any]
    leaves: Sequence[Any]
    results: list[Any] | None = None


def differentiable(
    captured: Captured, gather: Callable[[Sequence[Any]], list[Any]], options: Options, halves: dict[str, Half],
) -> Call:
    """Compile both halves of a joint capture; `halves` receives them."""
    joint = captured.joint
    assert joint is not None
    place, collect = placer(captured), gatherer(captured)
    parts = split(captured)
    written = {write.input for write in captured.boundary.writes}
    order = sorted(joint.tangents)
    again = Again(captured, parts.forward, order)
    tangent_types = [value.type if source.kind == "tangent" else None
                     for value, source in zip(parts.backward.inputs, parts.backward_inputs)]
    forward = halves["forward"] = compile_graph(parts.forward, options, written=written)
    backward = halves["backward"] = compile_graph(parts.backward, options)
    plan = Plan(forward.run, backward.run, place, parts.backward_inputs, tangent_types, parts.gradients,
                [_bits(joint.origins[number], order) for number in sorted(joint.gradients)],
                order, written, [b.tensor for b in captured.bindings if b.kind != "tangent"], again)

    def call(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        box = Box(plan, gather(leaves), leaves)
        with torch.enable_grad():            # the user's own block may have been the only one to record
            outputs = _Node.apply(box, *[box.inputs[number] for number in plan.gradients])
        results = box.results
        assert results is not None
        for position, output in zip(plan.differentiable, outputs):
            results[position] = output
        return collect(results)

    return call


class _Node(torch.autograd.Function):
    """apply(box, *inputs that get a gradient) -> the results that require grad.

    Of the other inputs autograd must not know: it would visit where they come from, which may be gone already."""

    @staticmethod
    def forward(ctx: Any, box: Box, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plan, inputs = box.plan, box.inputs
        outputs = list(plan.forward(inputs))
        saved = [_saved(source, inputs, outputs, plan) for source in plan.backward_inputs]
        results = box.results = plan.place(inputs, outputs, box.leaves)
        ctx.plan = plan
        ctx.arguments = [weakref.ref(tensor) for tensor, weight in zip(inputs, plan.weights) if weight is None]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        return tuple(results[position] for position in plan.differentiable)

    @staticmethod
    def backward(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        plan: Plan = ctx.plan
        used = sum(1 << position for position, tangent in enumerate(tangents) if tangent is not None)
        if not used:
            return (None,) * len(ctx.needs_input_grad)
        given = dict(zip(plan.differentiable, tangents))
        values = []
        for source, type, kept in zip(plan.backward_inputs, plan.tangent_types, ctx.saved_tensors):
            values.append(kept if source.kind != "tangent" else laid_out(given.get(source.position), type))
        with torch.no_grad():
            computed: Sequence[Any] = plan.backward(values)
        if torch.is_grad_enabled():
            computed = plan.again.gradients(_inputs(ctx), plan.gradients, tangents, computed)
        # What the results in use do not depend on gets no gradient, as in eager, rather than zeros.
        return (None, *[gradient if origin & used else None for gradient, origin in zip(computed, plan.origins)])


def _bits(results: frozenset[int], order: Sequence[int]) -> int:
    """A set of results as bits, by their place in `order`."""
    return sum(1 << place for place, number in enumerate(order) if number in results)


def _saved(source: BackwardInput, inputs: Sequence[torch.Tensor], outputs: Sequence[Any], plan: Plan) -> Any:
    """What to keep for one backward input; an input that is about to be written is kept as it was."""
    if source.kind == "input":
        tensor = inputs[source.position]
        return tensor.detach().clone() if source.position in plan.written else tensor
    return outputs[source.position] if source.kind == "output" else None


def laid_out(tangent: torch.Tensor | None, type: Any) -> torch.Tensor:
    """A tangent with the strides the backward program reads; zeros for a result nobody used."""
    strides = type.strides
    if tangent is None:
        return torch.zeros(type.shape, dtype=type.dtype)
    if strides is None or tangent.stride() == strides:
        return tangent.detach()
    return torch.empty_strided(type.shape, strides, dtype=type.dtype).copy_(tangent.detach())


def _inputs(ctx: Any) -> list[torch.Tensor]:
    """The inputs of the forward call, as objects: arguments are held weakly, so that they can be freed as in eager."""
    arguments = iter(ctx.arguments)
    inputs = [next(arguments)() if weight is None else weight for weight in ctx.plan.weights]
    if any(tensor is None for tensor in inputs):
        raise refusal()
    return inputs
