"""A call that cannot be compiled and runs in Python finds iterators as they were, or is an error."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch

import monograph

GENERATOR = random.Random(0)


def numbers():
    yield from (3, 4, 5)


KINDS = {"generator": numbers, "list": lambda: iter([3, 4]), "zip": lambda: zip([3], strict=True),
         "count": itertools.count, "map": lambda: map(int, [3, 4])}


def asked(x, given):
    return x * torch.tensor(next(given))


def asked_on_a_path(x, given):
    if x.sum() > 0:
        x = x * torch.tensor(next(given))
    return x


def asked_in_a_dict(x, given):
    return x * torch.tensor(next(given["here"][0]))


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [asked, asked_on_a_path, asked_in_a_dict], ids=lambda function: function.__name__)
@pytest.mark.parametrize("kind", list(KINDS))
def test_an_argument(kind: str, function: Any, dynamic: bool | None) -> None:
    fast = monograph.compile(function, backend="reference", fullgraph=False, dynamic=dynamic)
    strict = monograph.compile(function, backend="reference", dynamic=dynamic)
    mine, theirs, kept = KINDS[kind](), KINDS[kind](), KINDS[kind]()

    def given(iterator: Any) -> Any:
        return {"here": [iterator]} if function is asked_in_a_dict else iterator

    x = torch.ones(3)
    assert torch.equal(fast(x, given(mine)), function(x, given(theirs)))
    assert list(itertools.islice(mine, 5)) == list(itertools.islice(theirs, 5))
    with pytest.raises(monograph.UnsupportedError, match=f"advances argument, a {type(kept).__name__}"):
        strict(x, given(kept))
    assert list(itertools.islice(kept, 5)) == list(itertools.islice(KINDS[kind](), 5))


@pytest.mark.parametrize("after", [1.0, "text"], ids=["returns", "raises"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_one_that_is_met_elsewhere_is_an_error(kind: str, after: Any) -> None:
    """Python would find it advanced."""
    iterator = KINDS[kind]()
    fast = monograph.compile(lambda x: x * torch.tensor(next(iterator)) * after, backend="reference", fullgraph=False)
    with pytest.raises(monograph.UnsupportedError, match="advances iterator"):
        fast(torch.ones(3))


def test_a_generator_of_numbers_after_another_attempt() -> None:
    def function(x):
        if x.sum() > 0:
            x = x + 1
        return x * GENERATOR.random()

    fast = monograph.compile(function, backend="reference")
    before = GENERATOR.getstate()
    found = [fast(torch.ones(3)) for _ in range(3)]
    after = GENERATOR.getstate()
    GENERATOR.setstate(before)
    for one in found:
        torch.testing.assert_close(one, function(torch.ones(3)))
    assert GENERATOR.getstate() == after
