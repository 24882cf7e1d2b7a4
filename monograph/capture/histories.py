"""Tensors that have a history when the trace meets them: state that an earlier call computed and Python kept.

Autograd runs above the tracer and would follow such a tensor out of the program, into what made it. So where a torch
function gets one it gets the tensor's fake in its place, whose history ends there; the gradient of the fake is
the gradient of a graph input, and the caller's autograd carries it on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors

if TYPE_CHECKING:
    from monograph.capture.inputs import Entry
    from monograph.capture.tracer import Tracer

__all__ = ["Followed", "cut", "refuse_uncut", "settled"]


class Followed(torch.autograd.Function):
    """`box[0]` as something computed from `tensor`, whose gradient it passes on."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, box: list[torch.Tensor]) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        return box[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


def cut(tracer: Tracer, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a torch function with fakes for real tensors that were computed under grad."""
    if any(map(_has_history, args)) or any(map(_has_history, kwargs.values())):
        return _cut(tracer, args), _cut(tracer, kwargs)
    return args, kwargs


def _has_history(value: Any) -> bool:
    kind = type(value)
    if kind is torch.Tensor:
        return value.grad_fn is not None and not compat.is_functorch_tensor(value)
    return kind in (list, tuple) and any(map(_has_history, value))


def _cut(tracer: Tracer, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(tracer, entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cut(tracer, entry) for entry in value)
    return tracer.lift(value) if _has_history(value) else value


def refuse_uncut(entries: Iterable[Entry], nodes: Iterable[Any]) -> None:
    """UnsupportedError where the autograd `nodes` behind the results contain what made a tensor before the trace:
    it was handed to a custom autograd.Function, past the torch functions."""
    found = set(nodes)
    for entry in entries:
        if entry.real.grad_fn is not None and compat.gradient_edge(entry.real) in found:
            raise errors.UnsupportedError(f"{entry.source} has a history and goes into a custom autograd.Function",
                                          why="its gradient would run past the edge of the graph",
                                          hint="pass it in as an argument of the compiled function")


def settled(tracer: Tracer, result: Any) -> Any:
    """What a function without grad gives. Torch says that a view made so requires grad if its base does: not so where
    the argument that it is a view of is one itself, of a base that does not."""
    if isinstance(result, (list, tuple)):
        kept = [settled(tracer, entry) for entry in result]
        return result if all(a is b for a, b in zip(kept, result, strict=True)) else type(result)(kept)
    if not isinstance(result, torch.Tensor) or not result.requires_grad or result.grad_fn is not None:
        return result
    entry = tracer.differentiable.get(id(result._base))
    if entry is None:
        return result
    tracer.viewed[id(entry.real)] = entry.real
    return result if compat.base_requires_grad(entry.real) else result.detach()
