"""What user code logs and writes happens at every call, in order, as in eager."""

import functools
import io
import logging
import sys

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import UnsupportedError

LOGGER = logging.getLogger("tests.messages")


class Kept(logging.Handler):
    """Records as a handler sees them."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append((record.name, record.levelname, record.getMessage(), record.funcName, record.lineno,
                             record.pathname, getattr(record, "step", None), record.exc_info is not None))


@pytest.fixture
def kept():
    handler, before = Kept(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    yield handler
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(before)


def both(kept, function, *calls):
    """The records of several calls, eager and compiled."""
    found = []
    for run in (function, monograph.compile(function, backend="reference")):
        kept.records.clear()
        for call in calls:
            call(run)
        found.append(list(kept.records))
    return found


def inner(x):
    LOGGER.warning("deeper", stacklevel=2)
    return x + 1


def talks(x):
    LOGGER.info("sum %s of %d", x.sum(), len(x), extra={"step": 7})
    LOGGER.debug("not wanted: %s", x)
    logging.LoggerAdapter(LOGGER, {}).error("adapted %(k)s", {"k": 3})
    LOGGER.log(logging.CRITICAL, "logged")
    try:
        raise ValueError("caught")
    except ValueError:
        LOGGER.exception("failed")
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("asked first")
    y = inner(x) * 2
    LOGGER.info(y[0])
    return y


def test_records_at_every_call_with_its_values(kept):
    eager, ours = both(kept, talks, lambda f: f(torch.ones(2)), lambda f: f(torch.ones(2) * 3),
                       lambda f: f(torch.ones(3)))
    assert ours == eager and len(eager) == 18


def test_a_level_that_changes_is_seen(kept):
    def louder(f):
        LOGGER.setLevel(logging.DEBUG)
        f(torch.ones(2))
        LOGGER.setLevel(logging.INFO)

    quiet = lambda f: f(torch.ones(2))      # noqa: E731
    eager, ours = both(kept, talks, quiet, louder, quiet, louder)
    assert ours == eager


@functools.lru_cache(None)
def say_once(text):
    LOGGER.warning(text)


class Careful(nn.Module):
    @functools.lru_cache(None)  # noqa: B019
    def warn(self):
        LOGGER.warning("of a method")

    def forward(self, x):
        say_once("of a function")
        self.warn()
        LOGGER.info("always")
        return x * 2


def test_what_is_said_once_is_said_once(kept):
    found = []
    for wrap in (lambda m: m, lambda m: monograph.compile(m, backend="reference")):
        say_once.cache_clear()
        kept.records.clear()
        run = wrap(Careful())
        for size in (2, 2, 3, 3):
            run(torch.ones(size))
        found.append([record[2] for record in kept.records])
    assert found[0] == found[1] == ["of a function", "of a method", "always", "always", "always", "always"]


def test_a_tensor_that_requires_grad_is_refused_where_it_would_be_shown(kept):
    def shows(x, level):
        LOGGER.log(level, "%s", x)
        return x * 2

    run, x = monograph.compile(shows, backend="reference"), torch.ones(2, requires_grad=True)
    assert run(x, logging.DEBUG).requires_grad and not kept.records
    with pytest.raises(UnsupportedError, match="logged"):
        run(x, logging.INFO)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_streams_and_prints_in_order(name, monkeypatch):
    def writes(x):
        stream = getattr(sys, name)
        stream.write("one ")
        print("two", x.sum(), file=stream)
        stream.write("three\n")
        stream.flush()
        return x * 2

    found = []
    for run in (writes, monograph.compile(writes, backend="reference")):
        text = io.StringIO()
        monkeypatch.setattr(sys, name, text)
        for value in (1.0, 2.0):
            run(torch.full((2,), value))
        assert getattr(sys, name) is text
        found.append(text.getvalue())
    assert found[0] == found[1]


def test_logging_is_left_as_it_was():
    before = logging.Logger._log, logging.Logger.isEnabledFor, sys.stdout, sys.stderr
    monograph.compile(talks, backend="reference")(torch.ones(2))
    assert before == (logging.Logger._log, logging.Logger.isEnabledFor, sys.stdout, sys.stderr)
