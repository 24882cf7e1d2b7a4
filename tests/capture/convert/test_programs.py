"""Random programs, original and converted."""

import itertools
import linecache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monograph.capture.convert import compile as compiler
from tests.capture.convert.harness import converted, outcome, say
from tests.capture.programs import Plain, write

numbers = itertools.count()


class Quiet:
    """Swallows ValueError, says so."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        say("in")

    def __exit__(self, kind, error, trace):
        say(("out", kind))
        return kind is not None and issubclass(kind, ValueError)


class Loud(Quiet):
    """Its exit raises for one value."""

    def __exit__(self, kind, error, trace):
        say(("loud", kind))
        if self.value == 2:
            raise ValueError("loud")


def check(program):
    filename = f"<program {next(numbers)}>"
    linecache.cache[filename] = (len(program.source), None, program.source.splitlines(True), filename)
    try:
        function = program.load({"say": said, "Quiet": Quiet, "Loud": Loud}, filename)
        other = converted(function)
        for arguments in program.calls:
            expected, got = outcome(function, arguments, filename), outcome(other, arguments, filename)
            assert got == expected, f"\n{program.source}\n{compiler.text(function.__code__)}\n{arguments}\n" \
                                    f"{expected}\n{got}"
    finally:
        del linecache.cache[filename]


def said(value):
    return say(value)


@pytest.mark.parametrize("generator", [False, True], ids=["function", "generator"])
@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed, generator):
    random = Random(seed)
    for _ in range(5):
        check(write(random, Plain(), generator=generator))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans())
def test_programs_that_shrink(random, generator):
    check(write(random, Plain(), generator=generator))


def test_every_construct_is_written():
    random = Random(0)
    counts = sum((write(random, Plain(), generator=bool(number % 2)).constructs for number in range(300)),
                 start=write(random, Plain()).constructs)
    for construct in ("if", "while", "for", "break", "continue", "return", "raise", "try", "finally", "with", "match",
                      "nested def", "comprehension", "walrus", "ternary", "and or", "not", "chain", "any all", "lambda",
                      "yield", "augmented", "star", "del", "assert"):
        assert counts[construct] >= 20, (construct, counts)
