"""One op call as it arrives at the dispatch mode, and what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from monograph import errors
from monograph.capture.draws import REAL
from monograph.capture.layout import Layout
from monograph.capture.recorder import type_of
from monograph.ir.types import ScalarType

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["Call", "flatten_result", "result_type", "tensors_of"]


class Call:
    """One op call with real tensors lifted. `tensors`: every tensor argument in order; `layouts`: theirs."""

    __slots__ = ("args", "func", "kwargs", "layouts", "lifted", "name", "tensors")

    def __init__(self, tracer: Tracer, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.name: str = func._schema.name.split("::")[1]
        self.tensors: list[torch.Tensor] = []
        self.lifted: dict[int, torch.Tensor] = {}     # id(fake) -> the real tensor that was passed
        self.args = tuple(self._convert(tracer, value) for value in args)
        self.kwargs = {name: self._convert(tracer, value) for name, value in kwargs.items()}
        self.layouts = [Layout.of(tensor) for tensor in self.tensors]

    def _convert(self, tracer: Tracer, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            fake = tracer.lift(value)
            if fake is not value:
                self.lifted[id(fake)] = value
            self.tensors.append(fake)
            return fake
        if isinstance(value, (list, tuple)):
            return type(value)(self._convert(tracer, entry) for entry in value) if value else value
        if isinstance(value, torch.Generator):
            if value is REAL:
                return None
            raise errors.UnsupportedError(f"{self.func} draws from a generator of its own", loc=tracer.record.loc,
                                          why="the program draws from the default generator",
                                          hint="draw from the default generator, or pass the numbers in as an argument")
        return value

    def restore(self, result: Any) -> Any:
        """`result` with the caller's own object where an op hands an argument back."""
        if self.lifted and isinstance(result, torch.Tensor):
            return self.lifted.get(id(result), result)
        return result

    def argument(self, position: int) -> Any:
        """The argument at a schema position, its default when it was left out."""
        if position < len(self.args):
            return self.args[position]
        declared = self.func._schema.arguments[position]
        return self.kwargs.get(declared.name, declared.default_value)


def flatten_result(result: Any) -> list[Any]:
    """What an op returned, lists opened; None where it left a result undefined."""
    if isinstance(result, (list, tuple)):
        return [leaf for entry in result for leaf in flatten_result(entry)]
    return [result]


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The tensors in what an op returned."""
    return [leaf for leaf in flatten_result(result) if isinstance(leaf, torch.Tensor)]


def result_type(result: Any) -> Any:
    """The type of one result; an undefined one has the empty f32 type."""
    if isinstance(result, torch.Tensor):
        return type_of(result.shape, result.dtype)
    if result is None:
        return type_of((0,), torch.float32)
    return ScalarType("bool" if isinstance(result, bool) else "int" if isinstance(result, int) else "float")
