"""How a derived weight is computed, as JSON data.

    Recipe ::= {"graph": text?, "steps": [[name, arguments]*]}
    Step   ::= pad amounts (as torch.nn.functional.pad takes them) | reshape sizes | permute dims
             | slice (dim, start, stop) | cast (dtype name) | concat (dim) | contiguous ()

A graph (the prologue of a captured graph, or a part of it) makes one tensor of the sources; it is evaluated by a
function that the compiler hands in. Steps act on what it made, or on every source in turn; `concat` joins all into one.

# Note [Copies without copies in between]
Steps end in memory the copy is to have (`Computation.into`). Nearly all are views, so that one `copy_` does the work;
what would cost a second copy of a large weight is padding, which comes before a reshape that cuts the padded dim into
panels. There the whole panels, the last one and the zeros behind it are written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from monograph.errors import CompileError
from monograph.ir import dtypes

__all__ = ["Computation", "Evaluate", "computation"]

Evaluate = Callable[[str], Callable[..., torch.Tensor]]
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




class Computation:
    """source tensors -> derived tensor: `first`, then steps."""

    def __init__(self, first: Callable[..., torch.Tensor], steps: Sequence[Step]) -> None:
        self._first = first
        self._steps = steps

    def __call__(self, *sources: torch.Tensor) -> torch.Tensor:
        return _apply(self._first(*sources), self._steps)

    def into(self, home: torch.Tensor, *sources: torch.Tensor) -> None:
        """Write the derived tensor to `home`. See Note [Copies without copies in between]."""
        tensor = self._first(*sources)
        for number, (name, arguments) in enumerate(self._steps):
            if name == "pad" and _pad_into(home, tensor, arguments, self._steps[number + 1:]):
                return
            tensor = _STEPS[name](tensor, *arguments)
        if tensor.shape != home.shape or tensor.dtype != home.dtype:
            raise CompileError(f"a derived weight came out as {_kind(tensor)}; {_kind(home)} was expected")
        home.copy_(tensor)


def _apply(tensor: torch.Tensor, steps: Sequence[Step]) -> torch.Tensor:
    for name, arguments in steps:
        tensor = _STEPS[name](tensor, *arguments)
    return tensor


def _kind(tensor: torch.Tensor) -> str:
    return f"{dtypes.name(tensor.dtype)}{list(tensor.shape)}"


def _pad_into(home: torch.Tensor, tensor: torch.Tensor, amounts: Sequence[int], rest: Sequence[Step]) -> bool:
    """Write `tensor`, padded at the end of one dim, cut into panels along it and permuted, to `home`.

    False where `rest` of the steps does something else, or nothing is padded.
    """
    padded = [position for position, amount in enumerate(amounts) if amount]
    if len(padded) != 1 or padded[0] % 2 == 0 or amounts[padded[0]] < 0 or not rest or rest[0][0] != "reshape":
        return False
    dim = tensor.dim() - 1 - padded[0] // 2
    sizes, permutes = rest[0][1], rest[1:]
    panels, panel = (*sizes, 0, 0)[dim:dim + 2]
    cut = (*tensor.shape[:dim], panels, panel, *tensor.shape[dim + 1:])
    if sizes != cut or panels * panel != tensor.shape[dim] + amounts[padded[0]] or tensor.dtype != home.dtype:
        return False
    for name, dims in reversed(permutes):
        if name != "permute" or sorted(dims) != list(range(home.dim())):
            return False
        home = home.permute([dims.index(d) for d in range(home.dim())])
    if home.shape != cut:
        return False
    whole, left = divmod(tensor.shape[dim], panel)
    home.narrow(dim, 0, whole).copy_(tensor.narrow(dim, 0, whole * panel).unflatten(dim, (whole, panel)))
    home.narrow(dim, whole, panels - whole).zero_()
    if left:
        home.select(dim, whole).narrow(dim, 0, left).copy_(tensor.narrow(dim, whole * panel, left))
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
