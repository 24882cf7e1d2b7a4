"""All storages of a trace: find, read, write.

A tensor is (storage, layout), asked of the fake at every use: `set_`, `.data =`, `t_()` and `resize_`
need no bookkeeping, and there is no map from tensor to value.
"""

from __future__ import annotations

from typing import Any

import torch

from monograph import compat, errors
from monograph.capture import views
from monograph.capture.layout import Layout
from monograph.capture.recorder import Recorder
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.storage import Place, Storage
from monograph.ir.graph import Value

__all__ = ["Memory"]

FEW = 32            # storages among which nobody looks for dead ones
FLAT = "flat"       # cache key of the storage as one dimension


class Memory:
    """Storages by torch's storage identity. Reads and writes are recorded by `record`."""

    def __init__(self, record: Recorder) -> None:
        self.record = record
        self.by_id: dict[int, Storage] = {}
        self.starts: list[dict[int, tuple[Any, ...]]] = []     # where the regions being traced began
        self.scopes: list[Any] = []      # their graphs
        self.sites: dict[int, Any] = {}  # by id of such a graph: the statement it belongs to
        self.enough = FEW
        self.alive: list[Any] = []       # weak references to all storages, to see what outlives the trace

    @property
    def written(self) -> set[int]:
        """Numbers of the graph inputs that the program has written by now."""
        return {storage.input for storage in self.by_id.values() if storage.written and storage.input is not None}

    def find(self, tensor: torch.Tensor) -> Storage | None:
        return self.by_id.get(compat.storage_id(tensor))

    def of(self, tensor: torch.Tensor) -> Storage:
        return self.by_id[compat.storage_id(tensor)]

    def add(self, tensor: torch.Tensor, value: Value, *, layout: Layout | None = None,
            input: int | None = None) -> Storage:
        """A new storage whose content is `value`, laid as `tensor` is."""
        layout = layout or Layout.of(tensor)
        lazy = layout if layout.conj or layout.neg else None
        if lazy is not None:              # the storage holds what the lazy bits are applied to
            layout, value = self._physical(lazy, value)
        storage = Storage(layout, value, tensor, input=input)
        if lazy is not None:
            self._remember_lazy(storage, lazy)
        self.by_id[compat.storage_id(tensor)] = storage
        self.alive.append(compat.storage_reference(tensor))
        if input is not None:             # it was there before any region began
            for start in self.starts:
                start[compat.storage_id(tensor)] = storage.save()
        elif self.scopes:
            storage.scope = self.scopes[-1]
        return storage

    def _physical(self, layout: Layout, value: Value) -> tuple[Layout, Value]:
        """Layout and content without lazy bits, of a tensor whose present value is `value`."""
        if layout.conj:
            value = self.record.emit("aten.conj_physical.default", value, like=layout)
        if layout.neg:
            value = self.record.emit("aten.neg.default", value, like=layout)
        return Layout(layout.sizes, layout.strides, layout.offset, layout.dtype), value

    def _remember_lazy(self, storage: Storage, layout: Layout) -> None:
        """The steps from the physical layout to `layout`."""
        parent = storage.layout
        for bit, func in (("neg", torch.ops.aten._neg_view.default), ("conj", torch.ops.aten._conj.default)):
            if getattr(layout, bit):
                conj = layout.conj if bit == "conj" else False
                child = Layout(layout.sizes, layout.strides, layout.offset, layout.dtype, conj, layout.neg)
                storage.recipes[child.key] = views.Step(func, (), {}, parent, child)
                parent = child

    def save(self) -> dict[int, tuple[Any, ...]]:
        """The state of every storage, for a region to come back to."""
        return {key: storage.save() for key, storage in self.by_id.items()}

    def forget_dead(self) -> None:
        """Drop the storages that no tensor leads to any more, once they may be half of all: each region looks at all
        of them several times. Not while one is being traced."""
        if self.starts or len(self.by_id) < self.enough:
            return
        needed = {id(place.storage) for storage in self.by_id.values() for place in storage.places}
        with torch._C.DisableTorchFunction():
            for key, storage in list(self.by_id.items()):
                if storage.input is None and id(storage) not in needed and storage.is_forgotten():
                    del self.by_id[key]
        self.enough = max(FEW, 2 * len(self.by_id))

    def load(self, state: dict[int, tuple[Any, ...]]) -> None:
        for key, saved in state.items():
            self.by_id[key].load(saved)

    # -- reading ---------------------------------------------------------------------

    def read(self, tensor: torch.Tensor) -> Value:
        """The present value of a tensor."""
        return self.read_layout(self.of(tensor), Layout.of(tensor))

    def statement(self, value: Value) -> Any:
        """The branch or loop that `value` comes from, at once or by way of other values; None where none is."""
        pending, seen = [value], set()
        while pending:
            node = pending.pop().node
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            for region in node.regions:
                if (site := self.sites.get(id(region))) is not None:
                    return site
            pending += node.inputs
        return None

    def read_layout(self, storage: Storage, layout: Layout) -> Value:
        if storage.scope is not None and storage.scope not in self.scopes:
            raise Unmergeable("a tensor made in one branch or iteration is used outside of it",
                              self.sites.get(id(storage.scope)))
        if storage.places:
            self._look(storage)
        if layout.key == storage.layout.key:
            return storage.value
        known = storage.cache.get(layout.key)
        if known is not None:
            return known[1]
        step = storage.recipes.get(layout.key)
        if step is not None:
            value = views.replay(self.record, step, self.read_layout(storage, step.parent))
        else:
            if layout.dtype != storage.layout.dtype or layout.conj or layout.neg:
                raise errors.UnsupportedError(
                    f"a raw {layout.dtype} view of a {storage.layout.dtype} storage", loc=self.record.loc,
                    why="one memory is one value of one dtype in the graph", hint="use .view(dtype)")
            value = views.gather(self.record, self.flat(storage), layout)
        storage.cache[layout.key] = layout, value
        return value

    def flat(self, storage: Storage) -> Value:
        """The whole storage as one dimension, in memory order."""
        if len(storage.layout.sizes) == 1 and storage.layout.is_dense():
            return storage.value
        known = storage.cache.get(FLAT)
        if known is None:
            value = views.layout_to_flat(self.record, storage.layout, storage.value)
            known = storage.cache[FLAT] = Layout((storage.layout.numel,), (1,), 0, storage.layout.dtype), value
        return known[1]

    # -- writing ---------------------------------------------------------------------

    def write(self, tensor: torch.Tensor, value: Value) -> None:
        """`tensor` now holds `value`, which has its dtype and shape."""
        self.write_layout(self.of(tensor), Layout.of(tensor), value)

    def write_layout(self, storage: Storage, layout: Layout, value: Value) -> None:
        if storage.frozen is not None:
            raise Unmergeable(*storage.frozen)
        base = self._put(storage, layout, value)
        storage.become(base, layout)
        for place in storage.places:
            old = self.read_layout(place.storage, place.layout)
            self.write_layout(place.storage, place.layout, self.choose(place.predicate, base, old))
        storage.seen = tuple(place.storage.version for place in storage.places)
        if layout.key != storage.layout.key:
            storage.cache[layout.key] = layout, value

    def _put(self, storage: Storage, layout: Layout, value: Value) -> Value:
        """The base value of `storage` once `value` stands at `layout`."""
        if layout.key == storage.layout.key:
            return value
        step = storage.recipes.get(layout.key)
        if step is not None:
            rule = views.inverse(step)
            if rule is not None:
                parent = step.parent
                outer = rule(self.record, lambda: self.read_layout(storage, parent), value, step)
                return self._put(storage, parent, outer)
        if layout.dtype != storage.layout.dtype or layout.conj or layout.neg:
            raise errors.UnsupportedError(
                f"a write through a raw {layout.dtype} view of a {storage.layout.dtype} storage", loc=self.record.loc,
                why="one memory is one value of one dtype in the graph", hint="write to the tensor itself")
        flat = views.scatter(self.record, self.flat(storage), layout, value)
        if len(storage.layout.sizes) == 1:
            return flat
        return views.flat_to_layout(self.record, storage.layout, flat)

    # -- places ----------------------------------------------------------------------

    def choose(self, predicate: Value, value: Value, otherwise: Value) -> Value:
        type = value.tensor
        return self.record.emit("aten.where.self", predicate, value, otherwise, sizes=type.shape, dtype=type.dtype)

    def lies_at(self, storage: Storage, places: tuple[Place, ...], site: Any = None) -> None:
        """`storage`, whose value is up to date, may be any of `places` after the statement `site`."""
        storage.places, storage.site = places, site
        storage.seen = tuple(place.storage.version for place in places)

    def _look(self, storage: Storage) -> None:
        """Bring the value of a storage up to date with the places it may be."""
        for place in storage.places:
            if place.storage.places:
                self._look(place.storage)
        now = tuple(place.storage.version for place in storage.places)
        if now == storage.seen:
            return
        if storage.frozen is not None:
            raise Unmergeable(*storage.frozen)
        value = storage.value
        for place, version, seen in zip(storage.places, now, storage.seen, strict=True):
            if version != seen:
                value = self.choose(place.predicate, self.read_layout(place.storage, place.layout), value)
        storage.become(value)
        storage.seen = now

    # -- growing ---------------------------------------------------------------------

    def grow(self, storage: Storage, extent: int) -> None:
        """The storage becomes one dimension of at least `extent` elements; new ones hold zeros."""
        flat, dtype = self.flat(storage), storage.layout.dtype
        missing = extent - int(storage.layout.numel)
        if missing <= 0:
            return
        filler = self.record.full((missing,), 0, dtype)
        value = self.record.emit("aten.cat.default", (flat, filler), sizes=(extent,), dtype=dtype)
        storage.layout = Layout((extent,), (1,), 0, dtype)
        storage.recipes = {}
        storage.become(value)
