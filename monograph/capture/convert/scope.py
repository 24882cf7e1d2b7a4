"""Which names a piece of a function binds and reads, and what stands in it.

All of these stop at nested functions, lambdas and classes, whose bodies are scopes of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = [
    "COMPREHENSIONS", "FRAMED", "FUNCTIONS", "SCOPES", "Scope", "assigned", "declared", "evaluated", "grown", "has",
    "loaded", "looks_at_frame", "own_nodes", "parameter_names", "pinned", "pinned_by_yield",
]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (*FUNCTIONS, ast.ClassDef)

# Called without arguments, they look at the frame they are called from.
FRAMED = frozenset({"locals", "vars", "dir"})
EVALUATORS = frozenset({"eval", "exec"})
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


GROWING = frozenset({"append", "extend"})


@dataclass
class Scope:
    """The names of one function: those it declares global or nonlocal, and those it binds itself."""

    locals: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    first: str | None = None        # the first parameter, which `super()` takes
    has_class: bool = False         # whether `super()` can know the class
    parameters: set[str] = field(default_factory=set)


def evaluated(node: ast.AST) -> Iterable[ast.AST]:
    """Children that belong to this scope: of a nested function or class, only what is evaluated where it is defined."""
    if isinstance(node, FUNCTIONS):
        defaults = (*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None))
        return defaults if isinstance(node, ast.Lambda) else (*node.decorator_list, *defaults)
    if isinstance(node, ast.ClassDef):
        return (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords))
    return children(node)


def children(node: ast.AST) -> list[ast.AST]:
    """`ast.iter_child_nodes` as a list, at half its cost, without contexts."""
    found: list[ast.AST] = []
    for value in node.__dict__.values():
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of this scope."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(evaluated(node))


def assigned(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that a piece of a function binds or deletes in the function's scope."""
    names: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, COMPREHENSIONS):
            names.update(inner.target.id for inner in own_nodes([node])
                         if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name))
        else:
            names.update(_bound_by(node))
            stack.extend(evaluated(node))
    return names


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [] if getattr(node, "native", False) else [node.name]     # ours: local where it stands
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def grown(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of what a piece of a function appends to."""
    return {name for node in own_nodes(nodes) if (name := _appended_to(node)) is not None}


def _appended_to(node: ast.AST) -> str | None:
    if isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)):
        return node.target.id if isinstance(node.target, ast.Name) else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in GROWING:
        return None
    return call.func.value.id if isinstance(call.func.value, ast.Name) else None


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Names read anywhere inside, nested functions included."""
    return {node.id for top in nodes for node in ast.walk(top)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def has(nodes: Iterable[ast.AST], kinds: tuple[type, ...]) -> bool:
    return any(isinstance(node, kinds) for node in own_nodes(nodes))


def pinned(nodes: Iterable[ast.AST]) -> bool:
    """Whether it must run in the frame of the function itself: it yields, waits, or looks at its frame."""
    return any(isinstance(node, SUSPENDING) or looks_at_frame(node)
               or (isinstance(node, ast.comprehension) and bool(node.is_async)) for node in own_nodes(nodes))


def pinned_by_yield(nodes: Iterable[ast.AST]) -> bool:
    """Whether a function with this body is a generator."""
    return has(nodes, (ast.Yield, ast.YieldFrom))


def looks_at_frame(node: ast.AST) -> bool:
    """A call that sees every variable of the frame it is made from."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
        (node.func.id in FRAMED and not node.args and not node.keywords) or node.func.id in EVALUATORS)


def parameter_names(arguments: ast.arguments) -> list[str]:
    """In the order of the code object: the first is what `super()` takes."""
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return names


def declared(names: set[str], of: Scope, place: ast.AST) -> list[ast.stmt]:
    """`nonlocal` and `global` for names of `of` that a function inside it assigns."""
    outside, inside = sorted(names & of.globals), sorted(names - of.globals)
    out: list[ast.stmt] = [ast.copy_location(ast.Global(outside), place)] if outside else []
    return out + ([ast.copy_location(ast.Nonlocal(inside), place)] if inside else [])
