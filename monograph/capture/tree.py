"""Results in their own types.

    Tree ::= TreeSpec, and for leaves that are objects holding tensors: class, Tree of the attributes
                      and for tensors of a class of their own, or with attributes: class, Tree of the attributes

torch's pytree opens tuples, dicts, namedtuples and what is registered (transformers' ModelOutput);
any other object that holds traced tensors, a dataclass or a cache, is opened through its attributes
and made again from them. What was there before the trace (a list of the model's, a cache that the user passed) is
itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.arrays import TracedArray
from monograph.capture.classes import attributes_of, class_of
from monograph.capture.dims import SYMBOLIC

__all__ = ["Tree", "flatten", "holds", "is_size", "opened"]

DEEPEST = 6
PLAIN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, type)


@dataclass
class Part:
    """How one pytree leaf is made of `count` leaves of ours; `same` when it is an object made already."""

    count: int
    cls: Any = None
    tree: Tree | None = None
    same: int | None = None
    convert: Callable[[Any], Any] | None = None      # what a caller gets in place of the leaf
    is_tensor: bool = False                          # of class `cls`, with the attributes in `tree`


@dataclass
class Tree:
    """`unflatten(leaves)` builds the result."""

    spec: Any
    parts: list[Part] | None = None          # None: every leaf is itself
    made: list[Any] = field(default_factory=list)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        if self.parts is None:
            return pytree.tree_unflatten(list(leaves), self.spec)
        return self._build(iter(leaves), [])

    def _build(self, leaves: Iterator[Any], made: list[Any]) -> Any:
        values = []
        for part in self.parts or ():
            if part.same is not None:
                values.append(made[part.same])
            elif part.convert is not None:
                values.append(part.convert(next(leaves)))
            elif part.tree is None:
                values.append(next(leaves))
            elif part.is_tensor:
                tensor = next(leaves)
                tensor = tensor if type(tensor) is part.cls else tensor.as_subclass(part.cls)
                made.append(tensor)
                vars(tensor).update(part.tree._build(leaves, made))
                values.append(tensor)
            else:
                instance = part.cls.__new__(part.cls)
                made.append(instance)
                attributes, content = part.tree._build(leaves, made)
                vars(instance).update(attributes)
                _fill(instance, content)
                values.append(instance)
        return pytree.tree_unflatten(values, self.spec)


def is_size(value: Any) -> bool:
    return type(value) is torch.Size


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
    leaves: list[Any] = []
    made: list[Any] = []
    tree = _flatten(result, is_traced, existed, leaves, made)
    if not made and all(part.convert is None for part in tree.parts or ()):
        tree.parts = None
    return leaves, tree


def _flatten(result: Any, is_traced: Callable[[Any], bool], existed: Callable[[Any], bool], leaves: list[Any],
             made: list[Any]) -> Tree:
    # A size is a leaf: pytree would make a tuple of it.
    entries, spec = opened(result, lambda value: is_size(value) or existed(value))
    parts: list[Part] = []
    for entry in entries:
        if type(entry) is TracedArray:
            leaves.append(entry.tensor)
            parts.append(Part(1, convert=_as_number if entry.scalar else _as_array))
            continue
        dressed = _is_dressed(entry, existed)
        if not dressed and (isinstance(entry, (torch.Tensor, *PLAIN, *SYMBOLIC)) or existed(entry)
                            or not _holds(entry, is_traced, 0)):
            leaves.append(entry)
            parts.append(Part(1))
            continue
        known = next((i for i, other in enumerate(made) if other is entry), None)
        if known is not None:
            parts.append(Part(0, same=known))
            continue
        made.append(entry)
        before = len(leaves)
        if dressed:
            leaves.append(entry)
        inside = attributes_of(entry) if dressed else (dict(vars(entry)), _content(entry))
        inner = _flatten(inside, is_traced, existed, leaves, made)
        kind = class_of(entry) if dressed else type(entry)
        parts.append(Part(len(leaves) - before, kind, inner, is_tensor=dressed))
    return Tree(spec, parts)


def _is_dressed(entry: Any, existed: Callable[[Any], bool]) -> bool:
    """Whether it is a tensor of the program's that has a class of its own or attributes."""
    return isinstance(entry, compat.FakeTensor) and not existed(entry) and (
        class_of(entry) not in compat.PLAIN_TENSORS or bool(attributes_of(entry)))


def _as_array(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()


def _as_number(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()[()]


def _content(entry: Any) -> Any:
    """What a subclass of dict or list holds besides its attributes, without running its code."""
    if isinstance(entry, dict):
        return dict(dict.items(entry))
    return list(list.__iter__(entry)) if isinstance(entry, list) else None


def _fill(instance: Any, content: Any) -> None:
    if isinstance(content, dict):
        kind = OrderedDict if isinstance(instance, OrderedDict) else dict
        for key, value in content.items():
            kind.__setitem__(instance, key, value)
    elif isinstance(content, list):
        list.extend(instance, content)


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
