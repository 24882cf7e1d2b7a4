"""Tensors around tensors as arguments and results: subclasses with `__torch_dispatch__` and `__tensor_flatten__`."""

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

import monograph


class Pair(torch.Tensor):
    """Two tensors that go the same way."""

    @staticmethod
    def __new__(cls, first, second, tag=None):
        return torch.Tensor._make_wrapper_subclass(cls, first.shape, strides=first.stride(), dtype=first.dtype,
                                                   requires_grad=first.requires_grad)

    def __init__(self, first, second, tag=None):
        self.first, self.second, self.tag = first, second, tag

    def __tensor_flatten__(self):
        return ["first", "second"], self.tag

    @staticmethod
    def __tensor_unflatten__(held, tag, sizes, strides):
        return Pair(held["first"], held["second"], tag)

    __repr__ = object.__repr__

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tag = next(x.tag for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Pair))

        def half(name):
            given = pytree.tree_map(lambda x: getattr(x, name) if isinstance(x, Pair) else x, (args, kwargs))
            return pytree.tree_flatten(func(*given[0], **given[1]))

        (firsts, spec), (seconds, _) = half("first"), half("second")
        made = [Pair(a, b, tag) if isinstance(a, torch.Tensor) else a for a, b in zip(firsts, seconds)]
        return return_and_correct_aliasing(func, args, kwargs, pytree.tree_unflatten(made, spec))


class Closed(torch.Tensor):
    """One that does not say how it is opened."""

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    def __init__(self, inside):
        self.inside = inside

    __repr__ = object.__repr__

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*pytree.tree_map(lambda x: x.inside if isinstance(x, Closed) else x, args), **(kwargs or {}))


def pair(start=0.0, tag="p"):
    return Pair(torch.arange(6.0).view(2, 3) + start, -torch.arange(6.0).view(2, 3), tag)


LINEAR = torch.nn.Linear(3, 3)
KEPT = Pair(torch.ones(3), torch.zeros(3), "kept")


def several(w, x):
    return {"made": (w * 2 + x).relu(), "given": w, "number": w.first.sum(), "text": w.tag}


def written(w):
    w.add_(1)
    return w.view(-1), w.sum(0)


def by_tag(w):
    return w + 1 if w.tag == "p" else w - 1


def decided(w):
    if w.first.sum() > 0:
        return w.second * 2
    return w.second - 1


def linear(w):
    return LINEAR(w)


def made(x):
    return [Pair(x, x * 2, "made"), x + 1]


def around_a_weight(x):
    return KEPT * x


def describe(value):
    if isinstance(value, Pair):
        return Pair, describe(value.first), describe(value.second), value.tag, value.shape, value.stride()
    return (value.tolist(), type(value)) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(("function", "calls"), [
    (several, [lambda: (pair(), torch.ones(2, 3)), lambda: (pair(-9, "q"), torch.zeros(2, 3)),
               lambda: (Pair(pair(1), pair(2), 3), torch.ones(2, 3))]),
    (written, [lambda: (pair(),), lambda: (pair(3),)]),
    (by_tag, [lambda: (pair(),), lambda: (pair(tag="q"),), lambda: (pair(),)]),
    (decided, [lambda: (pair(),), lambda: (pair(-9),)]),
    (made, [lambda: (torch.ones(3),), lambda: (torch.ones(5),), lambda: (torch.ones(7),)]),
    (around_a_weight, [lambda: (torch.ones(3),), lambda: (torch.arange(3.0),)]),
], ids=["several", "written", "by_tag", "decided", "made", "around_a_weight"])
@torch.no_grad()
def test_results_are_those_of_eager(function, calls):
    compiled = monograph.compile(function)
    for call in calls:
        mine, ours = call(), call()
        found, want = compiled(*mine), function(*ours)
        (leaves, spec), (wanted, eager) = pytree.tree_flatten((found, mine)), pytree.tree_flatten((want, ours))
        assert spec == eager and [*map(describe, leaves)] == [*map(describe, wanted)]
        assert [any(leaf is x for x in mine) for leaf in leaves] == [any(leaf is x for x in ours) for leaf in wanted]


@torch.no_grad()
def test_a_program_per_structure():
    compiled = monograph.compile(linear)
    for tag in ("p", "p", "q"):
        given = pair(tag=tag)
        found = compiled(given)
        torch.testing.assert_close(found.first, LINEAR(given.first))
        torch.testing.assert_close(found.second, LINEAR(given.second))
        assert found.tag == tag and not found.requires_grad


@torch.no_grad()
def test_what_runs_eagerly_gives_the_same():
    compiled = monograph.compile(lambda w: w * float(str(len(str(id(w)))) and 2), fullgraph=False)
    assert describe(compiled(pair())) == describe(pair() * 2)


@pytest.mark.parametrize(("function", "given", "text"), [
    (lambda w: w + 1, lambda: Closed(torch.ones(2)), "is a Closed, a tensor without data of its own"),
    (lambda w: w + 1, lambda: Pair(torch.ones(2, requires_grad=True), torch.ones(2)), "a Pair that requires grad"),
    (lambda w: w * LINEAR.bias, lambda: Pair(torch.ones(3), torch.ones(3)), "a result is a Pair that requires grad"),
    (lambda x: KEPT, lambda: torch.ones(2), "a result is a Pair with nothing in it that the call made"),
], ids=["closed", "argument with a history", "result with a history", "known before"])
def test_refused_by_name(function, given, text):
    with pytest.raises(monograph.UnsupportedError, match=text):
        monograph.compile(function)(given())
