"""A storage is SSA state.

    Storage ::= (layout, value, version)  cache{layout key: (layout, value)}  recipes{layout key: Step}

`value` is the content, shaped as `layout`. A write makes a new `value` and a new `version`; a read of
another layout goes through `cache`, else `recipes` (see `views`). `save`/`load` let a region start from
and return to a state.

A storage with `places` stands for a tensor that lies in one of several storages, which only the run
knows (after a branch, in a loop): its content is that of the place whose predicate holds, and a write to it
writes there. It has a layout of its own, and remembers the versions of its places that `value` was read from.

    Place ::= predicate (bool[])  Storage  Layout        at most one predicate holds; none: `value` is nobody else's
"""

from __future__ import annotations

import functools
import itertools
import sys
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat
from monograph.capture.layout import Layout, disjoint
from monograph.capture.views import Step
from monograph.ir.graph import Value

__all__ = ["UNKNOWN", "Place", "Storage"]

UNKNOWN = object()


@dataclass(frozen=True, slots=True)
class Place:
    predicate: Value
    storage: Storage
    layout: Layout
    tensor: Any = None          # the very tensor (a fake) it then is; None: one of its own; UNKNOWN: one or the other


VERSIONS = itertools.count(1)     # unique over all storages: a restored state never looks like another one


class Storage:
    """One storage of the traced program. `hold` keeps torch's storage, whose address is our key, alive."""

    __slots__ = ("base", "cache", "factory", "frozen", "hold", "input", "layout", "places", "recipes", "scope", "seen",
                 "site", "value", "version")

    def __init__(self, layout: Layout, value: Value, base: torch.Tensor, *, input: int | None = None) -> None:
        self.layout = layout
        self.value = value
        self.base = base             # a fake that spans the layout
        self.hold = base.untyped_storage()
        self.input = input           # number of the tracer input that owns it, None when made inside
        self.factory = False
        self.version = 0
        self.cache: dict[Any, tuple[Layout, Value]] = {}
        self.recipes: dict[Any, Step] = {}
        self.places: tuple[Place, ...] = ()
        self.seen: tuple[int, ...] = ()     # versions of the places when `value` was theirs
        self.frozen: tuple[str, Any] | None = None      # why it may not be written, and the statement that made it so
        self.site: Any = None               # the statement that left it with places
        self.scope: Any = None              # the region whose values it holds; None: everybody may read it

    @property
    def written(self) -> bool:
        return self.version != 0

    def become(self, value: Value, written: Layout | None = None) -> None:
        """The whole content is now `value`; where only `written` changed, what does not meet it stays known."""
        self.value = value
        self.version = next(VERSIONS)
        kept = {}
        if written is not None:
            kept = {key: entry for key, entry in self.cache.items() if disjoint(entry[0], written, self.layout)}
        self.cache = kept

    def remember(self, step: Step) -> None:
        """Keep the step to a layout, unless it is known or the way there leads through the layout itself."""
        key = step.layout.key
        if key in self.recipes or key in (self.layout.key, step.parent.key):
            return
        parent = self.recipes.get(step.parent.key)
        while parent is not None:
            if parent.parent.key == key:
                return
            parent = self.recipes.get(parent.parent.key)
        self.recipes[key] = step

    def is_forgotten(self) -> bool:
        """Whether nobody but this, autograd included, has the tensor or another one in its memory."""
        return not self.base.requires_grad and self._holders() == _alone()

    def _holders(self) -> tuple[int, ...]:
        return (sys.getrefcount(self.base), sys.getrefcount(self.hold), compat.tensor_users(self.base),
                compat.storage_users(self.hold))

    def save(self) -> tuple[Any, ...]:
        return self.layout, self.value, self.version, dict(self.cache), dict(self.recipes), self.places, self.seen

    def load(self, state: tuple[Any, ...]) -> None:
        self.layout, self.value, self.version, cache, recipes, self.places, self.seen = state
        self.cache, self.recipes = dict(cache), dict(recipes)



@functools.cache
def _alone() -> tuple[int, ...]:
    """How often the parts of a storage are held that nobody uses."""
    with compat.plain_torch():
        base = compat.fake_strided(compat.fake_tensor_mode(), (1,), (1,), torch.float32)
    probe = Storage(Layout((1,), (1,), 0, torch.float32), None, base)       # type: ignore[arg-type]
    del base
    return probe._holders()
