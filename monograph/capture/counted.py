"""Sequences whose length only the run knows.

    Counted     length (a traced integer, or a size that values decide)  item(index)
    TracedList  one that is a list or tuple to the user:
      Listed    tensor [n, *]               `x.tolist()`: entry i is tensor[i] as numbers
      Pieces    tensor  sizes  dim          `torch.split(tensor, sizes, dim)`, where `sizes` is Listed
      Repeated  tensor                    `[x] * n`
      Collected buffer  dim                 what a comprehension gave: entries side by side along `dim`; None: stacked

Converted code loops over them by regions. Whatever else is asked of one (to be changed, shown, compared, handed to code
that is no converted function) starts the trace again, with the length of this call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from monograph import compat
from monograph.capture import blame
from monograph.capture.dims import key_of
from monograph.capture.number import TracedNumber, number_dtype
from monograph.capture.regions.errors import Asked, Unmergeable
from monograph.capture.symbols import SizesDiffer
from monograph.ir.symbolic import Symbol

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["FUNCTIONS", "Collected", "Counted", "Listed", "Pieces", "TracedList", "call", "listed", "repeated"]

LISTED = 64        # numbers at one place of a tensor


class Counted:
    """Something with a length that only the run knows and an entry at every index below it."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length = length
        self.item = item

    def __iter__(self) -> Iterator[Any]:
        """For a loop that stays Python's, as around a `yield`: it needs the length."""
        return map(self.item, range(operator.index(self.length)))


class TracedList(Counted, list[Any]):        # torch functions in C take nothing else for a list of tensors
    """`kind`: what it is in eager."""

    kind: type = list

    def __init__(self, tracer: Tracer, length: Any, item: Callable[[Any], Any]) -> None:
        Counted.__init__(self, length, item)
        self.tracer = tracer

    def give_up(self, *_: Any, **__: Any) -> NoReturn:
        """Trace again, with the length of this call."""
        sizes = self.tracer.sizes
        sizes.pin(sizes.names_of(self.length))
        if not sizes.pinned:
            raise Unmergeable("the length of a list that values in a branch or loop decide")
        raise SizesDiffer(sizes.request)

    def joined(self) -> Any:
        """The list as `Collected`, where it is one of tensors."""
        return None

    def __iter__(self) -> Iterator[Any]:
        self._ask()

    def __len__(self) -> int:
        self._ask()

    def __bool__(self) -> bool:
        self._ask()

    def _ask(self) -> NoReturn:
        """Where Python wants to know how long the list is, let converted code leave that to the run."""
        frame = blame.asking_frame(3)
        if frame is not None and self.tracer.can_convert(frame.f_code):
            raise Asked(frame.f_code, self.tracer.refusal("the length of a list"))
        self.give_up()


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refused(self: TracedList, *args: Any, **kwargs: Any) -> NoReturn:
        self.give_up()

    refused.__name__ = name
    return refused


for _name in """__getitem__ __setitem__ __delitem__ __contains__ __reversed__ __add__ __radd__ __iadd__
        __mul__ __rmul__ __imul__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __repr__ __str__ __format__ __copy__
        __deepcopy__ __reduce_ex__ append clear copy count extend index insert pop remove reverse sort""".split():
    setattr(TracedList, _name, _refuse(_name))


class Listed(TracedList):
    def __init__(self, tracer: Tracer, tensor: torch.Tensor) -> None:
        """`tensor` is written by nobody. Its first size is one that values decide, the others are few numbers."""
        super().__init__(tracer, tensor.shape[0], lambda index: tensor[index].tolist())
        self.tensor = tensor


class Pieces(TracedList):
    kind = tuple

    def __init__(self, tracer: Tracer, tensor: torch.Tensor, sizes: Listed, dim: int) -> None:
        super().__init__(tracer, sizes.length, self._piece)
        self.tensor, self.dim, self.sizes = tensor, dim, sizes.tensor.long()
        tracer.only_if(self.sizes.sum() == tensor.shape[dim])
        self.starts = self.sizes.cumsum(0) - self.sizes

    def _piece(self, index: Any) -> torch.Tensor:
        """A copy: who writes to it wants to write to the tensor, and takes the path of the call."""
        tracer = self.tracer
        size = tracer.size(TracedNumber(tracer, self.sizes[index]))
        found = key_of(size)
        if isinstance(found, Symbol):
            tracer.sizes.sums[found.name] = self.tensor.shape[self.dim], self.length
        piece = self.tensor.index_select(self.dim, torch.arange(size) + self.starts[index])
        with torch._C.DisableTorchFunction():
            tracer.memory.of(piece).frozen = "a part of a tensor is written in a loop", None
        return piece


class Collected(TracedList):
    def __init__(self, tracer: Tracer, length: Any, buffer: torch.Tensor, dim: int | None) -> None:
        super().__init__(tracer, length, self.give_up)
        self.buffer, self.dim = buffer, dim

    def joined(self) -> Any:
        return self


class Repeated(TracedList):
    def __init__(self, tracer: Tracer, count: Any, tensor: torch.Tensor) -> None:
        super().__init__(tracer, count, lambda index: tensor)
        self.tensor = tensor

    def joined(self) -> Any:
        return Collected(self.tracer, self.length, self.tensor.expand(self.length, *self.tensor.shape), None)


def repeated(tracer: Tracer, count: Any, entries: list[Any]) -> Any:
    """`entries * count` of one tensor, where values decide a size `count` that is above 0; else NotImplemented."""
    if len(entries) != 1 or not isinstance(entries[0], torch.Tensor) or not tracer.sizes.is_told(count) \
            or tracer.plan.read_numbers or not bool(count > 0):
        return NotImplemented
    return Repeated(tracer, count, entries[0])


def listed(tracer: Tracer, tensor: Any) -> Any:
    """`tensor.tolist()`, where values decide how many entries that has; else NotImplemented."""
    if not tensor.dim() or not tracer.sizes.is_told(tensor.shape[0]) or tracer.plan.read_numbers:
        return NotImplemented
    few = all(type(size) is int for size in tensor.shape[1:]) and math.prod(tensor.shape[1:]) <= LISTED
    if not few or number_dtype(tensor.dtype) is None:
        return NotImplemented
    with torch.no_grad():
        return Listed(tracer, tensor.detach().clone())


# -- torch functions -------------------------------------------------------------------------------

def call(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """What a function of `FUNCTIONS` gives for arguments with a TracedList; NotImplemented where it sees a list."""
    first, *rest = args or (None,)
    names = dict(zip(FUNCTIONS[func], rest)) | kwargs
    if func is compat.PAD_SEQUENCE:
        return _padded(first, **names) if isinstance(first, Pieces) else NotImplemented
    first = first.joined() if isinstance(first, TracedList) else first
    if isinstance(first, Collected) and set(names) <= {"dim"}:
        return _joined(first, names.get("dim", 0), stack=func is torch.stack)
    sizes = next((value for name, value in names.items() if name.startswith("split_size")), None)
    if isinstance(first, torch.Tensor) and isinstance(sizes, Listed) and len(names) <= 2:
        dim = names.get("dim", 0)
        if type(dim) is int and -first.dim() <= dim < first.dim() and sizes.tensor.dim() == 1 and not (
                torch.is_grad_enabled() and first.requires_grad):
            return Pieces(tracer, first, sizes, dim % first.dim())
    return NotImplemented


def _joined(entries: Collected, dim: Any, *, stack: bool) -> Any:
    """`torch.cat` or `torch.stack` of what a comprehension gave."""
    buffer, rank = entries.buffer, entries.buffer.dim()
    if type(dim) is not int or blame.may_be_caught():
        return NotImplemented
    entries.tracer.only_if((entries.tracer.traced(entries.length) > 0).tensor)      # torch raises
    if entries.dim is not None:
        same = not stack and -rank <= dim < rank and dim % rank == entries.dim
        return buffer.clone() if same else NotImplemented
    if not stack:
        rank -= 1
    if not -rank <= dim < rank:
        return NotImplemented
    dim %= rank
    if not stack:          # by indices: a view would ask whether there is one entry
        at = torch.arange(entries.length * buffer.shape[dim + 1])
        buffer = buffer.movedim(dim + 1, 1)[at // buffer.shape[dim + 1], at % buffer.shape[dim + 1]]
    return buffer.movedim(0, dim).clone(memory_format=torch.contiguous_format)


def _padded(pieces: Pieces, batch_first: bool = False, padding_value: Any = 0.0, padding_side: str = "right") -> Any:
    """`pad_sequence`: the place in the whole of each number of the result, or none."""
    if pieces.dim or padding_side != "right":
        return NotImplemented
    tracer, whole, sizes = pieces.tracer, pieces.tensor, pieces.sizes
    tracer.only_if((tracer.traced(pieces.length) > 0).tensor)      # torch raises
    longest = tracer.size(TracedNumber(tracer, sizes.amax()))
    steps = torch.arange(longest)
    place = (pieces.starts[:, None] + steps).clamp(max=whole.shape[0] - 1)
    found = whole.index_select(0, place.flatten()).view(pieces.length, longest, *whole.shape[1:])
    inside = (steps < sizes[:, None]).view(pieces.length, longest, *[1] * (whole.dim() - 1))
    padded = torch.where(inside, found, torch.full((), padding_value, dtype=whole.dtype))
    return padded if batch_first else padded.transpose(0, 1).clone(memory_format=torch.contiguous_format)


CAT, SPLIT, METHOD = ("dim",), ("split_size_or_sections", "dim"), ("split_size", "dim")
SIZES = ("split_sizes", "dim")
FUNCTIONS: dict[Any, tuple[str, ...]] = {
    torch.cat: CAT, torch.concat: CAT, torch.concatenate: CAT, torch.stack: CAT, torch.split: SPLIT,
    torch.Tensor.split: METHOD, torch.split_with_sizes: SIZES, torch.Tensor.split_with_sizes: SIZES,
    compat.PAD_SEQUENCE: ("batch_first", "padding_value", "padding_side"),
}
