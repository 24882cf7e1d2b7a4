"""Values that eager refuses and the program's kernels would take.

    CHECKS   of an op as it reaches the tracer        aten.binary_cross_entropy(x, y): both between 0 and 1
    CALLED   of a function that opens without saying  one_hot, quantile: torch leaves the check out for fakes

Each gives the conditions under which eager goes on; a call in which one is false runs in Python, which finds the words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from monograph import compat
from monograph.capture import blame

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["check_call", "check_op"]

aten = torch.ops.aten
Conditions = Callable[..., Iterator[torch.Tensor]]


def _within(x: torch.Tensor) -> torch.Tensor:
    return ((x >= 0) & (x <= 1)).all()


def _probabilities(x: torch.Tensor, target: torch.Tensor, *rest: Any, **named: Any) -> Iterator[torch.Tensor]:
    yield _within(x)
    yield _within(target)


def _classes(tensor: torch.Tensor, num_classes: int = -1) -> Iterator[torch.Tensor]:
    yield (tensor >= 0).all()
    if num_classes > 0:
        yield (tensor < num_classes).all()


def _quantiles(input: Any, q: Any, *rest: Any, **named: Any) -> Iterator[torch.Tensor]:
    if isinstance(q, torch.Tensor):
        yield _within(q)


CHECKS: dict[Any, Conditions] = {aten.binary_cross_entropy.default: _probabilities}
CALLED: dict[Any, Conditions] = {
    functional.one_hot: _classes, torch.quantile: _quantiles, torch.Tensor.quantile: _quantiles,
    torch.nanquantile: _quantiles, torch.Tensor.nanquantile: _quantiles,
}


def check_op(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> None:
    """Record what eager checks before op `func`."""
    conditions = CHECKS.get(func)
    if conditions is not None:
        with tracer, torch.no_grad():
            for ok in conditions(*args, **kwargs):
                tracer.only_if(ok)


def check_call(tracer: Tracer, func: Any, args: Any, kwargs: Any) -> None:
    """Record what eager checks in a call of `func`; arguments that do not fit it are torch's to refuse."""
    conditions = CALLED.get(func)
    if conditions is None:
        return
    try:
        inspect.signature(conditions).bind(*args, **kwargs)
    except TypeError:
        return
    if not isinstance(args[0] if args else None, compat.FakeTensor):
        return
    tracer.record.loc = blame.location(blame.user_frame(3))
    with torch._C.DisableTorchFunction(), torch.no_grad():
        for ok in conditions(*args, **kwargs):
            tracer.only_if(ok)
