"""Compare what a user can see of two results: values, dtype, shape, strides, Python types, aliasing."""

from __future__ import annotations

import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["TOLERANCE", "assert_same", "lines_of"]

TOLERANCE: dict[torch.dtype, tuple[float, float]] = {   # rtol, atol
    torch.float64: (1e-7, 1e-8),
    torch.float32: (2e-5, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float16: (2e-3, 1e-3),
    torch.complex64: (2e-5, 1e-5),
    torch.complex128: (1e-7, 1e-8),
}


def lines_of(error: BaseException, file: str = "model.py") -> list[int | None]:
    """The lines of a file that the traceback of an error shows."""
    return [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(file)]


def assert_same(actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None) -> None:
    """AssertionError naming the first difference between two pytrees of results."""
    actual_leaves, actual_tree = pytree.tree_flatten(actual)
    expected_leaves, expected_tree = pytree.tree_flatten(expected)
    assert actual_tree == expected_tree, f"structure: {actual_tree} != {expected_tree}"
    for position, (got, want) in enumerate(zip(actual_leaves, expected_leaves, strict=True)):
        where = f"result {position}"
        assert type(got) is type(want), f"{where}: type {type(got)} != {type(want)}"
        if isinstance(want, torch.Tensor):
            _assert_tensor(where, got, want, rtol, atol)
        elif isinstance(want, float):
            torch.testing.assert_close(got, want, rtol=rtol or 1e-6, atol=atol or 1e-6, equal_nan=True)
        elif isinstance(want, (int, str, bool, complex, type(None))):
            assert got == want, f"{where}: {got!r} != {want!r}"


def _assert_tensor(where: str, got: torch.Tensor, want: torch.Tensor, rtol: float | None, atol: float | None) -> None:
    assert got.dtype is want.dtype, f"{where}: dtype {got.dtype} != {want.dtype}"
    assert got.shape == want.shape, f"{where}: shape {tuple(got.shape)} != {tuple(want.shape)}"
    assert got.layout is want.layout, f"{where}: layout {got.layout} != {want.layout}"
    assert got.requires_grad == want.requires_grad, f"{where}: requires_grad is {got.requires_grad}"
    if want.layout is torch.strided:
        assert _strides(got) == _strides(want), f"{where}: strides {got.stride()} != {want.stride()}"
    default = TOLERANCE.get(want.dtype, (0.0, 0.0))
    torch.testing.assert_close(
        got.detach(), want.detach(), equal_nan=True,
        rtol=default[0] if rtol is None else rtol, atol=default[1] if atol is None else atol,
        msg=lambda text: f"{where}: {text}",
    )


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides where they mean something: the stride of a dim of size 1, or in an empty tensor, does not."""
    if tensor.numel() == 0:
        return ()
    return tuple(stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1)
