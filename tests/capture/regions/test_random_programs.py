"""Random small programs, compiled and eager (`benchmarks.fuzz` runs as many as wanted)."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
import torch

from tests.capture.regions.differ import compare
from tests.capture.regions.tensor_programs import write

COUNT = 300
CHUNK = 10          # programs of one test
REFUSED = 0.02
LONG = re.compile(r"( \* |range\()(5|6|30|12|25)0\b")      # a tenth of the rounds is left


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("start", range(0, COUNT, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_random_programs(start: int) -> None:
    refused = []
    for number in range(start, start + CHUNK):
        random = Random(number)
        grad, backend = number % 4 == 3, "llvm" if number % 20 == 0 else "reference"
        program = write(random, grad=grad, deepest=2)
        program.calls = program.calls[:2]
        program.source = LONG.sub(r"\1\2", program.source)      # long loops are for the script
        verdict = compare(program, number, grad=grad, backend=backend)
        assert verdict.kind != "different", f"{number} {backend}: {verdict.why}\n{program.source}"
        refused += [verdict.why] if verdict.kind == "refused" else []
    assert len(refused) <= max(1, REFUSED * CHUNK), refused


def test_every_construct_is_written() -> None:
    counts: Counter[str] = Counter()
    for number in range(1500):
        counts.update(set(write(Random(number)).constructs))
    for construct in ("if", "while", "for", "break", "continue", "return", "raise", "try", "finally", "with", "match",
                      "nested def", "nonlocal", "comprehension", "walrus", "ternary", "and or", "not", "chain",
                      "any all", "lambda", "yield", "augmented", "star", "del", "assert", "alias", "swap",
                      "in place", "object", "module", "late", "another kind"):
        assert counts[construct] >= 15, (construct, counts)
