"""What values select is worked on in the one native call, and is eager's; so are its gradients."""

from __future__ import annotations

import pytest
import torch

import monograph
from benchmarks.python_steps import name_of, steps
from monograph.api import dispatcher_of
from tests.capture.regions import functions_selected
from tests.capture.regions.test_control_flow import outcome, same
from tests.capture.regions.test_native import gradient, tensors

CASES = [pytest.param(*case, id=name_of(case[0])) for case in functions_selected.CASES]
MANY = 5000         # more than memory is made for at first


@pytest.mark.parametrize(("function", "inputs"), CASES)
def test_nothing_runs_from_python(function, inputs):
    assert sum(counted.total() for counted in steps(function, inputs)) == 0


@pytest.mark.parametrize(("function", "inputs"), CASES)
def test_every_number_is_as_in_eager(function, inputs):
    fast = monograph.compile(function)
    with torch.no_grad():
        for given in [*inputs, *inputs]:
            expected, got = outcome(function, given), outcome(fast, given)
            same(expected, got)
            for a, b in zip(tensors(expected), tensors(got), strict=True):
                assert a.stride() == b.stride() or not a.numel()
                assert b.untyped_storage().nbytes() <= a.untyped_storage().nbytes()


@pytest.mark.parametrize(("function", "inputs"), CASES)
def test_gradients_are_as_in_eager(function, inputs):
    fast = monograph.compile(function)
    for given in inputs:
        if any(x.requires_grad for x in tensors(function(*[x.clone().requires_grad_() for x in given]))):
            for a, b in zip(gradient(function, given), gradient(fast, given), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [functions_selected.elements, functions_selected.nested, functions_selected.places,
                                      functions_selected.repeated, functions_selected.distinct], ids=name_of)
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_grows_with_the_number(function, threads):
    fast = monograph.compile(function)
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            for share in (0.0, 0.01, 0.9, 0.5, 1.0):
                x = torch.where(torch.rand(MANY, 3) < share, 0.7, -1.0)
                same(outcome(function, (x,)), outcome(fast, (x,)))
    finally:
        torch.set_num_threads(before)
    assert len(dispatcher_of(fast).entries) == 1


def test_results_of_one_call_outlive_the_next():
    fast = monograph.compile(functions_selected.elements)
    first, second = torch.randn(9, 9), torch.randn(9, 9)
    with torch.no_grad():
        kept = fast(first)
        fast(second)
    assert torch.equal(kept, first[first > 0])


def test_negative_repeats_raise_as_in_eager():
    fast = monograph.compile(torch.repeat_interleave)
    assert torch.equal(fast(torch.tensor([2, 0, 1])), torch.tensor([0, 0, 2]))
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        fast(torch.tensor([2, -1, 1]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_distinct_integers(dtype):
    fast = monograph.compile(lambda x: torch.unique(x, return_inverse=True, return_counts=True), dynamic=True)
    limits = torch.iinfo(dtype)
    for size in (1, 2, 3, 31, 700):
        x = torch.randint(max(limits.min, -2**40), min(limits.max, 2**40), (size,)).to(dtype)
        for given in (x, x % 5, torch.cat([x, torch.tensor([limits.min, limits.max], dtype=dtype)])):
            same(torch.unique(given, return_inverse=True, return_counts=True), fast(given))


def test_places_out_of_range_raise_as_in_eager():
    def put(x, at):
        chosen = at[at > 0]
        y = x.clone()
        y[chosen] = 1.0
        return y.index_add(0, chosen, x[chosen])

    fast = monograph.compile(put)
    x = torch.randn(4)
    with torch.no_grad():
        assert torch.equal(fast(x, torch.tensor([1, 0, 3, 3])), put(x, torch.tensor([1, 0, 3, 3])))
        for at in (torch.tensor([1, 0, 4, 2]), torch.tensor([9, 0, 0, 0])):
            with pytest.raises(IndexError, match="out of bounds"):
                fast(x, at)
