"""Batch norm whose running statistics are a cumulative average (`momentum=None`)."""

import copy

import pytest
import torch
from torch import nn

import monograph

NORMS = {"1d": (nn.BatchNorm1d, (4, 3)), "2d": (nn.BatchNorm2d, (2, 3, 4, 4)), "3d": (nn.BatchNorm3d, (2, 3, 2, 2, 2))}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind", NORMS)
def test_several_batches_then_eval(kind, affine, backend):
    torch.manual_seed(0)
    make, shape = NORMS[kind]
    mine = nn.Sequential(make(3, momentum=None, affine=affine), nn.Tanh(), make(3, momentum=None, affine=affine))
    theirs = copy.deepcopy(mine)
    fast = monograph.compile(mine, backend=backend)
    for _ in range(4):
        x = torch.randn(shape) * 2 + 1
        grads = []
        for run in (fast, theirs):
            given = x.clone().requires_grad_()
            run(given).pow(3).sum().backward()
            grads.append(given.grad)
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
    assert not fast.recompiles and int(mine[0].num_batches_tracked) == 4
    with torch.no_grad():
        torch.testing.assert_close(fast(x), theirs(x))
    torch.testing.assert_close(dict(mine.state_dict()), dict(theirs.state_dict()))
    mine.eval()
    theirs.eval()
    with torch.no_grad():
        torch.testing.assert_close(fast(x), theirs(x))


def test_an_input_of_the_wrong_rank_is_eagers_error():
    fast = monograph.compile(nn.BatchNorm2d(3, momentum=None), backend="reference")
    with pytest.raises(ValueError, match="expected 4D input"):
        fast(torch.ones(2, 3))


def test_torch_is_left_as_it_was():
    before = nn.modules.batchnorm._BatchNorm.forward
    monograph.compile(nn.BatchNorm1d(3, momentum=None), backend="reference")(torch.ones(4, 3))
    assert nn.modules.batchnorm._BatchNorm.forward is before
