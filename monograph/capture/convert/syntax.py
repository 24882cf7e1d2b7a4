"""Syntax trees of converted code: how its pieces are built.

A hidden name starts with `$`, which no source can spell. `OPERATORS` and `SUPPORT` stand in the tree as two string
constants, which `compile` replaces by the objects. A thunk is a lambda with the hidden vararg `$`, by which its
code object is told from the user's lambdas. Nodes without a location inherit that of the node they stand in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = [
    "HIDDEN", "OPERATORS_MARK", "SUPPORT_MARK", "Unconvertible", "assign", "call", "constant", "copied", "declare",
    "define", "false", "has_docstring", "load", "operator", "returned", "store", "support", "thunk", "true",
]

HIDDEN = "$"
OPERATORS_MARK = "\0monograph.operators"
SUPPORT_MARK = "\0monograph.support"

Node = TypeVar("Node", bound=ast.AST)


class Unconvertible(Exception):
    """`reason`: why a function stays as it is."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def at(node: Node, place: ast.AST) -> Node:
    """`node` with the location of `place`."""
    return ast.copy_location(node, place)


def copied(node: Node) -> Node:
    """A tree that shares nothing with `node` but contexts, which nobody changes."""
    new = type(node)()
    for name, value in node.__dict__.items():
        if type(value) is list:
            value = [copied(item) if isinstance(item, ast.AST) else item for item in value]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            value = copied(value)
        new.__dict__[name] = value
    return new


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def constant(value: object) -> ast.Constant:
    return ast.Constant(value, kind=None)  # type: ignore[arg-type]


def true() -> ast.expr:
    return constant(True)


def false() -> ast.expr:
    return constant(False)


def assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return at(ast.Assign([store(name)], value, type_comment=None), place)


def returned(value: ast.expr | None, place: ast.AST) -> ast.stmt:
    return at(ast.Return(value), place)


def call(function: ast.expr, arguments: Sequence[ast.expr], place: ast.AST) -> ast.expr:
    return at(ast.Call(function, list(arguments), []), place)


def operator(name: str, arguments: Sequence[ast.expr], place: ast.AST) -> ast.expr:
    """`OPERATORS.name(arguments)`."""
    return call(ast.Attribute(constant(OPERATORS_MARK), name, ast.Load()), arguments, place)


def support(name: str, arguments: Sequence[ast.expr], place: ast.AST) -> ast.expr:
    """`SUPPORT.name(arguments)`."""
    return call(ast.Attribute(constant(SUPPORT_MARK), name, ast.Load()), arguments, place)


def parameters(names: Iterable[str] = (), vararg: str | None = None) -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[ast.arg(name, None, None) for name in names],
                         vararg=ast.arg(vararg, None, None) if vararg else None, kwonlyargs=[], kw_defaults=[],
                         kwarg=None, defaults=[])


def thunk(body: ast.expr, names: Iterable[str] = ()) -> ast.expr:
    """A generated lambda, located where its body is."""
    return at(ast.Lambda(parameters(names, HIDDEN), body), body)


def define(name: str, names: Iterable[str], body: list[ast.stmt], place: ast.AST) -> ast.stmt:
    """`def name(names): body`."""
    function = ast.FunctionDef(name, parameters(names), body or [at(ast.Pass(), place)], [], None, None)
    if "type_params" in ast.FunctionDef._fields:
        function.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return at(function, place)


def declare(names: Iterable[str], place: ast.AST) -> list[ast.stmt]:
    """Makes names local to a function without running anything."""
    ordered = sorted(names)
    if not ordered:
        return []
    body: list[ast.stmt] = [ast.Assign([store(name) for name in ordered], constant(None), type_comment=None)]
    return [at(ast.If(constant(0), body, []), place)]


def has_docstring(body: list[ast.stmt]) -> bool:
    first = body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
