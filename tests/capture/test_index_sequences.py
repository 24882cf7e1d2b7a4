"""Indices that are sequences of traced numbers: torch makes tensors of them."""

import pytest
import torch

import monograph


def rows_and_columns(x, i):
    flags = torch.ones_like(x).bool()
    rows, columns = zip(*i.reshape(-1, 2))
    flags[rows, columns] = False
    return x * flags, x[list(rows), 0]


def items(x, i):
    return x[[int(i[0]), int(i[1])], :] + x[:, [i[2], 1, i[3]]].sum()


def truths(x, i):
    return x[(i > 1).unbind(), :].sum()


@pytest.mark.parametrize("function", [rows_and_columns, items, truths])
def test_sequences(function):
    fast = monograph.compile(function, backend="reference")
    with torch.no_grad():
        for numbers in ([0, 1, 2, 3], [3, 0, 0, 2]):
            x, i = torch.randn(4, 4), torch.tensor(numbers)
            torch.testing.assert_close(fast(x, i), function(x, i), rtol=0, atol=0)
    if function is not truths:
        assert not fast.recompiles
