"""Which variables may still be read after an `if` or a loop, and which an iteration may read before it assigns them.

    node.live       after the statement
    node.entering   of a loop: at the start of an iteration

Backward over a body whose jumps are flags already (`jumps`). What nested functions read is always live, and all that
`locals()` shows; so is, in a `try`, a `with` or a loop that stays Python's, whatever it reads anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from monograph.capture.convert import scope

__all__ = ["held", "mark"]

Names = frozenset[str]
NOTHING: Names = frozenset()


def mark(body: Sequence[ast.stmt], always: Iterable[str]) -> None:
    """Sets `live` and `entering`. `always`: names that others see too, globals and variables of outer functions."""
    inner = _inner(body)
    floor = frozenset(always) | scope.loaded(inner) | {
        node.target.id for function in inner for node in ast.walk(function)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    if any(map(scope.looks_at_frame, scope.own_nodes(body))):
        floor |= scope.assigned(body)
    _Backward(floor).block(body, floor)


def held(body: Sequence[ast.stmt]) -> Names:
    """What nested functions and comprehensions read."""
    return frozenset(scope.loaded(_inner(body)))


def _inner(body: Sequence[ast.stmt]) -> list[ast.AST]:
    return [node for statement in body for node in ast.walk(statement)
            if isinstance(node, (*scope.SCOPES, *scope.COMPREHENSIONS))]


class _Backward:
    def __init__(self, floor: Names) -> None:
        self.floor = floor
        self.out = NOTHING          # where a `return` goes: what is live after the branch or iteration it stands in

    def block(self, statements: Sequence[ast.stmt], live: Names) -> Names:
        """What is live before some statements, given what is after them."""
        for statement in reversed(statements):
            live = self.statement(statement, live)
        return live

    def statement(self, node: ast.stmt, live: Names) -> Names:
        if isinstance(node, ast.If):
            node.live = live  # type: ignore[attr-defined,union-attr,unused-ignore]
            out = self.out if getattr(node, "kept", False) else live
            return frozenset(scope.loaded([node.test])) | self.region(node.body, live, out) | \
                self.region(node.orelse, live, out)
        if isinstance(node, (ast.While, ast.For)) and not getattr(node, "kept", False):
            return self.loop(node, live)
        if isinstance(node, (ast.Return, ast.Raise)):
            return self.floor | self.out | frozenset(scope.loaded([node]))
        if isinstance(node, ast.Assign):
            stored = NOTHING.union(*map(_names_stored, node.targets))
            return (live - stored) | self.floor | scope.loaded([node])
        blocks = [block for _, block in ast.iter_fields(node) if _is_block(block)]
        if blocks or getattr(node, "handlers", None) or getattr(node, "cases", None):
            return self.opaque(node, live)
        return live | scope.loaded([node]) | _touched(node)

    def region(self, statements: Sequence[ast.stmt], live: Names, out: Names) -> Names:
        before, self.out = self.out, out
        live = self.block(statements, live)
        self.out = before
        return live

    def loop(self, node: ast.While | ast.For, live: Names) -> Names:
        node.live = live  # type: ignore[attr-defined,union-attr,unused-ignore]
        test = scope.loaded([node.test]) if isinstance(node, ast.While) else NOTHING
        targets = _names_stored(node.target) if isinstance(node, ast.For) else NOTHING
        stops = frozenset(getattr(node, "stop", ()) or ())
        after = live | (self.block(node.orelse, live) if node.orelse else NOTHING) | stops
        entering = after | test
        while True:
            node.entering = entering  # type: ignore[attr-defined,union-attr,unused-ignore]
            grown = entering | ((self.region(node.body, entering, entering) - targets) | self.floor)
            if grown == entering:
                break
            entering = grown
        return entering | scope.loaded([node.iter] if isinstance(node, ast.For) else [])

    def opaque(self, node: ast.stmt, live: Names) -> Names:
        """A statement whose control flow is not looked into: all it reads is live throughout."""
        before = self.floor
        touched = scope.loaded([node]) | _touched(node)
        self.floor = before | touched | live | self.out
        for inner in ast.iter_child_nodes(node):
            for _, block in ast.iter_fields(inner) if not isinstance(inner, ast.stmt) else ():
                if _is_block(block):
                    self.block(block, self.floor)
        for _, block in ast.iter_fields(node):
            if _is_block(block):
                self.block(block, self.floor)
        self.floor = before
        return live | touched


def _is_block(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)


def _touched(node: ast.AST) -> Names:
    """Names that a statement reads without saying so: those it deletes or adds to."""
    return frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)
                     and (isinstance(inner.ctx, ast.Del) or isinstance(node, ast.AugAssign)))


def _names_stored(target: ast.expr) -> Names:
    return frozenset(node.id for node in ast.walk(target)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
