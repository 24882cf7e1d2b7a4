"""Which reads of a function's own variables may find them unbound.

Python says so of a local variable with UnboundLocalError; in the functions that branches become the variable is a
free one, and a read of it would raise another error. `mark` finds such reads by definite assignment, along the
control flow of the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from monograph.capture.convert import exits, scope

__all__ = ["mark"]

# What is bound where control flow never comes: everything.
Names = frozenset[str] | None


def mark(body: Sequence[ast.stmt], own: set[str], parameters: Iterable[str]) -> None:
    """Sets `maybe_unbound` on names of `own` that are read or deleted where they may have no value."""
    _Definite(own).block(body, frozenset(parameters))


def _both(left: Names, right: Names) -> Names:
    if left is None or right is None:
        return right if left is None else left
    return left & right


class _Definite:
    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.breaks: list[Names] = []

    def block(self, statements: Sequence[ast.stmt], known: Names) -> Names:
        for statement in statements:
            known = self.statement(statement, known)
        return known

    def statement(self, node: ast.stmt, known: Names) -> Names:
        method = getattr(self, "do_" + type(node).__name__, None)
        if method is not None:
            return method(node, known)
        if isinstance(node, (*exits.TRIES,)):
            return self.try_(node, known)  # type: ignore[arg-type]
        return self.evaluate([node], known)

    def evaluate(self, nodes: Iterable[ast.AST | None], known: Names) -> Names:
        """Expressions and simple statements, in the order Python evaluates them (targets last)."""
        for node in nodes:
            if node is not None:
                known = self.expression(node, known)
        return known

    def expression(self, node: ast.AST, known: Names) -> Names:
        if isinstance(node, ast.Name):
            return self.name(node, known)
        if isinstance(node, ast.NamedExpr):
            return self.evaluate([node.value, node.target], known)
        if isinstance(node, ast.BoolOp):
            known = self.expression(node.values[0], known)
            self.evaluate(node.values[1:], known)
            return known
        if isinstance(node, ast.IfExp):
            known = self.expression(node.test, known)
            return _both(self.expression(node.body, known), self.expression(node.orelse, known))
        if isinstance(node, ast.Compare):
            known = self.evaluate([node.left, node.comparators[0]], known)
            self.evaluate(node.comparators[1:], known)
            return known
        if isinstance(node, scope.COMPREHENSIONS):
            return self.expression(node.generators[0].iter, known)
        if isinstance(node, ast.Assert):
            known = self.expression(node.test, known)
            self.evaluate([node.msg], known)
            return known
        if isinstance(node, ast.Assign):
            return self.evaluate([node.value, *node.targets], known)
        if isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self.name(node.target, known, reads=True)
            return self.evaluate([node.value, node.target], known)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return known if known is None else known | scope.assigned([node])
        if isinstance(node, (ast.Return, ast.Raise)):
            self.evaluate(scope.evaluated(node), known)
            return None
        known = self.evaluate(scope.evaluated(node), known)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and known is not None:
            known = known | {node.name}
        return known

    def name(self, node: ast.Name, known: Names, reads: bool = False) -> Names:
        if known is None or node.id not in self.own:
            return known
        if (reads or not isinstance(node.ctx, ast.Store)) and node.id not in known:
            node.maybe_unbound = True  # type: ignore[attr-defined]
        if isinstance(node.ctx, ast.Store):
            return known | {node.id}
        if isinstance(node.ctx, ast.Del):
            return known - {node.id}
        return known | {node.id} if not isinstance(node.ctx, ast.Load) else known

    def do_If(self, node: ast.If, known: Names) -> Names:
        known = self.expression(node.test, known)
        return _both(self.block(node.body, known), self.block(node.orelse, known))

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, known: Names) -> Names:
        deleted = _deleted([node])
        start = known if known is None else known - deleted
        self.breaks.append(None)
        if isinstance(node, ast.While):
            start = self.expression(node.test, start)
            self.block(node.body, start)
            endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
            after = None if endless else start
        else:
            self.block(node.body, self.expression(node.target, start))
            after = start
        after = self.block(node.orelse, after)
        return _both(after, self.breaks.pop())

    do_While = loop

    def do_For(self, node: ast.For, known: Names) -> Names:
        return self.loop(node, self.expression(node.iter, known))

    do_AsyncFor = do_For

    def do_Break(self, node: ast.Break, known: Names) -> Names:
        if self.breaks:
            self.breaks[-1] = _both(self.breaks[-1], known)
        return None

    def do_Continue(self, node: ast.Continue, known: Names) -> Names:
        return None

    def do_With(self, node: ast.With, known: Names) -> Names:
        for item in node.items:
            known = self.evaluate([item.context_expr, item.optional_vars], known)
        after = self.block(node.body, known)
        swallowed = known if known is None else known - _deleted(node.body)
        return _both(after, swallowed)

    do_AsyncWith = do_With

    def try_(self, node: ast.Try, known: Names) -> Names:
        start = known if known is None else known - _deleted(node.body)
        after = self.block(node.orelse, self.block(node.body, known))
        for handler in node.handlers:
            inside = self.evaluate([handler.type], start)
            if handler.name and inside is not None:
                inside = inside | {handler.name}
            end = self.block(handler.body, inside)
            after = _both(after, end - {handler.name} if end is not None and handler.name else end)
        if not node.finalbody:
            return after
        anywhere = known if known is None else known - _deleted([node])
        self.block(node.finalbody, anywhere)
        return self.block(node.finalbody, after) if after is not None else None

    def do_Match(self, node: ast.Match, known: Names) -> Names:
        known = self.expression(node.subject, known)
        after = known
        for case in node.cases:
            self.evaluate([case.pattern], known)
            inside = known if known is None else known | scope.assigned([case.pattern])
            if case.guard is not None:
                inside = self.expression(case.guard, inside)
            after = _both(after, self.block(case.body, inside))
        return after


def _deleted(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that may lose their value: by `del`, or at the end of an `except ... as name`."""
    names = set()
    for node in scope.own_nodes(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return frozenset(names)
