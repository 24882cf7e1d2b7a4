"""The functional twin of an op that writes: the overload with the same arguments that returns instead.

    add_.Tensor -> add.Tensor        exp.out -> exp.default        _foreach_mul_.Scalar -> _foreach_mul.Scalar
    bernoulli_.float -> bernoulli.p  (random fills: see `fills`)

Names and types of all arguments that are not outputs must agree; there is no table of ops here.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

__all__ = ["METADATA", "RANDOM_FILLS", "RANDOM_TWINS", "out_names", "twin", "written"]

aten = torch.ops.aten

# Ops that change where a tensor lies, not what its storage holds.
METADATA = frozenset({
    "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "detach_", "set_",
    "resize_", "resize_as_",
})

# Fills whose result does not depend on the old content, with the op that draws the same numbers.
RANDOM_TWINS: dict[Any, Any] = {
    aten.bernoulli_.float: aten.bernoulli.p,
    aten.uniform_.default: aten.uniform.default,
    aten.normal_.default: aten.normal_functional.default,
    aten.exponential_.default: aten.exponential.default,
    aten.geometric_.default: aten.geometric.default,
    aten.cauchy_.default: aten.cauchy.default,
    aten.log_normal_.default: aten.log_normal.default,
    aten.random_.default: aten.random.default,
    aten.random_.to: aten.random.to,
    getattr(aten.random_, "from"): getattr(aten.random, "from"),
}
RANDOM_FILLS = frozenset(RANDOM_TWINS)
TENSOR_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory"})     # of factories, not of their out= forms


@functools.cache
def written(func: Any) -> tuple[int, ...]:
    """Positions of the arguments that `func` writes to."""
    return tuple(i for i, argument in enumerate(func._schema.arguments)
                 if argument.alias_info is not None and argument.alias_info.is_write)


@functools.cache
def out_names(func: Any) -> frozenset[str]:
    """Names of the `out=` arguments."""
    return frozenset(argument.name for argument in func._schema.arguments if argument.is_out)


def _names_to_try(func: Any) -> list[tuple[str, str]]:
    name, overload = func._schema.name.split("::")[1], func._overloadname
    if name.endswith("_") and not name.endswith("__"):
        return [(name[:-1], overload)]
    if name.startswith("__i") and name.endswith("__"):
        return [(f"__{name[3:]}", overload)]
    if overload == "out":
        return [(name, "default")]
    if overload.endswith("_out"):
        return [(name, overload[:-4])]
    return [(name, "default")] if out_names(func) else []


@functools.cache
def twin(func: Any) -> Any | None:
    """The pure overload that computes what `func` writes, or None."""
    if func in RANDOM_TWINS:
        return RANDOM_TWINS[func]
    namespace = getattr(torch.ops, func.namespace)
    wanted = [(a.name, str(a.type)) for a in func._schema.arguments if not a.is_out]
    for name, overload in _names_to_try(func):
        packet = getattr(namespace, name, None)
        if packet is None:
            continue
        for candidate in (overload, *packet.overloads()):
            pure = getattr(packet, candidate, None)
            if pure is None or pure._schema.is_mutable:
                continue
            arguments = [(a.name, str(a.type)) for a in pure._schema.arguments]
            extra = {name for name, _ in arguments[len(wanted):]}
            if arguments[:len(wanted)] == wanted and extra <= TENSOR_OPTIONS:
                return pure
    return None
