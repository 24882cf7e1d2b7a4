"""Sealing a trace: what it returns, what it writes, as `ir.boundary` tells it.

A view of an input comes back as a view of the real input after write-back. A storage made inside
comes out once: as the result itself when it is seen through one dense layout, else whole, with
the results laid over it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture.counted import TracedList
from monograph.capture.dims import dim, dims, is_symbolic, key_of
from monograph.capture.dynamic import site_of
from monograph.capture.iterators import OneWay
from monograph.capture.layout import Layout, contiguous_strides
from monograph.capture.number import TracedNumber, number_dtype
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.storage import UNKNOWN, Place, Storage
from monograph.capture.tree import flatten, is_size
from monograph.ir.boundary import (
    Boundary,
    Choice,
    Fresh,
    InputItself,
    InputView,
    Literal,
    Number,
    Relayout,
    Result,
    Size,
    Write,
    boundary_symbols,
)
from monograph.ir.edit import symbols_in, symbols_read, tellers
from monograph.ir.graph import Graph, Value

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Seal", "is_new_leaf", "remove_dead"]


class Seal:
    """Fills `tracer.graph.outputs` and builds a Boundary. `leaves` are the result's leaves, fakes among them."""

    def __init__(self, tracer: Tracer, result: Any) -> None:
        self.tracer = tracer
        self.leaves, self.tree = flatten(
            result, lambda t: isinstance(t, compat.FakeTensor) or id(t) in tracer.by_real,
            lambda value: id(value) in tracer.by_fake or tracer.existed(value))
        self.leaves = [self._standing(leaf) for leaf in self.leaves]
        self.outputs: dict[Value, int] = {}
        self.fresh: dict[int, tuple[int, Layout | None]] = {}     # storage id -> output, layout (None: the only view)

    def run(self) -> Boundary:
        boundary = Boundary(tree=self.tree)
        moved = [entry for entry in self.tracer.entries if self._moved(entry)]
        self._plan_fresh([*self.leaves, *(entry.fake for entry in moved)])
        numbers: dict[int, int] = {}
        self.tracer.identities.refuse_two(self.tracer.memory.of(leaf).base for leaf in self.leaves
                                          if isinstance(leaf, compat.FakeTensor))
        boundary.results = [self.result(leaf, numbers) for leaf in self.leaves]
        for storage in list(self.tracer.memory.by_id.values()):
            if storage.input is not None and storage.written:
                layout = storage.layout
                strides = layout.strides if layout.is_dense() else contiguous_strides(layout.sizes)
                grown = key_of(layout.numel) != self.tracer.graph.inputs[storage.input].tensor.numel
                boundary.writes.append(Write(storage.input, self.output(storage.value, strides), grown))
        for entry in moved:
            boundary.relayouts.append(Relayout(self.tracer.identity(entry), self.place(entry.fake, -1)))
        self._tell(boundary_symbols(boundary))
        return boundary

    def _standing(self, leaf: Any) -> Any:
        """`leaf`, or the fake of a real tensor that is none of the caller's: a state of the generator."""
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, compat.FakeTensor):
            return leaf
        fake = self.tracer.lift(leaf)
        return leaf if id(fake) in self.tracer.by_fake else fake

    def _tell(self, names: set[str]) -> None:
        """Hand out the symbols that values of the program tell, unless the size of an output does."""
        shown = {size for value in self.tracer.graph.outputs for size in value.tensor.shape}
        for name in sorted(names & self.tracer.sizes.told.keys()):
            symbol = self.tracer.graph.symbols[name]
            if symbol not in shown:
                self.output(self.tracer.record.emit("mono.scalar", symbol, dtype=torch.int64, sizes=()), ())

    def _moved(self, entry: Any) -> bool:
        return compat.storage_id(entry.fake) != entry.home or Layout.of(entry.fake).key != entry.layout.key

    # -- results -----------------------------------------------------------------------

    def result(self, leaf: Any, numbers: dict[int, int]) -> Result:
        if isinstance(leaf, TracedList):
            leaf.give_up()
        if isinstance(leaf, TracedNumber):
            return Number(self.output(self._number(leaf.tensor), ()))
        if isinstance(leaf, torch.SymInt) or (is_size(leaf) and any(isinstance(size, torch.SymInt) for size in leaf)):
            return Size(dims(leaf) if is_size(leaf) else dim(leaf))
        if not isinstance(leaf, torch.Tensor):
            return Literal(dim(leaf) if is_symbolic(leaf) else OneWay.behind(leaf))
        tracer = self.tracer
        entry = tracer.by_fake.get(id(leaf))
        if entry is None and not isinstance(leaf, compat.FakeTensor):
            tracer.lift(leaf)
            entry = tracer.by_real[id(leaf)]
        if entry is not None:
            return InputItself(tracer.identity(entry))
        number = numbers.setdefault(id(leaf), len(numbers))
        own = self.place(leaf, number)
        storage, layout = tracer.memory.of(leaf), Layout.of(leaf)
        if leaf.requires_grad:
            others = self._arguments(leaf, numbers)
        else:
            others = self._alternatives(storage, layout, leaf if leaf is storage.base else None, numbers, [])
        return Choice(tuple(others), own, number) if others else own

    def _arguments(self, leaf: torch.Tensor, numbers: dict[int, int]) -> list[tuple[int, Result]]:
        """The caller's tensors that a result with a history may be. Otherwise it is one of its own: where it would
        share memory with something that is seen, what chose it takes the path of the call."""
        tracer, identities = self.tracer, self.tracer.identities
        base = tracer.memory.of(leaf).base
        choice = identities.of(base)
        if choice is None:
            return []
        found: list[tuple[int, Result]] = []
        seen = {compat.storage_id(tensor) for other in self.leaves if other is not leaf and other is not base
                for tensor in self._may_be(other)}
        memory = tracer.memory.by_id
        if not any(home in seen or memory[home].input is not None for home in identities.homes(base) & memory.keys()):
            return []                        # nothing that is seen
        for conditions, tensor in identities.cases(base):
            fake = tracer.lift(tensor)
            entry, is_callers = tracer.by_fake.get(id(fake)), tracer.memory.of(fake).input is not None
            if leaf is base and (entry is not None or is_callers):
                other = InputItself(tracer.identity(entry)) if entry is not None else \
                    self.place(fake, numbers.setdefault(id(fake), len(numbers)))
                found.append((self.output(identities.all(conditions), ()), other))
            elif is_callers or compat.storage_id(fake) in seen:
                raise Unmergeable("a result with a history shares memory on one path only", choice.site)
        return found

    def _may_be(self, leaf: Any) -> list[torch.Tensor]:
        """The tensors whose memory a result may lie in."""
        if not isinstance(leaf, torch.Tensor):
            return []
        fake = self.tracer.lift(leaf)
        return [fake, *(self.tracer.lift(tensor) for _, tensor in self.tracer.identities.cases(
            self.tracer.memory.of(fake).base))]

    def _alternatives(self, storage: Storage, layout: Layout, itself: Any, numbers: dict[int, int],
                      where: list[Value]) -> list[tuple[int, Result]]:
        """What a result in a storage with places may be instead of a tensor of its own: outputs that say so, results.

        `itself`: the tensor whose storage it is, if the result is that very tensor.
        """
        found: list[tuple[int, Result]] = []
        for place in storage.places:
            target = place.storage
            moved = moved_layout(layout, storage, place)
            tensor = place.tensor if itself is not None else None
            holds = [*where, place.predicate]
            if target.places and moved is not None:
                inner = tensor if tensor is target.base else None
                found += self._alternatives(target, moved, inner, numbers, holds)
            if target.input is None and compat.storage_id(target.base) not in self.fresh:
                continue                    # nobody sees that one but through this result
            if moved is None:
                raise Unmergeable("a result is a view of a tensor that may be another one", storage.site)
            if tensor is UNKNOWN:
                raise Unmergeable("a result may be another tensor or a view of it", storage.site)
            if tensor is None:
                other = self._lying(target, moved, -1, (False,) * 4)
            elif id(tensor) in self.tracer.by_fake:
                other = InputItself(self.tracer.identity(self.tracer.by_fake[id(tensor)]))
            else:
                other = self.place(tensor, numbers.setdefault(id(tensor), len(numbers)))
            found.append((self.output(self._all(holds), ()), other))
        return found

    def _all(self, predicates: list[Value]) -> Value:
        holds = predicates[0]
        for predicate in predicates[1:]:
            holds = self.tracer.record.emit("aten.logical_and.default", holds, predicate, sizes=(), dtype=torch.bool)
        return holds

    def _number(self, tensor: torch.Tensor) -> Value:
        """A value without dims of the dtype that holds every number `tensor` may hold."""
        dtype = number_dtype(tensor.dtype)
        assert dtype is not None
        return self.tracer.record.cast(self.tracer.memory.read(tensor), (), dtype)

    def place(self, leaf: torch.Tensor, number: int) -> Fresh | InputView:
        """Where a tensor made inside lies."""
        tracer = self.tracer
        layout = Layout.of(leaf)
        new = id(leaf) not in tracer.by_fake
        storage = tracer.memory.of(leaf)
        detached = storage.input is not None and new and not leaf.requires_grad and self._requires_grad(storage.input)
        marks = layout.conj, layout.neg, new and is_new_leaf(leaf), new and isinstance(leaf, torch.nn.Parameter)
        return self._lying(storage, layout, number, marks, detached)

    def _lying(self, storage: Storage, layout: Layout, number: int, marks: tuple[bool, bool, bool, bool],
               detached: bool = False) -> Fresh | InputView:
        """What lies in a storage at a layout; `marks` as `Fresh` has them."""
        key = compat.storage_id(storage.base)
        alone = storage.input is None and self.fresh[key][1] is None
        if not layout.is_backed and not alone:
            raise Unmergeable("a result is a view at a place that only the run knows", site_of(self.tracer, layout))
        sizes, strides = dims(layout.sizes), dims(layout.strides)
        if storage.input is not None:
            offset = layout.offset
            if layout.dtype == storage.layout.dtype:
                offset -= storage.layout.offset
            else:
                offset -= storage.layout.offset * storage.layout.dtype.itemsize // layout.dtype.itemsize
            return InputView(storage.input, sizes, strides, key_of(offset), layout.dtype, number, *marks,
                             detached=detached)
        output, whole = self.fresh[key]
        offset = 0 if whole is None else key_of(layout.offset)
        return Fresh(output, sizes, strides, offset, layout.dtype, number, *marks)

    def _requires_grad(self, input: int) -> bool:
        binding = self.tracer.bindings[input]
        return any(entry.real.requires_grad or entry.fake.requires_grad for entry in self.tracer.entries
                   if entry.binding.leaf == binding.leaf and entry.binding.tensor is binding.tensor)

    def _plan_fresh(self, leaves: list[Any]) -> None:
        """One graph output per storage made inside that a result lies in."""
        seen: dict[int, list[Layout]] = {}
        for leaf in leaves:
            if isinstance(leaf, compat.FakeTensor) and self.tracer.memory.of(leaf).input is None:
                seen.setdefault(compat.storage_id(leaf), []).append(Layout.of(leaf))
        shared = dict.fromkeys(compat.storage_id(storage.base) for storage in self._shared(leaves))
        for key in {**seen, **shared}:
            storage = self.tracer.memory.by_id[key]
            self.fresh[key] = self._whole(storage) if key in shared else self._fresh(storage, seen[key])

    def _shared(self, leaves: list[Any]) -> list[Storage]:
        """Storages made inside that two results may lie in, one of them perhaps."""
        users: dict[int, set[int]] = {}
        found: dict[int, Storage] = {}
        for leaf in leaves:
            pending = [self.tracer.memory.of(leaf)] if isinstance(leaf, compat.FakeTensor) else []
            while pending:
                storage = pending.pop()
                found[id(storage)] = storage
                users.setdefault(id(storage), set()).add(id(leaf))
                pending += [place.storage for place in storage.places]
        places = {id(place.storage) for storage in found.values() for place in storage.places}
        return [storage for key, storage in found.items()
                if key in places and storage.input is None and len(users[key]) > 1]

    def _fresh(self, storage: Storage, layouts: list[Layout]) -> tuple[int, Layout | None]:
        first = layouts[0]
        alone = all(layout.key == first.key for layout in layouts)
        if alone and (first.at_zero().is_dense() or not storage.layout.is_dense()) and not (first.conj or first.neg):
            return self.output(self.tracer.memory.read_layout(storage, first), first.strides), None
        return self._whole(storage)

    def _whole(self, storage: Storage) -> tuple[int, Layout | None]:
        """A storage that several results lie in, each at a place of its own."""
        if not storage.layout.is_dense():
            raise errors.UnsupportedError("several results share a storage that has gaps", loc=self.tracer.record.loc)
        return self.output(self.tracer.memory.read_layout(storage, storage.layout), storage.layout.strides), \
            storage.layout

    # -- outputs -----------------------------------------------------------------------

    def output(self, value: Value, strides: Any) -> int:
        """The number of the graph output that is `value` with these strides, added if need be."""
        wanted = dims(strides)
        if value.node is None or (value in self.outputs and value.tensor.strides != wanted):
            value = self.tracer.record.clone(value)
        known = self.outputs.get(value)
        if known is not None:
            value = self.tracer.record.clone(value)
        value.type = replace(value.tensor, strides=wanted)
        outputs = self.tracer.graph.outputs
        outputs.append(value)
        self.outputs[value] = len(outputs) - 1
        return len(outputs) - 1


def moved_layout(layout: Layout, storage: Storage, place: Place) -> Layout | None:
    """Where a tensor at `layout` in `storage` lies if the storage is `place`; None when that is not known."""
    base = storage.layout
    if layout.key == base.key:
        return place.layout if place.layout.key[0] == base.key[0] else None
    if layout.dtype != place.layout.dtype or place.layout.key[:2] != base.key[:2]:
        return None
    return Layout(layout.sizes, layout.strides, layout.offset - base.offset + place.layout.offset, layout.dtype)


def is_new_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor that the program made requires grad without a history."""
    return tensor.requires_grad and tensor.is_leaf


def remove_dead(graph: Graph) -> set[int]:
    """Drop nodes that nobody reads; random draws and checks stay. Positions of the dropped ones."""
    live: set[Value] = set(graph.outputs)
    symbols = set().union(*(symbols_in(value.type) for value in graph.outputs))
    tells = tellers(graph, joint=True)
    kept, dropped = [], set()
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        told = any(not symbols.isdisjoint(tells.get(value, ())) for value in node.results)
        if node.is_pure and live.isdisjoint(node.results) and not told:
            dropped.add(position)
            continue
        live.update(node.reads)
        symbols |= symbols_read(node)
        kept.append(node)
    graph.nodes[:] = reversed(kept)
    return dropped
