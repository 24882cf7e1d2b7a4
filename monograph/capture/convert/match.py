"""`match` as a chain of `if`.

    match s:                         $subject = s
        case P if guard: B     ->    $captures = [None] * n
        rest                         $hit = test(P, $subject)
                                     if $hit: names = $captures...; $hit = guard
                                     if $hit: B
                                     else: rest

A pattern is taken apart one level at a time: what looks into the subject (sequence, mapping, class) stays Python's
own `match` in a function that gives the parts or None; parts are tested left to right, as Python does. Comparing
with a value is `==`, which may be traced. The captures of a pattern are bound before its guard runs, and only if
the pattern matched.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from monograph.capture.convert import scope, syntax
from monograph.capture.convert.syntax import at, constant, load

__all__ = ["expand"]

Block = list[ast.stmt]


def expand(body: Block) -> Block:
    """The statements of one function with every `match` opened that need not stay in its frame."""
    return _Matches().block(body)


class _Matches:
    def __init__(self) -> None:
        self.count = 0

    def name(self, what: str) -> str:
        self.count += 1
        return f"{syntax.HIDDEN}{what}{self.count}"

    def block(self, statements: Block) -> Block:
        out: Block = []
        for statement in statements:
            if not isinstance(statement, scope.SCOPES):
                self.inside(statement)
            if isinstance(statement, ast.Match) and not scope.pinned([statement]):
                out += self.match(statement)
            else:
                out.append(statement)
        return out

    def inside(self, statement: ast.stmt) -> None:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(statement, field, None)
            if isinstance(block, list):
                setattr(statement, field, self.block(block))
        for child in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            child.body = self.block(child.body)

    def match(self, statement: ast.Match) -> Block:
        subject = self.name("subject")
        first = syntax.assign(subject, statement.subject, statement.subject)
        return [first, *self.cases(statement.cases, subject)]

    def cases(self, cases: list[ast.match_case], subject: str) -> Block:
        if not cases:
            return []
        case = cases[0]
        pattern = _Pattern(self.name, case.pattern)
        test = pattern.test(case.pattern, load(subject))
        place = case.pattern
        out = [*pattern.shapes]
        if pattern.captured:
            holder = ast.BinOp(ast.List([constant(None)], ast.Load()), ast.Mult(), constant(len(pattern.captured)))
            out.append(syntax.assign(pattern.captures, holder, place))
        bindings: Block = [
            syntax.assign(name, ast.Subscript(load(pattern.captures), constant(position), ast.Load()), place)
            for position, name in enumerate(pattern.captured)]
        rest = cases[1:]
        if test is None:        # always matches
            bindings = [syntax.assign(name, load(subject), place) for name in pattern.captured]
            if case.guard is None:
                return [*bindings, *case.body]
            return [*bindings, at(ast.If(case.guard, case.body, self.cases(rest, subject)), case.guard)]
        if case.guard is None:
            return [*out, at(ast.If(test, [*bindings, *case.body], self.cases(rest, subject)), place)]
        hit = self.name("hit")
        out.append(syntax.assign(hit, test, place))
        guarded = [*bindings, syntax.assign(hit, case.guard, case.guard)]
        out.append(at(ast.If(load(hit), guarded, []), place))
        out.append(at(ast.If(load(hit), case.body, self.cases(rest, subject)), place))
        return out


class _Pattern:
    """One case's pattern: its test, and what its names stand for."""

    def __init__(self, name: Callable[[str], str], pattern: ast.pattern) -> None:
        self.name = name
        self.captures = name("captures")
        self.captured = sorted(scope.assigned([pattern]))
        self.shapes: Block = []

    def bind(self, pairs: list[tuple[str, ast.expr]], place: ast.AST) -> ast.expr:
        arguments: list[ast.expr] = [load(self.captures)]
        for name, value in pairs:
            arguments += [constant(self.captured.index(name)), value]
        return syntax.support("bind", arguments, place)

    def test(self, pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
        """The test of the whole pattern; None where it always matches: it is a name, or nothing but names."""
        inner: ast.pattern | None = pattern
        while isinstance(inner, ast.MatchAs):
            inner = inner.pattern
        return None if inner is None else self.nested(pattern, subject)

    def nested(self, pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
        """A test that binds as it goes; None where there is nothing to test or bind."""
        if isinstance(pattern, ast.MatchValue):
            return at(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
        if isinstance(pattern, ast.MatchSingleton):
            return at(ast.Compare(subject, [ast.Is()], [constant(pattern.value)]), pattern)
        if isinstance(pattern, ast.MatchOr):
            tests = [self.nested(one, _again(subject)) or syntax.true() for one in pattern.patterns]
            return at(ast.BoolOp(ast.Or(), tests), pattern)
        if isinstance(pattern, ast.MatchAs):
            inner = None if pattern.pattern is None else self.nested(pattern.pattern, _again(subject))
            if pattern.name is None:
                return inner
            binding = self.bind([(pattern.name, subject)], pattern)
            return binding if inner is None else at(ast.BoolOp(ast.And(), [inner, binding]), pattern)
        return self.shaped(pattern, subject)

    def shaped(self, pattern: ast.pattern, subject: ast.expr) -> ast.expr:
        """A pattern that takes its subject apart: `then(taken($shape, subject), lambda $parts: tests)`."""
        flat, parts = _one_level(pattern, self.name)
        shape, argument, tupled = self.name("shape"), self.name("it"), self.name("parts")
        values: list[ast.expr] = [load(name) for name, _ in parts]
        found = at(ast.Return(ast.Tuple(values, ast.Load())), pattern)
        body: Block = [at(ast.Match(load(argument), [ast.match_case(flat, None, [found])]), pattern),
                       at(ast.Return(constant(None)), pattern)]
        definition = syntax.define(shape, [argument], body, pattern)
        definition.native = True  # type: ignore[attr-defined]
        self.shapes.append(definition)
        tests: list[ast.expr] = []
        bindings: list[tuple[str, ast.expr]] = []
        for position, (_, part) in enumerate(parts):
            value = ast.Subscript(load(tupled), constant(position), ast.Load())
            if isinstance(part, str):
                bindings.append((part, value))
            elif isinstance(part, ast.MatchAs) and part.pattern is None:
                bindings += [(part.name, value)] if part.name else []
            else:
                test = self.nested(part, value)
                tests += [] if test is None else [test]
        if bindings:
            tests.insert(0, self.bind(bindings, pattern))
        whole = tests[0] if len(tests) == 1 else at(ast.BoolOp(ast.And(), tests), pattern) if tests else syntax.true()
        taken = syntax.operator("taken", [load(shape), subject], pattern)
        return syntax.support("then", [taken, at(syntax.thunk(at(whole, pattern), [tupled]), pattern)], pattern)


Part = tuple[str, "ast.pattern | str"]      # a hidden name, and the pattern or the user's name that it stands for


def _one_level(pattern: ast.pattern, name: Callable[[str], str]) -> tuple[ast.pattern, list[Part]]:
    """The pattern with each pattern inside replaced by a hidden capture."""
    parts: list[Part] = []

    def capture(inner: ast.pattern | str) -> str:
        hidden = name("part")
        parts.append((hidden, inner))
        return hidden

    def held(inner: ast.pattern) -> ast.pattern:
        if isinstance(inner, ast.MatchStar):
            return at(ast.MatchStar(capture(inner.name) if inner.name else None), inner)
        if isinstance(inner, ast.MatchAs) and inner.pattern is None and inner.name is None:
            return inner
        return at(ast.MatchAs(None, capture(inner)), inner)

    if isinstance(pattern, ast.MatchSequence):
        return at(ast.MatchSequence([held(inner) for inner in pattern.patterns]), pattern), parts
    if isinstance(pattern, ast.MatchMapping):
        patterns = [held(inner) for inner in pattern.patterns]
        rest = capture(pattern.rest) if pattern.rest else None
        return at(ast.MatchMapping(pattern.keys, patterns, rest), pattern), parts
    assert isinstance(pattern, ast.MatchClass), pattern
    positional = [held(inner) for inner in pattern.patterns]
    named = [held(inner) for inner in pattern.kwd_patterns]
    return at(ast.MatchClass(pattern.cls, positional, pattern.kwd_attrs, named), pattern), parts


def _again(subject: ast.expr) -> ast.expr:
    """A second copy of a subject: a name, or a part of a tuple."""
    if isinstance(subject, ast.Name):
        return load(subject.id)
    assert isinstance(subject, ast.Subscript) and isinstance(subject.value, ast.Name), ast.dump(subject)
    return ast.Subscript(load(subject.value.id), subject.slice, ast.Load())
