"""Regions under autograd.

A region's body is traced with autograd on, so that the program sees what it sees in eager; the graph that autograd
builds inside is dropped. In its place the results of the region hang on one node of autograd's, whose backward records
the derivative of the region from its pure ops (`derivative`, which the driver is given). What a pure op cannot
tell is kept by `aten.detach`: inside, a tensor that does not require grad is read through one.

    derivative(node, cotangents, wrt, graph, root) -> {value: gradient}     recorded at the end of `graph`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.layout import Layout, contiguous_strides
from monograph.capture.regions.errors import Unmergeable
from monograph.errors import UnsupportedError
from monograph.ir.edit import symbols_read
from monograph.ir.graph import Node, Value

if TYPE_CHECKING:
    from monograph.capture.regions.body import Body
    from monograph.capture.tracer import Tracer

__all__ = ["Link", "connect", "is_differentiable", "known_tensors", "link_of", "refuse_unseen"]


NODE = "_RegionBackward"


@dataclass
class Link:
    """What the backward of one region needs."""

    tracer: Tracer
    node: Node
    inputs: list[Value]              # values the region reads, in the order of autograd's inputs
    fakes: list[torch.Tensor]        # results that require grad
    values: list[Value]              # theirs


class _Region(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, link: Link, *inputs: torch.Tensor) -> Any:
        ctx.link = link
        ctx.set_materialize_grads(False)
        return tuple(link.fakes)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        link: Link = ctx.link
        with torch.no_grad(), torch._C.DisableTorchFunction():
            return None, *_record(link, gradients)


def link_of(node: Any) -> Link | None:
    """The region that a node of autograd's stands for."""
    return node.link if type(node).__name__ == NODE else None


def _record(link: Link, gradients: Sequence[Any]) -> list[Any]:
    """Gradients of a region's inputs, given those of its results."""
    tracer = link.tracer
    if tracer.derivative is None:
        raise UnsupportedError("this trace takes no derivatives of branches and loops", loc=link.node.loc,
                               why="it was asked for without")
    cotangents = {value: tracer.memory.read(tracer.lift(gradient))
                  for value, gradient in zip(link.values, gradients, strict=True) if gradient is not None}
    tracer.record.loc = link.node.loc
    with compat.plain_torch():
        found = tracer.derivative(link.node, cotangents, set(link.inputs), tracer.record.graph, tracer.graph)
    return [_tensor(tracer, found[value]) if value in found else None for value in link.inputs]


def _tensor(tracer: Tracer, value: Value) -> torch.Tensor:
    """A fresh fake for a recorded gradient."""
    type = value.tensor
    sizes = [*map(tracer.sizes.size, type.shape)]
    layout = Layout(sizes, contiguous_strides(sizes), 0, type.dtype)
    with compat.plain_torch():
        fake = tracer.fresh(layout.sizes, layout.strides, layout.dtype)
    tracer.memory.add(fake, value)
    return fake


def is_differentiable(*tensors: Any) -> bool:
    """Whether one of them requires grad."""
    return any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors)


def known_tensors(tracer: Tracer, saved: Mapping[int, Any]) -> dict[Value, torch.Tensor]:
    """The tensors that require grad, by the values that a region which begins at `saved` reads them as."""
    known: dict[Value, torch.Tensor] = {}
    for key, state in saved.items():
        base = tracer.followed_by_autograd(tracer.memory.by_id[key].base)
        if base is not None:
            known.setdefault(state[1], base)
    return known


def connect(tracer: Tracer, node: Node, results: Sequence[tuple[torch.Tensor, Value]],
            known: Mapping[Value, torch.Tensor]) -> None:
    """Hang a region's results (fakes and their values) on autograd, so that they require grad as in eager."""
    reads = {value for region in node.regions for value in region.free_values()} | set(node.inputs)
    inputs = [value for value in known if value in reads]
    if not inputs or not results:
        return
    if not symbols_read(node).isdisjoint(tracer.sizes.local):
        raise Unmergeable("the gradient of a branch or loop depends on sizes that values in it decide")
    link = Link(tracer, node, inputs, [fake for fake, _ in results], [value for _, value in results])
    with torch.enable_grad():
        _Region.apply(link, *(known[value] for value in inputs))


def refuse_unseen(tracer: Tracer, body: Body, sequence: int) -> None:
    """Unmergeable for what pure ops do not tell: outer tensors written that autograd follows, the user's derivatives.

    `sequence` is the number of autograd's last node before the body.
    """
    bases = [tracer.memory.by_id[key].base for key in body.written]
    if any(tracer.followed_by_autograd(base) is not None for base in bases):
        raise Unmergeable("a branch or loop writes in place to a tensor that requires grad")
    pending = [leaf.grad_fn for leaf in pytree.tree_leaves((body.value, body.variables, list(body.objects.values())))
               if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
    seen: set[Any] = set()
    while pending:
        found = pending.pop()
        if found in seen or found._sequence_nr() <= sequence:
            continue
        seen.add(found)
        if isinstance(found, torch.autograd.function.BackwardCFunction) and type(found).__name__ != NODE:
            raise Unmergeable("a branch or loop uses an autograd.Function of the user's own")
        pending += [following for following, _ in found.next_functions if following is not None]
