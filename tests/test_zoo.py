"""A few families of `benchmarks.zoo` that use control flow, sizes or state in different ways."""

from __future__ import annotations

import pytest

from benchmarks.zoo.check import check

# What makes each of them hard for a capture.
FAMILIES = {
    "t5": "caches of two kinds",
    "mamba": "a recurrent state in the cache",
    "mixtral": "routing",
    "gemma2": "two kinds of layers and masks",
    "deepseek_v32": "an index that picks keys",
    "xlnet": "memories, and masks made from lengths",
    "internvl": "placeholders counted in a message",
    "modernvbert": "patches numbered by masks",
    "fnet": "complex numbers",
    "nystromformer": "an inverse by iteration",
    "granitemoe": "tokens sorted by expert",
    "decision_transformer": "three inputs interleaved",
}


@pytest.mark.parametrize("name", FAMILIES)
def test_one_graph_equal_to_eager(name: str):
    outcome = check(name)
    assert outcome.status == "equal", outcome
    assert outcome.graphs == 1          # the second call runs the first one's
