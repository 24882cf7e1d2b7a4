"""Small programs in which random writing found a difference from eager, each named for what it does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

import monograph
from tests.capture.harness import alias_relation, assert_same

P, N = torch.tensor([0.5, 1.5, 2.5]), torch.tensor([-0.5, -1.5, 0.25])


def check(function: Callable[..., Any], *calls: Sequence[Any], grad: bool = False) -> Any:
    """Results, arguments, aliases and what requires grad are eager's in each call, and again."""
    fast = monograph.compile(function, backend="reference")
    for call in (*calls, *calls):
        seen = []
        for run in (function, fast):
            given = [(x.clone().requires_grad_(grad and x.is_floating_point()) * 1 if isinstance(x, torch.Tensor)
                      else copy.deepcopy(x)) for x in call]
            with torch.set_grad_enabled(grad):
                result = run(*given)
            tensors = [x for x in pytree.tree_leaves((given, result)) if isinstance(x, torch.Tensor)]
            seen.append(((result, given), alias_relation(tensors), [x.requires_grad for x in tensors]))
        (expected, *outside), (found, *others) = seen
        assert_same(expected, found, exact=False)
        assert others == outside
    return fast


def test_finally_returns_in_place_of_a_return_behind_a_branch() -> None:
    def function(a, c):
        if c[0] > 0:
            return a + 1
        try:
            return a
        finally:
            if c[1] > 0:
                return a * 2        # noqa: B012

    check(function, (P, P), (P, N), (P, -P))


def test_results_that_share_memory_are_objects_of_their_own() -> None:
    def function(x):
        y = x * 2
        z = y.view(3)
        return y, y.detach(), z, y, z

    for grad in (False, True):
        check(function, (P,), grad=grad)


class Remembers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = None

    def forward(self, x):
        y = x * 2
        self.last = y.detach()
        return y


def test_an_attribute_shares_memory_with_a_result() -> None:
    for grad in (False, True):
        module = Remembers()
        fast = monograph.compile(module, backend="reference")
        with torch.set_grad_enabled(grad):
            y = fast(P.clone().requires_grad_(grad) * 1)
        assert module.last is not y and module.last.data_ptr() == y.data_ptr()
        assert y.requires_grad is grad and not module.last.requires_grad


def test_tensors_with_histories_swapped_without_grad() -> None:
    def function(x):
        y, z = x.clone(), x
        with torch.no_grad():
            if x.sum() > 0:
                y, z = z, y
        return z

    check(function, (P,), (N,), grad=True)


def test_a_branch_in_a_branch_leaves_the_argument_itself() -> None:
    def function(a, c):
        x = a.clone()
        if c[0] > 0:
            if c[1] > 0:
                if c[2] > 0:
                    return a
            else:
                return x
        return None

    check(function, *((P, torch.tensor(c)) for c in ([1.0, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0])))


def test_what_a_branch_may_have_chosen_is_written_afterwards() -> None:
    def branch(a):
        x = a * 2
        y = a
        if (y > 2).any():
            y = x
        x[0] += 1
        return y

    def loop(a):
        x = a * 2
        y = a
        n = 0
        while (y > 2).any():
            n += 1
            if n > 4:
                break
            y = x
        x[0] += 1
        return y

    for function in (branch, loop):
        assert torch.equal(*(run(P.clone().requires_grad_() * 1) for run in (
            function, monograph.compile(function, backend="reference"))))
        check(function, (P,), (N,))


class Keeps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.ones(3)

    def forward(self, k):
        if k > 0:
            return self.last
        return None


def test_a_tensor_that_only_a_result_names() -> None:
    module = Keeps()
    fast = monograph.compile(module, backend="reference")
    for k in (1, 0, 1):
        assert fast(torch.tensor(k)) is (module.last if k else None)


def test_a_generator_counts_to_a_traced_number() -> None:
    def function(x, k):
        def counting():
            for i in range(int(k) % 4):
                if x.sum() > 0:
                    yield x + i
        return list(counting())

    check(function, *((P, torch.tensor(k)) for k in (1, 3, 0)))


def test_a_result_that_may_be_one_of_many_tensors() -> None:
    def function(x):
        kept = [(torch.tensor(0.0), [])]
        for value in x:
            found = [(score + value * k, [*path, k]) for score, path in kept for k in (0, 1, 2)]
            kept = sorted(found, key=lambda entry: -float(entry[0]))[:2]
        return kept

    check(function, (torch.tensor([1.0, -2.0, 3.0]),), (torch.tensor([-1.0, 2.0, -0.5]),))


def test_a_size_computed_with_a_number_of_pythons() -> None:
    def function(x, k):
        try:
            return x[k % 2:], x[k + 1:], x[:k - 1], x[k * 2:]
        except (IndexError, TypeError):
            return None

    check(function, *((P, torch.tensor(k)) for k in (2, 4, 3)))


def test_what_torch_computes_sizes_with_is_not_the_programs() -> None:
    def function(x):
        for place in (x > 0).nonzero():
            x = x.clone()
            x[place[0]] = 1
        return x

    fast = monograph.compile(function, backend="reference")
    fast(N)
    entry, = monograph.api.dispatcher_of(fast).entries
    assert not [fact.label for fact in entry.guard.facts if "sympy" in fact.label]
    assert len(entry.guard.facts) < 300


def test_a_branch_in_a_branch_leaves_a_view_at_a_place_that_the_run_knows() -> None:
    def element(x, k, more):
        if more:        # noqa: SIM102
            if x.sum() > 0:
                return (x + 1)[k % 3]
        return x, {1: x}

    def part(x, k, more):
        if more:        # noqa: SIM102
            if x.sum() > 0:
                return (x + 1)[k % 3:]
        return x, {1: x}

    for function in (element, part):
        check(function, *((x, torch.tensor(k), [1]) for x in (P, N) for k in (0, 2)))


NOTES: list[str] = []


def test_what_python_itself_never_runs_leaves_nothing() -> None:
    def function(c):
        if (c > 1).any() and 0:
            NOTES.append("here")
            return c * [1, 2][int(c.sum() > 0)]
        return c + 1

    check(function, (P,), (N,))
    assert not NOTES


def test_a_branch_leaves_a_view_that_autograd_refuses() -> None:
    def function(x, c):
        for row in x:
            if row.sum() > 3:
                return c
            x.mul_(2)
        return x

    check(function, (torch.full((2, 3), 5.0), P), grad=True)
