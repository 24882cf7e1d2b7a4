"""How a derived weight is computed, as JSON data.

    Recipe ::= {"graph": text?, "steps": [[name, arguments]*]}
    Step   ::= pad amounts (as torch.nn.functional.pad takes them) | reshape sizes | permute dims
             | slice (dim, start, stop) | cast (dtype name) | concat (dim) | contiguous ()

A graph (the prologue of a captured graph, or a part of it) makes one tensor of the sources; it is evaluated by a
function that the compiler hands in. Steps act on what it made, or on every source in turn; `concat` joins all into one.

# Note [Copies without copies in between]
Steps end in memory the copy is to have (`Computation.into`). Nearly all are views, so that one `copy_` does the work.
Two things would cost a second copy of a large weight. Padding comes before a reshape that cuts the padded dim into
panels: the whole panels, the last one and the zeros behind it are written one by one. A graph that ends in a pointwise
op (a weight times a scale) leaves that op undone (`Pointwise`): the operands go through the steps as views, and the op
writes where the copy is to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from monograph.errors import CompileError
from monograph.ir import dtypes

__all__ = ["Computation", "Evaluate", "Pointwise", "computation"]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A tensor still to be made: `write(*operands, out=place)`. Operands have the shape and dtype of the result."""

    write: Callable[..., Any]
    operands: tuple[torch.Tensor, ...]

    def made(self) -> torch.Tensor:
        """The tensor."""
        first = self.operands[0]
        place = torch.empty(first.shape, dtype=first.dtype)
        self.write(*self.operands, out=place)
        return place

    def seen(self, view: Callable[[torch.Tensor], torch.Tensor]) -> Pointwise:
        """The same elements, looked at through a view."""
        return Pointwise(self.write, tuple(map(view, self.operands)))


def _copy(tensor: torch.Tensor, *, out: torch.Tensor) -> None:
    out.copy_(tensor)


First = Callable[..., "torch.Tensor | Pointwise"]
Evaluate = Callable[[str], First]
"""Text of a graph -> function of its inputs."""

Step: TypeAlias = tuple[str, tuple[Any, ...]]

_STEPS: dict[str, Callable[..., torch.Tensor]] = {
    "pad": lambda tensor, *amounts: torch.nn.functional.pad(tensor, amounts) if any(amounts) else tensor,
    "reshape": lambda tensor, *sizes: tensor.reshape(sizes),
    "permute": lambda tensor, *dims: tensor.permute(dims),
    "slice": lambda tensor, dim, start, stop: tensor.narrow(dim, start, stop - start),
    "cast": lambda tensor, name: tensor.to(dtypes.BY_NAME[name]),
    "contiguous": lambda tensor: tensor.contiguous(),
}




_VIEWS = ("reshape", "permute", "slice")


class Computation:
    """source tensors -> derived tensor: `first`, then steps."""

    def __init__(self, first: First, steps: Sequence[Step]) -> None:
        self._first = first
        self._steps = steps

    def __call__(self, *sources: torch.Tensor) -> torch.Tensor:
        made = self._first(*sources)
        tensor = made.made() if isinstance(made, Pointwise) else made
        for name, arguments in self._steps:
            tensor = _STEPS[name](tensor, *arguments)
        return tensor

    def into(self, home: torch.Tensor, *sources: torch.Tensor) -> None:
        """Write the derived tensor to `home`. See Note [Copies without copies in between]."""
        made = self._first(*sources)
        pending = made if isinstance(made, Pointwise) else Pointwise(_copy, (made,))
        for number, (name, arguments) in enumerate(self._steps):
            if name == "pad" and not any(arguments):
                continue
            if name == "pad" and _pad_into(home, pending, arguments, self._steps[number + 1:]):
                return
            pending = _step(pending, name, arguments)
        found = pending.operands[0]
        if found.shape != home.shape or found.dtype != home.dtype:
            raise CompileError(f"a derived weight came out as {_kind(found)}; {_kind(home)} was expected")
        pending.write(*pending.operands, out=home)


def _step(pending: Pointwise, name: str, arguments: Sequence[Any]) -> Pointwise:
    if name in _VIEWS or pending.write is _copy:
        return pending.seen(lambda tensor: _STEPS[name](tensor, *arguments))
    return Pointwise(_copy, (_STEPS[name](pending.made(), *arguments),))


def _kind(tensor: torch.Tensor) -> str:
    return f"{dtypes.name(tensor.dtype)}{list(tensor.shape)}"


def _pad_into(home: torch.Tensor, pending: Pointwise, amounts: Sequence[int], rest: Sequence[Step]) -> bool:
    """Write what is pending, padded at the end of one dim, cut into panels along it and permuted, to `home`.

    False where `rest` of the steps does something else.
    """
    shape, dtype = pending.operands[0].shape, pending.operands[0].dtype
    padded = [position for position, amount in enumerate(amounts) if amount]
    if len(padded) != 1 or padded[0] % 2 == 0 or amounts[padded[0]] < 0 or not rest or rest[0][0] != "reshape":
        return False
    dim = len(shape) - 1 - padded[0] // 2
    sizes, permutes = rest[0][1], rest[1:]
    panels, panel = (*sizes, 0, 0)[dim:dim + 2]
    cut = (*shape[:dim], panels, panel, *shape[dim + 1:])
    if sizes != cut or panels * panel != shape[dim] + amounts[padded[0]] or dtype != home.dtype:
        return False
    for name, dims in reversed(permutes):
        if name != "permute" or sorted(dims) != list(range(home.dim())):
            return False
        home = home.permute([dims.index(d) for d in range(home.dim())])
    if home.shape != cut:
        return False
    whole, left = divmod(shape[dim], panel)
    full = pending.seen(lambda tensor: tensor.narrow(dim, 0, whole * panel).unflatten(dim, (whole, panel)))
    full.write(*full.operands, out=home.narrow(dim, 0, whole))
    home.narrow(dim, whole, panels - whole).zero_()
    if left:
        last = pending.seen(lambda tensor: tensor.narrow(dim, whole * panel, left))
        last.write(*last.operands, out=home.select(dim, whole).narrow(dim, 0, left))
    return True


def computation(recipe: dict[str, Any], evaluate: Evaluate | None = None) -> Computation:
    """The function a recipe stands for. CompileError when it makes no sense."""
    given = recipe.get("steps", ()) if "graph" in recipe else recipe["steps"]
    steps = [(name, tuple(arguments)) for name, arguments in given]
    for name, _ in steps:
        if name not in _STEPS and name != "concat":
            raise CompileError(f"unknown step {name!r} in the recipe of a derived weight")
    if "graph" in recipe:
        if evaluate is None:
            raise CompileError("a derived weight is computed by a graph, and nothing was given to evaluate it")
        return Computation(evaluate(recipe["graph"]), steps)
    joins = [number for number, (name, _) in enumerate(steps) if name == "concat"]
    last = joins[-1] + 1 if joins else 0
    return Computation(_joined(steps[:last]), steps[last:])


def _joined(steps: Sequence[Step]) -> Callable[..., torch.Tensor]:
    """Steps that leave one tensor of several; without any: of the only source."""
    def join(*sources: torch.Tensor) -> torch.Tensor:
        tensors = list(sources)
        for name, arguments in steps:
            if name == "concat":
                tensors = [torch.cat(tensors, *arguments)]
            else:
                tensors = [_STEPS[name](tensor, *arguments) for tensor in tensors]
        if len(tensors) != 1:
            raise CompileError(f"a recipe left {len(tensors)} tensors; one was expected")
        return tensors[0]

    return join
