"""What a capture costs beside its operations: garbage, and memory that is looked at."""

import gc

import pytest
import torch

import monograph
from monograph.capture import driver
from monograph.capture.collector import YOUNG, rarely_collecting
from monograph.capture.memory import Memory


def branches(x):
    if x.sum() > 0:
        x = x + 1
    return halved(x)


def halved(x):
    if x.mean() > 1:
        return x / 2
    return [x, x * 2][0]


def dressed(x):
    return {"a": (x + 1, [x * 2])}


@pytest.mark.parametrize("function", [branches, dressed])
def test_no_cycle_keeps_the_trace_alive(function, monkeypatch):
    """What outlives a trace is looked for among all objects of the process."""
    left = []
    monkeypatch.setattr(driver, "outlived", lambda storages: left.extend(s for s in storages if not s.expired()))
    monograph.capture(torch.relu, torch.ones(3))         # torch imports things in the first one
    left.clear()
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad():
            monograph.capture(function, torch.ones(3))
    finally:
        gc.enable()
    assert not left


def test_iterations_cost_the_same_however_many(monkeypatch):
    """A branch saves what it may change: not what earlier iterations have left behind."""
    sizes = []
    save = Memory.save
    monkeypatch.setattr(Memory, "save", lambda memory: (sizes.append(len(memory.by_id)), save(memory))[1])

    def steps(x, kept):
        for i in range(60):
            if x.sum() > i:
                x = x - 0.5
            else:
                x = x * 1.25
            if i == 3:
                kept.append(x[1:])
        kept[0].add_(1)
        return x, kept[0]

    compiled = monograph.compile(lambda x: steps(x, []), backend="reference")
    with torch.no_grad():
        for x in (torch.ones(4), torch.full((4,), 40.0)):
            torch.testing.assert_close(compiled(x), steps(x, []), rtol=0, atol=0)
    assert not compiled.recompiles and max(sizes) < 60


def test_the_collector_is_as_it_was():
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        with rarely_collecting():
            assert gc.get_threshold() == (YOUNG, 10, 10)
            with rarely_collecting():
                assert gc.get_threshold() == (YOUNG, 10, 10)
            assert gc.get_threshold() == (YOUNG, 10, 10)
        assert gc.get_threshold() == (700, 10, 10)
        with rarely_collecting():
            gc.set_threshold(500)                # by the program
        assert gc.get_threshold()[0] == 500
        gc.set_threshold(0)
        with rarely_collecting():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
