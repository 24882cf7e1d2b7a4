"""Custom ops without a fake kernel, and functions that a capture does not look into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import monograph

LIBRARY = torch.library.Library("mgtest", "DEF")
OPS = torch.ops.mgtest


def define(schema: str, function: Any, key: str = "CPU") -> None:
    LIBRARY.define(schema)
    LIBRARY.impl(schema.partition("(")[0], function, key)


def push(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x.sum(0)


def into(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.copy_(y * 3)


define("twice(Tensor x) -> Tensor", lambda x: x * 2)
define("positive(Tensor x) -> Tensor", lambda x: x[x > 0].clone())
define("push(Tensor(a!) x, Tensor y) -> Tensor", push)
define("into(Tensor(a!) x, Tensor y) -> Tensor(a!)", into)
define("parts(Tensor x, int n=2) -> (Tensor, Tensor[])", lambda x, n=2: (x + 1, [x * i for i in range(n)]))
define("total(Tensor x) -> float", lambda x: float(x.sum()))
define("composed(Tensor x) -> Tensor", lambda x: x.sin() + x.cos(), "CompositeImplicitAutograd")
define("explicit(Tensor x) -> Tensor", lambda x: x.sin() + x.cos(), "CompositeExplicitAutograd")
define("turned(Tensor x) -> Tensor", lambda x: x.t().contiguous().t())


@torch.library.custom_op("mgtest::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.square(x.numpy()))


square.register_autograd(lambda ctx, g: g * 2 * ctx.saved_tensors[0],
                         setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))


@torch.library.custom_op("mgtest::sine_into", mutates_args={"y"})
def sine_into(x: torch.Tensor, y: torch.Tensor) -> None:
    y.numpy()[:] = np.sin(x.numpy())


@torch.library.custom_op("mgtest::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand_like(x)


def pushed(x):
    y = x.detach().clone()
    total = OPS.push(y[1:], x.detach()[1:])
    return y * x, total


def handed_back(x):
    y = x.detach().clone()
    z = OPS.into(y, x.detach())
    z += 1
    return y, z is y


def written(x):
    y = torch.empty_like(x)
    sine_into(x.detach(), y)
    return y * 2 + x


def in_branch(x):
    return square(x) if x.sum() > 0 else x * 2


def in_loop(x):
    i = torch.zeros(())
    while i < x.detach().abs().sum():
        x, i = square(x) * 0.5, i + 4
    return x


def argument_written(x):
    if not x.requires_grad:
        OPS.push(x, torch.ones_like(x))
    return x * 2


FUNCTIONS = {
    "twice": lambda x: OPS.twice(x).sin(),
    "positive": lambda x: OPS.positive(x).sin(),
    "parts": lambda x: OPS.parts(x, 3),
    "total": lambda x: OPS.total(x) * x,
    "composed": lambda x: OPS.composed(x),
    "explicit": lambda x: OPS.explicit(x),
    "turned": lambda x: OPS.turned(x),
    "square": lambda x: square(x).sin(),
    "noisy": lambda x: noisy(x.detach()) + torch.rand(3) + x,
    **{f.__name__: f for f in (pushed, handed_back, written, in_branch, in_loop, argument_written)},
}


def same(function: Any, make: Any, grad: bool, backend: str, calls: int = 3, parameters: Any = ()) -> Any:
    fast = monograph.compile(function, backend=backend)
    with torch.set_grad_enabled(grad):
        for seed in range(calls):
            seen = []
            for call in (function, fast):
                torch.manual_seed(seed)
                args = [x.requires_grad_(grad) for x in make()]
                result = call(*args)
                leaves = torch.utils._pytree.tree_leaves(result)
                ends = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
                sources = [*args, *parameters]
                total = sum(x.sin().sum() for x in ends)
                gradients = torch.autograd.grad(total, sources, allow_unused=True) if ends else ()
                kept = [x.detach() if isinstance(x, torch.Tensor) else x for x in (*leaves, *args)]
                strides = [x.stride() for x in leaves if isinstance(x, torch.Tensor)]
                seen.append((kept, list(gradients), [x.requires_grad for x in ends], strides, torch.rand(1)))
            torch.testing.assert_close(seen[1], seen[0])
    return fast


def values() -> list[torch.Tensor]:
    return [torch.randn(4, 3)]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_custom_ops(name: str, grad: bool, backend: str) -> None:
    same(FUNCTIONS[name], values, grad, backend)


def test_sizes_that_differ_are_captured_anew() -> None:
    fast = same(FUNCTIONS["positive"], values, False, "llvm", 4)
    assert fast.recompiles and "of sizes" in str(fast.recompiles[0])
    assert len(fast.recompiles) < 4


def test_an_op_that_never_gives_the_same_size_runs_eagerly() -> None:
    count = iter(range(100))

    @monograph.allow_in_graph
    def longer(x):
        return torch.zeros(next(count))

    fast = monograph.compile(lambda x: longer(x), fullgraph=False)
    with pytest.warns(UserWarning, match="runs eagerly"):
        assert fast(torch.ones(3)).dim() == 1


def test_writes_under_grad_without_a_formula_are_refused() -> None:
    def fn(x):
        y = x * 1
        OPS.push(y, x)
        return y

    with pytest.raises(monograph.UnsupportedError, match="no autograd formula"):
        monograph.compile(fn)(torch.ones(2, 2, requires_grad=True))


def test_an_op_raises_as_in_eager() -> None:
    @torch.library.custom_op("mgtest::fails", mutates_args=())
    def fails(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        return x.clone()

    fast = monograph.compile(lambda x: fails(x))
    fast(torch.ones(3))
    for call in (fast, monograph.compile(lambda x: fails(x))):
        with pytest.raises(ValueError, match="negative"):
            call(-torch.ones(3))


# -- allow_in_graph --------------------------------------------------------------------------------

@monograph.allow_in_graph
def running(x, k=2.0):
    return (torch.sin(x) * k).cumsum(0), x.detach().argmax()


@monograph.allow_in_graph
def branching(x, y):
    if x.sum() > 0:
        return {"a": x * y, "b": float(x.sum()), "c": None}
    return {"a": x + y, "b": 2.0, "c": None}


@monograph.allow_in_graph
def masked(x):
    return x[x > 0] * 2


WEIGHT = nn.Parameter(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))
multiplied = monograph.allow_in_graph(lambda x, w, other=None: (x @ w).relu())


def unpacked(x):
    found = branching(x, x.sin())
    return found["a"] * found["b"], found["c"] is None


ALLOWED = {
    "running": lambda x: running(x, 3.0)[0] * 2 + running(x)[1],
    "unpacked": unpacked,
    "masked": lambda x: masked(x).sum(),
    "parameter": lambda x: multiplied(x, WEIGHT, other="text"),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_functions(name: str, grad: bool, backend: str) -> None:
    same(ALLOWED[name], values, grad, backend, 4, parameters=[WEIGHT] if name == "parameter" else ())


def test_allowed_functions_are_not_looked_into() -> None:
    graph = monograph.capture(ALLOWED["running"], torch.randn(4, 3)).graph
    assert not any(node.op.name.startswith("aten.sin") for node in graph.nodes)
    assert running(torch.ones(2, 2))[0].shape == (2, 2)


def test_second_derivatives_of_allowed_functions() -> None:
    def second(fn):
        x = torch.ones(4, 3, requires_grad=True)
        gradient, = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.pow(2).sum(), x)

    torch.testing.assert_close(second(monograph.compile(lambda x: running(x)[0])), second(lambda x: running(x)[0]))


@pytest.mark.parametrize(("function", "text"), [
    (lambda x: x @ WEIGHT, "no argument"), (lambda x: x[1:], "returns an argument"),
    (lambda x: x.to_sparse(), "sparse"),
    (lambda x: torch.dropout(x, 0.5, True), "draws random numbers"), (lambda x: range(3), "range"),
])
def test_refusals_of_allowed_functions(function: Any, text: str) -> None:
    allowed = monograph.allow_in_graph(function)
    if text == "range":
        assert monograph.compile(lambda x: (allowed(x), x * 2))(torch.ones(3))[0] == range(3)
        return
    with pytest.raises(monograph.UnsupportedError, match=text):
        monograph.compile(lambda x: allowed(x * 1))(torch.randn(3, 3, requires_grad=True))
