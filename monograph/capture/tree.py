"""Results in their own types.

    Tree ::= TreeSpec        containers that torch's pytree opens, each there once: tuples, dicts, ModelOutputs
           | Replica         any other objects around the leaves

What was there before the trace (a list of the model's, a cache that the user passed) is itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph.capture.arrays import TracedArray
from monograph.capture.dims import SYMBOLIC
from monograph.capture.replica import ATOMS, Replica, Within, is_container, is_dressed, is_size

__all__ = ["Tree", "flatten", "holds", "is_size", "opened"]

DEEPEST = 6
PLAIN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


@dataclass
class Tree:
    """`unflatten(leaves)` builds the result. `spec`: containers around the leaves; else `replica`."""

    spec: Any = None
    replica: Replica | None = None

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        if self.replica is not None:
            return self.replica.unflatten(leaves)
        return pytree.tree_unflatten(list(leaves), self.spec)


def opened(value: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], pytree.TreeSpec]:
    """As pytree does it, but that keeps `is_leaf`, and what it knows of, until the garbage collector comes."""
    asked = [is_leaf]
    try:
        return pytree.tree_flatten(value, is_leaf=lambda entry: asked[0](entry))
    finally:
        asked.clear()


def flatten(result: Any, is_traced: Callable[[Any], bool], existed: Callable[[Any], bool] = lambda value: False,
            ) -> tuple[list[Any], Tree]:
    """The leaves of a result and the tree to build it again. `existed`: whether an object was there before."""
    within = Within(is_traced, existed)
    containers: set[int] = set()
    is_plain = True

    def is_leaf(value: Any) -> bool:
        nonlocal is_plain
        if type(value) in ATOMS:
            return False
        if is_size(value) or existed(value):
            return True
        if type(value) in pytree.SUPPORTED_NODES and value != ():
            if id(value) in containers:            # perhaps within itself
                is_plain = False
                return True
            is_plain &= not (isinstance(value, dict) and any(map(within.reaches, value)))
            containers.add(id(value))
        return False

    leaves, spec = opened(result, is_leaf)
    if is_plain and not any(_is_object(leaf, within) for leaf in leaves):
        return leaves, Tree(spec)
    leaves, replica = Replica.of(result, within)
    return leaves, Tree(replica=replica)


def _is_object(leaf: Any, within: Within) -> bool:
    """Whether a leaf of pytree's is to be made again around leaves of its own, or turned into something else."""
    if type(leaf) is TracedArray:
        return True
    if isinstance(leaf, (torch.Tensor, *PLAIN, *SYMBOLIC)) or within.is_leaf(leaf):
        return is_dressed(leaf) and not within.existed(leaf)
    return not within.existed(leaf) and (is_container(leaf) or within.reaches(leaf))


def holds(value: Any, is_traced: Callable[[Any], bool]) -> bool:
    """Whether a traced tensor can be reached from an object through attributes and containers."""
    return _holds(value, is_traced, 0)


def _holds(value: Any, is_traced: Callable[[Any], bool], depth: int) -> bool:
    if type(value) in (TracedArray, *SYMBOLIC) or is_size(value) and any(type(size) in SYMBOLIC for size in value):
        return True
    if isinstance(value, torch.Tensor):
        return is_traced(value)
    if depth > DEEPEST or isinstance(value, (*PLAIN, torch.nn.Module)):
        return False
    if isinstance(value, dict) and any(_holds(entry, is_traced, depth + 1) for entry in dict.values(value)):
        return True
    if isinstance(value, (list, tuple, set)) and any(_holds(entry, is_traced, depth + 1) for entry in value):
        return True
    attributes = getattr(value, "__dict__", None)
    return isinstance(attributes, dict) and _holds(attributes, is_traced, depth + 1)
