"""Which constructs of data-dependent control flow a program's source uses: `constructs(source) -> names`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

__all__ = ["TABLE", "constructs"]


def _node(*kinds: type) -> Callable[[str, list[ast.AST]], bool]:
    return lambda source, nodes: any(isinstance(node, kinds) for node in nodes)


def _text(pattern: str) -> Callable[[str, list[ast.AST]], bool]:
    return lambda source, nodes: re.search(pattern, source) is not None


def _elif(source: str, nodes: list[ast.AST]) -> bool:
    return any(isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
               for node in nodes)


TABLE: dict[str, Callable[[str, list[ast.AST]], bool]] = {
    "if": _node(ast.If), "elif": _elif, "while": _node(ast.While), "for over a range of a tensor": _text(
        r"range\((int\()?\(*[tkh]\b|range\(.*item\(\)"),
    "for over a tensor": _text(r"for [vws, ]+ in \(*[abcxyzvw]\b"), "for over nonzero": _text(r"in .*nonzero\(\)"),
    "and, or": _node(ast.BoolOp), "not": _node(ast.Not), "ternary": _node(ast.IfExp), "assert": _node(ast.Assert),
    "chained comparison": lambda source, nodes: any(
        isinstance(node, ast.Compare) and len(node.ops) > 1 for node in nodes),
    "comprehension": _node(ast.ListComp), "filter in a comprehension": lambda source, nodes: any(
        isinstance(node, ast.comprehension) and node.ifs for node in nodes),
    **{name: _text(rf"\b{name}\(") for name in ("min", "max", "sum", "any", "all", "sorted", "int", "bool", "len")},
    ".item()": _text(r"\.item\(\)"), ".tolist()": _text(r"\.tolist\(\)"), "in a tensor": _text(r" in [cv]\b"),
    "match": _node(ast.Match), "break": _node(ast.Break), "continue": _node(ast.Continue), "return": _text(
        r"\n {8,}return"),
    "try": _node(ast.Try), "with": _node(ast.With), "lambda": _node(ast.Lambda), "closure": _node(ast.Nonlocal),
    "generator": _node(ast.Yield), "method": _text(r"\bself\b"), "index by a tensor": _text(r"\[\(*[kt]\b.* % [23]\]"),
    "list building": _text(r"\.append\(|\.extend\(|\br \+= "), "in place": _text(r"\w_\("),
    "attribute written": _text(r"self\.\w+ \+?= "), "container changed": _text(r"\b[dr]\[.*\] = "),
    "view written": _text(r"\.(t\(\)|view\([^)]*\)(\[.*\])?)\.\w+_\("),
}


def constructs(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    return {name for name, found in TABLE.items() if found(source, nodes)}
