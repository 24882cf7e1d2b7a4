"""A small model for the command line: `python -m monograph explain docs/examples/mlp.py:factory`."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def factory() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The model and its example inputs."""
    torch.manual_seed(0)
    return nn.Sequential(Block(64), Block(64), nn.Linear(64, 10)).eval(), (torch.randn(8, 64),)
