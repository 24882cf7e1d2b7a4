"""Comprehensions as loops, in a function of their own as Python has it.

    [e for t in s if c]          def $listcomp($items):
                                     $out = []
                          ->         for t in $items:
                                         if c: $out.append(e)
                                     return $out
                                 $listcomp(s)

A generator expression stays one: it is lazy, and only its consumer says how far it goes. Handed to a builtin it
comes with a loop that makes the same list (`OPERATORS.generated`), or for `any` and `all` with a loop that stops
where they do (`OPERATORS.search`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from monograph.capture.convert import bound, scope, syntax
from monograph.capture.convert.syntax import at, load, operator

if TYPE_CHECKING:
    from monograph.capture.convert.expressions import Expressions

__all__ = ["CONSUMERS", "convert", "mark_consumed", "searched"]

Block = list[ast.stmt]
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

# Builtins that take every item of an iterable, at once or (enumerate, zip, map, iter) as far as their consumer goes.
CONSUMERS = frozenset(
    "sum min max sorted list tuple set frozenset dict enumerate zip reversed map filter iter next".split())
ITEMS = syntax.HIDDEN + "items"
OUT = syntax.HIDDEN + "out"


def convert(inside: Expressions, node: Comprehension) -> ast.expr:
    if isinstance(node, ast.GeneratorExp):
        return _generator(inside, node)
    if inside.hoist is None or scope.pinned([node]) or _looks_at_class(node):
        return _native(inside, node)
    name = inside.name({ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.DictComp: "dictcomp"}[type(node)])
    items = inside.visit(node.generators[0].iter)
    result = operator("grown", [load(OUT)], node) if isinstance(node, ast.ListComp) else load(OUT)
    body = [syntax.assign(OUT, _empty(node), node), *_loops(node, _add(node)), syntax.returned(result, node)]
    _define(inside, name, node, body)
    return syntax.call(load(name), [items], node)


def mark_consumed(node: ast.Call) -> None:
    """A builtin was given generator expressions: each may be a list."""
    if isinstance(node.func, ast.Name) and node.func.id in CONSUMERS:
        for argument in node.args:
            if isinstance(argument, ast.GeneratorExp):
                argument.consumer = node.func  # type: ignore[attr-defined]


def searched(inside: Expressions, node: ast.Call) -> ast.expr | None:
    """`any(e for ...)` and `all(e for ...)`."""
    if not isinstance(node.func, ast.Name) or node.func.id not in ("any", "all") or node.keywords \
            or len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp):
        return None
    comprehension = node.args[0]
    if inside.hoist is None or scope.pinned([comprehension]) or _looks_at_class(comprehension):
        return None
    found = node.func.id == "any"
    test = syntax.copied(comprehension)
    decides: ast.expr = test.elt if found else at(ast.UnaryOp(ast.Not(), test.elt), test.elt)
    if len(test.generators) == 1:
        leave: Block = [syntax.assign(OUT, syntax.constant(found), test.elt), at(ast.Break(), test.elt)]
        before: Block = [syntax.assign(OUT, syntax.constant(not found), node)]
        result: ast.expr = load(OUT)
    else:
        leave = [at(ast.Return(syntax.constant(found)), test.elt)]
        before, result = [], syntax.constant(not found)
    body = [*before, *_loops(test, [at(ast.If(decides, leave, []), test.elt)]), syntax.returned(result, node)]
    name = inside.name("genexpr")
    _define(inside, name, test, body)
    items = inside.visit(comprehension.generators[0].iter)
    return operator("search", [node.func, _lazy(inside, comprehension), load(name), items], node)


def _generator(inside: Expressions, node: ast.GeneratorExp) -> ast.expr:
    consumer = getattr(node, "consumer", None)
    if consumer is None or inside.hoist is None or scope.pinned([node]) or _looks_at_class(node):
        return _native(inside, node)
    eager = syntax.copied(node)
    name = inside.name("genexpr")
    body = [syntax.assign(OUT, at(ast.List([], ast.Load()), node), node), *_loops(eager, _add(eager)),
            syntax.returned(load(OUT), node)]
    _define(inside, name, eager, body)
    items = inside.visit(node.generators[0].iter)
    function = at(load(consumer.id), consumer)
    return operator("generated", [function, _lazy(inside, node), load(name), items], node)


def _lazy(inside: Expressions, node: ast.GeneratorExp) -> ast.expr:
    """`lambda $items: (e for t in $items if c)`."""
    node.generators[0].iter = at(load(ITEMS), node.generators[0].iter)
    lazy, binds = _native(inside, node, first=False), scope.assigned([node])
    if not binds:
        return syntax.thunk(lazy, [ITEMS])
    assert inside.hoist is not None
    name = inside.name("generator")
    body = [*scope.declared(binds, inside.scope, node), syntax.returned(lazy, node)]
    inside.hoist.append(syntax.define(name, [ITEMS], body, node))
    return load(name)


def _native(inside: Expressions, node: Comprehension, first: bool = True) -> ast.expr:
    """Stays a comprehension. Only its first iterable is evaluated outside of it."""
    if first:
        node.generators[0].iter = inside.visit(node.generators[0].iter)
    names = scope.Scope(locals=_targets(node))
    own = type(inside)(names, inside.body, inside.counter)
    for position, generator in enumerate(node.generators):
        if position:
            generator.iter = own.convert(generator.iter, None)
        generator.ifs = [own.convert(test, None) for test in generator.ifs]
    if isinstance(node, ast.DictComp):
        node.key, node.value = own.convert(node.key, None), own.convert(node.value, None)
    else:
        node.elt = own.convert(node.elt, None)
    return node


def _define(inside: Expressions, name: str, node: Comprehension, body: Block) -> None:
    assert inside.hoist is not None
    binds = scope.assigned([node])
    bound.mark(body, scope.assigned(body) - binds, [ITEMS])
    inside.hoist.append(inside.function(name, [ITEMS], body, binds, node))


def _targets(node: Comprehension) -> set[str]:
    return scope.assigned([generator.target for generator in node.generators])


def _loops(node: Comprehension, innermost: Block) -> Block:
    """The loops and filters of a comprehension around what its innermost one does; the first runs over `$items`."""
    body = innermost
    for position in range(len(node.generators) - 1, -1, -1):
        generator = node.generators[position]
        for test in reversed(generator.ifs):
            body = [at(ast.If(test, body, []), test)]
        items = generator.iter if position else at(load(ITEMS), generator.iter)
        body = [at(ast.For(generator.target, items, body, [], None), generator.target)]
    return body


def _empty(node: Comprehension) -> ast.expr:
    if isinstance(node, ast.ListComp):
        return operator("grow", [], node)
    if isinstance(node, ast.DictComp):
        return at(ast.Dict([], []), node)
    return syntax.support("empty_set", [], node)


def _add(node: Comprehension) -> Block:
    if isinstance(node, ast.DictComp):      # as a method: the key is evaluated first
        method, arguments = "__setitem__", [node.key, node.value]
    else:
        method, arguments = "add" if isinstance(node, ast.SetComp) else "append", [node.elt]
    place = arguments[0]
    return [at(ast.Expr(syntax.call(ast.Attribute(load(OUT), method, ast.Load()), arguments, place)), place)]


def _looks_at_class(node: ast.AST) -> bool:
    """`super()` in a comprehension asks the comprehension's own frame."""
    return any(isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "super"
               and not inner.args for inner in scope.own_nodes([node]))
