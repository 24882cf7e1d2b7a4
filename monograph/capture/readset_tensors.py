"""Attributes that the user sets on tensors: those of arguments and weights are facts, by name.

A fake has none of its real tensor's, so that a read is heard where the lookup fails, and answered. Real tensors answer
by themselves: of those the program may reach, the attributes that its code has the names of are noted. So are states of
generators.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from sys import _getframe  # by a name of our own: modules are watched
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture import blame
from monograph.capture.guards import ABSENT, Fact
from monograph.capture.readset_code import is_of_user_file, quote
from monograph.errors import UnsupportedError

if TYPE_CHECKING:
    from monograph.capture.readset import ReadSet

__all__ = ["TensorReads"]


class TensorReads:
    """The part of a ReadSet that looks at tensors. `arguments`: by number of the leaf, what was read of it."""

    def __init__(self, reads: ReadSet) -> None:
        self.reads = reads
        self.thread = get_ident()
        self.arguments: dict[int, dict[str, Any]] = {}

    def getattr(self, tensor: torch.Tensor, name: str, asking: Any) -> Any:
        """The attribute that a lookup did not find, for the frame `asking`."""
        if get_ident() == self.thread and is_of_user_file(asking.f_code):
            tracer = self.reads.hooks.outside.tracer
            entry = None if tracer is None else tracer.by_fake.get(id(tensor))
            if entry is not None and entry.binding.kind == "argument":
                value = vars(entry.real).get(name, ABSENT)
                self.arguments.setdefault(entry.binding.leaf, {})[name] = value
                self.reads.reach(value, f"{entry.source}.{name}")
                if value is not ABSENT:
                    return value
            elif id(tensor) in self.reads.tensors:
                self.reads.facts["absent", id(tensor), name] = Fact(
                    f"absence of {self.reads.tensors[id(tensor)][1]}.{name}", f"{quote(name)} not in {{0}}.__dict__",
                    (tensor,))
        raise AttributeError(f"'{_shown(tensor)}' object has no attribute '{name}'", name=name, obj=tensor)

    def setter(self) -> Callable[[torch.Tensor, str, Any], None]:
        """`__setattr__` of tensors."""
        def __setattr__(tensor: torch.Tensor, name: str, value: Any) -> None:
            if is_of_user_file(_getframe(1).f_code):
                self._check_write(tensor, name)
            object.__setattr__(tensor, name, value)

        return __setattr__

    def _check_write(self, tensor: torch.Tensor, name: str) -> None:
        """An attribute of the user's on a tensor that was there before the call is refused."""
        if get_ident() == self.thread and not hasattr(type(tensor), name):
            tracer = self.reads.hooks.outside.tracer
            if tracer is not None and (id(tensor) in tracer.by_fake or id(tensor) in self.reads.tensors):
                raise UnsupportedError(f"the program sets the attribute {name} of a tensor that was there before",
                                       loc=blame.location(blame.user_frame(2)), why="nothing would do it again",
                                       hint="return the value instead")

    def written(self) -> None:
        """A tensor was written as text."""
        if get_ident() == self.thread:
            self.reads.values.settings("how torch writes tensors", compat.print_options)

    def settle(self) -> None:
        """At the end of an attempt: what real tensors and generators tell, where the code has the names of it."""
        marked = [(tensor, path) for tensor, path in list(self.reads.tensors.values()) if vars(tensor)]
        generators = self.reads.hooks.outside.of_torch
        if not marked and not generators.known:
            return
        names = {name for code in self.reads.functions.codes.values() for name in _mentioned(code)}
        for tensor, path in marked:
            for name in names & vars(tensor).keys():
                value = vars(tensor)[name]
                self.reads.facts["attribute", id(tensor), name] = Fact(
                    f"{path}.{name}", f"{{0}}.__dict__[{quote(name)}]", (tensor,), "same", value)
                self.reads.reach(value, f"{path}.{name}")
        for key, generator in generators.known.items():
            if "initial_seed" in names:
                self.reads.facts["seed", key] = Fact("the seed of a generator", "{0}.initial_seed()", (generator,),
                                                     "same", generators.seeds[key])
            if "get_state" in names and key not in generators.start:
                self.reads.facts["state", key] = Fact("the state of a generator", "{0}.get_state().equal({1})",
                                                      (generator, generators.before[key]))


def _mentioned(code: types.CodeType) -> Iterator[str]:
    """Names and texts in a function."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _mentioned(value)
        elif isinstance(value, str):
            yield value


def _shown(tensor: Any) -> str:
    return "Tensor" if isinstance(tensor, compat.FakeTensor) else type(tensor).__name__
