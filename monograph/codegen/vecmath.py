"""The elementary functions, by name: `FUNCTIONS[name](math, *operands) -> Value`."""

from __future__ import annotations

from collections.abc import Callable

from monograph.codegen import libm
from monograph.codegen.text import Value

__all__ = ["FUNCTIONS"]


def _libm(name: str) -> Callable[..., Value]:
    return lambda m, *args: libm.call(m, name, *args)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    name: _libm(name)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "lgamma", "pow", "atan2", "fmod", "nextafter", "hypot",
    )
}
FUNCTIONS["sigmoid"] = lambda m, x: m.div(1.0, m.add(1.0, libm.call(m, "exp", m.neg(x))))
