"""Packed sequences: nn.utils.rnn around recurrent layers, the lengths as values."""

import pytest
import torch
from torch import nn

import monograph
from tests.compare import assert_same


class Packed(nn.Module):
    def __init__(self, cell, batch_first=True, **options):
        super().__init__()
        self.cell = cell(3, 4, batch_first=batch_first, **options)
        self.batch_first = batch_first

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=self.batch_first, enforce_sorted=False)
        out, state = self.cell(packed)
        return *nn.utils.rnn.pad_packed_sequence(out, batch_first=self.batch_first, total_length=6), state


def round_trip(x, lengths):
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    padded, again = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.5)
    return padded * 2, again, packed.data, packed.batch_sizes + 1


LENGTHS = ([5, 2, 5], [1, 1, 1], [3, 4, 1], [5, 2, 5])
MODELS = {
    "lstm": lambda: Packed(nn.LSTM), "gru": lambda: Packed(nn.GRU), "rnn": lambda: Packed(nn.RNN),
    "deep": lambda: Packed(nn.LSTM, num_layers=2, bidirectional=True), "relu": lambda: Packed(
        nn.RNN, nonlinearity="relu", num_layers=2), "steps first": lambda: Packed(nn.GRU, batch_first=False),
    "round trip": lambda: round_trip,
}


def played(function, x, lengths, weights):
    result = function(x, lengths)
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if leaf.requires_grad]
    if not leaves:
        return result, None
    return result, [g.clone() for g in torch.autograd.grad(sum(leaf.sum() for leaf in leaves), [x, *weights])]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_packed(name, grad):
    torch.manual_seed(0)
    model = MODELS[name]()
    weights = list(model.parameters()) if isinstance(model, nn.Module) else []
    fast = monograph.compile(model)
    for lengths in LENGTHS:
        x = torch.randn(3, 5, 3) if name != "steps first" else torch.randn(5, 3, 3)
        with torch.set_grad_enabled(grad):
            args = x.requires_grad_(grad), torch.tensor(lengths), weights
            assert_same(played(fast, *args), played(model, *args), rtol=1e-5, atol=1e-6)
    assert len(fast.recompiles) == 2


def test_what_eager_refuses():
    def fn(x, lengths):
        return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True).data

    fast = monograph.compile(fn)
    for lengths in ([2, 3], [3, 0], [3, 2, 1]):
        errors = []
        for function in (fn, fast):
            with pytest.raises(Exception) as caught:
                function(torch.ones(2, 4, 1), torch.tensor(lengths))
            errors.append((type(caught.value), str(caught.value)))
        assert errors[0] == errors[1]


def test_sequences_and_lists_of_lengths():
    def fn(a, b, x):
        packed = nn.utils.rnn.pack_sequence([a, b])
        return packed.data * 2, nn.utils.rnn.pack_padded_sequence(x, [3, 1]).data

    args = torch.randn(4, 2), torch.randn(2, 2), torch.randn(3, 2)
    assert_same(monograph.compile(fn)(*args), fn(*args))


def unpacked(cell):
    def function(packed):
        out, state = cell(packed)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return out.data, out.batch_sizes, padded * 2, lengths, state
    return function


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_before_the_call(cell, grad):
    torch.manual_seed(0)
    model = cell(3, 4, batch_first=True)
    function = unpacked(model)
    fast, alone = monograph.compile(function), monograph.compile(model)
    for lengths in ([5, 2], [3, 3], [5, 2]):
        packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 5, 3), lengths, batch_first=True)
        with torch.set_grad_enabled(grad):
            assert_same(fast(packed), function(packed), rtol=1e-5, atol=1e-6)
            out, mine = model(packed)[0], alone(packed)[0]
            assert mine.batch_sizes is packed.batch_sizes
            assert_same(mine.data, out.data, rtol=1e-5, atol=1e-6)
