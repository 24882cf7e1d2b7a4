"""From a code object back to its piece of source.

The whole file is parsed, so line numbers are those of the file. A function is known by name and first line; several
of them (lambdas on one line) by where their instructions stand. What was found is compiled again as it is: its code
must be the one at hand, else the file changed. A code object may know more names than its source where something
rewrote it (assertions of a test runner).
"""

from __future__ import annotations

import ast
import linecache
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from monograph.capture.convert import scope, syntax
from monograph.capture.convert.syntax import Unconvertible

__all__ = ["Found", "find", "parsed"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
KEPT_FILES = 16
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass
class Found:
    """A function's own copy of its tree, and the innermost class around it (private names are mangled with it)."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    owner: str | None


@dataclass
class _File:
    lines: list[str]
    functions: dict[tuple[str, int], list[Found]]


_files: dict[str, _File] = {}


def parsed(filename: str) -> dict[tuple[str, int], list[Found]]:
    """The functions of a file by name and first line. Lines are linecache's, which knows doctests and notebooks too."""
    lines = linecache.getlines(filename)
    if not lines:
        raise Unconvertible(f"{filename} has no source")
    known = _files.get(filename)
    if known is not None and known.lines == lines:
        return known.functions
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("".join(lines), filename)
    except (SyntaxError, ValueError) as error:
        raise Unconvertible(f"{filename} does not parse: {error}") from error
    file = _File(list(lines), {})
    _index(tree, None, file.functions)
    while len(_files) >= KEPT_FILES:
        _files.pop(next(iter(_files)), None)
    _files[filename] = file
    return file.functions


def _index(node: ast.AST, owner: str | None, into: dict[tuple[str, int], list[Found]]) -> None:
    stack: list[tuple[ast.AST, str | None]] = [(node, owner)]
    while stack:
        current, owner = stack.pop()
        for child in ast.iter_child_nodes(current):
            if isinstance(child, scope.FUNCTIONS):
                name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
                into.setdefault((name, first_line(child)), []).append(Found(child, owner))
            stack.append((child, child.name if isinstance(child, ast.ClassDef) else owner))


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    """`co_firstlineno` of a function: its first decorator counts."""
    decorators = [] if isinstance(node, ast.Lambda) else [decorator.lineno for decorator in node.decorator_list]
    return min([*decorators, node.lineno])


def find(code: types.CodeType, again: Callable[[Found], types.CodeType]) -> Found:
    """The source of a code object. `again` compiles what was found, unconverted."""
    if code.co_name in COMPREHENSIONS or not code.co_flags & 0x2:       # CO_NEWLOCALS
        raise Unconvertible(f"{code.co_name} is no function")
    candidates = parsed(code.co_filename).get((code.co_name, code.co_firstlineno), [])
    if len(candidates) > 1:
        candidates = _by_position(code, candidates)
    matching = []
    for candidate in candidates:
        found = Found(syntax.copied(candidate.node), candidate.owner)
        fresh = again(found)
        if _same(fresh, code) or (len(candidates) == 1 and _within(fresh, code)):
            matching.append(candidate)
    if not matching:
        raise Unconvertible(f"the source of {code.co_name} at {code.co_filename}:{code.co_firstlineno} is not its own")
    return Found(syntax.copied(matching[0].node), matching[0].owner)


def _by_position(code: types.CodeType, candidates: list[Found]) -> list[Found]:
    """Those whose body spans just what the instructions do; Python before 3.11 does not say, and equal code must do."""
    if not hasattr(code, "co_positions"):
        return candidates
    spans = [(line, left, end, right) for line, end, left, right in code.co_positions()
             if line is not None and end is not None and left is not None and right is not None and right > left]
    if not spans:
        return candidates
    start, stop = min(span[:2] for span in spans), max(span[2:] for span in spans)

    def inside(found: Found) -> bool:
        body = found.node.body
        first, last = (body[0], body[-1]) if isinstance(body, list) else (body, body)
        return (first.lineno, first.col_offset) == start and (last.end_lineno, last.end_col_offset) == stop

    return [found for found in candidates if inside(found)] or candidates


def _same(fresh: types.CodeType, code: types.CodeType) -> bool:
    return (fresh.co_code == code.co_code and fresh.co_names == code.co_names and fresh.co_varnames == code.co_varnames
            and fresh.co_freevars == code.co_freevars and _plain(fresh) == _plain(code))


def _plain(code: types.CodeType) -> list[object]:
    return [(type(value), repr(value)) for value in code.co_consts if not isinstance(value, types.CodeType)]


def _within(fresh: types.CodeType, code: types.CodeType) -> bool:
    """Whether `code` may be `fresh` with something added."""
    arguments = fresh.co_argcount + fresh.co_kwonlyargcount
    return (set(fresh.co_names) <= set(code.co_names) and set(fresh.co_varnames) <= set(code.co_varnames)
            and fresh.co_varnames[:arguments] == code.co_varnames[:arguments]
            and fresh.co_argcount == code.co_argcount and fresh.co_freevars == code.co_freevars)
