"""A sample of PyTorch's operator database; `python -m benchmarks.opinfo` runs all of it."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from tests.opinfo import Outcome, _assert_right, check, family, full_name, ops

OURS = ("pointwise", "reduction", "view", "gather", "scan")


def settled(outcome: Outcome) -> bool:
    """Equal to eager; or eager has no answer; or refused by name, since it asks for the value of a tensor."""
    fine = outcome.status in ("passed", "nondeterministic", "skipped")
    return fine or outcome.reason.startswith("DataDependentError")


def sample(dtype: torch.dtype, stride: int) -> list[OpInfo]:
    """Every `stride`-th op of the families that the kernels cover."""
    return [op for op in ops(dtype) if family(op) in OURS][::stride]


@pytest.mark.parametrize("op", sample(torch.float32, 6), ids=full_name)
def test_forward(op: OpInfo):
    outcome = check(op, torch.float32, samples=2)
    assert settled(outcome), outcome.reason


@pytest.mark.parametrize("op", sample(torch.int64, 12), ids=full_name)
def test_integers(op: OpInfo):
    outcome = check(op, torch.int64, samples=1)
    assert settled(outcome), outcome.reason


@pytest.mark.parametrize("op", sample(torch.bfloat16, 16), ids=full_name)
def test_bfloat16(op: OpInfo):
    outcome = check(op, torch.bfloat16, samples=1)
    assert settled(outcome), outcome.reason


@pytest.mark.parametrize("op", [op for op in sample(torch.float32, 12) if op.supports_autograd], ids=full_name)
def test_gradients(op: OpInfo):
    outcome = check(op, torch.float32, samples=1, grad=True)
    assert settled(outcome), outcome.reason


def test_a_rounding_is_right_when_it_is_as_near_as_eagers():
    exact, eager = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([1.0, 2.1])
    _assert_right(torch.tensor([1.05, 2.0]), eager, lambda: exact)
    for wrong in (torch.tensor([1.2, 2.0]), torch.tensor([float("nan"), 2.0]), torch.tensor([[1.05, 2.0]])):
        with pytest.raises(AssertionError):
            _assert_right(wrong, eager, lambda: exact)
