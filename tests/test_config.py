"""Options and the environment."""

from pathlib import Path

import pytest
import torch

import monograph
from monograph import config
from monograph.config import Options
from monograph.errors import InputError


def test_defaults_and_torch_modes():
    options = Options.make()
    assert (options.mode, options.backend, options.fullgraph, options.weights) == ("default", "llvm", True, "watched")
    assert Options.make(mode="reduce-overhead").mode == "default"
    assert Options.make(mode="max-autotune-no-cudagraphs").mode == "max-autotune"


@pytest.mark.parametrize("value, expected", [
    ("", None), ("off", None), ("/some/where", Path("/some/where"))])
def test_cache_directory(monkeypatch, value, expected):
    monkeypatch.setenv("MONOGRAPH_CACHE_DIR", value)
    assert config.cache_directory() == expected


def test_cache_directory_defaults_to_the_users(monkeypatch):
    monkeypatch.delenv("MONOGRAPH_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert config.cache_directory() == Path("/caches/monograph")


def test_without_a_home_nothing_is_kept(monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    for name in ("MONOGRAPH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert config.cache_directory() is None


@pytest.mark.parametrize("variable", ["MONOGRAPH_CACHE_DIR", "MONOGRAPH_DEBUG"])
def test_the_home_of_no_user(monkeypatch, variable):
    monkeypatch.setenv(variable, "~no-such-user/monograph")
    with pytest.raises(InputError, match=f"{variable} is .*no user"):
        config.Options.make()


@pytest.mark.parametrize("value, disabled", [("", False), ("0", False), ("false", False), ("1", True), ("yes", True)])
def test_disable(monkeypatch, value, disabled):
    monkeypatch.setenv("MONOGRAPH_DISABLE", value)
    assert config.is_disabled() is disabled


def test_log_topics(monkeypatch):
    monkeypatch.setenv("MONOGRAPH_LOG", "recompiles, timing")
    assert Options.make().log == {"recompiles", "timing"}
    monkeypatch.setenv("MONOGRAPH_LOG", "all")
    assert Options.make().log == set(config.LOG_TOPICS)
    monkeypatch.setenv("MONOGRAPH_LOG", "everything")
    with pytest.raises(InputError, match="MONOGRAPH_LOG is 'everything'"):
        Options.make()


def test_unknown_option():
    with pytest.raises(InputError, match="no option 'speed'"):
        Options.make(speed="high")


def test_log_says_what_changed(monkeypatch, capsys):
    monkeypatch.setenv("MONOGRAPH_LOG", "recompiles,passes,timing")
    fast = monograph.compile(lambda x: x + 1, backend="reference")
    fast(torch.ones(2))
    fast(torch.ones(3))
    err = capsys.readouterr().err
    assert "recompiling test_log_says_what_changed.<locals>.<lambda>: args[0]: shape (2,) -> (3,)" in err
    assert "dce:" in err and "capture" in err
    monkeypatch.setenv("MONOGRAPH_LOG", "kernels")
    monograph.compile(lambda x: torch.linalg.inv(x + 1))(torch.eye(2))
    err = capsys.readouterr().err
    assert "native add" in err and "library linalg_inv" in err
