"""Programs with control flow leave native code for nothing but what acts on the world."""

import pytest

from benchmarks.python_steps import CASES, name_of, steps

WRITES = ["insertion_sort", "write_rows_in_loop", "Greedy"]


@pytest.mark.parametrize("name", WRITES)
def test_writes_at_places_that_only_the_run_knows(name):
    function, inputs = next(case for case in CASES if name_of(case[0]) == name)
    assert [counted.total() for counted in steps(function, inputs)] == [0]
