"""From torch's sizes to ours, and back: the one place that knows how ShapeEnv writes an expression.

    int -> int        SymInt -> ir.symbolic expression
    sympy condition -> Condition        text of Python over the symbols' names
                    -> Relation*        (Dim, sign, Dim)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat, errors
from monograph.ir import symbolic
from monograph.ir.symbolic import Dim, Maximum, Minimum, Quotient, Remainder, Sum, Symbol, maximum, minimum

__all__ = [
    "SYMBOLIC", "Condition", "Relation", "condition", "dim", "dims", "encoded", "hint", "is_symbolic", "key_of",
    "of_sympy", "relations", "size_of",
]

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_symbolic(value: Any) -> bool:
    return isinstance(value, SYMBOLIC)


def key_of(size: Any) -> Dim:
    """A hashable stand-in for a size: the number when it is known."""
    return of_sympy(*compat.size_expression(size)) if isinstance(size, torch.SymInt) else int(size)


def dim(size: Any) -> Dim:
    """A size as the IR writes it. Of a float only the number of this call is known."""
    if isinstance(size, (torch.SymFloat, torch.SymBool)):
        return float(size) if isinstance(size, torch.SymFloat) else bool(size)      # type: ignore[return-value]
    return size if isinstance(size, symbolic.Expr) else key_of(size)


def dims(sizes: Iterable[Any]) -> tuple[Dim, ...]:
    return tuple(size if type(size) is int else dim(size) for size in sizes)


def encoded(value: Any) -> Any:
    """`value`, lists opened, with our expressions for torch's."""
    if isinstance(value, SYMBOLIC):
        return dim(value)
    if type(value) in (list, tuple) and any(isinstance(entry, (list, tuple, *SYMBOLIC)) for entry in value):
        return type(value)(map(encoded, value))
    return value


def hint(size: Any) -> int:
    """What a size of the arguments is in this call."""
    return compat.size_hint(size) if isinstance(size, torch.SymInt) else int(size)


def size_of(dim: Dim, env: Mapping[str, Any]) -> Any:
    """The int or SymInt that `dim` is when its symbols are those of `env`."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Symbol):
        return env[dim.name]
    if isinstance(dim, Sum):
        total: Any = dim.constant
        for monomial, coefficient in dim.terms:
            part: Any = coefficient
            for atom in monomial:
                part = part * size_of(atom, env)
            total = total + part
        return total
    if isinstance(dim, (Quotient, Remainder)):
        left, right = size_of(dim.left, env), size_of(dim.right, env)
        return left // right if isinstance(dim, Quotient) else left % right
    assert isinstance(dim, (Maximum, Minimum)), dim
    choose = torch.sym_max if isinstance(dim, Maximum) else torch.sym_min
    return functools.reduce(choose, (size_of(arg, env) for arg in dim.args))


# -- sympy ---------------------------------------------------------------------------------------

def of_sympy(expression: Any, known: dict[Any, Dim]) -> Dim:
    """Our form of a sympy expression; `known` has that of symbols with a range, and remembers. UnsupportedError where
    there is none."""
    found = known.get(expression)
    if found is None:
        found = known[expression] = _translated(expression, known)
    return found


def _translated(expression: Any, known: dict[Any, Dim]) -> Dim:
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return Symbol(str(expression))
    kind = type(expression).__name__
    if kind in ("Pow", "PowByNatural") and expression.args[1].is_Integer and 0 <= int(expression.args[1]) < 8:
        return symbolic.product([of_sympy(expression.args[0], known)] * int(expression.args[1]))
    made = OPERATIONS.get(kind)
    if made is None:
        raise errors.UnsupportedError(f"a size known only at run time ({expression})",
                                      why="it is no formula of the sizes of the arguments")
    return made([of_sympy(argument, known) for argument in expression.args])


def _sum(parts: list[Dim]) -> Dim:
    total: Dim = 0
    for part in parts:
        total = total + part
    return total


OPERATIONS: dict[str, Callable[[list[Dim]], Dim]] = {
    "Add": _sum, "Mul": symbolic.product, "Identity": lambda args: args[0],
    **dict.fromkeys(("FloorDiv", "CleanDiv"), lambda args: args[0] // args[1]),
    **dict.fromkeys(("Mod", "PythonMod"), lambda args: args[0] % args[1]),
    "Max": lambda args: maximum(*args), "Min": lambda args: minimum(*args),
}


# -- conditions ------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Condition:
    """`text` is Python over the names in `symbols`."""

    text: str
    symbols: frozenset[str]


RELATIONS = {"Equality": "==", "Unequality": "!=", "StrictLessThan": "<", "LessThan": "<=", "StrictGreaterThan": ">",
             "GreaterThan": ">="}
JOINED = {"And": " and ", "Or": " or "}


def condition(asked: Any, known: dict[Any, Dim]) -> Condition:
    """A sympy condition on sizes; UnsupportedError where it is none on integers."""
    kind = type(asked).__name__
    if kind == "Not":
        inner = condition(asked.args[0], known)
        return Condition(f"not ({inner.text})", inner.symbols)
    if kind in JOINED:
        parts = [condition(argument, known) for argument in asked.args]
        return Condition(JOINED[kind].join(f"({part.text})" for part in parts),
                         frozenset().union(*(part.symbols for part in parts)))
    if kind not in RELATIONS:
        raise errors.UnsupportedError(f"a condition on sizes known only at run time ({asked})",
                                      why="no comparison of sizes says the same")
    left, right = (of_sympy(argument, known) for argument in asked.args)
    return Condition(f"{left} {RELATIONS[kind]} {right}", symbolic.free_symbols(left) | symbolic.free_symbols(right))


Relation = tuple[Dim, str, Dim]
INVERSE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def relations(asked: Any, known: dict[Any, Dim], numbers: Mapping[str, int], holds: bool = True) -> list[Relation]:
    """Relations that hold for `numbers` and from which a sympy condition follows (without `holds`: its negation);
    UnsupportedError where it is none on integers."""
    kind = type(asked).__name__
    if kind == "Not":
        return relations(asked.args[0], known, numbers, not holds)
    if kind in JOINED:
        parts = [relations(argument, known, numbers, holds) for argument in asked.args]
        if (kind == "And") == holds:
            return [relation for part in parts for relation in part]
        return next(part for part in parts if all(_holds(relation, numbers) for relation in part))
    if kind not in RELATIONS:
        raise errors.UnsupportedError(f"a condition on sizes known only at run time ({asked})")
    left, right = (of_sympy(argument, known) for argument in asked.args)
    return [(left, RELATIONS[kind] if holds else INVERSE[RELATIONS[kind]], right)]


def _holds(relation: Relation, numbers: Mapping[str, int]) -> bool:
    left, sign, right = relation
    return HOLDS[sign](symbolic.evaluate(left, numbers), symbolic.evaluate(right, numbers))
