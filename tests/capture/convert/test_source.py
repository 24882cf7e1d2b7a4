"""Finding the source of a code object."""

import ast
import linecache
import types

import pytest

from monograph.capture.convert import compile as compiler
from monograph.capture.convert import source
from monograph.capture.convert.syntax import Unconvertible


def found(code):
    node = source.find(code, lambda candidate: compiler._compile(
        source.Found(compiler._bare(candidate.node), candidate.owner), code)).node
    return ast.unparse(node)


def defined(text, filename, name="f", register=True):
    namespace = {}
    if register:
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def run(function, *arguments):
    return types.FunctionType(compiler.convert(function.__code__), function.__globals__, "", function.__defaults__,
                              function.__closure__)(*arguments)


# Several lambdas on one line, one inside another, in parentheses, over lines.
# ruff: noqa: E731
ONE, OTHER = (lambda x: x and 1), (lambda x: x and 2)
SAME = [lambda x: x and 3, lambda x: x and 3]
INSIDE = (lambda x: (lambda y: (x or y)))
LONG = (lambda x:
        x and
        "long")


def test_lambdas_on_one_line():
    assert found(ONE.__code__) == "lambda x: x and 1"
    assert found(OTHER.__code__) == "lambda x: x and 2"
    assert [run(function, 1) for function in (ONE, OTHER, *SAME, LONG)] == [1, 2, 3, 3, "long"]
    assert found(INSIDE(0).__code__) == "lambda y: x or y"
    assert found(INSIDE.__code__) == "lambda x: lambda y: x or y"
    assert run(INSIDE(0), 5) == 5


def first():
    def same(x): return 1 if x else 0
    return same


def second():
    def same(x): return 2 if x else 0
    return same


def test_same_name_elsewhere():
    assert run(first(), 1) == 1 and run(second(), 1) == 2


def test_same_name_twice_in_one_function():
    def outer(x):
        if x:
            def same(y): return "first" if y else None
        else:
            def same(y): return "second" if y else None
        return same
    assert run(outer(1), 1) == "first" and run(outer(0), 1) == "second"


def test_source_that_linecache_knows():
    function = defined("def f(x):\n    if x: return 'registered'\n", "<registered 1>")
    assert run(function, 1) == "registered"


def test_equal_code_of_two_files_keeps_its_file():
    text = "def f(x):\n    if x: return 'registered'\n"
    for name in ("<registered 2>", "<registered 3>"):
        assert compiler.convert(defined(text, name).__code__).co_filename == name


def test_no_source():
    function = defined("def f(x):\n    if x: return 1\n", "<nowhere>", register=False)
    with pytest.raises(Unconvertible, match="no source"):
        compiler.convert(function.__code__)


def test_source_that_changed():
    function = defined("def f(x):\n    if x: return 1\n", "<changed>")
    text = "def f(x):\n    if x: return g(2)\n"
    linecache.cache["<changed>"] = (len(text), None, text.splitlines(True), "<changed>")
    with pytest.raises(Unconvertible, match="not its own"):
        compiler.convert(function.__code__)


def test_source_that_moved():
    function = defined("def f(x):\n    if x: return 1\n", "<moved>")
    text = "\n\ndef f(x):\n    if x: return 1\n"
    linecache.cache["<moved>"] = (len(text), None, text.splitlines(True), "<moved>")
    with pytest.raises(Unconvertible):
        compiler.convert(function.__code__)


def test_source_that_does_not_parse():
    function = defined("def f(x):\n    if x: return 1\n", "<broken>")
    linecache.cache["<broken>"] = (3, None, ["def f(x):\n", "    if x return 1\n"], "<broken>")
    with pytest.raises(Unconvertible, match="does not parse"):
        compiler.convert(function.__code__)


def test_doctest_source(tmp_path):
    import doctest  # noqa: PLC0415
    name = "source_example.txt"
    (tmp_path / name).write_text(
        ">>> def f(x):\n...     if x: return 'doctest'\n>>> convert(f.__code__).co_firstlineno\n1\n")
    results = doctest.testfile(str(tmp_path / name), module_relative=False, globs={"convert": compiler.convert})
    assert (results.attempted, results.failed) == (2, 0)


def test_module_and_class_code_is_no_function():
    for code in (compile("1", "<none>", "exec"), compile("[x for x in y]", "<none>", "eval")):
        with pytest.raises(Unconvertible, match="no function"):
            compiler.convert(code)


def test_conversion_is_remembered_and_not_repeated():
    new = compiler.convert(ONE.__code__)
    assert compiler.convert(ONE.__code__) is new
    assert compiler.converted_from(new) is ONE.__code__
    with pytest.raises(Unconvertible, match="converted already"):
        compiler.convert(new)


def test_future_imports_hold():
    text = ("from __future__ import annotations\ndef f(x):\n"
            "    def g(y: missing) -> missing: return y or x\n    return g\n")
    made = run(defined(text, "<future>"), 1)
    assert made.__annotations__ == {"y": "missing", "return": "missing"} and made(0) == 1


def test_function_whose_assertions_the_test_runner_rewrote():
    def f(x):
        assert x, "message"
        return "yes" if x > 1 else "no"
    assert run(f, 2) == "yes" and run(f, 1) == "no"
    with pytest.raises(AssertionError, match="^message$"):
        run(f, 0)


def test_looks_like_the_original():
    def f(a, b=1, /, c=2, *rest, d, e=5, **more):
        """Its docstring."""
        if a:
            return lambda: (a, b, c, rest, d, e, more)
    code, new = f.__code__, compiler.convert(f.__code__)
    for name in ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount", "co_posonlyargcount",
                 "co_kwonlyargcount", "co_freevars"):
        assert getattr(new, name) == getattr(code, name), name
    arguments = code.co_argcount + code.co_kwonlyargcount + 2
    assert new.co_varnames[:arguments] == code.co_varnames[:arguments]
    assert new.co_consts[0] == "Its docstring." and new.co_flags & 0xFF == code.co_flags & 0xFF
