"""Lists that a loop grows, as buffers with a place for every entry.

    Grown ::= length  buffer*         entry i is what stands at place i of the buffers, nested as `spec` says
    entry ::= tensor of one look | number | None | tuple of entries

Tensors may differ along one dim (`ragged`), the sum of whose sizes is known: they lie side by side along it.

An entry is kept as the value that it has when it is appended. So that nobody sees a difference to the object that eager
keeps, its memory may not be written as long as the list is used, nor may what is read from the list; and which object
that is nobody knows. Where a program asks for more, the loop that grew the list takes the path of the call.

`regions.growing` makes one of a list of Python's. Until the first round of the loop has shown what entries look like
there are no buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from monograph import compat
from monograph.capture import blame
from monograph.capture.classes import class_of
from monograph.capture.counted import Collected, TracedList
from monograph.capture.layout import Layout, compact
from monograph.capture.number import DTYPES, TracedNumber, kind_of
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import link_of
from monograph.capture.regions.leaves import flatten, unflatten
from monograph.capture.regions.rewritten import NODES
from monograph.capture.storage import Storage

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["WRITTEN", "Grown", "Look"]

WRITTEN = "a tensor is written that a list which a loop grew has, or may have"


MIXED = "it is not known which entries of a list that a loop grows require grad"


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


@dataclass(frozen=True, slots=True)
class Look:
    """What a part of every entry is: a number of a kind, None, or a tensor."""

    kind: type | None
    sizes: tuple[Any, ...]
    dtype: torch.dtype
    is_plain: bool = True        # contiguous
    ragged: int | None = None    # the dim of another size each time

    def around(self, count: Any, total: Any) -> list[Any]:
        """The sizes of a buffer for `count` of them, or of `total` along the dim that varies."""
        if self.ragged is None:
            return [count, *self.sizes]
        return [*self.sizes[:self.ragged], total, *self.sizes[self.ragged:]]


class Grown(TracedList):
    """`given`: the list that was; `limit`: the entries that there is room for."""

    def __init__(self, tracer: Tracer, given: list[Any], site: Any) -> None:
        self.tracer = tracer
        self.length: Any = len(given)
        self.given = given
        self.site = site
        self.depth = len(tracer.memory.scopes)
        self.local = set(tracer.sizes.local)
        self.limit: Any = 0
        self.has_enough = False                   # there are never more than `limit`
        self.spec: Any = None
        self.looks: list[Look] | None = None
        self.buffers: list[torch.Tensor] = []
        self.places: list[Any] = []               # of buffers: how far they are filled along the dim that varies
        self.amounts: list[tuple[Any, ...]] = []  # sizes along these dims, of each entry of an iteration
        self.kept: dict[int, int | None] = {}     # outer storages that entries lie in: their versions since the loop
        self.laid: dict[int, tuple[torch.Tensor, Any]] = {}      # outer tensors that entries are: how they lay then
        self.always = self.sometimes = 0          # entries of an iteration: each time, and at most besides
        self.loops = 0                            # that are being traced inside of the one that grows it
        self.nested = False                       # one of those appends
        self.is_closed = False                    # the loop is over
        self.followed: set[bool] = set()          # whether tensors in entries require grad; in the round before;
        self.before: set[bool] = set()            # what has been answered
        self.assumed: bool | None = None
        self.sequence = -1                        # of autograd's last node before the body that is being traced

    def give_up(self, *_: Any, **__: Any) -> NoReturn:
        raise Unmergeable("a list that a loop grows is used as a whole", self.site)

    # -- as a container ------------------------------------------------------------------

    def parts(self) -> list[Any]:
        return [self.length, *self.places, *self.buffers]

    def restore(self, parts: list[Any]) -> None:
        count = len(self.places)
        self.length, self.places, self.buffers = parts[0], parts[1:count + 1], parts[count + 1:]

    def __len__(self) -> int:
        return self.length if type(self.length) is int and self.is_closed else super().__len__()

    # -- growing -------------------------------------------------------------------------

    def append(self, entry: Any) -> None:
        leaves = self._admit(entry)
        if self.is_closed:
            self._append_after(leaves)
            return
        if len(self.tracer.memory.scopes) == self.depth + 1:
            self.always += 1
        else:
            self.sometimes += 1
        self.nested |= self.loops > 0
        self._notice(leaves)
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self._keep(leaf)
        self.amounts.append(self._amounts(leaves))
        self._put(leaves)
        self.length = self.length + 1

    def _notice(self, leaves: list[Any]) -> None:
        """Which tensors in entries have a history."""
        for leaf in filter(_is_real, leaves):
            self.followed |= {leaf.requires_grad, leaf.requires_grad and self._always_follows(leaf)}
        if self.assumed is not None and not self.followed <= {self.assumed}:
            raise Unmergeable(MIXED, self.site)

    def _always_follows(self, leaf: torch.Tensor) -> bool:
        """Whether an entry has a history in every iteration, on every path: one that does not lead through what the
        loop carries, or a branch leaves, alone."""
        pending, seen = [compat.gradient_edge(leaf)], set()
        while pending:
            node = pending.pop()
            variable = getattr(node, "variable", None)
            if variable is not None:
                if id(variable) in self.tracer.by_fake or not isinstance(variable, compat.FakeTensor):
                    return True
            elif node not in seen and node.name() not in NODES:
                if node._sequence_nr() <= self.sequence:
                    return True
                seen.add(node)
                pending += [other for other, _ in node.next_functions if other is not None and link_of(node) is None]
        return False

    def _is_followed(self) -> bool:
        """Whether tensors in entries require grad."""
        flags = self.followed or self.before
        if len(flags) > 1:
            raise Unmergeable(MIXED, self.site)
        self.assumed = True in flags
        return self.assumed

    def _admit(self, entry: Any) -> list[Any]:
        """The parts of an entry, which look as those of the others."""
        leaves, spec = flatten(entry)
        looks = [self._look(leaf) for leaf in leaves]
        if self.looks is None:
            self.spec, self.looks = spec, looks
        if (self.spec, self.looks) != (spec, looks):
            raise Unmergeable("a list that a loop grows gets entries of several kinds", self.site)
        return leaves

    def _amounts(self, leaves: list[Any]) -> tuple[Any, ...]:
        assert self.looks is not None
        return tuple(0 if look.ragged is None else leaf.shape[look.ragged] for look, leaf in zip(self.looks, leaves))

    def _append_after(self, leaves: list[Any]) -> None:
        """Append once the loop is over, outside of any other."""
        ragged = any(look.ragged is not None for look in self.looks or ())
        known = isinstance(self.length, (torch.SymInt, int))
        if ragged or len(self.tracer.memory.scopes) != self.depth or not known:
            self.give_up()
        self._check()
        self._notice(leaves)
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self._keep(leaf)
        self._enlarge(1)
        self._put(leaves)
        self.length = self.limit
        self.close()

    def _enlarge(self, more: Any) -> None:
        """Give the buffers room for more entries, and for no others."""
        with torch.set_grad_enabled(any(buffer.requires_grad for buffer in self.buffers)):
            rooms = [torch.zeros([more, *buffer.shape[1:]], dtype=buffer.dtype) for buffer in self.buffers]
            self.buffers = [torch.cat([self._filled(buffer), room]) for buffer, room in zip(self.buffers, rooms)]
        self.limit = self.length + more

    def _filled(self, buffer: torch.Tensor) -> torch.Tensor:
        return buffer if self.length is self.limit else buffer.narrow(0, 0, self.length)

    def extend(self, entries: Iterable[Any]) -> None:
        if type(entries) not in (list, tuple):
            self.give_up()
        for entry in entries:
            self.append(entry)

    def __iadd__(self, entries: Any) -> Grown:       # type: ignore[override,misc]
        self.extend(entries)
        return self

    def _look(self, leaf: Any) -> Look:
        kind = kind_of(leaf)
        if kind is not None:
            return Look(kind, (), DTYPES[kind])
        if leaf is None:
            return Look(NoneType, (), torch.bool)
        if not isinstance(leaf, torch.Tensor) or class_of(leaf) is not torch.Tensor:
            raise Unmergeable(f"a list that a loop grows has a {type(leaf).__name__}", self.site)
        with torch._C.DisableTorchFunction():
            layout = Layout.of(self.tracer.lift(leaf))
        if layout.conj or layout.neg:
            raise Unmergeable("a list that a loop grows has a tensor that is conjugated when it is read", self.site)
        ragged = [dim for dim, size in enumerate(layout.sizes)
                  if not (self.tracer.sizes.local - self.local).isdisjoint(self.tracer.sizes.names_of(size))]
        if ragged:
            return self._ragged(layout, ragged)
        is_plain = layout.key[1] == compact(Layout(layout.sizes, layout.strides, 0, layout.dtype)).key[1] \
            and leaf.is_contiguous()
        if not is_plain and len(layout.sizes) in (4, 5):      # then perhaps what is joined lies as the entries do
            raise Unmergeable("a list that a loop grows has tensors that are not contiguous", self.site)
        return Look(None, tuple(layout.sizes), layout.dtype, is_plain)

    def _ragged(self, layout: Layout, dims: list[int]) -> Look:
        channels_last = len(layout.sizes) in (4, 5) and layout.key[1][1] == 1       # then perhaps so is what is joined
        if len(dims) > 1 or channels_last:
            raise Unmergeable("a list that a loop grows has tensors of several sizes", self.site)
        dim, = dims
        return Look(None, (*layout.sizes[:dim], *layout.sizes[dim + 1:]), layout.dtype, ragged=dim)

    def _put(self, leaves: list[Any]) -> None:
        for position, (buffer, leaf, look) in enumerate(zip(self.buffers, leaves, self.looks or ())):
            with torch.set_grad_enabled(buffer.requires_grad or _is_real(leaf) and leaf.requires_grad):
                if look.ragged is not None:
                    count, place = leaf.shape[look.ragged], self.places[position]
                    buffer.index_copy_(look.ragged, torch.arange(count) + self.tracer.traced(place).tensor, leaf)
                    self.places[position] = place + count
                    continue
                place = self.tracer.traced(self.length).tensor.reshape(1)
                if not self.has_enough:       # perhaps it is not enough: `growing` sees to that after the loop
                    place = place.clamp(max=self.limit - 1)
                number = False if leaf is None else leaf
                value = leaf if isinstance(leaf, torch.Tensor) else self.tracer.traced(number).tensor
                buffer.index_copy_(0, place, value.unsqueeze(0))

    def reserve(self, more: Any, totals: Sequence[Any] = (), *, enough: bool = False) -> None:
        """Make buffers with room for `more` entries than those of the list that was; `totals`: along dims that vary."""
        assert self.looks is not None
        rows = [self._admit(entry) for entry in self.given]
        self.limit, self.has_enough = more + len(rows), enough
        self.places = [0] * len(totals)
        with torch.no_grad():
            self.buffers = [torch.zeros(look.around(self.limit, total), dtype=look.dtype)
                            for look, total in zip_longest(self.looks, totals)]
        self.length = 0
        for leaves in rows:
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor):
                    self._keep(leaf)
            self._put(leaves)
            self.length += 1

    # -- whose memory entries are --------------------------------------------------------

    def _keep(self, entry: torch.Tensor) -> None:
        """From here on nobody may write to a tensor that the list has."""
        tracer = self.tracer
        with torch._C.DisableTorchFunction():
            fake = tracer.lift(entry)
            pending = [tracer.memory.of(fake), *(tracer.memory.by_id[key] for key in tracer.identities.homes(fake)
                                                 if key in tracer.memory.by_id)]
        keys = {id(storage): key for key, storage in tracer.memory.by_id.items()}
        seen: set[int] = set()
        while pending:
            storage = pending.pop()
            if id(storage) in seen:
                continue
            seen.add(id(storage))
            pending += [place.storage for place in storage.places]
            if self._is_made_inside(storage):
                storage.frozen = WRITTEN, self.site
            else:
                self.kept.setdefault(keys[id(storage)], None)
                self.laid[id(fake)] = fake, Layout.of(fake).key

    def _is_made_inside(self, storage: Storage) -> bool:
        return storage.scope is not None and storage.scope in self.tracer.memory.scopes[self.depth:]

    def begin_round(self) -> None:
        self.always = self.sometimes = 0
        self.amounts = []
        self.nested = False
        self.before, self.followed, self.assumed = self.followed, set(), None
        self.sequence = -1
        for entry in self.given:
            self._notice(flatten(entry)[0])
        self.sequence = compat.last_sequence()

    def end_round(self, written: Iterable[int]) -> None:
        """An iteration is over, which wrote to some storages of the outside."""
        if not self.kept.keys().isdisjoint(written):
            raise Unmergeable(WRITTEN, self.site)

    def close(self) -> None:
        """The loop is over."""
        by_id = self.tracer.memory.by_id
        self.kept = {key: by_id[key].version for key in self.kept if key in by_id}
        self.is_closed = True
        self.sequence = -1

    def _check(self) -> None:
        """Entries are what they were when they were appended."""
        by_id = self.tracer.memory.by_id
        for key, version in self.kept.items():
            if version is not None and key in by_id and by_id[key].version != version:
                raise Unmergeable(WRITTEN, self.site)
        if any(Layout.of(fake).key != key for fake, key in self.laid.values()):
            raise Unmergeable(WRITTEN, self.site)

    # -- reading -------------------------------------------------------------------------

    def item(self, index: Any) -> Any:           # type: ignore[override]
        """The entry at an index in range."""
        if self.looks is None and self.given:
            self._admit(self.given[0])
        if self.looks is None:
            raise Unmergeable("an entry of a list before it is known what a loop appends to it", self.site)
        self._check()
        leaves = [self._leaf(position, look, index) for position, look in enumerate(self.looks)]
        return unflatten(iter(leaves), self.spec)

    def _leaf(self, position: int, look: Look, index: Any) -> Any:
        tracer = self.tracer
        if look.kind is NoneType:
            return None
        if not look.is_plain or look.ragged is not None:
            self.give_up()
        follows = look.kind is None and (look.dtype.is_floating_point or look.dtype.is_complex) and self._is_followed()
        with torch.set_grad_enabled(follows):
            if self.buffers:
                place = tracer.traced(index).tensor.reshape(1)
                found = self.buffers[position].index_select(0, place).squeeze(0).clone()
            else:
                found = torch.zeros(look.sizes, dtype=look.dtype, requires_grad=follows)
        if look.kind is not None:
            return tracer.wrap(found)
        with torch._C.DisableTorchFunction():
            tracer.memory.of(found).frozen = WRITTEN, self.site
            if tracer.identities.exact:
                self.give_up()
            tracer.identities.choose(found, (), self.site, unclear=True,
                                      homes=frozenset(self.kept) if follows else None)
            (tracer.identities.hide if self.kept else tracer.identities.share)(found)
        return found

    def __getitem__(self, index: Any) -> Any:    # type: ignore[override]
        if isinstance(index, torch.Tensor) and not index.dim() and index.dtype is torch.int64:
            index = index.item()
        if kind_of(index) is not int or blame.may_be_caught():
            self.give_up()
        if type(self.length) is type(index) is int:
            return self.item(index % self.length) if -self.length <= index < self.length else self.give_up()
        tracer, length = self.tracer, self.tracer.traced(self.length)
        if isinstance(index, TracedNumber):
            index = index.of(lambda at, size: torch.where(at < 0, at + size, at), index, length)
        elif index < 0:
            index = length + index
        tracer.only_if((tracer.traced(index) >= 0).tensor)
        tracer.only_if((tracer.traced(index) < length).tensor)
        return self.item(index)

    def joined(self) -> Collected | None:
        """All entries, where each is a tensor."""
        if self.looks is None or len(self.looks) != 1 or self.spec is not None or self.looks[0].kind is not None \
                or not self.buffers or not isinstance(self.length, (torch.SymInt, int)):
            return None
        self._check()
        ragged = self.looks[0].ragged
        buffer = self._filled(self.buffers[0]) if ragged is None else self.buffers[0].clone()
        return Collected(self.tracer, self.length, buffer, ragged)
