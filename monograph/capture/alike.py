"""Which values of a program are surely the same: results of equal ops on the same values.

    number(value)    equal for two values that hold the same elements whatever the call
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from monograph.ir.graph import Value
from monograph.ir.op import Trait

__all__ = ["Alike"]

DEEPEST = 40        # ops on the way back


class Alike:
    """The values of one trace."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.known: dict[Hashable, int] = {}

    def number(self, value: Value, depth: int = DEEPEST) -> int:
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = self.known.setdefault(self._key(value, depth), len(self.known))
        return found

    def _key(self, value: Value, depth: int) -> Hashable:
        node = value.node
        if node is None or node.regions or not node.op.is_pure or node.op.has(Trait.RANDOM) or not depth:
            return value

        def operand(entry: Any) -> Any:
            if isinstance(entry, Value):
                return Value, self.number(entry, depth - 1)
            return tuple(map(operand, entry)) if isinstance(entry, tuple) else (type(entry), entry)

        key = node.op.name, value.index, operand(node.operands), operand(tuple(node.attributes.values()))
        try:
            hash(key)
        except TypeError:            # an attribute that is no key
            return value
        return key
