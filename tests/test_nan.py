"""NaN goes where it goes in eager, and nowhere else."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import monograph

NAN = float("nan")


@pytest.mark.parametrize("alpha", [0, 2])
@pytest.mark.parametrize("beta", [0, 1, 3])
def test_products_without_a_part(alpha: int, beta: int) -> None:
    vector, matrix = torch.tensor([1.0, NAN, 3.0]), torch.randn(4, 3)
    start = torch.tensor([NAN, 1.0, 2.0, 3.0])
    square = torch.cat((vector.expand(1, 3), torch.ones(2, 3)))

    def fn(c, m, v, s):
        return (torch.addmv(c, m, v, alpha=alpha, beta=beta), torch.addmv(c[:1], m, v, alpha=alpha, beta=beta),
                torch.addmm(c[:3], m, s, alpha=alpha, beta=beta))

    torch.testing.assert_close(monograph.compile(fn)(start, matrix, vector, square),
                               fn(start, matrix, vector, square), equal_nan=True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_places_that_are_none(mode: str, padding: str) -> None:
    picture, grid = torch.randn(1, 2, 4, 5), torch.rand(1, 3, 3, 2) * 2 - 1
    grid[0, 1, 1], grid[0, 0, 0, 0], grid[0, 2, 2, 1] = NAN, NAN, float("inf")

    def fn(x, g):
        return F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=False)

    torch.testing.assert_close(monograph.compile(fn)(picture, grid), fn(picture, grid), equal_nan=True)


def test_a_norm_of_overlapping_memory() -> None:
    x = torch.randn(400).as_strided((1, 4, 3, 5), (7, 1, 20, 4))
    torch.testing.assert_close(monograph.compile(lambda x: F.group_norm(x, 2))(x), F.group_norm(x, 2))


@pytest.mark.parametrize("function", [
    lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize(),
    lambda x: torch.quantize_per_channel(x, torch.ones(3), torch.zeros(3), 0, torch.qint8),
])
def test_quantized_tensors_are_refused(function) -> None:
    with pytest.raises(monograph.UnsupportedError, match="quantized"):
        monograph.compile(function)(torch.randn(3))
