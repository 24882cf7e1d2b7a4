"""Storages made in one of two branches, as they are seen after the statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.layout import Layout
from monograph.capture.regions.body import Body, Start
from monograph.capture.storage import UNKNOWN, Place, Storage
from monograph.capture.views import static_recipes
from monograph.ir.graph import Value

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Exports", "Slot"]

Slot = Callable[[Value, Value, Callable[[Value], None]], None]      # what each branch ends with, and who takes it


class Exports:
    """Of the `bodies` of a statement: what a branch made is content in its own storage, zeros where it did not run."""

    def __init__(self, tracer: Tracer, start: Start, bodies: tuple[Body, Body], slot: Slot,
                 late: list[Callable[[], None]]) -> None:
        self.tracer = tracer
        self.start = start
        self.bodies = bodies
        self.slot = slot
        self.late = late                         # to do once all results are there
        self.known: dict[tuple[int, int], tuple[Storage, torch.Tensor]] = {}

    def is_fresh(self, storage: int, side: int) -> bool:
        """Whether a branch made a storage."""
        return self.tracer.memory.by_id[storage].scope is self.bodies[side].graph

    def export(self, storage: int, side: int, other: int | None = None) -> tuple[Storage, torch.Tensor]:
        """A storage made in one branch (and `other` in the other), as it is seen afterwards."""
        memory = self.tracer.memory
        inner = memory.by_id[storage]
        if not self.is_fresh(storage, side):
            return inner, inner.base
        known = self.known.get((storage, side))
        if known is not None:
            return known
        layout = inner.layout
        with compat.plain_torch():
            base = self.tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        _, mine, _, _, recipes, *_ = self.bodies[side].memory[storage]
        if other is None:
            with self.start.recording(self.bodies[1 - side]):
                partner = self.tracer.record.full(layout.sizes, 0, layout.dtype)
        else:
            partner = self.bodies[1 - side].memory[other][1]
        made = Storage(layout, mine, base)
        made.scope = memory.scopes[-1] if memory.scopes else None
        made.recipes = static_recipes(recipes)

        def fill(value: Value) -> None:
            made.value = value
            memory.by_id[compat.storage_id(base)] = made
            memory.alive.append(compat.storage_reference(base))
        self.slot(*((mine, partner) if side == 0 else (partner, mine)), fill)
        self.known[storage, side] = made, base
        if inner.places:
            self._places(inner, made, side)
        if other is not None:
            self.known[other, 1 - side] = made, base
        return made, base

    def _places(self, inner: Storage, made: Storage, side: int) -> None:
        """A storage of one branch that may lie in several places: it lies there where the branch ran."""
        places: list[Place] = []
        memory = self.tracer.memory
        keys = {id(storage): key for key, storage in memory.by_id.items()}
        for place in inner.places:
            with self.start.recording(self.bodies[1 - side]):
                never = self.tracer.record.full((), False, torch.bool)
            target = self.export(keys[id(place.storage)], side)[0]

            inside = self.is_fresh(keys[id(place.storage)], side)
            tensor = target.base if inside and place.tensor is place.storage.base else place.tensor
            if inside and tensor is place.tensor and tensor is not UNKNOWN:
                tensor = None

            def fill(value: Value, target: Storage = target, layout: Layout = place.layout,
                     tensor: Any = tensor) -> None:
                places.append(Place(value, target, layout, tensor))
            self.slot(*((place.predicate, never) if side == 0 else (never, place.predicate)), fill)
        self.late.append(lambda: memory.lies_at(made, tuple(places), self.start.site))
