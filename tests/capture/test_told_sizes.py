"""Sizes that values decide: one program for all of them, results as in eager, gradients off and on."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

import monograph
from monograph.api import dispatcher_of
from monograph.ops.effects import varies
from monograph.ops.own import reads_value
from monograph.ops.text import parse


def rows(x):
    return torch.where(x[:, 0] > 0)[0]


def split(x):
    first, second = x.split([int((x[:, 0] > 0).sum()), int((x[:, 0] <= 0).sum())])
    return first.sum(0), second.exp()


def split_by_list(x):
    counts = torch.stack([(x[:, 0] > 0).sum(), (x[:, 0] <= 0).sum()])
    return [part * 2 for part in x.split(counts.tolist())]


def split_and_flattened(x):
    """Sizes that make up a whole which is known, or is told by others; rows of each piece side by side."""
    kept = (x > 0).any(1)
    known = x.reshape(2, 5, 4)[:, :, :3].split([int(kept.sum()) - int(kept.sum()) + 2])
    told = x[kept].reshape(-1, 2, 2).split(kept.reshape(2, -1).sum(1).tolist())
    return [piece.reshape(-1, 3) for piece in known], [piece.reshape(-1, piece.shape[-1]) for piece in told]


def assigned(x):
    y = x.clone()
    y[x > 0] = x[x > 0] * 3
    return y


def padded(x):
    return functional.pad(x[:, :2], (0, 0, 0, int((x[:, 0] > 0).sum())))


def below_lengths(x):
    lengths = (x.abs() * 3).long()[:, 0]
    return torch.arange(int(lengths.max()))[None, :] < lengths[:, None]


def made_of_a_number(x):
    n = (x > 0).sum().item()
    return torch.zeros(n, 3) + 1, x.new_ones(n + 2), torch.arange(n // 2), x.view(-1)[:n] * 2


def from_a_grid(x):
    height, width = torch.stack([(x[:, 0] > 0).sum() + 1, (x[:, 1] > 0).sum() + 1]).tolist()
    y = torch.arange(height).unsqueeze(1).expand(-1, width)
    return torch.stack([y, torch.arange(width).unsqueeze(0).expand(height, -1)], -1).reshape(height * width, 2)


def over_rows_of_a_grid(x):
    grid = torch.stack([(x[:, 0] > 0).sum(), (x[:, 1] > 0).sum()]).reshape(1, 2)
    return [torch.arange(h).unsqueeze(1) + torch.arange(w) for h, w in grid]


def repeated_rows(x):
    counts = x.abs().long().T
    y = torch.zeros(2, counts[:2].sum(1).max() + 1, 4)
    for i in range(2):
        rows = torch.repeat_interleave(x, counts[i], dim=0)
        y[i, :rows.size(0)] = rows
    return y


def two_masks(x):
    return x[x > 0] * x.exp()[x > 0] + x[x > 0].sum()


def beside_numbers(x):
    """A size, on the left, and a number that values tell."""
    kept, n = x[x > 0], int((x[:, 0] > 0).sum())
    y = kept * 2 if kept.shape[0] != n + 3 else kept * 3
    return y, kept.shape[0] - n, kept.shape[0] * n, kept.shape[0] < n, kept.shape[0] / (n + 1)


def filled_up(x):
    """To a length that the list of what is missing makes up."""
    kept, none = x[x > 0], torch.zeros(())
    missing = 50 - kept.shape[0]
    return torch.cat([kept, torch.stack([none] * missing)])[:50], torch.stack(int((x > 0).sum() + 2) * [none])


FUNCTIONS = {
    "beside numbers": beside_numbers, "full": lambda x: torch.full(((x > 0).sum(), 2), 0.5) * x.sum(),
    "mask": lambda x: x[x > 0] * 2 + 1, "sum of a mask": lambda x: x[x > 0].sum(),
    "nonzero": lambda x: (x > 0).nonzero(),
    "masked_select": lambda x: torch.masked_select(x, x > 0).exp(),
    "rows": lambda x: (x[rows(x)].softmax(-1), x[rows(x)] @ torch.ones(4, 5)),
    "unique": lambda x: torch.unique((x * 2).long()),
    "unique with places": lambda x: torch.unique((x * 2).long(), return_inverse=True),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, (x[:, 0].abs() * 2).long(), dim=0) * 2,
    "arange": lambda x: torch.arange(int((x > 0).sum())), "numbers": made_of_a_number, "split": split,
    "split by a list": split_by_list, "split and flattened": split_and_flattened,
    "mask assigned": assigned, "padded": padded, "below lengths": below_lengths,
    "masked_scatter": lambda x: torch.zeros_like(x).masked_scatter(x > 0, x[x > 0] * 2),
    "cat": lambda x: torch.cat([x[x[:, 0] > 0], x[x[:, 0] <= 0], x]), "two masks": two_masks,
    "repeated rows": repeated_rows,
    "linear": lambda x: functional.linear(x[rows(x)], torch.ones(6, 4), torch.ones(6)).relu(),
    "size returned": lambda x: (x[x > 0], x[x > 0].shape[0], x[x > 0].size()),
    "transposed": lambda x: x[rows(x)].t(),
    "mean": lambda x: x[rows(x)].mean(0), "grid": from_a_grid, "rows of a grid": over_rows_of_a_grid,
    "slice by a tensor": lambda x: x[:(x[:, 0] > 0).sum()] * 2,
    "filled up": filled_up,
    "in fours": lambda x: x[(x > 0).any(1, keepdim=True).expand_as(x)].reshape(-1, 4) * 2,
    "ones by a tensor": lambda x: x.new_ones((x > 0).sum(), 2),
}
torch.manual_seed(0)
CALLS = [*torch.randn(3, 10, 4), -torch.ones(10, 4), torch.cat([torch.ones(1, 4), -torch.ones(9, 4)]),
         torch.ones(10, 4)]
PROGRAMS = {"grid": 2}        # a size of 1 is expanded, others are not


def observe(function, x, grad):
    x = x.clone().requires_grad_(grad)
    result = function(x)
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    total = sum(tensor.sum() for tensor in tensors if tensor.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    return result, x.grad


def check(function, fast, x, grad):
    expected, found = observe(function, x, grad), observe(fast, x, grad)
    torch.testing.assert_close(found, expected, equal_nan=True)
    for a, b in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            assert a.stride() == b.stride()


@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes(name, backend, grad):
    function = FUNCTIONS[name]
    for calls in (CALLS, CALLS[::-1]):
        fast = monograph.compile(lambda x: function(x), backend=backend)
        for x in calls:
            check(function, fast, x, grad)
        assert len(dispatcher_of(fast).entries) <= PROGRAMS.get(name, 1)


def test_a_number_that_python_needs_is_read_and_what_is_asked_of_a_size_is_a_condition():
    def function(x):
        y = x[x > 0]
        return y * 2 if y.shape[0] > 20 else [y + i for i in range(int((x[:, 0] > 0).sum()) % 2)]

    fast = monograph.compile(function, backend="reference")
    for x in CALLS:
        check(function, fast, x, False)
    reasons = str(fast.recompiles)
    assert "v0 <= 20" in reasons or "v0 > 20" in reasons
    assert len(dispatcher_of(fast).entries) <= 4


def test_a_size_that_does_not_fit_raises_as_eager_does():
    def function(x):
        return x[x[:, 0] > 0] + torch.ones(3, 4)

    fast = monograph.compile(function, backend="reference")
    torch.testing.assert_close(fast(torch.ones(3, 4)), function(torch.ones(3, 4)))
    for x in (torch.ones(4, 4), -torch.ones(4, 4)):
        with pytest.raises(RuntimeError, match="must match"):
            function(x)
        with pytest.raises(RuntimeError, match="must match"):
            fast(x)
    torch.testing.assert_close(fast(torch.ones(1, 4)), function(torch.ones(1, 4)))


def test_rows_that_do_not_fit_a_slice_raise_as_in_eager_and_one_fits_any():
    def function(x):
        y = torch.zeros(2, 3, 4, dtype=torch.float64)
        y[0], y[:, :3] = x[x[:, 0] > 0], x[x[:, 1] > 0]
        return y

    fast = monograph.compile(function, backend="reference")
    for rows in (3, 1, 3, 4):
        x = torch.cat([torch.ones(rows, 4), -torch.ones(5, 4)])
        if rows < 4:
            check(function, fast, x, False)
            continue
        for called in (function, fast):
            with pytest.raises(RuntimeError, match="must match the existing size"):
                called(x)


def test_integers_say_that_they_are():
    def function(x):
        n = (x > 0).sum().item()
        assert isinstance(n, int)
        return x.view(-1)[:n]

    fast = monograph.compile(function, backend="reference")
    for x in CALLS:
        check(function, fast, x, False)
    assert len(dispatcher_of(fast).entries) == 1


def rows_filled(x):
    mask = x > 0
    y = torch.zeros_like(x)
    y[mask] = x[mask] * 2
    return y + x


def rows_filled_in_branch(x):
    mask = x > 0
    y = torch.empty_like(x)
    if mask.any():
        y[mask] = x[mask] * 2
        y[~mask] = 0.0
    else:
        y.copy_(x)
    return y * x


@pytest.mark.parametrize("function", [rows_filled, rows_filled_in_branch])
def test_gradients_of_rows_filled_by_a_mask(function):
    fast = monograph.compile(function, backend="reference")
    for numbers in ([1.0, 2.0, -0.5], [-1.0, 2.0, -3.0], [-1.0, -2.0, -3.0], [1.0, 2.0, 3.0], [5.0, 6.0, -1.0]):
        leaves = [torch.tensor(numbers, requires_grad=True) for _ in range(2)]
        results = [called(leaf * 1) for called, leaf in zip((function, fast), leaves, strict=True)]
        for result in results:
            (result * torch.arange(1.0, 4.0)).sum().backward()
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)
        torch.testing.assert_close(leaves[1].grad, leaves[0].grad, rtol=0, atol=0)


class Strided(torch.nn.Module):
    """Sizes from buffers that stay, and from one that counts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.tensor(3))
        self.register_buffer("least", torch.tensor(2))
        self.register_buffer("seen", torch.tensor(1))

    def forward(self, x):
        self.seen += 1
        return functional.pad(x, (0, max(self.least, self.stride))), x[:self.seen] * 2


def test_what_buffers_decide_is_a_number_unless_the_program_writes_them():
    plain, fast = Strided(), monograph.compile(Strided(), backend="reference")
    for _ in range(4):
        x = torch.randn(10, 4)
        torch.testing.assert_close(fast(x), plain(x))
    entry, = dispatcher_of(fast).entries
    assert "f32[10, 7" in entry.report.text
    graph = parse(entry.report.text)
    assert {node.op.name for node in graph.walk()} >= {"mono.number", "mono.cond"}
    assert not any(reads_value(node) and varies(node.inputs, graph) for node in graph.walk())


def test_checks_are_no_values_read():
    def function(x):
        try:
            torch._check(bool((x > -100).all()) is not None)
            torch._check_tensor_all(x < 100)
        except RuntimeError:
            return x - 1
        return x.split([int((x[:, 0] > -100).sum())])[0] + 1

    fast = monograph.compile(function, backend="reference")
    for x in (*CALLS, torch.full((10, 4), 200.0)):
        check(function, fast, x, False)
    assert not any(map(reads_value, parse(dispatcher_of(fast).entries[-1].report.text).walk()))


def test_a_number_is_told_before_kernels_that_name_it_in_no_size() -> None:
    def function(t, q):
        h = q + 1
        t[0] = 2
        t.add_(1)
        for i in h.tolist():
            t[0] = i
        return t * 2, h * 2

    fast = monograph.compile(function, backend="llvm")
    for entries in ([2, 1, 3], [2, 1, 4]):
        q = torch.tensor(entries)
        torch.testing.assert_close(fast(torch.zeros(3), q), function(torch.zeros(3), q))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "nearest-exact", "antialias"])
def test_interpolation_to_sizes_that_values_decide(mode):
    options = {"mode": "bilinear", "antialias": True} if mode == "antialias" else {"mode": mode}

    def function(x):
        height, width = (x[:, 0] > 0).sum() + 2, (x[:, 1] > 0).sum() + 3
        table = x[None, None, :5].expand(1, 3, 5, 4)
        large = functional.interpolate(table, size=(height, width), **options)
        small = functional.interpolate(table, size=(int(width), int(height)), **options)
        return large.permute(0, 2, 3, 1).reshape(1, -1, 3).sum(1), large + 1, small * 2

    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for x in CALLS:
            check(function, fast, x, False)
    assert len(dispatcher_of(fast).entries) == 1


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_dims_taken_apart_and_put_together_again(backend):
    """What the last dim is follows from the others; one of the shapes is a view, the other a copy."""
    def function(image, sizes):
        height, width = sizes.tolist()
        rows = functional.interpolate(image, size=(height, width), mode="nearest")[0].permute(1, 2, 0)
        blocks = rows.reshape(height // 2, 2, width // 2, 2, -1)
        return blocks, blocks.transpose(1, 2).reshape(height * width, -1) * 2

    fast, image = monograph.compile(function, backend=backend), torch.randn(1, 3, 5, 5)
    with torch.no_grad():
        for sizes in ([4, 6], [6, 4], [8, 8], [2, 4], [4, 2], [2, 2], [6, 10]):      # of 2 rows perhaps a view
            given = torch.tensor(sizes)
            found, expected = fast(image, given), function(image, given)
            torch.testing.assert_close(found, expected, rtol=0, atol=0)
            assert [part.stride() for part in found] == [part.stride() for part in expected]
        assert len(dispatcher_of(fast).entries) <= 4
        for sizes in ([5, 4], [5, 5]):
            with pytest.raises(RuntimeError, match="invalid for input of size"):
                fast(image, torch.tensor(sizes))


def test_a_product_of_what_lies_row_by_row_but_for_dims_of_size_1():
    """Eager's elementwise ops keep the order of the dims; torch's fake kernels of sizes that vary do not."""
    def function(x):
        heads = functional.linear(x[:, None][x[:, 0] > 0].transpose(0, 1), torch.ones(6, 4)).view(1, -1, 3)
        return heads.transpose(0, 1) * 0.5

    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for x in CALLS[:4]:
            check(function, fast, x, False)
    assert len(dispatcher_of(fast).entries) <= 2
