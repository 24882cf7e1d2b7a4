"""Forward and backward of a joint capture as one autograd node.

    forward(inputs)  -> results;  what backward needs is saved through autograd, which checks versions
    backward(tangents) -> gradients of the inputs

The node's outputs are the results that require grad; all others are handed over beside it.
Where gradients are to be differentiated again (`create_graph`), `monograph.second_order` makes them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from monograph import tracebacks
from monograph.autodiff.partition import BackwardInput, Partition, split
from monograph.backend import Half, Run, compile_graph
from monograph.capture.captured import Captured
from monograph.config import Options
from monograph.dispatch import Call
from monograph.errors import UnsupportedError
from monograph.ir.boundary import Choice, Fresh, InputView
from monograph.ir.edit import symbols_in
from monograph.results import Finish, Told, gatherer, hander, placer, symbols_told
from monograph.runtime.held import numbers
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
    leaves: list[NewLeaf]                     # of the backward outputs that follow
    kept: list[int]                           # results that retain their gradients: the last backward outputs
    absent: dict[int, int]                    # backward output -> the one that says it is absent
    origins: list[int]                        # per backward output: the results it comes from, as bits
    differentiable: list[int]                 # results that require grad, in order
    on_path: dict[int, int]                   # result that requires grad on some path only -> output that tells
    written: set[int]
    starting: list[int]                       # inputs that start to require grad
    weights: list[Any]                        # per forward input: the tensor, None for an argument
    symbols: dict[str, Told]                  # what tells the symbols of results and tangents
    again: Again

    def numbers(self, kind: str, values: Sequence[Any]) -> dict[str, int]:
        """The symbols of a call that its inputs tell, or its outputs."""
        return {name: told.read(values) for name, told in self.symbols.items() if told.kind == kind}


@dataclass
class NewLeaf:
    """A result that starts to require grad in the program, and gets a gradient from its other results. The tensor
    exists before the call, so that autograd knows where the gradient goes; the call fills it. `saved`: the backward
    reads its content."""

    position: int
    sizes: Any
    strides: Any
    dtype: torch.dtype
    parameter: bool
    saved: bool

    def make(self, symbols: Mapping[str, int]) -> torch.Tensor:
        blank = torch.empty_strided(numbers(self.sizes, symbols), numbers(self.strides, symbols), dtype=self.dtype)
        return torch.nn.Parameter(blank) if self.parameter else blank.requires_grad_()


class Retained:
    """A result that `retain_grad()` was called on: its `.grad` is that of all its uses, those in the program too."""

    def __init__(self, result: torch.Tensor, positions: Sequence[int]) -> None:
        self.positions = positions
        self.result = weakref.ref(result)
        self.before: torch.Tensor | None = None       # what `.grad` was until autograd added what arrived from outside
        result.register_hook(self._arrives)
        result.retain_grad()

    def _arrives(self, _: torch.Tensor) -> None:
        result = self.result()
        self.before = None if result is None else result.grad

    def add(self, gradient: torch.Tensor, *, arrived: bool) -> None:
        """Add a gradient to `.grad`; `arrived`: autograd has added a part of it."""
        result = self.result()
        if result is not None:
            before = self.before if arrived else result.grad
            result.grad = gradient if before is None else before + gradient


@dataclass
class Box:
    """One call in flight: what goes in beside the tensors, and the results that come out."""

    plan: Plan
    inputs: list[Any]
    leaves: Sequence[Any]
    made: list[torch.Tensor]
    symbols: dict[str, int]
    retained: list[Retained]
    results: list[Any] | None = None
    outputs: Sequence[Any] = ()

    def retain(self, results: Sequence[Any]) -> None:
        """From now on the backward tells results that retain it their gradient."""
        for position in self.plan.kept:
            same = [other for other in self.plan.differentiable if results[other] is results[position]]
            self.retained.append(Retained(results[position], same))


def differentiable(
    captured: Captured, gather: Callable[[Sequence[Any]], list[Any]], options: Options, halves: dict[str, Half],
) -> Call:
    """Compile both halves of a joint capture; `halves` receives them."""
    joint = captured.joint
    assert joint is not None
    order = sorted(joint.tangents)
    chosen = {number: result for number in order
              if isinstance(result := captured.boundary.results[number], Choice)}
    captured = _computed(captured, chosen)
    place, hand, collect = placer(captured), hander(captured, chosen), gatherer(captured)
    parts = split(captured)
    written = {write.input for write in captured.boundary.writes}
    again = Again(captured, parts.forward, order)
    given = {result: captured.graph.inputs[position].type for result, position in joint.tangents.items()}
    tangent_types = [given[source.position] if source.kind == "tangent" else None for source in parts.backward_inputs]
    forward = halves["forward"] = compile_graph(parts.forward, options, written=written, again=True)
    backward = halves["backward"] = compile_graph(parts.backward, options)
    leaves, kept = joint.keeping()
    plan = Plan(forward.run, backward.run, place, parts.backward_inputs, tangent_types, parts.gradients,
                [_new_leaf(captured, number, parts) for number in leaves], kept, parts.absent,
                [_bits(joint.origins[number], order) for number in sorted(joint.gradients)]
                + [_bits(joint.leaf_origins[number], order) for number in leaves + kept],
                order, joint.on_path, written,
                [require.input for require in captured.boundary.requires if require.requires],
                [b.tensor for b in captured.bindings if b.kind != "tangent"],
                symbols_told(captured), again)

    def call(leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = gather(leaves)
        with torch.inference_mode(False):
            symbols = plan.numbers("inputs", inputs)
            made = [leaf.make(symbols) for leaf in plan.leaves]
        box = Box(plan, inputs, leaves, made, symbols, [])
        sources = [box.inputs[number] for number in plan.gradients] + made
        if not sources:                      # all that requires grad was made inside, and nobody sees it
            sources = [torch.empty(0, requires_grad=True)]
        # The user's own block may have been the only one to record.
        with torch.enable_grad(), started([inputs[number] for number in plan.starting]):
            outputs = _Node.apply(box, *sources)
        results = box.results
        assert results is not None
        for position, output in zip(plan.differentiable, outputs):
            results[position] = output
        if plan.kept:
            box.retain(results)
        with torch.enable_grad():
            hand(results, inputs, box.outputs, leaves)
        return collect(results)

    return call


@contextmanager
def started(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """The tensors require grad from now on, unless the program raises."""
    for tensor in tensors:
        tensor.requires_grad_()
    try:
        yield
    except BaseException:
        for tensor in tensors:
            tensor.requires_grad_(False)
        raise


def _computed(captured: Captured, chosen: Mapping[int, Choice]) -> Captured:
    """The same with results that are always the program's own: what may be the caller's tensor is handed back after."""
    results = [chosen[number].otherwise if number in chosen else result
               for number, result in enumerate(captured.boundary.results)]
    return replace(captured, boundary=replace(captured.boundary, results=results))


class _Node(torch.autograd.Function):
    """apply(box, *inputs that get a gradient) -> the results that require grad.

    Of the other inputs autograd must not know: it would visit where they come from, which may be gone already."""

    @staticmethod
    def forward(ctx: Any, box: Box, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plan, inputs = box.plan, box.inputs
        outputs = list(plan.forward(inputs))
        saved = [_saved(source, inputs, outputs, plan) for source in plan.backward_inputs]
        results = box.results = plan.place(inputs, outputs, box.leaves)
        box.outputs = outputs
        for leaf, made in zip(plan.leaves, box.made):
            _fill(results, leaf.position, made)
        ctx.retained = box.retained
        ctx.plan, ctx.symbols = plan, {**box.symbols, **plan.numbers("outputs", outputs)}
        ctx.arguments = [weakref.ref(tensor) for tensor, weight in zip(inputs, plan.weights) if weight is None]
        ctx.set_materialize_grads(False)
        plain = [results[position] for position, flag in plan.on_path.items() if not bool(outputs[flag])]
        if plain:
            ctx.mark_non_differentiable(*plain)
        # A new leaf counts its writes by itself: it is saved beside its content, to be checked with it.
        ctx.save_for_backward(*saved, *[made for leaf, made in zip(plan.leaves, box.made) if leaf.saved])
        return tuple(results[position] for position in plan.differentiable)

    @staticmethod
    def backward(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        try:
            return _backward(ctx, tangents)
        except BaseException as error:
            tracebacks.leave(error)
            raise


def _backward(ctx: Any, tangents: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...]:
    plan: Plan = ctx.plan
    used = sum(1 << position for position, tangent in enumerate(tangents) if tangent is not None)
    if not used:
        return (None,) * len(ctx.needs_input_grad)
    given = dict(zip(plan.differentiable, tangents))
    values = []
    for source, type, kept in zip(plan.backward_inputs, plan.tangent_types, ctx.saved_tensors):
        values.append(kept if source.kind != "tangent" else laid_out(given.get(source.position), type, ctx.symbols))
    with torch.no_grad():
        computed: Sequence[Any] = plan.backward(values)
    if torch.is_grad_enabled():
        if plan.leaves or plan.kept:
            raise refusal()
        computed = plan.again.gradients(_inputs(ctx), plan.gradients, tangents, computed)
    # What the results in use do not depend on gets no gradient, as in eager, rather than zeros.
    gradients = [gradient if origin & used else None for gradient, origin in zip(computed, plan.origins)]
    for position, flag in plan.absent.items():
        if bool(computed[flag]):
            gradients[position] = None
    for keeper, gradient in zip(ctx.retained, gradients[len(plan.gradients) + len(plan.leaves):]):
        if gradient is not None:
            keeper.add(gradient, arrived=any(given[position] is not None for position in keeper.positions))
    return (None, *(gradients[:len(gradients) - len(plan.kept)] or [None]))


def _new_leaf(captured: Captured, position: int, parts: Partition) -> NewLeaf:
    """Where the gradient goes that the joint graph computes for a result."""
    result = captured.boundary.results[position]
    assert isinstance(result, Fresh | InputView)
    told = symbols_told(captured)
    if any(told[name].kind == "outputs" for name in symbols_in((result.sizes, result.strides))):
        raise UnsupportedError("a new leaf has a size that values decide")
    kind, number = ("output", result.output) if isinstance(result, Fresh) else ("input", result.input)
    saved = any((source.kind, source.position) == (kind, number) for source in parts.backward_inputs)
    return NewLeaf(position, result.sizes, result.strides, result.dtype, result.parameter, saved)


def _fill(results: list[Any], position: int, made: torch.Tensor) -> None:
    """`made` takes the place, and the memory, of a result."""
    given = results[position]
    made.data = given.detach()
    for other, result in enumerate(results):
        if result is given:
            results[other] = made


def _bits(results: frozenset[int], order: Sequence[int]) -> int:
    """A set of results as bits, by their place in `order`."""
    return sum(1 << place for place, number in enumerate(order) if number in results)


def _saved(source: BackwardInput, inputs: Sequence[torch.Tensor], outputs: Sequence[Any], plan: Plan) -> Any:
    """What to keep for one backward input; an input that is about to be written is kept as it was."""
    if source.kind == "input":
        tensor = inputs[source.position]
        return tensor.detach().clone() if source.position in plan.written else tensor
    return outputs[source.position] if source.kind == "output" else None


def laid_out(tangent: torch.Tensor | None, type: Any, symbols: Mapping[str, int]) -> torch.Tensor:
    """A tangent with the strides the backward program reads; zeros for a result nobody used."""
    shape, strides = type.shape, type.strides
    if symbols:
        shape, strides = numbers(shape, symbols), numbers(strides, symbols)
    if tangent is None:
        return torch.zeros(shape, dtype=type.dtype) if strides is None else \
            torch.empty_strided(shape, strides, dtype=type.dtype).zero_()
    if strides is None or tangent.stride() == strides:
        return tangent.detach()
    return torch.empty_strided(shape, strides, dtype=type.dtype).copy_(tangent.detach())


def _inputs(ctx: Any) -> list[torch.Tensor]:
    """The inputs of the forward call, as objects: arguments are held weakly, so that they can be freed as in eager."""
    arguments = iter(ctx.arguments)
    inputs = [next(arguments)() if weight is None else weight for weight in ctx.plan.weights]
    if any(tensor is None for tensor in inputs):
        raise refusal()
    return inputs
