"""Tracebacks and stack levels of converted code."""

import traceback
import warnings

import pytest

from monograph import tracebacks
from tests.capture.convert.harness import converted


def fails(x):
    for i in range(2):
        if x and i:
            try:
                return [v / 0 for v in (1,) if v]
            finally:
                x = 0
    return [(lambda y: y or [][y])(v) for v in (0,)]


def calls(x):
    while True:
        if x < 5:
            return fails(x)


def warns(x):
    if x:
        for _ in range(1):
            x and warnings.warn("two", stacklevel=2)
            warnings.warn("one", stacklevel=1)
            warnings.warn("three", UserWarning, stacklevel=3)
    else:
        warnings.warn("default")  # noqa: B028


def warner(f, x):
    f(x)


def summary(function, x):
    with pytest.raises(Exception) as caught:
        function(x)
    tracebacks.leave(caught.value, of_program=True)
    return [(entry.filename, entry.lineno, entry.name, entry.line)
            for entry in traceback.extract_tb(caught.value.__traceback__)
            if entry.filename == __file__]


@pytest.mark.parametrize("x", [1, 0])
def test_traceback_is_that_of_the_source(x):
    expected = summary(fails, x)
    assert summary(converted(fails), x) == expected
    assert summary(calls, x) == summary(converted(calls), x)


def test_other_tracebacks_are_left_alone():
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    trace = caught.value.__traceback__
    tracebacks.leave(caught.value)
    assert caught.value.__traceback__ is trace


@pytest.mark.parametrize("x", [1, 0])
def test_warnings_name_the_line_that_the_source_means(x):
    seen = []
    for function in (warns, converted(warns)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warner(function, x)
        seen.append([(str(one.message), one.filename, one.lineno) for one in caught])
    lines = [[line for _, _, line in one] for one in seen]
    assert [one[:2] for one in seen[0]] == [one[:2] for one in seen[1]]
    assert lines[0][:2] == lines[1][:2]
    if x:       # the caller's caller is this test, two lines of which call `warner`
        assert abs(lines[0][2] - lines[1][2]) <= 1
