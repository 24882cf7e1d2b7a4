"""The command line on a small model."""

import subprocess
import sys
from pathlib import Path

import pytest

from monograph.tools.cli import main

ROOT = Path(__file__).parents[2]
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

def missing():
    raise ValueError("no weights here")

def asks(x):
    return x

def wrong_rank():
    return nn.Linear(4, 8), torch.ones(2, 3)

def own():
    def model(x):
        raise KeyError("not today")
    return model, torch.ones(2)

def generator():
    return (lambda x: sum(x)), ((i for i in range(3)),)

def closed():
    file = open(__file__)
    file.close()
    return (lambda x, file: x + len(file.read())), (torch.ones(2), file)

def itself():
    held = [torch.ones(2)]
    held.append(held)
    return (lambda held: held[0] + 1), (held,)

def meta():
    return nn.Linear(4, 8, device="meta"), torch.ones(2, 4)

def freed():
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    return (lambda x: x + 1), x

def interrupted():
    raise KeyboardInterrupt
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


def at(text, name):
    """The line of MODEL that has `text`, as messages name it."""
    return f"small_model.py:{MODEL[:MODEL.index(text)].count(chr(10)) + 1} in {name}"


@pytest.mark.parametrize("target, status, message", [
    ("{}:absent", 2, "no function 'absent'"),
    ("{}:nothing", 2, "must return"),
    ("{}", 2, "names no factory"),
    ("{}:", 2, "names no factory"),
    (":factory", 2, "names no factory"),
    ("missing.py:factory", 2, "no file"),
    ("no_such_package:factory", 2, "no_such_package cannot be imported: ModuleNotFoundError"),
    (".x:factory", 2, "cannot be imported"),
    ("{}:missing", 2, "missing() failed: ValueError: no weights here\n  at "),
    ("{}:missing", 2, at("raise ValueError", "missing")),
    ("{}:asks", 2, "asks() failed: TypeError"),
    ("{}:nothing", 2, at("def nothing", "nothing")),
    ("{}:wrong_rank", 1, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x8)"),
    ("{}:own", 1, "KeyError: 'not today'\n  at "),
    ("{}:own", 1, at("raise KeyError", "own.<locals>.model")),
    ("{}:generator", 1, "UnsupportedError: the program advances argument, a generator"),
    ("{}:closed", 2, "argument args[1] is a TextIOWrapper and cannot be copied"),
    ("{}:itself", 2, "an argument is a list that holds itself"),
    ("{}:meta", 2, "parameter weight is on device meta"),
    ("{}:freed", 2, "argument args[0] has elements beyond its memory"),
    ("{}:interrupted", 130, "interrupted"),
    ("{}:sparse", 1, "UnsupportedError"),
])
def test_mistakes_are_told_in_a_line(model, capsys, target, status, message):
    assert main(["check", target.format(model)]) == status
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize("source, message", [
    (b"import torch\ndef factory(:\n", "broken.py:2"),
    (b"import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
    (b"x = 1\nx / 0\n", "broken.py:2 in <module>"),
    (b"\xff\xfe", "SyntaxError"),
])
def test_files_that_cannot_be_imported(tmp_path, capsys, source, message):
    (tmp_path / "broken.py").write_bytes(source)
    for command in ("check", "explain"):
        assert main([command, f"{tmp_path}/broken.py:factory"]) == 2
        err = capsys.readouterr().err
        assert message in err and "broken.py cannot be imported" in err and "Traceback" not in err


def test_what_the_model_raises_explained(model, capsys):
    assert main(["explain", f"{model}:own"]) == 1
    assert at("raise KeyError", "own.<locals>.model") in capsys.readouterr().err


def test_a_traceback_on_demand(model):
    with pytest.raises(KeyError, match="not today"):
        main(["check", f"{model}:own", "--traceback"])


def test_the_debug_directory_is_for_the_command_line_too(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MONOGRAPH_DEBUG", str(tmp_path / "dump"))
    assert main(["explain", f"{model}:factory"]) == 0
    assert list((tmp_path / "dump").rglob("kernels.ll"))
    monkeypatch.setenv("MONOGRAPH_DEBUG", model + "/below")
    assert main(["explain", f"{model}:factory"]) == 2
    assert "MONOGRAPH_DEBUG: cannot write to" in capsys.readouterr().err


def test_a_reader_that_goes_away(model):
    command = [sys.executable, "-m", "monograph", "explain", f"{model}:factory", "--backend", "reference"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait() == 0
