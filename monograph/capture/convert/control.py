"""Statements that decide something, as calls of operators; what a function's body becomes.

    if t: A            def $then(): nonlocal x; A
    else: B      ->    def $else(): nonlocal x; B
                       OPERATORS.if_(t, $then, $else, SUPPORT.state(lambda: (x,), lambda: (y,)))

Jumps are flags by then (`jumps`), `match` is a chain of `if` (`match`). Statements marked `kept` stay Python's own.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from monograph.capture.convert import bound, exits, jumps, liveness, match, scope, syntax
from monograph.capture.convert.expressions import Expressions
from monograph.capture.convert.syntax import at, load, operator, support, thunk

__all__ = ["convert_function"]

Block = list[ast.stmt]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def convert_function(node: Function, has_class: bool = False,
                     counter: Callable[[], int] | None = None) -> None:
    """Replaces the body of a function. `has_class`: whether `super()` works in it."""
    counter = counter or itertools.count(1).__next__
    parameters = scope.parameter_names(node.args)
    generator = isinstance(node, ast.AsyncFunctionDef) or scope.pinned_by_yield(node.body)
    start = 1 if syntax.has_docstring(node.body) else 0
    document, body = node.body[:start], node.body[start:]
    prepared = _Prepared()
    body = prepared.block(body)
    bound.mark(body, (scope.assigned(body) | set(parameters)) - prepared.globals - prepared.nonlocals, parameters)
    body = match.expand(body)
    names = scope.Scope(globals=prepared.globals, nonlocals=prepared.nonlocals, has_class=has_class,
                        first=(parameters[0] if node.args.posonlyargs or node.args.args else None),
                        parameters=set(parameters))
    header: Block = []
    if prepared.globals:
        header.append(ast.Global(sorted(prepared.globals)))
    if prepared.nonlocals:
        header.append(ast.Nonlocal(sorted(prepared.nonlocals)))
    if generator and isinstance(node, ast.FunctionDef):     # it is one even if what yields is never reached
        header.append(ast.If(syntax.constant(0), [ast.Expr(ast.Yield(None))], []))
    place = body[0] if body else node
    yields = isinstance(node, ast.AsyncFunctionDef) and scope.has(node.body, (ast.Yield,))
    header = [at(statement, place) for statement in header]
    node.body = [*document, *header, *_converted(body, names, place, counter, generator, bare=yields)]
    node.body = node.body or [at(ast.Pass(), node)]


def _converted(body: Block, names: scope.Scope, place: ast.AST, counter: Callable[[], int], generator: bool = False,
               bare: bool = False) -> Block:
    bound_in_source = scope.assigned(body)      # dead code makes a name local, too
    lowered = jumps.lower(body, generator, bare)
    names.locals |= (bound_in_source | scope.assigned(lowered)) - names.globals - names.nonlocals
    liveness.mark(lowered, names.globals | names.nonlocals)
    converted = _Control(names, counter, liveness.held(lowered)).block(lowered)
    declared = syntax.declare(names.locals - names.parameters, place)
    names.locals |= names.parameters
    return [*declared, *converted]


class _Prepared:
    """Takes declarations out of a body: `global`, `nonlocal`, annotations and, under -O, assertions."""

    def __init__(self) -> None:
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def block(self, statements: Block) -> Block:
        out: Block = []
        for statement in statements:
            kept = self.statement(statement)
            if kept is not None:
                out.append(kept)
        return out or [at(ast.Pass(), statement) for statement in statements[:1]]

    def statement(self, node: ast.stmt) -> ast.stmt | None:
        if isinstance(node, ast.Global):
            self.globals.update(node.names)
            return None
        if isinstance(node, ast.Nonlocal):
            self.nonlocals.update(node.names)
            return None
        if isinstance(node, ast.Assert) and not __debug__:
            return None
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                return at(ast.Assign([node.target], node.value, type_comment=None), node)
            if isinstance(node.target, ast.Name):       # a local variable without a value
                return syntax.declare([node.target.id], node)[0]
        if isinstance(node, scope.SCOPES):
            return node
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, self.block(block))
        for child in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            child.body = self.block(child.body)
        return node


class _Control:
    """Converts the statements of one function."""

    def __init__(self, names: scope.Scope, counter: Callable[[], int], held: frozenset[str]) -> None:
        self.scope = names
        self.counter = counter
        self.held = held
        self.expressions = Expressions(names, self.body, counter)

    def body(self, body: Block, names: scope.Scope, place: ast.AST) -> Block:
        return _converted(body, names, place, self.counter)

    def block(self, statements: Sequence[ast.stmt]) -> Block:
        return [converted for statement in statements for converted in self.statement(statement)]

    def statement(self, node: ast.stmt) -> Block:
        hoisted: Block = []
        if isinstance(node, exits.TRIES):
            return self.try_(node)
        method = getattr(self, "do_" + type(node).__name__, None)
        if method is not None and not getattr(node, "kept", False):
            return method(node, hoisted)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, self.expressions.convert(value, hoisted))
            elif isinstance(value, list):
                setattr(node, field, self.parts(value, hoisted))
        return [*hoisted, node]

    def parts(self, values: list[ast.AST], hoisted: Block) -> list[ast.AST]:
        """Expressions, statements and what holds them, in the order they stand."""
        out: list[ast.AST] = []
        for value in values:
            if isinstance(value, ast.expr):
                out.append(self.expressions.convert(value, hoisted))
            elif isinstance(value, ast.stmt):
                out += self.statement(value)
            else:
                if isinstance(value, ast.withitem):
                    value.context_expr = self.expressions.convert(value.context_expr, hoisted)
                    if value.optional_vars is not None:
                        value.optional_vars = self.expressions.convert(value.optional_vars, hoisted)
                elif isinstance(value, ast.match_case):     # one that stays Python's
                    value.body = self.block(value.body)
                    value.guard = value.guard and self.expressions.convert(value.guard, hoisted)
                out.append(value)
        return out

    def region(self, what: str, body: Block, names: set[str], place: ast.AST, parameters: Sequence[str] = ()
               ) -> tuple[Block, ast.expr]:
        """A function of a branch or loop body, which assigns variables of this function."""
        if all(isinstance(statement, ast.Pass) for statement in body):
            return [], ast.Attribute(syntax.constant(syntax.SUPPORT_MARK), "nothing", ast.Load())
        name = f"{syntax.HIDDEN}{what}{self.counter()}"
        declared = scope.declared(names & scope.assigned(body), self.scope, place)
        return [syntax.define(name, parameters, [*declared, *self.block(body)], place)], load(name)

    def state(self, names: set[str], nodes: Sequence[ast.AST], place: ast.AST, statement: ast.stmt) -> ast.expr:
        """The variables of a statement; which of them nobody reads after it, and which no iteration reads unset."""
        # A function that says `super` has the class around it as a free variable: not said here.
        read = scope.loaded(nodes) - names - {"super"}
        live: frozenset[str] = getattr(statement, "live", frozenset(names))
        entering: frozenset[str] = getattr(statement, "entering", live) | live
        grown = set() if isinstance(statement, ast.If) else self.grown(nodes)
        kinds = names - live, names - entering, grown, names & self.held
        marks = [syntax.constant(" ".join(sorted(some))) for some in kinds]
        return support("state", [self.named(names), self.named(read), *marks], place)

    def assigned(self, nodes: Sequence[ast.AST]) -> set[str]:
        """The variables that a statement may assign: a loop may put another list in the place of one it appends to."""
        return scope.assigned(nodes) | self.grown(nodes)

    def grown(self, nodes: Sequence[ast.AST]) -> set[str]:
        return scope.grown(nodes) & self.scope.locals

    def named(self, names: set[str]) -> ast.expr:
        if not names:
            return ast.Attribute(syntax.constant(syntax.SUPPORT_MARK), "nothing", ast.Load())
        return thunk(ast.Tuple([load(name) for name in sorted(names)], ast.Load()))

    def do_If(self, node: ast.If, hoisted: Block) -> Block:
        names = self.assigned([*node.body, *node.orelse])
        state = self.state(names, [*node.body, *node.orelse], node.test, node)
        test = self.expressions.decide(node.test, hoisted)
        then, first = self.region("then", node.body, names, node)
        otherwise, second = self.region("else", node.orelse, names, node)
        decided = at(ast.Expr(operator("if_", [test, first, second, state], node.test)), node.test)
        return [*hoisted, *then, *otherwise, decided]

    def do_While(self, node: ast.While, hoisted: Block) -> Block:
        names = self.assigned([node.test, *node.body])
        state = self.state(names, [node.test, *node.body], node.test, node)
        before, test = self.repeated(node.test)
        body, run = self.region("body", node.body, names, node)
        loop = operator("while_", [test, run, state, self.stop(node)], node.test)
        return [*before, *body, at(ast.Expr(loop), node.test)]

    def repeated(self, test: ast.expr) -> tuple[Block, ast.expr]:
        """A test as a function: a lambda, unless it binds names or needs functions of its own."""
        binds = scope.assigned([test])
        inner: Block = []
        converted = self.expressions.decide(test, inner)
        if not inner and not binds:
            return [], thunk(converted)
        name = f"{syntax.HIDDEN}test{self.counter()}"
        body = [*scope.declared(binds, self.scope, test), *inner, syntax.returned(converted, test)]
        return [syntax.define(name, (), body, test)], load(name)

    def do_For(self, node: ast.For, hoisted: Block) -> Block:
        targets = scope.assigned([node.target])
        names = targets | self.assigned(node.body)
        state = self.state(names, node.body, node.iter, node)
        items = self.expressions.convert(node.iter, hoisted)
        item = syntax.HIDDEN + "item"
        assign = at(ast.Assign([node.target], load(item), type_comment=None), node.target)
        setting, assigned = self.region("assign", [assign], targets, node.target, [item])
        body, run = self.region("body", node.body, names, node)
        loop = operator("for_", [items, assigned, run, state, self.stop(node)], node.iter)
        return [*hoisted, *setting, *body, at(ast.Expr(loop), node.iter)]

    def stop(self, node: ast.For | ast.While) -> ast.expr:
        flags: list[str] = getattr(node, "stop", [])
        if not flags:
            return syntax.constant(None)
        tests: list[ast.expr] = [load(flag) for flag in flags]
        test = tests[0] if len(tests) == 1 else operator("or_", [tests[0], *map(thunk, tests[1:])], node)
        return thunk(at(test, node))

    def do_Assert(self, node: ast.Assert, hoisted: Block) -> Block:
        if node.msg is not None and (scope.pinned([node.msg]) or scope.assigned([node.msg])):
            node.test = self.expressions.convert(node.test, hoisted)
            node.msg = self.expressions.convert(node.msg, hoisted)
            return [*hoisted, node]
        test = self.expressions.decide(node.test, hoisted)
        message = syntax.constant(None) if node.msg is None else thunk(self.expressions.convert(node.msg, hoisted))
        return [*hoisted, at(ast.Expr(operator("assert_", [test, message], node)), node)]

    def do_AugAssign(self, node: ast.AugAssign, hoisted: Block) -> Block:
        checks = self.checks([node.target])
        if not isinstance(node.target, ast.Name):
            node.target = self.expressions.convert(node.target, hoisted)  # type: ignore[assignment]
        node.value = self.expressions.convert(node.value, hoisted)
        return [*hoisted, *checks, node]

    def do_Delete(self, node: ast.Delete, hoisted: Block) -> Block:
        out: Block = []
        for target in node.targets:
            checks = self.checks([target])
            converted = target if isinstance(target, ast.Name) else self.expressions.convert(target, hoisted)
            out += [*checks, at(ast.Delete([converted]), node)]
        return [*hoisted, *out]

    def checks(self, targets: Sequence[ast.expr]) -> Block:
        """Reads variables that may be unbound, where Python's own error would name another kind of variable."""
        return [at(ast.Expr(self.expressions.visit_Name(at(_read(target), target))), target)
                for node in targets for target in ast.walk(node)
                if isinstance(target, ast.Name) and not isinstance(target.ctx, ast.Load)
                and getattr(target, "maybe_unbound", False)]

    def try_(self, node: ast.Try) -> Block:
        hoisted: Block = []
        node.body = self.block(node.body)
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self.expressions.convert(handler.type, hoisted)
            handler.body = self.block(handler.body)
        node.orelse, node.finalbody = self.block(node.orelse), self.block(node.finalbody)
        return [*hoisted, node]

    def do_FunctionDef(self, node: Function, hoisted: Block) -> Block:
        if getattr(node, "native", False):
            return [node]
        node.decorator_list = [self.expressions.convert(decorator, hoisted) for decorator in node.decorator_list]
        arguments = node.args
        arguments.defaults = [self.expressions.convert(default, hoisted) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.expressions.convert(default, hoisted)
                                 for default in arguments.kw_defaults]
        convert_function(node, self.scope.has_class, self.counter)
        return [*hoisted, node]

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef, hoisted: Block) -> Block:
        node.decorator_list = [self.expressions.convert(decorator, hoisted) for decorator in node.decorator_list]
        node.bases = [self.expressions.convert(base, hoisted) for base in node.bases]
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                convert_function(statement, True, self.counter)
        return [*hoisted, node]


def _read(target: ast.Name) -> ast.Name:
    name = load(target.id)
    name.maybe_unbound = True  # type: ignore[attr-defined]
    return name
