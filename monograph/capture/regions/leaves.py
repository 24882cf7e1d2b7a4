"""What a loop may carry.

    fixed     the same Python object at the end of every iteration
    number    a traced number in the loop
    moving    a tensor that is another one at the end than at the beginning. Its value is carried, and for each tensor
              of the outside that it may still be (the initial one, to begin with) a bool: writes reach that tensor
    local     a variable that every iteration sets before it reads it, and nobody reads afterwards
    late      a variable that has no value (or perhaps none) before the loop: whether it has one, and leaves for
              its parts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from monograph.capture.layout import Layout
from monograph.capture.regions.errors import Unmergeable
from monograph.ir.graph import Value

__all__ = ["At", "Leaf", "entries_of", "flatten", "flatten_as", "pieces", "refilled", "same_keys",
           "unflatten"]

At = tuple[int, Any]        # storage id, layout key


@dataclass(eq=False)
class Leaf:
    """`value` is what it is before the loop; of a part of a late leaf, what it looks like.

    `places`: tensors of the outside that a moving leaf may be. The placeholder, its flags and `bound` (of a late
    leaf) are those of the round at hand.
    """

    name: str
    value: Any
    kind: str = "fixed"
    places: dict[At, Layout] = field(default_factory=dict)
    objects: dict[At, Any] = field(default_factory=dict)       # the tensors that lie there
    frozen: bool = False                          # it may be the same tensor as another leaf
    watched: set[int] = field(default_factory=set)      # storages it may be a view of, at a place only the run knows
    homes: set[int] | None = field(default_factory=set)      # storages of what the body chooses among; None: unknown
    kept: bool = False                            # a list that grows may have it
    unclear: bool = False                         # which tensor it is then is not told by its places
    follow: bool = False                          # autograd follows it: it requires grad
    is_part: bool = False
    initial: Any = None                           # of a part that perhaps has a value before the loop
    parts: list[Leaf] = field(default_factory=list)
    spec: Any = None                              # of a late leaf: how its parts make its value
    placeholder: Any = None
    flags: dict[At, Value] = field(default_factory=dict)
    bound: Any = None


def pieces(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """The leaves, late ones by their parts."""
    for leaf in leaves:
        if leaf.kind == "late":
            yield from leaf.parts
        else:
            yield leaf


def flatten(value: Any) -> tuple[list[Any], Any]:
    """What stands in nested tuples, and how they nest."""
    if type(value) is not tuple:
        return [value], None
    parts = [flatten(entry) for entry in value]
    return [leaf for leaves, _ in parts for leaf in leaves], tuple(spec for _, spec in parts)


def flatten_as(value: Any, spec: Any) -> list[Any]:
    """What stands in `value` where leaves stood in tuples that nested as `spec` says."""
    if spec is None:
        return [value]
    if type(value) is not tuple or len(value) != len(spec):
        raise Unmergeable("a variable of a loop changes its structure")
    return [leaf for entry, part in zip(value, spec, strict=True) for leaf in flatten_as(entry, part)]


def unflatten(leaves: Iterator[Any], spec: Any) -> Any:
    return next(leaves) if spec is None else tuple([unflatten(leaves, part) for part in spec])


def entries_of(content: Any) -> tuple[Any, ...]:
    """The values in a list or dict, or a cell."""
    return tuple(content.values() if isinstance(content, dict) else content)


def refilled(content: Any, entries: tuple[Any, ...]) -> Any:
    return dict(zip(content, entries, strict=True)) if isinstance(content, dict) else type(content)(entries)


def same_keys(before: Any, after: Any) -> bool:
    return len(before) == len(after) and (not isinstance(before, dict) or list(before) == list(after))
