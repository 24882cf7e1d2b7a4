"""Lists whose length values decide: loops over them are one program, anything else is as in eager."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.nn.utils import rnn

import monograph
from monograph.api import dispatcher_of
from monograph.ops.own import reads_value
from monograph.ops.text import parse


def lengths_of(grid):
    ends = functional.pad(torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0]).cumsum(0), (1, 0))
    return ends[1:] - ends[:-1]


def chunks_attend(x, grid):
    lengths = lengths_of(grid).int()
    heads = x.view(-1, 2, 4).transpose(0, 1).unsqueeze(0)
    splits = [torch.split(tensor, lengths.tolist(), dim=2) for tensor in (heads, heads * 2, heads + 1)]
    outputs = [functional.scaled_dot_product_attention(q, k, v).transpose(1, 2) for q, k, v in zip(*splits)]
    return torch.cat(outputs, dim=1).reshape(x.shape[0], -1) * 2


def chunks_normalised(x, grid):
    return torch.cat([part - part.mean(0) + i for i, part in enumerate(x.split(lengths_of(grid).tolist()))])


def chunks_pooled(x, grid):
    return torch.stack([part.amax(0) for part in x.split(lengths_of(grid).tolist())], dim=1)


def chunks_pooled_side_by_side(x, grid):
    return torch.cat([part.amax(0, keepdim=True) for part in x.split(lengths_of(grid).tolist())], -1)


def numbers_in_a_loop(x, grid):
    total = torch.zeros(8)
    for n in lengths_of(grid).tolist():
        total = total + n * x[0]
    return total


def doubled(x, grid):
    return torch.cat([torch.cat([part, part * 2]) for part in reversed(x.split(lengths_of(grid).tolist()))])


def chunks_appended(x, grid):
    """Several tensors of an iteration, and what stands for none, in lists that a loop grows."""
    parts, weights = [], []
    for part in x.split(lengths_of(grid).tolist()):
        weight = None
        parts.append(part * 2)
        parts.extend([torch.cat([part, x[:1]])])
        weights.append(weight)
    return torch.cat(parts), None if weights[0] is None else tuple(weights)


def padded(x, grid):
    """As many rows as values say, told by `full` and by `split`."""
    counts = torch.full((grid[:, 0].sum(),), 1) * (grid[:, 1] * grid[:, 2])
    parts = x.split(counts.tolist())
    return rnn.pad_sequence(parts, batch_first=True), rnn.pad_sequence(tuple(parts), padding_value=2.5)


def under_a_finally(x, grid):
    try:
        return chunks_appended(x, grid)
    finally:
        del grid


def frames_in_blocks(x, grid):
    """Views of tensors without gaps, whose sizes are told to make up the same number."""
    outputs = []
    for frames, (t, h, w) in zip(x.split([t * h * w for t, h, w in grid.tolist()]), grid.tolist()):
        frames = frames.view(t // 2 * 2, h, w // 2, 2, 8).permute(0, 4, 1, 2, 3).reshape(t, 8, h, w).exp()
        outputs.append(frames.view(t, 8, h, w // 2, 2).permute(0, 2, 3, 4, 1).reshape(t * h * w, 8))
    return torch.cat(outputs)


ONE_PROGRAM = [padded, chunks_appended, under_a_finally, frames_in_blocks, chunks_attend, chunks_normalised,
               chunks_pooled, chunks_pooled_side_by_side, numbers_in_a_loop]


def parts_returned(x, grid):
    return [part * 2 for part in x.split(lengths_of(grid).tolist())], lengths_of(grid).tolist()


def used_as_lists(x, grid):
    sizes = lengths_of(grid).tolist()
    parts = x.split(sizes)
    assert isinstance(sizes, list) and type(sizes) is list and isinstance(parts, tuple)
    more = [0, *sizes] + sizes
    more.extend(sizes)
    sizes.append(3)
    return parts[0] + sum(more), len(parts), max(sizes), sizes[-1], sizes == more, [part.sum() for part in parts][-1]


def parts_written(x, grid):
    y = x.clone()
    for part in y.split(lengths_of(grid).tolist()):
        part.mul_(2)
    return y


def not_the_size(x, grid):
    return torch.cat([part * 2 for part in x[1:].split(lengths_of(grid).tolist())])


def shapes_that_differ(x, grid):
    return [part.t() @ part for part in x.split(lengths_of(grid).tolist())], [
        part.sum() for part in x.split(lengths_of(grid).tolist()) if part.sum() > 0]


AS_IN_EAGER = [doubled, parts_returned, used_as_lists, parts_written, shapes_that_differ]
GRIDS = [[[1, 4, 4]], [[2, 2, 4]], [[4, 2, 2]], [[16, 1, 1]], [[8, 2, 1]]]
EVEN = [[[2, 2, 4]], [[4, 2, 2]], [[2, 1, 8]]]


def calls(grids=GRIDS):
    generator = torch.Generator().manual_seed(0)
    for grid in grids:
        yield torch.randn(16, 8, generator=generator), torch.tensor(grid)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_one_program_whatever_the_length(function, backend):
    fast = monograph.compile(function, backend=backend)
    for arguments in calls(EVEN if function is frames_in_blocks else GRIDS):
        torch.testing.assert_close(fast(*arguments), function(*arguments))
    entry, = dispatcher_of(fast).entries
    assert not any(map(reads_value, parse(entry.report.text).walk()))


@pytest.mark.parametrize("function", AS_IN_EAGER)
def test_other_uses_are_as_in_eager(function):
    fast = monograph.compile(function, backend="reference")
    for arguments in calls():
        torch.testing.assert_close(fast(*arguments), function(*arguments))


@pytest.mark.parametrize("function", [chunks_attend, chunks_pooled])
def test_gradients_are_those_of_eager(function):
    fast = monograph.compile(function, backend="reference")
    for x, grid in calls():
        leaves = [x.clone().requires_grad_() for _ in range(2)]
        for called, leaf in zip((function, fast), leaves, strict=True):
            called(leaf, grid).square().sum().backward()
        torch.testing.assert_close(leaves[1].grad, leaves[0].grad)


def test_sizes_that_do_not_fit_raise_as_in_eager():
    fast = monograph.compile(not_the_size, backend="reference")
    for x, grid in calls():
        with pytest.raises(RuntimeError, match="split_with_sizes"):
            not_the_size(x, grid)
        with pytest.raises(RuntimeError, match="split_with_sizes"):
            fast(x, grid)
