"""Weights rearranged for a template, as recipes of plain steps.

    Step ::= ("pad", amounts as torch.nn.functional.pad takes them) | ("reshape", shape) | ("permute", dims)
           | ("slice", (dim, start, stop))

gemm       B (k, n)              -> (panels, k, panel)
conv       w (o, c / g, kh, kw)  -> (g, panels, kh, kw, c / g, panel)
depthwise  w (c, 1, kh, kw)      -> (kh, kw, c)
"""

from __future__ import annotations

from typing import TypeAlias

import torch

__all__ = ["Step", "apply", "conv", "depthwise", "gemm", "shape_after"]

Step: TypeAlias = tuple[str, tuple[int, ...]]
Steps: TypeAlias = tuple[Step, ...]


def _panels(columns: int, panel: int) -> int:
    return -(-columns // panel)


def gemm(k: int, n: int, panel: int) -> Steps:
    panels = _panels(n, panel)
    return (("pad", (0, panels * panel - n)), ("reshape", (k, panels, panel)), ("permute", (1, 0, 2)))


def conv(o: int, c: int, kh: int, kw: int, groups: int, panel: int) -> Steps:
    """`c` counts all input channels, `o` all output channels."""
    each, panels = o // groups, _panels(o // groups, panel)
    inner = (c // groups, kh, kw)
    return (
        ("reshape", (groups, each, *inner)),
        ("pad", (0, 0, 0, 0, 0, 0, 0, panels * panel - each)),
        ("reshape", (groups, panels, panel, *inner)),
        ("permute", (0, 1, 4, 5, 3, 2)),
    )


def depthwise(c: int, kh: int, kw: int) -> Steps:
    return (("reshape", (c, kh, kw)), ("permute", (1, 2, 0)))


def shape_after(shape: tuple[int, ...], steps: Steps) -> tuple[int, ...]:
    """The shape that `steps` make of `shape`."""
    for kind, numbers in steps:
        if kind == "reshape":
            shape = numbers
        elif kind == "permute":
            shape = tuple(shape[d] for d in numbers)
        elif kind == "slice":
            dim, start, stop = numbers
            shape = (*shape[:dim], stop - start, *shape[dim + 1:])
        else:
            rank = len(shape)
            before, after = numbers[::2], numbers[1::2]
            extra = [0] * rank
            for k, (low, high) in enumerate(zip(before, after, strict=True)):
                extra[rank - 1 - k] = low + high
            shape = tuple(n + more for n, more in zip(shape, extra, strict=True))
    return shape


def apply(tensor: torch.Tensor, steps: Steps) -> torch.Tensor:
    """`steps` done by torch; contiguous."""
    for kind, numbers in steps:
        if kind == "reshape":
            tensor = tensor.reshape(numbers)
        elif kind == "permute":
            tensor = tensor.permute(numbers)
        elif kind == "slice":
            dim, start, stop = numbers
            tensor = tensor.narrow(dim, start, stop - start)
        else:
            tensor = torch.nn.functional.pad(tensor, numbers)
    return tensor.contiguous()
