"""Packed sequences (`nn.utils.rnn`): the lengths are values that the program is made for.

How many sequences go on at each step decides the layout of what is packed, and torch's kernels read it from memory.
So it is a real tensor while tracing (`Tracer.states` has its fake), and packing and unpacking are slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture import blame

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["PACKED", "is_packed", "told"]

Tensor = torch.Tensor


def pack(tracer: Tracer, input: Tensor, lengths: Any, batch_first: bool) -> tuple[Tensor, Tensor]:
    """What torch's `_pack_padded_sequence` gives; RuntimeError, in words that eager finds, where it refuses."""
    known = tracer.ask_all(lengths) if isinstance(lengths, Tensor) else list(lengths)
    steps = input.transpose(0, 1) if batch_first else input
    if not known or min(known) <= 0 or sorted(known, reverse=True) != known or len(known) != steps.size(1):
        raise RuntimeError("lengths of a packed sequence")
    if known[0] > steps.size(0):
        raise errors.UnsupportedError(f"a sequence of length {known[0]} among {steps.size(0)} steps is packed",
                                      loc=blame.location(blame.user_frame()), why="torch says not what that gives",
                                      hint="clamp the lengths")
    sizes = [sum(length > step for length in known) for step in range(known[0])]
    parts, start = [], 0
    for stop in range(1, len(sizes) + 1):
        if stop == len(sizes) or sizes[stop] != sizes[start]:
            parts.append(steps[start:stop, :sizes[start]].reshape(-1, *steps.shape[2:]))
            start = stop
    return torch.cat(parts), _batch_sizes(tracer, sizes)


def pad(tracer: Tracer, data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
        ) -> tuple[Tensor, Tensor]:
    """What torch's `_pad_packed_sequence` gives."""
    with compat.plain_torch():
        sizes = told(tracer, batch_sizes).tolist()
    if total_length > 0 and total_length < len(sizes):
        raise RuntimeError("a total length below that of the longest sequence")
    longest = max(len(sizes), total_length)
    steps, start = [], 0
    for size in sizes:
        part = data[start:start + size]
        steps.append(_filled(part, sizes[0] - size, padding_value))
        start += size
    steps += [torch.full_like(steps[0], padding_value)] * (longest - len(sizes))
    lengths = [sum(size > row for size in sizes) for row in range(sizes[0])]
    padded = torch.stack(steps)
    return padded.transpose(0, 1) if batch_first else padded, torch.tensor(lengths)


def is_packed(args: tuple[Any, ...]) -> bool:
    """Whether a call of torch's recurrent functions is one for packed sequences: their second argument says how."""
    return len(args) > 1 and isinstance(args[1], Tensor) and args[1].dim() == 1 and args[1].dtype == torch.int64


def told(tracer: Tracer, batch_sizes: Tensor) -> Tensor:
    """How many sequences go on at each step, in memory that torch may read: asked for where they were packed before."""
    if not isinstance(batch_sizes, compat.FakeTensor):
        return batch_sizes
    return _batch_sizes(tracer, tracer.ask_all(batch_sizes))


PACKED = {torch._pack_padded_sequence: pack, torch._pad_packed_sequence: pad}


def _filled(part: Tensor, missing: int, value: Any) -> Tensor:
    if not missing:
        return part
    return torch.cat([part, part.new_full((missing, *part.shape[1:]), value)])


def _batch_sizes(tracer: Tracer, sizes: list[int]) -> Tensor:
    fake = torch.tensor(sizes)
    with compat.plain_torch():
        real = torch.tensor(sizes)
    tracer.states[id(real)] = tracer.lift(fake)
    tracer.keep.append(real)
    return real
