"""Library steps: one op run by torch on tensors laid over the program's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from monograph import compat
from monograph.errors import CompileError
from monograph.ir.symbolic import Expr
from monograph.runtime import threads
from monograph.runtime.held import Symbols, has_symbols, numbers
from monograph.runtime.program import Library, SlotRef

__all__ = ["Call", "Resolve", "View", "prepare"]

View = Callable[[int], Any]
Resolve = Callable[[str], Callable[..., Any] | None]
"""Op name -> function(operands, attributes) for ops that torch does not have (`mono.*`); None: ask torch."""

_OPERAND_TYPES = frozenset({
    "Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]",
})


@dataclass(frozen=True, slots=True)
class Call:
    """A step made ready: `run(view)` gives the op's results as a tuple."""

    step: Library
    function: Callable[[list[Any], Symbols], Any]

    def run(self, view: View, symbols: Symbols) -> tuple[Any, ...]:
        operands = [_operand(entry, view, symbols) for entry in self.step.operands]
        if self.step.op in compat.DENSE_ONLY:
            operands = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in operands]
        threads.make_torch_safe()
        with compat.no_torch_function(), compat.kernels_only():
            result = self.function(operands, symbols)
        return (result,) if isinstance(result, torch.Tensor) else tuple(_flat(result))


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for entry in result:
            yield from _flat(entry)
    else:
        yield result


def prepare(step: Library, resolve: Resolve | None = None) -> Call:
    """Find the function behind a step; CompileError where there is none."""
    own = resolve(step.op) if resolve is not None else None
    if own is not None:
        return Call(step, _special(own, step))
    try:
        overload = compat.overload(step.op)
    except KeyError:
        raise CompileError(f"the program calls {step.op!r}, which this torch does not have") from None
    return Call(step, _bound(overload, step))


def _special(own: Callable[..., Any], step: Library) -> Callable[[list[Any], Symbols], Any]:
    attributes = step.attributes
    if not has_symbols(tuple(attributes.values())):
        return lambda operands, symbols: own(operands, attributes)
    return lambda operands, symbols: own(operands, {k: numbers(v, symbols) for k, v in attributes.items()})


def _bound(overload: Any, step: Library) -> Callable[[list[Any], Symbols], Any]:
    """Operands go to the tensor parameters of the schema in order, attributes to the others by name."""
    parameters = compat.schema_arguments(overload)
    takes = [str(parameter.type) in _OPERAND_TYPES for parameter in parameters]
    if sum(takes) != len(step.operands):
        raise CompileError(f"{step.op} takes {sum(takes)} operands; the program gives {len(step.operands)}")
    constants: list[Any] = []
    named: dict[str, Any] = {}
    places: list[int | str] = []                # of the operands: a position or a name
    symbolic: list[tuple[int | str, Any]] = []
    for parameter, is_operand in zip(parameters, takes):
        if not is_operand and parameter.name not in step.attributes:
            raise CompileError(f"{step.op}: the program gives no {parameter.name!r}")
        constant = None if is_operand else _thaw(step.attributes[parameter.name])
        at: int | str = parameter.name if parameter.kwarg_only else len(constants)
        if is_operand:
            places.append(at)
        elif has_symbols(constant):
            symbolic.append((at, constant))
        if isinstance(at, str):
            named[at] = constant
        else:
            constants.append(constant)

    is_plain = not named and not symbolic

    def call(operands: list[Any], symbols: Symbols) -> Any:
        arguments: list[Any] = list(constants)
        if is_plain:
            for place, operand in zip(places, operands):
                arguments[place] = operand      # type: ignore[index]
            return overload(*arguments)
        kwargs = dict(named)
        computed = [(at, numbers(entry, symbols)) for at, entry in symbolic]
        for at, value in (*zip(places, operands), *computed):
            if isinstance(at, str):
                kwargs[at] = value
            else:
                arguments[at] = value
        return overload(*arguments, **kwargs)

    return call


def _operand(entry: Any, view: View, symbols: Symbols) -> Any:
    if isinstance(entry, SlotRef):
        return view(entry.slot)
    if isinstance(entry, tuple):
        return [_operand(part, view, symbols) for part in entry]
    return numbers(entry, symbols) if isinstance(entry, Expr) else entry


def _thaw(value: Any) -> Any:
    return [_thaw(entry) for entry in value] if isinstance(value, tuple) else value
