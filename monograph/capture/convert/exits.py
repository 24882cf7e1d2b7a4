"""How statements may end: jumping out, never coming to their end, or with a jump that an exception can still undo."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from monograph.capture.convert import scope

__all__ = ["LOOPS", "TRIES", "WITHS", "always_jumps", "endless", "jump_kinds", "kinds_of", "undone"]

LOOPS = (ast.For, ast.While)
WITHS = (ast.With, ast.AsyncWith)
TRIES: tuple[type[ast.Try], ...] = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)  # type: ignore


def jump_kinds(node: ast.stmt | ast.ExceptHandler) -> frozenset[type]:
    """How a statement may jump out: of the function, of the innermost loop around it."""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
        return frozenset([type(node)])
    if isinstance(node, scope.SCOPES):
        return frozenset()
    if isinstance(node, (*LOOPS, ast.AsyncFor)):
        return (kinds_of(node.body) & {ast.Return}) | kinds_of(node.orelse)
    children = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler))]
    if isinstance(node, ast.Match):
        return kinds_of([statement for case in node.cases for statement in case.body])
    return kinds_of(children)


def kinds_of(nodes: Sequence[ast.stmt | ast.ExceptHandler]) -> frozenset[type]:
    return frozenset().union(*map(jump_kinds, nodes)) if nodes else frozenset()


def always_jumps(block: Sequence[ast.stmt]) -> bool:
    """Whether control never reaches the end of a block."""
    for statement in block:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(statement, ast.If) and always_jumps(statement.body) and always_jumps(statement.orelse):
            return True
        if isinstance(statement, TRIES) and _try_jumps(statement):
            return True
        if isinstance(statement, ast.While) and endless(statement):
            return True
        if isinstance(statement, LOOPS) and ast.Break not in kinds_of(statement.body) \
                and always_jumps(statement.orelse):
            return True
    return False


def _try_jumps(statement: ast.Try) -> bool:
    if always_jumps(statement.finalbody):
        return True
    return (always_jumps(statement.body) or always_jumps(statement.orelse)) and all(
        always_jumps(handler.body) for handler in statement.handlers)


def endless(statement: ast.While) -> bool:
    """`while True` that nothing breaks."""
    return (isinstance(statement.test, ast.Constant) and bool(statement.test.value)
            and ast.Break not in kinds_of(statement.body))


def undone(statement: ast.stmt) -> bool:
    """Whether a jump that this statement makes may still be undone by an exception that leaves it."""
    if isinstance(statement, scope.SCOPES):
        return False
    cleans_up = isinstance(statement, WITHS) or (isinstance(statement, TRIES) and bool(statement.finalbody))
    if cleans_up and jump_kinds(statement):
        return True
    return any(undone(child) for child in _blocks(statement))


def _blocks(statement: ast.stmt) -> list[ast.stmt]:
    children: list[ast.stmt] = []
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            children.append(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            children.extend(child.body)
    return children
