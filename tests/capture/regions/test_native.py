"""Programs with control flow leave native code for nothing but what acts on the world."""

import copy

import pytest
import torch

import monograph
from benchmarks.python_steps import CASES, name_of, steps
from tests.capture.regions import functions_sizes
from tests.capture.regions.test_control_flow import outcome, same

WRITES = ["insertion_sort", "write_rows_in_loop", "Greedy"]
SIZES = [pytest.param(*case, id=name_of(case[0])) for case in functions_sizes.CASES]


@pytest.mark.parametrize("name", WRITES)
def test_writes_at_places_that_only_the_run_knows(name):
    function, inputs = next(case for case in CASES if name_of(case[0]) == name)
    assert [counted.total() for counted in steps(function, inputs)] == [0]


@pytest.mark.parametrize(("function", "inputs"), SIZES)
def test_one_program_for_all_sizes(function, inputs):
    assert [counted.total() for counted in steps(function, inputs, dynamic=True)] == [0]


@pytest.mark.parametrize(("function", "inputs"), SIZES)
def test_all_sizes_are_as_in_eager(function, inputs):
    plain, fast = copy.deepcopy(function), monograph.compile(copy.deepcopy(function), dynamic=True)
    with torch.no_grad():
        for given in [*inputs, *inputs]:
            expected, got = outcome(plain, given), outcome(fast, given)
            same(expected, got)
            assert [x.stride() for x in tensors(expected)] == [x.stride() for x in tensors(got)]


@pytest.mark.parametrize(("function", "inputs"), SIZES)
def test_gradients_of_all_sizes_are_as_in_eager(function, inputs):
    plain, fast = copy.deepcopy(function), monograph.compile(copy.deepcopy(function), dynamic=True)
    for given in inputs:
        wanted, got = gradient(plain, given), gradient(fast, given)
        for a, b in zip(wanted, got, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [x for part in value for x in tensors(part)] if isinstance(value, (list, tuple)) else []


def gradient(function, given):
    leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in given]
    results = [x for x in tensors(function(*leaves)) if x.requires_grad]
    sum(x.square().sum() for x in results).backward()
    return [x.grad for x in leaves if x.grad is not None]
