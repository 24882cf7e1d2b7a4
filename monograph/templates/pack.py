"""Weights rearranged into panels of NR columns, as recipes: plain data, applied by `runtime.derive`.

gemm       B (.., k, n)          -> (.., panels, k, nr)
conv       w (o, c / g, kh, kw)  -> (g, panels, kh, kw, c / g, nr)
depthwise  w (c, 1, kh, kw)      -> (kh, kw, c)
"""

from __future__ import annotations

from monograph.templates.arith import ceil_div

__all__ = ["Step", "conv", "depthwise", "gemm"]

Step = tuple[str, tuple[int, ...]]


def _pad_last(rank: int, axis: int, amount: int) -> tuple[Step, ...]:
    """`amount` zeros behind `axis`, if any."""
    return (("pad", (0, 0) * (rank - 1 - axis) + (0, amount)),) if amount else ()


def gemm(batch: tuple[int, ...], k: int, n: int, nr: int, *, columns_first: bool = False) -> tuple[Step, ...]:
    """Panels of B (*batch, k, n), or with `columns_first` of a weight (*batch, n, k)."""
    rank, panels = len(batch), ceil_div(n, nr)
    padding = panels * nr - n
    lead = tuple(range(rank))
    pad = _pad_last(rank + 2, rank if columns_first else rank + 1, padding)
    if columns_first:
        return (*pad, ("reshape", (*batch, panels, nr, k)), ("permute", (*lead, rank, rank + 2, rank + 1)))
    return (*pad, ("reshape", (*batch, k, panels, nr)), ("permute", (*lead, rank + 1, rank, rank + 2)))


def conv(o: int, c: int, kh: int, kw: int, groups: int, nr: int) -> tuple[Step, ...]:
    """Panels of a convolution's weight (o, c / groups, kh, kw)."""
    each, panels = o // groups, ceil_div(o // groups, nr)
    return (
        ("reshape", (groups, each, c // groups, kh, kw)),
        *_pad_last(5, 1, panels * nr - each),
        ("reshape", (groups, panels, nr, c // groups, kh, kw)),
        ("permute", (0, 1, 4, 5, 3, 2)),
    )


def depthwise(c: int, kh: int, kw: int) -> tuple[Step, ...]:
    return (("reshape", (c, kh, kw)), ("permute", (1, 2, 0)))
