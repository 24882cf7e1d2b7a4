"""numpy on traced tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import monograph
from monograph import compat
from monograph.capture import driver


def writes(x):
    a = x.detach().numpy()
    a[0] = 7
    a += 1
    return x * 2


def writes_through_views(x):
    a = x.numpy().reshape(2, 6).T
    a[1:3] = 0
    a[:, 0] *= 3
    b = a[2]
    b += 1
    np.add.at(b, [0, 0], 1)
    a.T[1].sort()
    return x + 1, a.max()


def in_a_loop(x):
    i = torch.zeros(())
    while i < x.abs().sum():
        x = torch.from_numpy(np.sin(x.numpy()))
        i = i + 2
    return x


def decides(x):
    a = x.detach().numpy()
    if (a > 0.5).any() and isinstance(a, np.ndarray) and len(a) == a.shape[0]:
        return x * int((a > 0).sum())
    return x * 3


def shared_memory(x):
    y = x * 1
    z = torch.from_numpy(y.detach().numpy())
    z[0] = 5
    return y.detach() + 0, z


FREE = {        # with and without gradients
    "sin": lambda x: torch.from_numpy(np.sin(x.detach().numpy())) + x,
    "tensor": lambda x: torch.tensor(np.exp(x.detach().cpu().numpy()), dtype=torch.float64) * x,
    "item": lambda x: x * float(x.detach().numpy()[0, 1]),
    "scalars": lambda x: x * (x.detach().numpy().mean() + 1) + x.detach().numpy().std().item(),
    "cumulated": lambda x: x.detach() * torch.from_numpy(x.detach().numpy().cumsum(axis=0)),
    "iterated": lambda x: torch.tensor([float(row.sum()) for row in x.detach().numpy()]),
    "constants": lambda x: x * torch.tensor(np.linspace(0, 1, 3)) + np.float32(3),
    "seeded": lambda x: x + torch.from_numpy(np.random.RandomState(0).randn(3)),
    "asarray": lambda x: torch.from_numpy(np.asarray(x.detach()) * 2) + x,
    "shared_memory": shared_memory, "decides": decides,
}
PLAIN = {
    "ufunc of a tensor": lambda x: torch.as_tensor(np.sin(x)),
    "array": lambda x: np.array(x) * 2,
    "operators": lambda x: torch.from_numpy((x.numpy()[:, :2].T @ x.numpy()).mean(axis=0).reshape(1, -1)),
    "concatenated": lambda x: torch.from_numpy(np.concatenate([x.numpy(), np.ones((2, 3), dtype=np.float32)])),
    "where": lambda x: torch.from_numpy(np.where(x.numpy() > 0, x.numpy(), 0.5)),
    "results": lambda x: (x.numpy() * 2, x.numpy().sum(), {"a": x.numpy().T}),
    "orders": lambda x: torch.from_numpy(x.numpy().argsort(axis=1)),
    "norm": lambda x: torch.from_numpy(np.linalg.norm(x.numpy(), axis=1)),
    "percentile": lambda x: torch.tensor(np.percentile(x.numpy(), 30)),
    "integers": lambda x: torch.from_numpy((x.numpy() * 10).astype(np.int32) // 3),
    "fft": lambda x: torch.from_numpy(np.fft.fft(x.numpy())),
    "views": lambda x: (x.numpy().T.reshape(-1), torch.from_numpy(x.numpy().reshape(3, 4)[1:, ::2]), x.numpy().ravel()),
    "turned": lambda x: torch.from_numpy(x.numpy()[::-1].copy()),
    "masked": lambda x: torch.from_numpy(x.numpy()[x.numpy() > 0]),
    "unique": lambda x: [torch.from_numpy(v) for v in np.unique(x.numpy().round(), return_counts=True)],
    "tensor times array": lambda x: x * x.numpy(),
    "index": lambda x: (x[x.numpy().argsort(0)[:, 0]], x[x.numpy().argmax() % 4].clone()),
    "method chain": lambda x: torch.from_numpy(x.numpy().clip(-0.5, 0.5).round(2)),
    **{f.__name__: f for f in (writes, writes_through_views, in_a_loop)},
}


def same(function: Any, grad: bool, backend: str) -> Any:
    fast = monograph.compile(function, backend=backend)
    with torch.set_grad_enabled(grad):
        for seed in range(3):
            seen = []
            for call in (function, fast):
                torch.manual_seed(seed)
                x = torch.randn(4, 3, requires_grad=grad)
                leaves = pytree.tree_leaves(call(x))
                ends = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
                gradient = torch.autograd.grad(sum(end.sin().sum() for end in ends), x) if ends else None
                seen.append(([leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], gradient,
                             x.detach(), [leaf.strides for leaf in leaves if isinstance(leaf, np.ndarray)]))
            torch.testing.assert_close(seen[1], seen[0], rtol=0, atol=0)
            assert list(map(type, seen[0][0])) == list(map(type, seen[1][0]))
    return fast


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", [*FREE, *PLAIN])
def test_numpy(name: str, backend: str) -> None:
    same({**FREE, **PLAIN}[name], False, backend)


@pytest.mark.parametrize("name", FREE)
def test_numpy_and_gradients(name: str) -> None:
    same(FREE[name], True, "reference")


def test_functions_that_are_replaced_while_capturing_are_guarded_as_they_are() -> None:
    fast = same(FREE["asarray"], False, "reference")
    assert not fast.recompiles
    assert np.asarray.__module__ == "numpy" and not hasattr(torch.from_numpy, "__code__")


def test_a_trace_within_a_trace_leaves_numpy_as_it_was() -> None:
    kept = {name: getattr(np, name) for name in ("asarray", "array", "ascontiguousarray", "asanyarray")}

    def calls_of_numpy(function):
        graph = driver.trace(function, [torch.ones(3)], {}).graph
        return sum(node.op.name.startswith("host.") for node in graph.nodes)

    def inner(x):
        return torch.as_tensor(np.cos(x))

    def program(x):
        y = torch.from_numpy(np.sin(np.asarray(x)))
        with compat.plain_torch():
            assert calls_of_numpy(inner) == 1
        return y + torch.from_numpy(np.sin(np.asarray(y))), np.add(x, y)

    assert calls_of_numpy(program) == 3
    assert all(getattr(np, name) is function for name, function in kept.items())
    assert "__array_ufunc__" not in vars(compat.FakeTensor)


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.arange(3.0))
        self.weight = nn.Parameter(torch.ones(3))
        self.kept: Any = None

    def forward(self, x):
        self.kept = x.numpy().sum(axis=0)
        return x + torch.from_numpy(np.exp(self.scale.numpy())) + torch.tensor(self.weight.detach().numpy().mean())


def test_buffers_are_read_by_every_call_and_arrays_kept() -> None:
    plain, module = State(), State()
    fast = monograph.compile(module)
    for step in range(4):
        x = torch.randn(4, 3)
        torch.testing.assert_close(fast(x), plain(x))
        assert type(module.kept) is np.ndarray and np.array_equal(module.kept, plain.kept)
        for each in (plain, module):
            each.scale.mul_(step + 1)


@pytest.mark.parametrize(("function", "error"), [
    (lambda x: x.numpy()[7], IndexError), (lambda x: np.concatenate([x.numpy(), np.ones(2)]), ValueError),
    (lambda x: x.numpy() * x, TypeError), (lambda x: torch.sin(x.numpy()), TypeError),
    (lambda x: (x * 1).requires_grad_().numpy(), RuntimeError), (lambda x: x.bfloat16().numpy(), TypeError),
])
def test_errors_are_numpys_and_torchs(function: Any, error: type[Exception]) -> None:
    for call in (function, monograph.compile(function)):
        with pytest.raises(error):
            call(torch.ones(4, 3))


@pytest.mark.parametrize(("function", "text"), [
    (lambda x: x.numpy().flags, "flags"), (lambda x: repr(x.numpy()), "repr"),
    (lambda x: np.vectorize(abs)(x.numpy()), "numpy"),
    (lambda x: (x.numpy()[::-1], x.add_(1)), "a view that torch has not"),
    (lambda x: np.multiply(x.numpy(), 2, out=np.ones((4, 3), dtype=np.float32)), "out="),
])
def test_refusals(function: Any, text: str) -> None:
    with pytest.raises(monograph.UnsupportedError, match=text):
        monograph.compile(function)(torch.ones(4, 3))
