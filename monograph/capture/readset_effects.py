"""Writes to Python state: found after the trace, taken back, and made again after every run; messages likewise.

    Traced(function).call(*args) = result                           nothing was written
                                 | [result, value of each Change, of each argument written, of each message, state of
                                   each generator]                  else: the values become results of the program

A generator that is returned runs to its end in the trace; each call makes a new one over the results.

A Change whose container is an argument's own list or dict is found again in each call's arguments by its
path. Within a trace the arguments are copies made by tree_unflatten; everything else is the real object.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from monograph.capture.guards import brief
from monograph.capture.readset import ReadSet
from monograph.capture.readset_journal import ORDER, Change, Keys, content, put, unchanged
from monograph.capture.regions.errors import unwind

__all__ = ["Traced"]

Path = tuple[Any, ...]


class Traced:
    """What is traced in place of the user's function. It may be called several times: only the last call counts.
    Objects are left as they were found, also between the calls."""

    def __init__(self, function: Callable[..., Any], reads: ReadSet) -> None:
        self.function = function
        self.reads = reads
        self.changes: list[Change] = []
        self.argument_changes: list[tuple[Path, Any]] = []
        self.drawn: list[torch.Generator] = []       # those of the caller's that the program draws from or seeds
        self.said = 0                        # messages of the forward
        self.lazy = False                    # the function returned a generator: it ran to its end in the trace

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        # What is said once is not said again by another attempt at the trace.
        self.reads.messages[:] = [message for message in self.reads.messages if message.once]
        self.reads.written.clear()
        before = [(path, container, content(container)) for path, container in containers((args, kwargs))]
        handled = sys.exc_info()[1]
        with contextlib.ExitStack() as put_back:           # all of it, whatever comes of the rest
            put_back.callback(self.reads.hooks.outside.take_back)
            put_back.callback(self.reads.mutables.take_back)
            put_back.callback(self.reads.hooks.outside.of_torch.restore)
            put_back.callback(self.reads.journal.rollback)
            try:
                result = self.function(*args, **kwargs)
                self.lazy = isinstance(result, types.GeneratorType) and not self.reads.existed(result)
                if self.lazy:
                    result = list(result)
                self.changes = self.reads.journal.changes()
                self.reads.settle(self.changes)
                self.said = len(self.reads.messages)
                ends = self.reads.hooks.outside.of_torch.ends()
                self.drawn = [generator for generator, _ in ends]
            except BaseException as error:
                unwind(error, handled)       # what generators write when they end is put back too
                raise
        self.reads.hooks.outside.check()
        self.reads.mutables.check()
        self.argument_changes = []
        for path, container, old in before:
            now = content(container)
            if not unchanged(old, now):
                self.argument_changes.append((path, now))
                refill(container, old)
        if not (self.changes or self.argument_changes or self.reads.messages or ends):
            return result
        return [result, [_outcome(change) for change in self.changes], [after for _, after in self.argument_changes],
                [message.values for message in self.reads.messages], [state for _, state in ends]]

    @property
    def has_effects(self) -> bool:
        return bool(self.changes or self.argument_changes or self.lazy or self.reads.messages or self.drawn)

    def replay(self, objects: Mapping[int, int]) -> Callable[..., Any]:
        """`replay(outcome, leaves, args, kwargs)` makes the writes again and returns the user's result.

        `objects`: containers, by id, of which the one at that place of `leaves` is written."""
        places = [(objects.get(id(change.container)), change) for change in self.changes]
        paths = [path for path, _ in self.argument_changes]
        lazy, messages, drawn = self.lazy, tuple(self.reads.messages), tuple(self.drawn)
        writes = bool(places or paths or messages or drawn)
        told: set[int] = set()               # messages said once that were said

        def replay(outcome: Any, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            result, values, arguments, spoken, states = outcome if writes else (outcome, (), (), (), ())
            for generator, state in zip(drawn, states):
                generator.set_state(state)
            for number, (message, said) in enumerate(zip(messages, spoken)):
                if number not in told:
                    message.say(said)
                if message.once:
                    told.add(number)
            for (leaf, change), value in zip(places, values):
                key, value = (change.key, value) if _has_plain_key(change) else value
                put(change.container if leaf is None else leaves[leaf], key, Keys(value) if key is ORDER else value)
            for path, value in zip(paths, arguments):
                refill(find((args, kwargs), path), value)
            return (entry for entry in result) if lazy else result

        return replay

    def describe(self) -> list[str]:
        return [f"{change.path}: {brief(change.before)} -> {brief(change.after)}" for change in self.changes]


def _has_plain_key(change: Change) -> bool:
    return isinstance(change.key, (str, int, type(None))) or change.key is ORDER


def _outcome(change: Change) -> Any:
    """What a call leaves in place of `change.before`: with the key, where the call may make it."""
    after = change.after.keys if change.key is ORDER else change.after
    return after if _has_plain_key(change) else (change.key, after)


def containers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The lists and dicts of an argument structure that the user can see change; the outermost pair is ours."""
    if path and type(value) in (list, dict, OrderedDict) and len(path) > 1:
        yield path, value
    if type(value) in (dict, OrderedDict):
        for key, entry in value.items():
            yield from containers(entry, (*path, key))
    elif type(value) in (list, tuple):
        for i, entry in enumerate(value):
            yield from containers(entry, (*path, i))


def find(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def refill(container: Any, value: Any) -> None:
    """Give an argument's list or dict the content it had at the end of the trace."""
    if isinstance(container, dict):
        container.clear()
        container.update(value)
    else:
        container[:] = value


