"""Whether weights look as they did, for the price of a few hundred words of memory.

    words ::= of each tensor object: the addresses of its class and of torch's part of it
              of torch's part: dispatch keys, dtype, number of dims, sizes, strides, the address of its history;
                               where it matters what shares memory that of its storage, and the offset there
              of the history: whether grad is required, what computed it

Each line is read only where the one before is as it was, for then its addresses lead to where they led. Where a word
moved torch is asked, and where it finds nothing new the words are taken over. Tensors that the words do not tell all of
(views, many dims), and all where `runtime.probe` does not know this torch, are torch's to check at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from monograph import compat
from monograph.capture.guards import TensorFacts
from monograph.capture.guards_versions import WORD, layouts, memory
from monograph.runtime import probe
from monograph.runtime.abi import LayoutWord

__all__ = ["watching"]


def watching(tensors: Sequence[torch.Tensor], holds: Callable[[], bool], *, storages: bool = False
             ) -> Callable[[], bool]:
    """A cheaper `holds`, which says whether `tensors` look as they did and, with `storages`, share what memory they
    shared; they do now."""
    places = _places(storages)
    if places is None or (storages and not all(places.tell(tensor) for tensor in tensors)):
        return holds
    return WatchedWeights(tensors, holds, places).check


@dataclass(frozen=True)
class Places:
    """Offsets in bytes."""

    of_object: tuple[int, ...]      # tensor object -> class, torch's part
    impl: int                       # the latter of these
    of_impl: tuple[int, ...]        # torch's part -> what sizes are not
    sizes: int
    strides: int
    most_dims: int                  # that lie in torch's part itself
    history: int
    of_history: tuple[int, ...]

    def tell(self, tensor: torch.Tensor) -> bool:
        """Whether the words tell all of a tensor's look."""
        return tensor.dim() <= self.most_dims and tensor.is_leaf and not compat.is_view(tensor)

    def in_impl(self, dims: int) -> list[int]:
        return [*self.of_impl, self.history,
                *(start + WORD * dim for start in (self.sizes, self.strides) for dim in range(dims))]


def _places(storages: bool) -> Places | None:
    """None where this Python or this torch keeps things elsewhere."""
    objects, torch_words, autograd = layouts().get(object), probe.layout(), probe.autograd()
    if objects is None or torch_words is None or autograd is None:
        return None
    at = dict(zip(LayoutWord, torch_words, strict=True))
    return Places(
        (objects.offsets[0], at[LayoutWord.IMPL]), at[LayoutWord.IMPL],
        (at[LayoutWord.KEYS], at[LayoutWord.DTYPE], at[LayoutWord.RANK],
         *([at[LayoutWord.STORAGE], at[LayoutWord.OFFSET]] if storages else ())),
        at[LayoutWord.SIZES], at[LayoutWord.STRIDES], at[LayoutWord.INLINE_RANK],
        autograd.history, (autograd.required, *autograd.nodes))


class Words:
    """The words that these bytes of memory lie in, and what is in them."""

    def __init__(self, addresses: Iterable[int]) -> None:
        self.places = np.fromiter(dict.fromkeys(address // WORD - 1 for address in addresses), np.int64)
        self.take = memory().take
        self.then = self.now()

    def now(self) -> bytes:
        return self.take(self.places, mode="clip").tobytes()

    def stay(self) -> bool:
        return self.take(self.places, mode="clip").tobytes() == self.then


class Seen:
    """What was found of the tensors that words tell all of, and a check of the others."""

    def __init__(self, tensors: Sequence[torch.Tensor], places: Places) -> None:
        told = [*filter(places.tell, tensors)]
        chosen = set(map(id, told))
        self.others = [tensor for tensor in tensors if id(tensor) not in chosen]
        self.facts = TensorFacts(self.others, [""] * len(self.others))
        self.classes = [*map(type, told)]         # kept alive, for their addresses stand for them
        impls = [compat.impl_address(tensor) for tensor in told]
        self.objects = Words(id(tensor) + offset for tensor in told for offset in places.of_object)
        self.impls = Words(impl + offset for impl, tensor in zip(impls, told)
                           for offset in places.in_impl(tensor.dim()))
        histories = [history for impl in impls if (history := word(impl + places.history))]
        self.histories = Words(history + offset for history in histories for offset in places.of_history)

    def stays(self) -> bool:
        return (self.objects.stay() and self.impls.stay() and self.histories.stay()
                and (not self.others or self.facts.check(*self.others)))


def word(address: int) -> int:
    return int(memory()[address // WORD - 1])


class WatchedWeights:
    """`check()` tells what `holds()` does. Safe in any number of threads."""

    def __init__(self, tensors: Sequence[torch.Tensor], holds: Callable[[], bool], places: Places) -> None:
        self.tensors, self.holds, self.places = tensors, holds, places
        self.seen = Seen(tensors, places)

    def check(self) -> bool:
        return self.seen.stays() or self._again()

    def _again(self) -> bool:
        if not self.holds():
            return False
        seen = Seen(self.tensors, self.places)
        if self.holds() and seen.stays():        # else another thread changed something while the words were read
            self.seen = seen
        return True
