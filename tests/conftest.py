"""What every test leaves as it found it: the process-wide modes of torch and the number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# The same examples in every run: a run that fails can be repeated. Scripts of `benchmarks` look at new ones.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def _modes() -> dict[str, object]:
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "default dtype": torch.get_default_dtype(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


@pytest.fixture(autouse=True)
def leaves_torch_as_found() -> Iterator[None]:
    """A test that changes a mode and does not put it back fails itself, not the next one."""
    before, threads = _modes(), torch.get_num_threads()
    yield
    after = _modes()
    torch.set_grad_enabled(bool(before["grad mode"]))
    torch.set_num_threads(threads)
    assert after == before
