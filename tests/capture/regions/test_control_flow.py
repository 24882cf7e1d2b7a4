"""Compiled functions take every path as eager does: results, writes to arguments and buffers, exceptions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import monograph
from tests.capture.regions import functions, functions_loops, functions_objects

CASES = functions.CASES + functions_loops.CASES + functions_objects.CASES
NATIVE = len(functions.CASES)           # of these the native programs are run too
NAMES = [getattr(function, "__name__", type(function).__name__) for function, _ in CASES]


def outcome(function: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[Any, list[torch.Tensor]]:
    given = [x.clone() for x in inputs]
    try:
        result = function(*given)
    except Exception as error:
        return (type(error), str(error)), given
    return result, given


def same(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, equal_nan=True) if isinstance(a, torch.Tensor) else None
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif not isinstance(a, torch.Tensor):
        assert a == b


# A tensor with a history that may be another one is written.
IN_PLACE = {"alias_on_one_path", "carried_view_written"}


def on_backends(cases: list[Any], names: list[str]) -> Any:
    """Every case in the reference evaluator, the first ones as native programs too."""
    named = list(zip(cases, names, strict=True))
    both = [(case, name, backend) for backend, some in (("reference", named), ("llvm", named[:NATIVE]))
            for case, name in some]
    return pytest.mark.parametrize(("function", "inputs", "backend"), [
        pytest.param(*case, backend, id=f"{name}-{backend}") for case, name, backend in both])


@on_backends(CASES, NAMES)
def test_every_path(function: Any, inputs: list[tuple[torch.Tensor, ...]], backend: str) -> None:
    plain = copy.deepcopy(function)
    fast = monograph.compile(copy.deepcopy(function), backend=backend)
    with torch.no_grad():
        for given in [*inputs, *inputs]:
            same(outcome(plain, given), outcome(fast, given))
    if isinstance(plain, torch.nn.Module):
        for a, b in zip(plain.buffers(), fast.buffers(), strict=True):
            torch.testing.assert_close(a, b)


# No region can hold them: another structure, dtype, size or function on each path, a list that grows in a loop. Or (the
# first) an attribute is None before the first call.
SEVERAL = {
    "Counted", "attributes_of_numbers", "builtins_over_rows", "caught_raise", "chained_generators",
    "comprehension_with_filter", "conditional_dtype", "conditional_function", "conditional_shape",
    "else_after_break", "filter_and_map", "growing_rows", "list_of_counted_loop", "nonzero_loop",
    "nothing_or_tensor", "slice_by_counter", "star_targets", "unbound_read",
}


# Loops in loops after which a result with a history may be the caller's own tensor.
PERHAPS_ITSELF = {"return_from_nested_loops"}


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=NAMES)
def test_one_graph(function: Any, inputs: list[tuple[torch.Tensor, ...]], request: Any) -> None:
    if request.node.callspec.id in SEVERAL:
        pytest.skip("forks")
    fast = monograph.compile(copy.deepcopy(function), backend="reference")
    with torch.no_grad():
        for given in inputs:
            outcome(fast, given)
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=NAMES)
def test_one_graph_with_gradients(function: Any, inputs: list[tuple[torch.Tensor, ...]], request: Any) -> None:
    if request.node.callspec.id in SEVERAL | IN_PLACE | PERHAPS_ITSELF:
        pytest.skip("forks")
    fast = monograph.compile(copy.deepcopy(function), backend="reference")
    for given in inputs:
        gradients(fast, given)
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


def gradients(function: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
    """What a function gives for inputs that are results of other ops, and its gradients by inputs and parameters."""
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    given = [x * 1 if x.requires_grad else x for x in leaves]
    try:
        result = function(*given)
    except Exception as error:
        return type(error), str(error)
    made = [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not made:
        return pytree.tree_map_only(torch.Tensor, torch.detach, result), None
    wanted = [x for x in leaves if x.requires_grad] + list(getattr(function, "parameters", list)())
    loss = sum((x * torch.arange(1, x.numel() + 1).view(x.shape)).sum() for x in made)
    found = torch.autograd.grad(loss, wanted, allow_unused=True)
    return pytree.tree_map_only(torch.Tensor, torch.detach, result), list(found)


@on_backends(CASES, NAMES)
def test_gradients(function: Any, inputs: list[tuple[torch.Tensor, ...]], backend: str) -> None:
    plain = copy.deepcopy(function)
    fast = monograph.compile(copy.deepcopy(function), backend=backend)
    for given in inputs:
        want, got = gradients(plain, given), gradients(fast, given)
        if isinstance(want[0], type) or want[1] is not None:
            same(want, got)
        else:       # requires grad on another path: nothing flows on this one
            same(want[0], got[0])
            assert got[1] is None or not any(g is not None and g.any() for g in got[1])
