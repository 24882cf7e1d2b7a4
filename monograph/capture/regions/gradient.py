"""Regions under autograd.

A region's body is traced with autograd on, so that the program sees what it sees in eager; the graph that autograd
builds inside is dropped. In its place the results of the region hang on one node of autograd's, whose backward records
the derivative of the region from its pure ops (`derivative`, which the driver is given). What a pure op cannot
tell is kept by `aten.detach`: inside, a tensor that does not require grad is read through one.

    derivative(node, cotangents, wrt, graph, root) -> {value: gradient}     recorded at the end of `graph`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.layout import Layout, contiguous_strides
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.rewritten import NODES, saved_tensors
from monograph.errors import UnsupportedError
from monograph.ir.edit import symbols_read
from monograph.ir.graph import Node, Value

if TYPE_CHECKING:
    from monograph.capture.regions.body import Body, Start
    from monograph.capture.tracer import Tracer

__all__ = ["Link", "connect", "is_differentiable", "known_tensors", "link_of", "look_inside"]


NODE = "_RegionBackward"
OURS = frozenset({NODE, *NODES})


@dataclass
class Link:
    """What the backward of one region needs."""

    tracer: Tracer
    node: Node
    inputs: list[Value]              # values the region reads, in the order of autograd's inputs
    fakes: list[torch.Tensor]        # results that require grad
    values: list[Value]              # theirs
    written: list[torch.Tensor]      # of these, the tensors of the outside
    saved: list[torch.Tensor]        # what eager keeps for the backward, whose versions it looks at
    site: Any                        # the statement


class _Region(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, link: Link, *inputs: torch.Tensor) -> Any:
        ctx.link = link
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(*link.written)
        ctx.save_for_backward(*link.saved)
        return tuple(link.fakes)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        link: Link = ctx.link
        try:
            saved_tensors(ctx)
        except Unmergeable as modified:
            modified.site = link.site
            raise
        with torch.no_grad(), torch._C.DisableTorchFunction():
            found = _record(link, gradients)
        return None, *found, *[None] * (len(ctx.needs_input_grad) - 1 - len(found))


def link_of(node: Any) -> Link | None:
    """The region that a node of autograd's stands for."""
    return node.link if type(node).__name__ == NODE else None


def _record(link: Link, gradients: Sequence[Any]) -> list[Any]:
    """Gradients of a region's inputs, given those of its results; none where no gradient flows to it."""
    tracer = link.tracer
    if all(gradient is None for gradient in gradients):      # an earlier round of a loop, or what is inside of one
        return [None] * len(link.inputs)
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


def look_inside(tracer: Tracer, body: Body, sequence: int, *, repeats: bool) -> None:
    """Look at the autograd graph of a body: what it keeps for its backward is noted in `body`. Unmergeable for what
    pure ops do not tell: the user's derivatives, writes that eager's backward refuses.

    `sequence` is the number of autograd's last node before the body; `repeats`: an iteration, after which another one
    may come.
    """
    memory = tracer.memory
    if repeats:
        torch.autograd.graph.increment_version([memory.by_id[key].base for key in body.written])
    leaves = (*pytree.tree_leaves((body.value, body.variables, list(body.objects.values()))), *body.rewritten.values())
    pending = _histories(leaves)
    seen: set[Any] = set()
    while pending:
        found = pending.pop()
        if found in seen or found._sequence_nr() <= sequence:
            continue
        seen.add(found)
        if isinstance(found, torch.autograd.function.BackwardCFunction) and type(found).__name__ not in OURS and \
                all(found is not node for node in tracer.recorded):
            raise Unmergeable("a branch or loop uses an autograd.Function of the user's own, past torch's `apply`")
        for tensor in saved_tensors(found):
            storage = memory.find(tensor)
            if storage is None or storage.scope is None or storage.scope in memory.scopes:
                body.saved.append(tensor)
            elif storage.scope is body.graph:
                body.saved_inside.add(compat.storage_id(tensor))
        pending += [following for following, _ in found.next_functions if following is not None]


def _histories(leaves: Iterable[Any]) -> list[Any]:
    """Where the histories of `leaves` end. A view that has none since its base was written raises when it is asked."""
    try:
        found = [leaf.grad_fn for leaf in leaves if isinstance(leaf, torch.Tensor)]
    except RuntimeError as error:
        raise Unmergeable(f"a branch or loop leaves a view that autograd refuses: {error}") from error
    return [node for node in found if node is not None]


def connect(tracer: Tracer, start: Start, bodies: Sequence[Body], node: Node,
            results: Sequence[tuple[torch.Tensor, Value]], known: Mapping[Value, torch.Tensor],
            saved: Iterable[torch.Tensor] = ()) -> None:
    """Hang a region's results (fakes and their values) on autograd, so that they require grad as in eager, and the
    tensors of the outside that its bodies gave another history. `saved`: those of the results that eager keeps."""
    reads = {value for region in node.regions for value in region.free_values()} | set(node.inputs)
    inputs = [value for value in known if value in reads]
    written = [base for body in bodies for base in body.rewritten.values()]
    written = list({id(base): base for base in written}.values())
    if not inputs or not (results or written):
        return
    if not symbols_read(node).isdisjoint(tracer.sizes.local):
        raise Unmergeable("the gradient of a branch or loop depends on sizes that values in it decide")
    values = {id(base): tracer.memory.of(base).value for base in written}
    given = [known[value] for value in inputs]
    given += [base for base in written if all(base is not other for other in given)]
    link = Link(tracer, node, inputs, [*(fake for fake, _ in results), *written],
                [*(value for _, value in results), *values.values()], written,
                [*(tensor for body in bodies for tensor in body.saved), *saved], start.site)
    if written:
        tracer.rewriting.append(start.site)
    for base in written:
        tracer.touch(base)
    with torch.enable_grad():
        _Region.apply(link, *given)
