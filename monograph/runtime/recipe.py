"""How a derived weight is computed, as JSON data.

    Recipe ::= {"steps": [[name, arguments]*]} | {"graph": text}
    Step   ::= pad amounts (as torch.nn.functional.pad takes them) | reshape sizes | permute dims
             | slice (dim, start, stop) | cast (dtype name) | concat (dim) | contiguous ()

Steps act on every source tensor in turn; `concat` joins all into one. A graph (the prologue of a captured
graph, or a part of it) is evaluated by a function that the compiler hands in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from monograph.errors import CompileError
from monograph.ir import dtypes

__all__ = ["Evaluate", "computation"]

Evaluate = Callable[[str], Callable[..., torch.Tensor]]
"""Text of a graph -> function of its inputs."""

_STEPS: dict[str, Callable[..., torch.Tensor]] = {
    "pad": lambda tensor, *amounts: torch.nn.functional.pad(tensor, amounts) if any(amounts) else tensor,
    "reshape": lambda tensor, *sizes: tensor.reshape(sizes),
    "permute": lambda tensor, *dims: tensor.permute(dims),
    "slice": lambda tensor, dim, start, stop: tensor.narrow(dim, start, stop - start),
    "cast": lambda tensor, name: tensor.to(dtypes.BY_NAME[name]),
    "contiguous": lambda tensor: tensor.contiguous(),
}


def computation(recipe: dict[str, Any], evaluate: Evaluate | None = None) -> Callable[..., torch.Tensor]:
    """The function a recipe stands for: source tensors -> derived tensor. CompileError when it makes no sense."""
    if "graph" in recipe:
        if evaluate is None:
            raise CompileError("a derived weight is computed by a graph, and nothing was given to evaluate it")
        return evaluate(recipe["graph"])
    steps = [(name, tuple(arguments)) for name, arguments in recipe["steps"]]
    for name, _ in steps:
        if name not in _STEPS and name != "concat":
            raise CompileError(f"unknown step {name!r} in the recipe of a derived weight")

    def compute(*sources: torch.Tensor) -> torch.Tensor:
        tensors = list(sources)
        for name, arguments in steps:
            if name == "concat":
                tensors = [torch.cat(tensors, *arguments)]
            else:
                tensors = [_STEPS[name](tensor, *arguments) for tensor in tensors]
        if len(tensors) != 1:
            raise CompileError(f"a recipe left {len(tensors)} tensors; one was expected")
        return tensors[0]

    return compute
