"""What a special method gives whose result must be Python's own number: `OPERATORS.answer` sees it before Python does.

    def __bool__(self): return e      ->      def __bool__(self): return OPERATORS.answer(e)
"""

from __future__ import annotations

import ast

from monograph.capture.convert import syntax

__all__ = ["STRICT", "answer"]

STRICT = frozenset({"__bool__", "__index__", "__int__", "__float__"})


class _Answers(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is not None:
            node.value = syntax.operator("answer", [node.value], node)
        return node

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node                          # its results are not the method's

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef


def answer(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of such a method, converted before."""
    return [_Answers().visit(statement) for statement in body]
