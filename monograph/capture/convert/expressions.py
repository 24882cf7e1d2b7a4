"""Expressions that decide something, as calls of operators.

    a and b           OPERATORS.and_(a, lambda: b)
    a if t else b     OPERATORS.choose(t, lambda: a, lambda: b)
    a < b < c         (lambda $l, $r: OPERATORS.and_($l < $r, lambda: $r < c))(a, b)
    range(n)          OPERATORS.builtin(range)(n)
    f"n: {n:5}"       OPERATORS.joined("n: ", OPERATORS.formatted(n, -1, "5"))

`hoist` collects functions that an expression needs, for the statement they must precede; it is None in a lambda or
a generator expression, whose variables such a function could not see. An operand that binds a name (`:=`) or holds
what only the function's own frame may run cannot be a thunk: the first becomes statements in a hoisted function,
the second stays Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from monograph.capture.convert import bound, comprehensions, scope, syntax
from monograph.capture.convert.syntax import at, load, operator, support, thunk

__all__ = ["BUILTINS", "SEEKERS", "Expressions"]

BUILTINS = frozenset("""
    int float bool complex len range any all min max sum sorted enumerate zip reversed abs round list tuple
    set frozenset dict isinstance print map filter divmod pow str repr format next iter hash index bytes ord
    chr getattr hasattr type slice
""".split())

# Functions and methods of C that compare objects by identity.
SEEKERS = frozenset({"id", "is_", "is_not", "index", "count", "remove"})

Block = list[ast.stmt]
# The body of a function that converted code needs for itself: jumps lowered, names declared, statements converted.
Body = Callable[[Block, scope.Scope, ast.AST], Block]


def binds_names(nodes: Sequence[ast.AST]) -> bool:
    return scope.has(nodes, (ast.NamedExpr,))


class Expressions(ast.NodeTransformer):
    """`body` converts the body of a hoisted function; `counter` numbers the hidden names of the whole function."""

    def __init__(self, names: scope.Scope, body: Body, counter: Callable[[], int]) -> None:
        self.scope = names
        self.body = body
        self.counter = counter
        self.hoist: Block | None = None

    def convert(self, node: ast.expr, hoist: Block | None) -> ast.expr:
        before, self.hoist = self.hoist, hoist
        try:
            return self.visit(node)
        finally:
            self.hoist = before

    def decide(self, node: ast.expr, hoist: Block | None) -> ast.expr:
        """An expression of which only the truth counts: Python asks each operand once, and not the result again."""
        before, self.hoist = self.hoist, hoist
        try:
            return self.deciding(node)
        finally:
            self.hoist = before

    def deciding(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp) and not scope.pinned(node.values[1:]) and not binds_names(node.values[1:]):
            operands = [self.truth(value) for value in node.values]
            return operator("and_" if isinstance(node.op, ast.And) else "or_",
                            [operands[0], *map(thunk, operands[1:])], node)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self.chain(node, decides=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return operator("not_", [self.deciding(node.operand)], node)
        return self.visit(node)

    def truth(self, node: ast.expr) -> ast.expr:
        decided = self.deciding(node)
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        compound = isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1)
        return decided if negated or compound or isinstance(node, ast.Constant) else operator("truth", [decided], node)

    def name(self, what: str) -> str:
        return f"{syntax.HIDDEN}{what}{self.counter()}"

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and getattr(node, "maybe_unbound", False):
            return support("local", [syntax.constant(node.id), at(thunk(at(load(node.id), node)), node)], node)
        return self.sought(node, node.id) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.sought(self.native(node), node.attr) if isinstance(node.ctx, ast.Load) else self.native(node)

    def sought(self, node: ast.expr, name: str) -> ast.expr:
        """What perhaps looks for an object."""
        return operator("seeker", [node], node) if name in SEEKERS else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        lazy = node.values[1:]
        if scope.pinned(lazy):
            return self.native(node)
        if binds_names(lazy):
            return self.as_statements(node, self.bool_statements(node))
        values = [self.visit(value) for value in node.values]
        return operator("and_" if isinstance(node.op, ast.And) else "or_", [values[0], *map(thunk, values[1:])], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        lazy = [node.body, node.orelse]
        if scope.pinned(lazy):
            return self.native(node)
        if binds_names(lazy):
            value = self.name("value")
            chosen = ast.If(node.test, [syntax.assign(value, node.body, node.body)],
                            [syntax.assign(value, node.orelse, node.orelse)])
            return self.as_statements(node, lambda: ([at(chosen, node)], value))
        test = self.deciding(node.test)
        return operator("choose", [test, thunk(self.visit(node.body)), thunk(self.visit(node.orelse))], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return operator("not_", [self.deciding(node.operand)], node)
        return self.native(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            return self.compared(node.ops[0], self.visit(node.left), self.visit(node.comparators[0]), node)
        return self.chain(node, decides=False)

    def chain(self, node: ast.Compare, decides: bool) -> ast.expr:
        lazy = node.comparators[1:]
        if scope.pinned(lazy):
            return self.native(node)
        if binds_names(lazy):
            return self.as_statements(node, lambda: self.compare_statements(node))
        left, right = self.name("left"), self.name("right")
        rest = at(ast.Compare(at(load(right), node.comparators[0]), node.ops[1:], node.comparators[1:]), node)
        first = self.compared(node.ops[0], at(load(left), node.left), at(load(right), node.comparators[0]), node)
        operands = [self.visit(node.left), self.visit(node.comparators[0])]
        if decides:
            first = operator("truth", [first], node)
        following = self.truth(rest) if decides else self.visit(rest)
        both = operator("and_", [first, thunk(following)], node)
        return syntax.call(thunk(both, [left, right]), operands, node)

    def compared(self, relation: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.Compare) -> ast.expr:
        if isinstance(relation, ast.In):
            return operator("contains", [left, right], node)
        if isinstance(relation, ast.NotIn):
            return operator("not_", [operator("contains", [left, right], node)], node)
        if isinstance(relation, ast.Eq):
            return operator("equal", [left, right], node)
        if isinstance(relation, ast.NotEq):
            return operator("unequal", [left, right], node)
        if isinstance(relation, (ast.Is, ast.IsNot)) and not any(isinstance(x, ast.Constant) for x in (left, right)):
            same = operator("is_", [left, right], node)
            return same if isinstance(relation, ast.Is) else operator("not_", [same], node)
        return at(ast.Compare(left, [relation], [right]), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        for keyword in node.keywords:
            if keyword.arg == "stacklevel":     # counts frames
                keyword.value = support("level", [keyword.value], keyword.value)
        if isinstance(node.func, ast.Name):
            name = node.func.id
            bare = not node.args and not node.keywords
            if name == "super" and bare and self.scope.has_class and self.scope.first is not None:
                return support("super_", [self.visit(node.func), load("__class__"), load(self.scope.first)], node)
            if name in scope.FRAMED and bare:
                return support("visible", [node], node)
            makes_class = name == "type" and (len(node.args) != 1 or isinstance(node.args[0], ast.Starred))
            if name in BUILTINS and not makes_class:        # whose module is that of the frame that makes it
                searched = comprehensions.searched(self, node)
                if searched is not None:
                    return searched
                comprehensions.mark_consumed(node)
                node = self.native(node)  # type: ignore[assignment]
                node.func = operator("builtin", [node.func], node.func)
                return node
        return self.native(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return operator("joined", [self.visit(part) for part in node.values], node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        spec = syntax.constant("") if node.format_spec is None else self.visit(node.format_spec)
        return operator("formatted", [self.visit(node.value), syntax.constant(node.conversion), spec], node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        if scope.pinned([node.body]):
            return node
        binds, parameters = scope.assigned([node.body]), set(scope.parameter_names(node.args))
        if binds:
            bound.mark([syntax.returned(node.body, node.body)], binds | parameters, parameters)
        if self.hoist is not None and scope.has([node.body], (*scope.COMPREHENSIONS, ast.NamedExpr)):
            return self.named_lambda(node)
        inside = scope.Scope(locals=parameters | binds)
        node.body = Expressions(inside, self.body, self.counter).convert(node.body, None)
        return node

    def named_lambda(self, node: ast.Lambda) -> ast.expr:
        """A lambda as a hoisted function, in which expressions can hoist; defaults stay where they are evaluated."""
        assert self.hoist is not None
        arguments, name = node.args, self.name("lambda")
        defaults = ast.Tuple(arguments.defaults, ast.Load())
        named = [(argument.arg, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
                 if default is not None]
        keywords: ast.expr = syntax.constant(None)
        if named:
            keywords = ast.Dict([syntax.constant(key) for key, _ in named], [value for _, value in named])
        parameters = set(scope.parameter_names(arguments))
        inside = scope.Scope(locals=parameters | scope.assigned([node.body]), parameters=parameters)
        body: Block = [syntax.returned(node.body, node.body)]
        function = syntax.define(name, (), self.body(body, inside, node), node)
        assert isinstance(function, ast.FunctionDef)
        arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
        function.args = arguments
        self.hoist.append(function)
        return support("function", [load(name), defaults, keywords], node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return comprehensions.convert(self, node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]

    def native(self, node: ast.expr) -> ast.expr:
        """Stays what it is; only what stands in it is converted."""
        return self.generic_visit(node)  # type: ignore[return-value]

    def as_statements(self, node: ast.expr, write: Callable[[], tuple[Block, str]]) -> ast.expr:
        """A call of a hoisted function of statements that leave the value in a variable."""
        if self.hoist is None:
            return self.native(node)
        binds = scope.assigned([node])
        body, value = write()
        name = self.name("expression")
        self.hoist.append(self.function(name, (), [*body, syntax.returned(load(value), node)], binds, node))
        return syntax.call(load(name), [], node)

    def function(self, name: str, parameters: Sequence[str], body: Block, binds: set[str], place: ast.AST) -> ast.stmt:
        """A function of ours in this scope. Of the names in its body, `binds` are this scope's, the others its own."""
        outside = self.scope.globals
        inside = scope.Scope(locals=(scope.assigned(body) - binds) | set(parameters), globals=binds & outside,
                             nonlocals=binds - outside, first=self.scope.first, has_class=self.scope.has_class,
                             parameters=set(parameters))
        declared = scope.declared(binds, self.scope, place)
        return syntax.define(name, parameters, [*declared, *self.body(body, inside, place)], place)

    def bool_statements(self, node: ast.BoolOp) -> Callable[[], tuple[Block, str]]:
        def write() -> tuple[Block, str]:
            value = self.name("value")
            out: Block = [syntax.assign(value, node.values[0], node.values[0])]
            inner = out
            for operand in node.values[1:]:
                test: ast.expr = load(value)
                if isinstance(node.op, ast.Or):
                    test = ast.UnaryOp(ast.Not(), test)
                following = at(ast.If(at(test, node), [syntax.assign(value, operand, operand)], []), node)
                inner.append(following)
                inner = following.body
            return out, value
        return write

    def compare_statements(self, node: ast.Compare) -> tuple[Block, str]:
        value = self.name("value")
        out: Block = []
        inner = out
        left = self.name("operand")
        inner.append(syntax.assign(left, node.left, node.left))
        for position, (relation, comparator) in enumerate(zip(node.ops, node.comparators)):
            if position:
                following = at(ast.If(at(load(value), node), [], []), node)
                inner.append(following)
                inner = following.body
            right = self.name("operand")
            inner.append(syntax.assign(right, comparator, comparator))
            inner.append(syntax.assign(value, at(ast.Compare(load(left), [relation], [load(right)]), node), node))
            left = right
        return out, value
