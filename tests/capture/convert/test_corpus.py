"""Every construct on plain values: converted code does what the source says."""

import pytest

from tests.capture.convert import corpus_expressions, corpus_functions, corpus_jumps, corpus_match  # noqa: F401
from tests.capture.convert.harness import CASES, same


@pytest.mark.parametrize(("function", "arguments"), CASES,
                         ids=[f"{function.__name__}-{number}" for number, (function, _) in enumerate(CASES)])
def test_equal_to_source(function, arguments):
    same(function, arguments)


def test_corpus_is_large():
    assert len({function for function, _ in CASES}) >= 120
