"""Library steps: one op run by torch on tensors laid over the program's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat
from monograph.errors import CompileError
from monograph.runtime import threads
from monograph.runtime.program import Library, SlotRef

__all__ = ["Call", "Resolve", "View", "prepare"]

View = Callable[[int], torch.Tensor]
Resolve = Callable[[str], Callable[..., Any] | None]
"""Op name -> function(operands, attributes) for ops that torch does not have (`mono.*`); None: ask torch."""

_OPERAND_TYPES = frozenset({
    "Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]",
})


@dataclass(frozen=True, slots=True)
class Call:
    """A step made ready: `run(view)` gives the op's results as a tuple."""

    step: Library
    function: Callable[[list[Any]], Any]

    def run(self, view: View) -> tuple[Any, ...]:
        operands = [_operand(entry, view) for entry in self.step.operands]
        if self.step.op in compat.DENSE_ONLY:
            operands = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in operands]
        threads.make_torch_safe()
        with compat.no_torch_function(), compat.kernels_only():
            result = self.function(operands)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def prepare(step: Library, resolve: Resolve | None = None) -> Call:
    """Find the function behind a step; CompileError where there is none."""
    own = resolve(step.op) if resolve is not None else None
    if own is not None:
        return Call(step, lambda operands: own(operands, step.attributes))
    try:
        overload = compat.overload(step.op)
    except KeyError:
        raise CompileError(f"the program calls {step.op!r}, which this torch does not have") from None
    return Call(step, _bound(overload, step))


def _bound(overload: Any, step: Library) -> Callable[[list[Any]], Any]:
    """Operands go to the tensor parameters of the schema in order, attributes to the others by name."""
    parameters = compat.schema_arguments(overload)
    takes = [str(parameter.type) in _OPERAND_TYPES for parameter in parameters]
    if sum(takes) != len(step.operands):
        raise CompileError(f"{step.op} takes {sum(takes)} operands; the program gives {len(step.operands)}")
    plan = []
    for parameter, is_operand in zip(parameters, takes):
        if not is_operand and parameter.name not in step.attributes:
            raise CompileError(f"{step.op}: the program gives no {parameter.name!r}")
        constant = None if is_operand else _thaw(step.attributes[parameter.name])
        plan.append((parameter.name, parameter.kwarg_only, is_operand, constant))

    def call(operands: list[Any]) -> Any:
        slots = iter(operands)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, by_name, is_operand, constant in plan:
            value = next(slots) if is_operand else constant
            if by_name:
                kwargs[name] = value
            else:
                args.append(value)
        return overload(*args, **kwargs)

    return call


def _operand(entry: Any, view: View) -> Any:
    if isinstance(entry, SlotRef):
        return view(entry.slot)
    if isinstance(entry, tuple):
        return [_operand(part, view) for part in entry]
    return entry


def _thaw(value: Any) -> Any:
    return [_thaw(entry) for entry in value] if isinstance(value, tuple) else value
