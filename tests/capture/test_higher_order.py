"""cond, while_loop, map, scan and associative_scan called by the user."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as each

import monograph

FUNCTIONS: dict[str, Any] = {
    "cond": lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.sin(), (x,)),
    "cond of tuples": lambda x: torch.cond(x.sum() > 0, lambda x: (x * 2, x + 1), lambda x: (x.sin(), x.cos()), (x,)),
    "cond with closures": lambda x: torch.cond(x.sum() > 0, lambda: x * 2, lambda: x.sin()),
    "cond known": lambda x: torch.cond(True, lambda x: x * 2, lambda x: x.sin(), (x,)),
    "while_loop": lambda x: while_loop(
        lambda i, y: i < y.abs().sum() / 3, lambda i, y: (i + 1, y * 1.1), (torch.tensor(0), x.detach())),
    "map": lambda x: each(lambda row, w: row * w + 1, x, torch.arange(3.0)),
    "scan": lambda x: scan(lambda c, row: (c + row, c * row), torch.zeros(3), x),
    "scan in reverse": lambda x: scan(lambda c, row: (c + row, c * row), torch.zeros(3), x, reverse=True),
    "associative_scan": lambda x: associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic"),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_higher_order(name: str, grad: bool) -> None:
    plain = FUNCTIONS[name]
    fast = monograph.compile(plain)
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(4, 3, requires_grad=grad)
        with torch.set_grad_enabled(grad):
            found = []
            for call in (plain, fast):
                leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(call(x)) if isinstance(leaf, torch.Tensor)]
                ends = [leaf for leaf in leaves if leaf.requires_grad]
                total = sum(end.sin().sum() for end in ends)
                found.append((leaves, torch.autograd.grad(total, x) if ends else ()))
        torch.testing.assert_close(found[1], found[0])
    assert not fast.recompiles


def test_they_are_regions() -> None:
    for name, op in (("cond", "mono.cond"), ("while_loop", "mono.while")):
        graph = monograph.capture(FUNCTIONS[name], torch.randn(4, 3)).graph
        assert any(node.op.name == op for node in graph.nodes)
