"""Tensors of the outside that a body writes in place under autograd.

In eager such a write gives the tensor another history. While a body is traced it does so on the very tensors (fakes)
that the other bodies begin with, so what a body did is taken back when it ends:

    touch(tensor)      before the write: a node of autograd's that goes on where the history of the tensor now ends
    restore()          after the body: every tensor touched has the history it had before

After the statement the tensor's history leads to the node of the region (`gradient.connect`). Which derivative eager
would refuse the versions of what autograd saved tell (`saved_tensors`): the region's own takes values, and knows none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.histories import Followed
from monograph.capture.layout import Layout
from monograph.capture.regions.errors import Unmergeable

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["CONTINUES", "MODIFIED", "NODES", "Rewritten", "become_followed", "begin", "put_back", "saved_tensors"]

MODIFIED = "a tensor that the gradient needs is written in place"
CONTINUES = "_ContinueBackward"      # a node of the history that a tensor gets back: of its inputs the second counts
NODES = frozenset({"_BeginBackward", CONTINUES})


class _Begin(Followed):
    """By its name its nodes are known."""


class _Continue(torch.autograd.Function):
    """`tensor` gets the history of `begun`, in place."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, begun: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, gradients[0]


class Rewritten:
    """What one body does to the histories of tensors that were there before."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.before: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}     # storage -> base, its history or None
        self.views: list[torch.Tensor] = []          # that were written through, of bases without a history

    def touch(self, tensor: torch.Tensor) -> None:
        """`tensor`, whose root is the base of its storage, is about to get another history."""
        storage = self.tracer.memory.of(tensor)
        base = storage.base
        if storage.scope is self.tracer.record.graph:
            return
        followed = self.tracer.followed_by_autograd(base)
        known = self.before.setdefault(compat.storage_id(base), (base, None if followed is None else self._end(base)))
        if known[0] is not base:
            raise Unmergeable("autograd follows tensors that share memory, and a branch or loop writes one")
        if known[1] is None and tensor is not base:
            self.views.append(tensor)

    def _end(self, base: torch.Tensor) -> torch.Tensor:
        layout = Layout.of(base)
        with self.tracer.quiet():
            blank = self.tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        with torch.enable_grad():
            return begin(base, blank)

    def unfollowed(self) -> set[int]:
        """Storages touched whose history ends in this body."""
        return {key for key, (base, _) in self.before.items() if self.tracer.followed_by_autograd(base) is None}

    def bases(self) -> dict[int, torch.Tensor]:
        return {key: base for key, (base, _) in self.before.items()}

    def restore(self, held: Any) -> None:
        """Give the tensors their histories back. `held`: what the body leaves, which may be views it made.

        Unmergeable where somebody else holds a view that has a history now and should have none."""
        for base, end in self.before.values():
            put_back(self.tracer, base, end)
        leaves = pytree.tree_leaves(held)
        while self.views:
            view = self.views.pop()
            if sys.getrefcount(view) - 2 * sum(leaf is view for leaf in leaves) > 2:
                raise Unmergeable("a branch or loop writes in place to a view that gets a history")


def begin(tensor: torch.Tensor, blank: torch.Tensor) -> torch.Tensor:
    """`blank` with a history of its own, which leads to that of `tensor`."""
    begun: torch.Tensor = _Begin.apply(tensor, [blank])
    return begun


def become_followed(tracer: Tracer, base: torch.Tensor) -> None:
    """`base`, without a history, gets one that ends there: an iteration begins with what the last one left."""
    layout = Layout.of(base)
    with tracer.quiet():
        begun = tracer.fresh(layout.sizes, layout.strides, layout.dtype).requires_grad_(True)
    put_back(tracer, base, begun)


def put_back(tracer: Tracer, base: torch.Tensor, end: torch.Tensor | None) -> None:
    """`base` has the history of `end`, or none."""
    if end is not None:
        with torch.enable_grad(), torch._C.DisableTorchFunction():
            _Continue.apply(base, end)
    else:
        with tracer.quiet():
            base.detach_()
    torch.autograd.graph.increment_version(base)      # views look for their histories again


_names: dict[type, tuple[str, ...]] = {}


def saved_tensors(node: Any) -> list[torch.Tensor]:
    """The tensors that a node of autograd's keeps for its backward; Unmergeable where one was written since."""
    kind = type(node)
    names = _names.get(kind)
    if names is None:
        names = _names[kind] = tuple(name for name in dir(kind)
                                     if name == "saved_tensors" or name.startswith("_saved_"))    # 2.13
    found: list[torch.Tensor] = []
    for name in names:
        try:
            kept = getattr(node, name)
        except RuntimeError as error:
            if compat.says_modified(error):
                raise Unmergeable(MODIFIED) from None
            continue
        found += [leaf for leaf in (kept if isinstance(kept, (list, tuple)) else (kept,))
                  if isinstance(leaf, torch.Tensor)]
    return found
