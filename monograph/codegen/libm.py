"""Functions that libm computes, one lane at a time: rare ones, and the slow cases of others."""

from __future__ import annotations

from monograph.codegen.mathbuilder import Math
from monograph.codegen.text import Value

__all__ = ["call"]


def call(m: Math, name: str, *args: Value) -> Value:
    """C's `name` (its f32 form has the suffix f) on each lane."""
    first = args[0]
    symbol = name + "f" if first.element == "float" else name
    if not first.lanes:
        return m.text.call(symbol, first.element, 0, *args, attributes="nounwind memory(none)")
    result = Value("poison", first.element, first.lanes)
    for lane in range(first.lanes):
        one = m.text.call(
            symbol, first.element, 0, *(m.text.extract(a, lane) for a in args), attributes="nounwind memory(none)"
        )
        result = m.text.insert(result, one, lane)
    return result
