"""Values that the program writes down itself: masks, counts, constants; errors that values decide."""

import numpy
import pytest
import torch
from torch.nn import functional as F

import monograph

pytestmark = pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
BACKENDS = ("reference", "llvm")


def equal(function, *args, backend="llvm"):
    got, want = monograph.compile(function, backend=backend)(*args), function(*args)
    torch.testing.assert_close(got, want, equal_nan=True)
    assert got.stride() == want.stride()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("chosen", ([1, 0, 1, 1, 0], [1, 0, 0, 1, 0]))      # of one length, as different sizes result
@pytest.mark.parametrize("make", (
    lambda bits: [bool(bit) for bit in bits],
    lambda bits: numpy.array(bits, dtype=bool),
    lambda bits: torch.tensor(bits).bool(),
), ids=("list", "numpy", "tensor"))
def test_mask_written_in_the_program(make, chosen, backend):
    equal(lambda x: x[make(chosen)] + 1, torch.randn(5, 3), backend=backend)


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("chosen", ([1, 0, 1, 1, 0], [1, 0, 0, 1, 0]))
def test_mask_of_bytes(chosen):
    equal(lambda x: x[torch.tensor(chosen, dtype=torch.uint8)], torch.randn(5, 3))


def test_mask_of_bytes_from_values_is_refused():
    with pytest.raises(monograph.DataDependentError, match="index"):
        monograph.compile(lambda x: x[(x > 0).to(torch.uint8)])(torch.randn(5))


@pytest.mark.parametrize("counts", ([1, 2, 0, 1, 1], [1, 2, 0, 1, 3]))
def test_repeats_written_in_the_program(counts):
    equal(lambda x: x.repeat_interleave(torch.tensor(counts), 0), torch.randn(5, 3))


@pytest.mark.parametrize("numbers", ([1, 2], [1, 1]))
def test_one_of_several_results_is_constant(numbers):
    equal(lambda x: torch.tensor(numbers).unique() + x, torch.randn(1))


def test_default_dtype_of_an_earlier_trace_is_forgotten():
    def function(x):
        return torch.ones(2), x + 1.5, x / 2

    fast, x = monograph.compile(function), torch.arange(3)
    torch.set_default_dtype(torch.float64)
    try:
        assert {result.dtype for result in fast(x)} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)
    assert {result.dtype for result in fast(x)} == {torch.float32}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("function", "matrix"), (
    (torch.linalg.inv, torch.zeros(3, 3)),
    (torch.linalg.cholesky, -torch.eye(3)),
    (lambda a: torch.linalg.solve(a, a), torch.zeros(3, 3)),
    (lambda a: (torch.linalg.inv(a), a + 1)[1], torch.zeros(3, 3)),
), ids=("inv", "cholesky", "solve", "unused"))
@pytest.mark.parametrize("grad", (False, True))
def test_failed_factorisation_raises_as_eager(function, matrix, grad, backend):
    fast = monograph.compile(function, backend=backend)
    fine = torch.eye(3).requires_grad_(grad)
    torch.testing.assert_close(fast(fine), function(fine))
    matrix = matrix.clone().requires_grad_(grad)
    with pytest.raises(torch.linalg.LinAlgError) as want:
        function(matrix)
    with pytest.raises(torch.linalg.LinAlgError) as got:
        fast(matrix)
    assert str(got.value) == str(want.value)


def test_margin_loss_with_padded_targets():
    equal(F.multilabel_margin_loss, torch.randn(4, 5), torch.tensor([[1, 2, -1, 0, 0]] * 4))
