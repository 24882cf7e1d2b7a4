"""Whole modules converted, under their own examples and tests."""

import doctest
import gc
import importlib
import types
import unittest

import pytest

from monograph.capture.convert import compile as compiler
from monograph.capture.convert.swap import swapped


def functions(module):
    """The code objects of a module's live functions."""
    return list({id(found.__code__): found.__code__ for found in gc.get_objects()
                 if type(found) is types.FunctionType and found.__code__.co_filename == module.__file__}.values())


def pairs(module):
    return [(code, compiler.convert(code)) for code in functions(module) if compiler.converted_from(code) is None]


@pytest.mark.parametrize("name", ["difflib", "statistics", "heapq", "bisect", "fractions", "collections"])
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    with swapped(pairs(module)):
        for example in doctest.DocTestFinder().find(module):
            runner.run(example)
    assert runner.tries > 0 or name in ("bisect", "fractions")
    assert runner.failures == 0


@pytest.mark.parametrize(("name", "tests"), [
    ("textwrap", "test.test_textwrap"),
    ("json.decoder", "test.test_json.test_decode.TestPyDecode"),
    ("json.scanner", "test.test_json.test_scanstring.TestPyScanstring"),
    ("heapq", "test.test_heapq.TestHeapPython"),
    ("shlex", "test.test_shlex"),
    ("string", "test.test_string"),
    ("fnmatch", "test.test_fnmatch"),
])
def test_own_tests(name, tests):
    place = ".".join(part for part in tests.split(".") if part.islower())
    pytest.importorskip(place, reason="this Python comes without its tests")
    module = importlib.import_module(name)
    suite = unittest.defaultTestLoader.loadTestsFromName(tests)
    result = unittest.TestResult()
    with swapped(pairs(module)):
        suite.run(result)
    assert result.testsRun > 0
    assert not result.failures and not result.errors, (result.failures, result.errors)
