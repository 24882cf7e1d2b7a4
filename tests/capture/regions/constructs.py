"""Which constructs of data-dependent control flow a program ran through: `constructs(source, lines) -> names`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["TABLE", "constructs"]


@dataclass
class Ran:
    """What ran of a program: its lines as text, those in branches and loops, those in loops; its syntax."""

    text: str
    branches: str
    loops: str
    nodes: list[ast.AST]


def _node(*kinds: type) -> Callable[[Ran], bool]:
    return lambda ran: any(isinstance(node, kinds) for node in ran.nodes)


def _text(pattern: str, part: str = "text") -> Callable[[Ran], bool]:
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda ran: compiled.search(getattr(ran, part)) is not None


def _elif(ran: Ran) -> bool:
    return any(isinstance(node, ast.If) and len(node.orelse) == 1 and node.orelse[0] in ran.nodes
               and isinstance(node.orelse[0], ast.If) for node in ran.nodes)


def _nested(ran: Ran) -> bool:
    """A branch or loop in a branch or loop."""
    kinds = (ast.If, ast.For, ast.While)
    return any(isinstance(node, kinds) and any(inner is not node and isinstance(inner, kinds) and inner in ran.nodes
                                               for inner in ast.walk(node)) for node in ran.nodes)


def _nonlocal(ran: Ran) -> bool:
    """Python stops at no `nonlocal`: what follows it ran."""
    return any(isinstance(node, ast.FunctionDef) and any(
        isinstance(first, ast.Nonlocal) and second in ran.nodes for first, second in zip(node.body, node.body[1:]))
        for node in ran.nodes)


def _recursion(ran: Ran) -> bool:
    return "descend(" in ran.text or "self.own(a * 0.5 + 1" in ran.text or any(
        isinstance(node, ast.FunctionDef) and any(
            isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == node.name
            and inner in ran.nodes for inner in ast.walk(node)) for node in ran.nodes)


TABLE: dict[str, Callable[[Ran], bool]] = {
    "if": _node(ast.If), "elif": _elif, "else": lambda ran: any(
        isinstance(node, ast.If) and any(inner in ran.nodes for inner in node.orelse) for node in ran.nodes),
    "while": _node(ast.While), "for over a range of a tensor": _text(
        r"in (reversed\()?range\((int\()?\(*[tkh]\b|range\(.*(item|sum|tolist|int|max|len)\("),
    "for over a tensor": _text(r"for [vwst, ]+ in (reversed\(|zip\(|enumerate\()?\(*[abcqhxyzvw]\b[^\n]*:$"),
    "for over nonzero": _text(r"for .* in .*nonzero\(\)"),
    "and, or": _node(ast.BoolOp), "not": lambda ran: any(
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) for node in ran.nodes),
    "ternary": _node(ast.IfExp), "assert": _node(ast.Assert),
    "chained comparison": lambda ran: any(isinstance(node, ast.Compare) and len(node.ops) > 1 for node in ran.nodes),
    "comprehension with a filter": lambda ran: any(
        isinstance(node, (ast.ListComp, ast.GeneratorExp)) and any(part.ifs for part in node.generators)
        for node in ran.nodes),
    **{name: _text(rf"(?<![.\w]){name}\(") for name in ("min", "max", "sum", "any", "all", "sorted")},
    "match": _node(ast.Match), "break": _node(ast.Break), "continue": _node(ast.Continue),
    "return in a branch": _text(r"\breturn\b", "branches"), "raise": _node(ast.Raise),
    "defined in one branch": _text(r"^ *u = ", "branches"), "nested": _nested, "recursion": _recursion,
    "method": _text(r"\bself\.(own|twice|halved|made)\(|o\.put\("), "super()": _text(r"super\(\)"),
    "closure": _text(r"\bnonlocal\b|return inside|\bf\d+ = lambda"), "nonlocal": _nonlocal,
    "lambda": _node(ast.Lambda), "decorator": _text(r"@|\b(kept|scaled|counted)\("),
    "generator": lambda ran: "pairs(" in ran.text or _node(ast.Yield, ast.YieldFrom)(ran),
    "with": _node(ast.With), "try": _node(ast.Try), "finally": lambda ran: any(
        isinstance(node, ast.Try) and node.finalbody for node in ran.nodes),
    ".item()": _text(r"\.item\(\)"), "int(t)": _text(r"(?<!\w)int\("), "float(t)": _text(r"(?<!\w)float\("),
    "bool(t)": _text(r"(?<!\w)bool\("), ".tolist()": _text(r"\.tolist\(\)"),
    "len(t)": _text(r"(?<!\w)len\(\(*[abcqhxyzvw]\b"), "in a tensor": _text(r"(?<!for .) in \(*[cqhvw]\b[^:]*\)"),
    "index by a tensor": _text(r"\[\(*[kthq]\b[^:\]]*\]|\[int\([^:\]]*\]"),
    "slice by a tensor": _text(r"\[:?(int\()?\(*[kth]\b[^\]]*:|\[:(int\()?\(*[kth]\b|\[int\([^\]]*:\]"),
    "list built in a loop": _text(r"\br\.(append|extend|insert)\(|\br \+= ", "loops"),
    "in place in a branch or loop": _text(r"\w_\(|\w\[[^=]*\] [-+]?= ", "branches"),
    "attribute written in a branch or loop": _text(r"(self|\bo)\.\w+ [-+]?= |setattr\(", "branches"),
    "container changed in a branch or loop": _text(
        r"\b[dre]\[.*\] = |\b[dmre]\.(add|append|appendleft|pop|update|setdefault|discard|insert|extend|rotate)\(",
        "branches"),
    "dict": _text(r"\bd\[|\bd\."), "set": _text(r"\bm\.|\bm \|= |in m\b"), "deque": _text(r"\be\[|\be\.|\(e\)|\*e"),
    "global": _text(r"\btally\b|\bnotes\."), "print": _text(r"\bprint\("),
    "without source": _text(r"\bblind\("), "long loop": _text(r"range\((300|120|250)\)| \* (50|60)\b"),
    "swapped carry": _text(r"(x, y = y, x|v, w = w, v|i, j = j, i|y, z = z, y|x, z = z, x)", "loops"),
    "view written": _text(r"\.(t\(\)|view\([^)]*\)(\[.*\])?|\w\[0\])\.\w+_\("),
    "view written later": _text(r"^ *g\.\w+_\("),
    "torch.cond": _text(r"torch\.cond\("), "while_loop": _text(r"while_loop\("), "map": _text(r"\beach\("),
    "scan": _text(r"(?<!_)scan\("), "associative_scan": _text(r"associative_scan\("),
}


def constructs(source: str, lines: set[int] | None = None) -> set[str]:
    """`lines`: those that ran; all where it is None."""
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if lines is None or getattr(node, "lineno", 0) in lines]
    texts = source.splitlines()
    where: dict[str, dict[int, str]] = {"all": {}, "branches": {}, "loops": {}}
    for node, branch, loop in _placed(tree, False, False):
        number = node.lineno
        if lines is None or number in lines:
            for name, here in (("all", True), ("branches", branch), ("loops", loop)):
                if here:
                    where[name][number] = texts[number - 1]
    ran = Ran(*("\n".join(found[number] for number in sorted(found)) for found in where.values()), nodes)
    return {name for name, found in TABLE.items() if found(ran)}


def _placed(node: ast.AST, branch: bool, loop: bool) -> Iterator[tuple[ast.stmt, bool, bool]]:
    """Statements, and whether they stand in a branch or loop, in a loop."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, branch, loop
        inner = isinstance(child, (ast.For, ast.While))
        yield from _placed(child, branch or inner or isinstance(child, (ast.If, ast.match_case)), loop or inner)
