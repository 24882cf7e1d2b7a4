"""Which sizes that values decide the native code knows.

    numbers(items) -> symbol: number of the held value      those that kernels tell, and nobody else
    is_bounded(size, symbols)                               has it a bound where these symbols have one?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from monograph.ir import symbolic
from monograph.ir.edit import symbols_in
from monograph.ir.graph import Value
from monograph.ir.symbolic import Expr, Symbol
from monograph.schedule.kernel import Item, LibraryCall, Move, Record, is_held

__all__ = ["is_bounded", "numbers"]

SOME = 64       # any number: whether there is a bound does not depend on it


def numbers(items: Iterable[Item]) -> dict[str, Value]:
    """The symbols, with the numbers that they are."""
    found: dict[str, Value] = {}
    others: set[str] = set()
    for item in items:
        if isinstance(item, LibraryCall):
            node = item.node
            if node.op.name == "mono.number" and not is_held(node.inputs[0]):
                found[node.attributes["symbol"]] = node.result
            else:
                others = others.union(*(symbols_in(value.type) for value in node.results))
        elif isinstance(item, Move):
            others = others.union(*(symbols_in(value.type) for value in item.binds))
        elif isinstance(item, Record):
            others = others.union(*(symbols_in(value.type) for value in item.results))
    return {name: value for name, value in found.items() if name not in others}


def is_bounded(size: Expr, waiting: Collection[str]) -> bool:
    env = {name: Symbol(name, 0, SOME) if name in waiting else SOME for name in symbolic.free_symbols(size)}
    return symbolic.bounds(symbolic.substitute(size, env))[1] is not None      # type: ignore[arg-type]
