"""Functions of the user's that are called, not looked into: `monograph.allow_in_graph`.

    y = function(*tensors, **constants)      forward: one op of `ops.host`
                                             backward: another, which runs the function again under autograd

What the function gives is learnt and checked as `opaque` has it. The same backward serves custom ops whose kernel
autograd looks into, because they have no formula of their own.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import handle_torch_function, has_torch_function
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture import opaque
from monograph.capture.number import TracedNumber
from monograph.ir.op import Effect
from monograph.ops import host

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Allowed", "call_whole", "custom_op", "gives_number", "is_open_to_autograd"]

Function = Callable[..., Any]
RESULTS = (torch.Tensor, bool, int, float)
PLACE = object()
NUMBERS = frozenset({"int", "float", "bool", "number"})


class Allowed:
    """A function that a capture calls without looking into it. Called outside of a capture it is the function."""

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if has_torch_function(tensors):
            return handle_torch_function(self, tensors, *args, **kwargs)
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def is_open_to_autograd(args: Any, kwargs: Any) -> bool:
    """Whether autograd looks into the kernel of the custom op that arrives: it has no formula for one that requires
    grad."""
    if not torch.is_grad_enabled() or compat.below_autograd_now():
        return False
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in pytree.tree_leaves((args, kwargs)))


def custom_op(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """Record a custom op whose kernel autograd looks into."""
    if func._schema.is_mutable:
        raise errors.UnsupportedError(f"{func} writes under grad and has no autograd formula", loc=tracer.record.loc,
                                      why="nobody says what its gradient is",
                                      hint="give it one by torch.library.register_autograd")
    return call_whole(tracer, func, func._schema.name, args, kwargs, numbers=False)


@functools.cache
def gives_number(func: Any) -> bool:
    """Whether a custom op, an overload or all of one name, returns a number."""
    overloads = [getattr(func, name) for name in func.overloads()] if hasattr(func, "overloads") else [func]
    return all(opaque.is_custom(each) and not each._schema.is_mutable and
               any(str(result.type) in NUMBERS for result in each._schema.returns) for each in overloads)


def call_whole(tracer: Tracer, function: Function, name: str, args: Any, kwargs: Any, *, numbers: bool = True,
               effects: frozenset[Effect] = frozenset()) -> Any:
    """Record a call of `function`; fakes, and traced numbers if `numbers`, in the structure of what it returns."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    leaves = [leaf.tensor if isinstance(leaf, TracedNumber) else leaf for leaf in leaves]
    taken = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    is_number = [isinstance(leaf, TracedNumber) for leaf in pytree.tree_leaves((args, kwargs))]
    constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    places = [position for position, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def again(tensors: Sequence[torch.Tensor]) -> Any:
        filled = list(constants)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor.item() if is_number[place] else tensor
        given, named = pytree.tree_unflatten(filled, spec)
        return function(*given, **named)

    whole = _Whole(tracer, again, name, numbers, effects)
    with torch._C.DisableTorchFunction():
        followed = [tracer.followed_by_autograd(tensor) if whole.grad else None for tensor in taken]
        whole.requires = [tensor is not None for tensor in followed]
        if any(whole.requires):
            made = _Node.apply(whole, *(a if b is None else b for a, b in zip(taken, followed, strict=True)))
        else:
            made = whole.forward(taken)
    return whole.answer(made)


class _Whole:
    """One recorded call. `requires`: which of its tensors require grad; `outputs`: which results do."""

    def __init__(self, tracer: Tracer, again: Function, name: str, numbers: bool, effects: frozenset[Effect]) -> None:
        self.tracer = weakref.proxy(tracer)      # the op lives as long as the process: fakes are to end with the trace
        self.again = again
        self.name = name
        self.numbers = numbers
        self.effects = effects
        self.requires: list[bool] = []
        self.outputs: list[bool] = []
        self.shape: Any = None           # structure of what is returned, and its leaves, PLACE for results
        self.grad = torch.is_grad_enabled()
        self.autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None

    def forward(self, fakes: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Record the function itself."""
        def run(tensors: Sequence[torch.Tensor]) -> list[Any]:
            followed = any(map(_is_followed, tensors))
            with compat.whole_torch(self.grad, self.autocast):
                inputs = list(tensors) if followed else self.prepared(tensors)
                leaves, spec = pytree.tree_flatten(self.again(inputs))
            results = [leaf for leaf in leaves if isinstance(leaf, RESULTS)]
            shape = spec, [PLACE if isinstance(leaf, RESULTS) else leaf for leaf in leaves]
            if self.shape is None:
                self.shape = shape
                self.outputs = [isinstance(result, torch.Tensor) and result.requires_grad for result in results]
                self.refuse_other_leaves(results, inputs)
            elif shape != self.shape:
                raise errors.InputError(f"{self.name} returns {shape} now and returned {self.shape} when captured")
            return results if followed else [_detached(result) for result in results]

        return self.record(self.name, run, fakes)

    def answer(self, made: Sequence[Any]) -> Any:
        """The structure that the function returns, holding `made`."""
        spec, leaves = self.shape
        results = iter(made)
        return pytree.tree_unflatten([next(results) if leaf is PLACE else leaf for leaf in leaves], spec)

    def refuse_other_leaves(self, results: Sequence[Any], inputs: Sequence[torch.Tensor]) -> None:
        """UnsupportedError where a result depends on a tensor that requires grad and is no argument."""
        nodes = [x.grad_fn for x in results if isinstance(x, torch.Tensor)]
        seen: set[Any] = set()
        while nodes:
            node = nodes.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            leaf = getattr(node, "variable", None)
            if leaf is not None and all(leaf is not tensor for tensor in inputs):
                raise errors.UnsupportedError(f"{self.name} reads a tensor that requires grad and is no argument",
                                              loc=self.tracer.record.loc, hint="pass it as an argument",
                                              why="its gradient would be lost: it is not looked into")
            nodes += [edge for edge, _ in node.next_functions]

    def backward(self, fakes: Sequence[torch.Tensor], cotangents: Sequence[Any]) -> list[Any]:
        """Record the gradients by the tensors that require grad; None for the others and where there is none."""
        given = [cotangent for cotangent in cotangents if cotangent is not None]
        present = [position for position, cotangent in enumerate(cotangents) if cotangent is not None]
        wanted: list[bool] = []

        def run(tensors: Sequence[torch.Tensor]) -> list[Any]:
            with compat.whole_torch(True, self.autocast):
                inputs = self.prepared(tensors[:len(fakes)])
                leaves = pytree.tree_leaves(self.again(inputs))
                results: Any = [leaf for leaf in leaves if isinstance(leaf, RESULTS)]
                sources = [x for x, requires in zip(inputs, self.requires, strict=True) if requires]
                gradients = torch.autograd.grad([results[position] for position in present], sources,
                                                tensors[len(fakes):], allow_unused=True)
            if not wanted:
                wanted.extend(gradient is not None for gradient in gradients)
            filled = [torch.zeros_like(source) if gradient is None else gradient
                      for gradient, source in zip(gradients, sources, strict=True)]
            return [gradient.clone() for gradient, want in zip(filled, wanted, strict=True) if want]

        made = iter(self.record(f"{self.name}_backward", run, [*fakes, *given]))
        wants = iter(wanted)
        return [next(made) if requires and next(wants) else None for requires in self.requires]

    def prepared(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors as the function is to see them: leaves of their own."""
        return [tensor.detach().requires_grad_(requires)
                for tensor, requires in zip(tensors, self.requires, strict=True)]

    def record(self, name: str, run: Callable[[Sequence[torch.Tensor]], list[Any]], fakes: Sequence[Any]) -> Any:
        tracer = self.tracer
        with torch.no_grad(), torch._C.DisableTorchFunction():
            args = (tuple(tracer.memory.read(tracer.lift(fake)) for fake in fakes),)
            op = host.of_function(name, run, effects=self.effects)
            learnt = opaque.learn(tracer, op, args, {})
            if tracer.paths.drew and any(self.requires):
                raise errors.UnsupportedError(f"{self.name} draws random numbers, which its backward would draw again",
                                              why="its gradient is found by calling it once more",
                                              loc=tracer.record.loc, hint="pass them in as an argument")
            if tracer.paths.drew:
                op = host.of_function(name, run, random=True, effects=self.effects)
            made, _ = opaque.place(tracer, op, args, {}, learnt, (), learnt, numbers=self.numbers)
        return tuple(made)


class _Node(torch.autograd.Function):
    """A recorded call under autograd."""

    @staticmethod
    def forward(ctx: Any, whole: _Whole, *tensors: torch.Tensor) -> Any:
        ctx.whole = whole
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        made = whole.forward(tensors)
        ctx.mark_non_differentiable(*(result for result, follows in zip(made, whole.outputs, strict=True)
                                      if isinstance(result, torch.Tensor) and not follows))
        return made

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, *ctx.whole.backward(ctx.saved_tensors, cotangents)


def _is_followed(tensor: torch.Tensor) -> bool:
    """Autograd records this very run (a second derivative)."""
    return torch.is_grad_enabled() and tensor.requires_grad and not compat.below_autograd_now()


def _detached(result: Any) -> Any:
    return result.detach() if isinstance(result, torch.Tensor) else result

