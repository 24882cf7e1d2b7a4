"""Recompilations name the fact that changed and the user's line; many of them are told once."""

import argparse
import inspect
import types
import warnings

import pytest
import torch

import monograph

HERE = __file__.rsplit("/", 1)[-1]


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


class Config:
    def __init__(self, **values):
        vars(self).update(values)


class Net(torch.nn.Module):
    def __init__(self, kind=Config):
        super().__init__()
        self.config = kind(scale=2.0)

    def forward(self, x):
        y = x + 1
        return y * self.config.scale


def test_a_changed_attribute_is_named_with_its_line():
    net = Net()
    fast = monograph.compile(net, backend="reference")
    fast(torch.ones(1))
    net.config.scale = 5.0
    fast(torch.ones(1))
    assert str(fast.recompiles[0]) == f"config.scale: 2.0 -> 5.0 (read at {HERE}:{line_of(Net.forward, 'scale')})"


@pytest.mark.parametrize("kind", [types.SimpleNamespace, argparse.Namespace])
def test_namespaces_are_watched(kind):
    net = Net(kind)
    fast = monograph.compile(net, backend="reference")
    for scale in (2.0, 5.0, 2.0):
        net.config.scale = scale
        assert fast(torch.ones(1)).item() == 2 * scale
    assert [str(why) for why in fast.recompiles] == ["config.scale: 2.0 -> 5.0"]


def masked(x):
    y = x * 2
    return y[y > 1].sum() + len(y[y < 0])


def test_a_value_read_is_named_with_its_line(monkeypatch, capsys):
    monkeypatch.setenv("MONOGRAPH_LOG", "recompiles")
    fast = monograph.compile(masked, backend="reference")
    with torch.no_grad():
        for x in (torch.tensor([1.0, 2.0, -1.0]), torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, -1.0, -1.0])):
            torch.testing.assert_close(fast(x), masked(x))
    line = line_of(masked, "return")
    first, second = map(str, fast.recompiles)
    assert first == f"`return y[y > 1].sum() + len(y[y < 0])` at {HERE}:{line}: 1 -> 0"
    assert "; or " in second and f"{HERE}:{line}" in second
    assert f"recompiling masked: {first}" in capsys.readouterr().err


@pytest.mark.parametrize("count", [8, 12])
def test_a_storm_is_told_once(count):
    fast = monograph.compile(lambda x, n: x * n, backend="reference")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(count):
            fast(torch.ones(1), n + 0.5)        # integers would become symbols
    told = [w for w in caught if "was compiled" in str(w.message)]
    assert len(told) == (count > 8)
    if told:
        assert told[0].filename == __file__ and "recompiles" in str(told[0].message)
