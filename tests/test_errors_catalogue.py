"""docs/errors.md: what it says fails fails with that very error, what it says works equals eager."""

import copy
import datetime
import inspect
import linecache
import math
import os
import random
import re
import uuid
from pathlib import Path

import pytest
import torch

import monograph

TEXT = (Path(__file__).parents[1] / "docs" / "errors.md").read_text()
FAILS, WORKS = r"```python\n# fails: (\w+): ([^\n]+)\n(.*?)```", r"```python\n# works\n(.*?)```"
BLOCKS = re.findall(rf"## ([^\n]+)\n\n{FAILS}\n\n{WORKS}", TEXT, re.DOTALL)
NAMES = [entry[0] for entry in BLOCKS]


def defined(text, tmp_path):
    """`f` and `given` of a block, from a file, so that errors can name its lines."""
    path = tmp_path / "block.py"
    path.write_text(text)
    names = {module.__name__: module for module in (torch, math, random, datetime, uuid, os)}
    names["__name__"] = "block"
    exec(compile(text, str(path), "exec"), names)
    return names["f"], names["given"]


def test_every_block_is_of_a_pair():
    assert len(BLOCKS) == TEXT.count("\n## ") and 2 * len(BLOCKS) == TEXT.count("```python") > 0


@pytest.mark.parametrize(("kind", "text", "block"), [entry[1:4] for entry in BLOCKS], ids=NAMES)
def test_fails(kind, text, block, tmp_path):
    function, given = defined(block, tmp_path)
    with pytest.raises(getattr(monograph, kind), match=re.escape(text)) as caught:
        monograph.compile(function)(*given)
    error = caught.value
    assert " or " in error.hint and (error.why or isinstance(error, monograph.DeviceError))
    if error.loc.file == __file__:           # what is wrong with an argument is wrong where the call is made
        assert linecache.getline(__file__, error.loc.line).strip() == "monograph.compile(function)(*given)"
    else:
        lines, first = inspect.getsourcelines(function)
        assert error.loc.file == function.__code__.co_filename and first <= error.loc.line < first + len(lines)


@pytest.mark.parametrize("block", [entry[4] for entry in BLOCKS], ids=NAMES)
def test_works(block, tmp_path):
    function, given = defined(block, tmp_path)
    want = function(*copy.deepcopy(given))
    torch.testing.assert_close(monograph.compile(function)(*given), want)
