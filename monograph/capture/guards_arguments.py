"""The shape of a call: which containers, which leaves, and what is assumed of each.

    Arguments ::= structure  leaf*
    leaf      ::= tensor (metadata, identity among the other tensors, overlap where it matters)
                | plain value (equal)  |  any other object (the very same)

The leaves come in the order of torch's `tree_flatten((args, kwargs))`. The generated text walks the
containers itself, which costs a fraction of a tree_flatten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.guards import ABSENT, BY_VALUE, Free, TensorFacts, Text, brief, plain_conditions, same
from monograph.capture.guards_sizes import SizeFacts

__all__ = ["Arguments", "overlap_pattern"]

PLAIN = (*BY_VALUE, float, complex, type(None))
MANY = 8        # tensors; more are compared for identity through a set


class Arguments:
    """`overlap`: whether tensors sharing memory would change a program made for separate ones (it writes to one of
    them). A program made for tensors that do share memory reads one through the other, and always needs the check.
    `bound` are the tensors beside the arguments that it reads. `whole`: leaves of whose storage it sees all.
    `gradients`: leaves whose `.grad` it read, and what that was. `sizes`: what it takes for granted of sizes that
    are symbols. `attributes`: those of the user's on tensors that it read, ABSENT where there were none. `objects`:
    leaves that the facts speak of, as they are in the call. `rewritten`: leaves that it gives another history.
    `viewed`: leaves of which it asks whether their bases require grad. `standing`: it depends on what autograd refuses
    them."""

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, overlap: bool = True,
        bound: Sequence[torch.Tensor] = (), whole: Sequence[int] = (),
        gradients: Mapping[int, torch.Tensor | None] | None = None, sizes: SizeFacts | None = None,
        attributes: Mapping[int, Mapping[str, Any]] | None = None,
        objects: Collection[int] = (), rewritten: Collection[int] = (), viewed: Collection[int] = (),
        standing: bool = False,
    ) -> None:
        self.leaves: list[str] = []              # names of the leaves in the generated text
        self.values: list[Any] = []
        self.paths: list[str] = []
        self.spec = pytree.tree_structure((args, kwargs))
        self.args, self.kwargs = args, kwargs
        self.overlap = overlap
        self.bound: dict[int, int] = {}          # by storage: a weight there
        self.lie(bound)
        self.whole = list(whole)
        self.gradients = dict(gradients or {})
        self.sizes = sizes
        self.attributes = dict(attributes or {})
        self.objects = objects
        self.rewritten = rewritten
        self.viewed = viewed
        self.standing = standing
        self.tensors: TensorFacts | None = None
        self.distinct: list[int] = []            # leaves that are tensors, each object once (what torch's check takes)
        self.pattern: list[Any] = []

    def lie(self, bound: Sequence[torch.Tensor]) -> None:
        """This is where the weights lie now."""
        now = {compat.storage_id(tensor): position for position, tensor in enumerate(bound)}
        if now != self.bound:
            self.bound.clear()
            self.bound.update(now)

    def write(self, text: Text) -> None:
        """Generate the walk. Leaves become local variables l0, l1, ..."""
        text.require([f"len(args) == {len(self.args)}" if self.args else "not args"])
        for i, value in enumerate(self.args):
            self._walk(text, f"args[{i}]", value, f"args[{i}]")
        text.require([f"[*kwargs] == {text.name(list(self.kwargs))}" if self.kwargs else "not kwargs"])
        for key, value in self.kwargs.items():
            self._walk(text, f"kwargs[{key!r}]", value, key)
        assert len(self.leaves) == self.spec.num_leaves, "the walk and torch's pytree disagree"
        self._tensors(text)

    def _walk(self, text: Text, place: str, value: Any, path: str) -> None:
        kind = type(value)
        if kind not in pytree.SUPPORTED_NODES and not pytree.is_namedtuple(value):
            self._leaf(text, place, value, path)
            return
        name = f"t{len(text.lines)}"
        text.lines.append(f"{name} = {place}")
        require = [f"type({name}) is {text.name(kind)}"]
        if kind in (list, tuple) or pytree.is_namedtuple(value):
            text.require([*require, f"len({name}) == {len(value)}"])
            for i, entry in enumerate(value):
                self._walk(text, f"{name}[{i}]", entry, f"{path}[{i}]")
        elif kind in (dict, OrderedDict):
            text.require([*require, f"[*{name}] == {text.name(list(value))}"])
            for key, entry in value.items():
                self._walk(text, f"{name}[{text.name(key)}]", entry, f"{path}[{key!r}]")
        else:
            flatten = pytree.SUPPORTED_NODES[kind].flatten_fn
            children, context = flatten(value)
            text.require(require)
            text.lines.append(f"{name}, context = {text.name(flatten)}({name})")
            text.require([f"context == {text.name(context)}", f"len({name}) == {len(children)}"])
            for i, entry in enumerate(children):
                self._walk(text, f"{name}[{i}]", entry, f"{path}.{i}")

    def _leaf(self, text: Text, place: str, value: Any, path: str) -> None:
        name = f"l{len(self.leaves)}"
        self.leaves.append(name)
        self.values.append(value)
        self.paths.append(path)
        text.lines.append(f"{name} = {place}")
        if isinstance(value, torch.Tensor) or len(self.leaves) - 1 in self.objects:
            return
        if self.sizes is not None and len(self.leaves) - 1 in self.sizes.integers:
            text.require([f"type({name}) is int"])
            return
        constant = text.name(value)
        text.require([f"({name} is {constant} or same({name}, {constant}))" if is_plain(value)
                      else f"{name} is {constant}"])

    def _tensors(self, text: Text) -> None:
        """One metadata check over all tensors, then how they relate to each other."""
        chosen = [i for i, value in enumerate(self.values) if isinstance(value, torch.Tensor)]
        if not chosen:
            return
        tensors = [self.values[i] for i in chosen]
        names = [self.leaves[i] for i in chosen]
        text.require(identities(text, names, tensors))
        once = [i for i in chosen if first(self.values, self.values[i]) == i]
        self.tensors = TensorFacts([self.values[i] for i in once], [self.paths[i] for i in once],
                                   self._free(once))
        self.distinct = once
        text.require(plain_conditions([self.leaves[i] for i in once], [self.values[i] for i in once], text))
        text.require([f"{text.name(self.tensors.check)}({', '.join(self.leaves[i] for i in once)})"])
        text.require([f"{self.leaves[i]}.grad is {text.name(gradient)}" for i, gradient in self.gradients.items()])
        text.require([f"same({self.leaves[i]}.__dict__.get({name!r}, {text.name(ABSENT)}), {text.name(value)})"
                      for i, found in self.attributes.items() for name, value in found.items()])
        text.require([f"{text.name(compat.storage_size)}({self.leaves[i]}) == {compat.storage_size(self.values[i])}"
                      for i in self.whole])
        text.require([f"not {text.name(compat.is_barred)}({self.leaves[i]})" for i in self.rewritten])
        text.require([f"{text.name(compat.base_requires_grad)}({self.leaves[i]}) is "
                      f"{compat.base_requires_grad(self.values[i])}" for i in self.viewed])
        if self.standing:
            text.require([f"{text.name(compat.standing)}({self.leaves[i]}) == {compat.standing(self.values[i])}"
                          for i in once])
        self.pattern = overlap_pattern(tensors, self.bound)
        self.overlap = self.overlap or bool(self.pattern)
        if self.overlap and (len(tensors) > 1 or self.bound):
            call = f"{text.name(overlap_pattern)}([{', '.join(names)}], {text.name(self.bound)})"
            text.require([f"{call} == {text.name(self.pattern)}"])

    def _free(self, once: Sequence[int]) -> Free:
        free = self.sizes.free if self.sizes is not None else {}
        return {position: free[leaf] for position, leaf in enumerate(once) if leaf in free}

    def failures(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """In words, how this call differs from the one that was traced."""
        spec = pytree.tree_structure((args, kwargs))
        if spec != self.spec:
            return [f"structure of the arguments: {self._shape(self.args, self.kwargs)} -> {self._shape(args, kwargs)}"]
        leaves = pytree.tree_leaves((args, kwargs))
        found = []
        integers = self.sizes.integers if self.sizes is not None else frozenset()
        for leaf, (path, then, now) in enumerate(zip(self.paths, self.values, leaves)):
            if leaf in integers and type(now) is int or leaf in self.objects:
                continue
            if not isinstance(then, torch.Tensor) and now is not then and not (is_plain(then) and same(now, then)):
                found.append(f"{path}: {brief(then)} -> {brief(now)}")
        if self.tensors is not None:
            found += self.tensors.failures([leaves[i] for i in self.distinct])
            if self.sizes is not None and not found and max(self.sizes.lying) < len(leaves):
                found += self.sizes.failures(leaves)
            now = [leaf for leaf, then in zip(leaves, self.values) if isinstance(then, torch.Tensor)]
            found += [f"gradient of {self.paths[i]}" for i, gradient in self.gradients.items()
                      if isinstance(leaves[i], torch.Tensor) and leaves[i].grad is not gradient]
            found += [f"{self.paths[i]}.{name}" for i, read in self.attributes.items() for name, value in read.items()
                      if not same(leaves[i].__dict__.get(name, ABSENT), value)]
            found += [f"whether the base of {self.paths[i]} requires grad" for i in self.viewed
                      if isinstance(leaves[i], torch.Tensor)
                      and compat.base_requires_grad(leaves[i]) is not compat.base_requires_grad(self.values[i])]
            found += [f"what autograd refuses {self.paths[i]}" for i in self.distinct if self.standing
                      and compat.standing(leaves[i]) != compat.standing(self.values[i])]
            if not found and all(isinstance(value, torch.Tensor) for value in now):
                found += self._relations(now)
        return found

    def _relations(self, tensors: Sequence[torch.Tensor]) -> list[str]:
        then = [value for value in self.values if isinstance(value, torch.Tensor)]
        if [first(then, t) for t in then] != [first(tensors, t) for t in tensors]:
            return ["which arguments are the same tensor"]
        if self.whole and [*map(compat.storage_size, then)] != [*map(compat.storage_size, tensors)]:
            return ["how much memory lies behind the arguments"]
        if self.overlap and overlap_pattern(tensors, self.bound) != self.pattern:
            return ["which arguments share memory, with each other or with weights"]
        return []

    @staticmethod
    def _shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        kinds = [type(value).__name__ for value in args]
        return f"({', '.join([*kinds, *(f'{key}={type(value).__name__}' for key, value in kwargs.items())])})"


def is_plain(value: Any) -> bool:
    if type(value) is slice:
        return is_plain((value.start, value.stop, value.step))
    return type(value) in PLAIN or type(value) in (tuple, torch.Size) and all(map(is_plain, value))


def first(values: Sequence[Any], value: Any) -> int:
    """Position of the first entry that is `value` itself."""
    return next(i for i, entry in enumerate(values) if entry is value)


def identities(text: Text, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[str]:
    """Conditions that hold when the same positions hold the same objects."""
    if len(tensors) > MANY:
        pattern = identity_pattern(tensors)
        return [f"{text.name(identity_pattern)}([{', '.join(names)}]) == {text.name(pattern)}"]
    conditions = []
    for i, tensor in enumerate(tensors):
        for j in range(i):
            relation = "is" if tensors[j] is tensor else "is not"
            conditions.append(f"{names[j]} {relation} {names[i]}")
    return conditions


def identity_pattern(tensors: Sequence[torch.Tensor]) -> list[int]:
    """For each tensor the position of the first one that is the same object; empty where all differ."""
    positions: dict[int, int] = {}
    pattern = [positions.setdefault(id(tensor), position) for position, tensor in enumerate(tensors)]
    return [] if len(positions) == len(tensors) else pattern


def overlap_pattern(tensors: Sequence[torch.Tensor], bound: Mapping[int, int]) -> list[Any]:
    """For each tensor the first one of the same storage, or the weight whose storage it is, and its offset there;
    empty where nothing is shared."""
    storages = [compat.storage_id(tensor) for tensor in tensors]
    if len(set(storages)) == len(storages) and bound.keys().isdisjoint(storages):
        return []
    return [(storages.index(key), bound.get(key), tensor.storage_offset()) for key, tensor in zip(storages, tensors)]
