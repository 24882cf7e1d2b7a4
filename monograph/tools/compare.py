"""The first difference a user could see between two results.

    difference(got, want, ...) -> str | None        containers and their types, then every leaf:
        tensors     class, dtype, shape, device, strides (where they mean something), requires_grad, values (NaN = NaN)
        others      type and value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["difference", "shared_memory", "values_differ"]

TOLERANCE: dict[torch.dtype, tuple[float, float]] = {   # rtol, atol; the other dtypes are compared exactly
    torch.float64: (1e-7, 1e-8),
    torch.float32: (1e-4, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float16: (2e-3, 1e-3),
    torch.complex64: (1e-4, 1e-5),
    torch.complex128: (1e-7, 1e-8),
}
COMPARABLE = (int, float, str, bool, complex, bytes, type(None), torch.dtype, torch.device, torch.Size)


def difference(
    got: Any, want: Any, what: str = "result", *, rtol: float | None = None, atol: float | None = None,
) -> str | None:
    """One sentence on the first difference, None where there is none."""
    got_leaves, got_spec = pytree.tree_flatten(got)
    want_leaves, want_spec = pytree.tree_flatten(want)
    if got_spec != want_spec:
        return f"{what} has structure {got_spec}, eager {want_spec}"
    for path, mine, theirs in zip(_paths(want), got_leaves, want_leaves):
        found = _leaf(mine, theirs, rtol, atol)
        if found is not None:
            return f"{what}{path}: {found}"
    return None


def _paths(tree: Any) -> list[str]:
    return [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]


def _leaf(got: Any, want: Any, rtol: float | None, atol: float | None) -> str | None:
    if type(got) is not type(want):
        return f"is a {type(got).__name__}, eager a {type(want).__name__}"
    if isinstance(want, torch.Tensor):
        return _tensor(got, want, rtol, atol)
    if isinstance(want, COMPARABLE) and not (got == want or (got != got and want != want)):
        return f"is {got!r}, eager {want!r}"
    return None


def _tensor(got: torch.Tensor, want: torch.Tensor, rtol: float | None, atol: float | None) -> str | None:
    for name in ("dtype", "shape", "device", "layout", "requires_grad"):
        mine, theirs = getattr(got, name), getattr(want, name)
        if mine != theirs:
            return f"{name} {mine}, eager {theirs}"
    if want.layout is torch.strided and strides(got) != strides(want):
        return f"strides {got.stride()}, eager {want.stride()}"
    return values_differ(got, want, rtol, atol)


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides where they mean something: not in dims of size 1, not in an empty tensor."""
    if tensor.numel() == 0:
        return ()
    return tuple(stride for size, stride in zip(tensor.shape, tensor.stride()) if size != 1)


def values_differ(
    got: torch.Tensor, want: torch.Tensor, rtol: float | None = None, atol: float | None = None,
) -> str | None:
    """How far apart two tensors of one dtype and shape are, None when within tolerance."""
    default = TOLERANCE.get(want.dtype, (0.0, 0.0))
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    got, want = got.detach(), want.detach()
    if torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return None
    wrong = ~torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    index = tuple(wrong.nonzero()[0].tolist())
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ; at {list(index)} {got[index].item()}, "
            f"eager {want[index].item()} (rtol {rtol:g}, atol {atol:g})")


def shared_memory(results: Sequence[Any], others: Sequence[Any]) -> set[tuple[int, str, int, bool]]:
    """Which result shares memory with, or is, which earlier result or other tensor."""
    found = set()
    for i, result in enumerate(results):
        for name, group in (("result", results[:i]), ("input", others)):
            for j, other in enumerate(group):
                if isinstance(result, torch.Tensor) and isinstance(other, torch.Tensor) and _overlap(result, other):
                    found.add((i, name, j, result is other))
    return found


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.layout is not torch.strided or b.layout is not torch.strided or not a.numel() or not b.numel():
        return a is b
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
