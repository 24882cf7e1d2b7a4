"""The command line on a small model."""

import pytest

from monograph.tools.cli import main

MODEL = """
import torch
from torch import nn

def factory():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU()), (torch.randn(3, 4),)

def by_name():
    return nn.Linear(4, 8), {"input": torch.ones(2, 4)}

def sparse():
    return (lambda x: x.to_sparse()), torch.ones(2)

def nothing():
    return 3
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small_model.py"
    path.write_text(MODEL)
    return str(path)


def test_check(model, capsys):
    assert main(["check", f"{model}:factory", "--backend", "reference"]) == 0
    assert "1 calls equal to eager" in capsys.readouterr().out


def test_check_with_gradients_and_keywords(model):
    assert main(["check", f"{model}:by_name", "--grad", "--runs", "1", "--backend", "reference"]) == 0


def test_explain(model, capsys):
    assert main(["explain", f"{model}:factory"]) == 0
    out = capsys.readouterr().out
    assert "aten.gelu" in out and "fusion rate" in out and "library calls: none" in out


@pytest.mark.parametrize("target, status, message", [
    ("{}:absent", 2, "no function 'absent'"),
    ("{}:nothing", 2, "must return"),
    ("{}", 2, "names no factory"),
    ("missing.py:factory", 2, "no file"),
    ("no_such_package:factory", 2, "no module"),
    ("{}:sparse", 1, "UnsupportedError"),
])
def test_mistakes_are_told_in_a_line(model, capsys, target, status, message):
    assert main(["check", target.format(model)]) == status
    assert message in capsys.readouterr().err
