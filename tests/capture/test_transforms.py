"""torch.func, checkpoint, parametrisations, hooks and wrapper subclasses inside captured code, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.checkpoint import checkpoint

import monograph

W = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
LINEAR = nn.Linear(3, 3)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


def parametrized(layer):
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


def pruned(layer):
    return prune.l1_unstructured(layer, "weight", 0.3)


class Holding(nn.Module):
    def __init__(self, change: Callable[[nn.Module], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = change(nn.Linear(3, 3))

    def forward(self, x):
        return self.layer(x).sin()


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.first.register_forward_hook(lambda module, args, result: result * 2)
        self.first.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        self.first.register_full_backward_hook(lambda module, into, out: tuple(g * 2 for g in into))
        self.second.register_forward_hook(lambda module, args, kwargs, result: result.tanh(), with_kwargs=True)
        self.second.register_full_backward_pre_hook(lambda module, out: tuple(g * 3 for g in out))

    def forward(self, x):
        return self.second(self.first(x))


class Scaled(torch.Tensor):
    """A wrapper that opens itself in its first op."""

    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device,
                                                   requires_grad=inner.requires_grad)

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(func(args[0].inner), args[0].scale)
        args, kwargs = tree_map(lambda x: x.inner * x.scale if isinstance(x, cls) else x, (args, kwargs or {}))
        return func(*args, **kwargs)


class WithWrapper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(Scaled(torch.randn(3, 3), 2.0), requires_grad=False)

    def forward(self, x):
        return F.linear(x, self.weight)


class Cubed(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x ** 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2


def tensor_hooks(x):
    y, z = x * 2, x.cos()
    if y.requires_grad:
        y.register_hook(lambda g: g * 5)
        z.grad_fn.register_hook(lambda into, out: (into[0] * 2,))
    return y.sin() * z


def saved(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        y = x * x
    return y.sin()


def gradients_inside(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        g, = torch.autograd.grad((y ** 3).sum(), y, create_graph=True)
        h, = torch.autograd.grad(g.sum(), y)
    return g.detach(), h


def dual_numbers(x):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        return forward_ad.unpack_dual(dual.sin() * dual).tangent


def sample_gradients(x):
    parameters = {name: p.detach() for name, p in LINEAR.named_parameters()}
    return vmap(grad(lambda p, row: functional_call(LINEAR, p, (row,)).pow(2).sum()), in_dims=(None, 0))(parameters, x)


FUNCTIONS: dict[str, Any] = {
    "grad": lambda x: grad(lambda y: (y * y).sin().sum())(x),
    "grad of grad": lambda x: grad(lambda y: grad(lambda z: (z ** 3).sum())(y).sum())(x),
    "vjp": lambda x: vjp(lambda y: y @ W, x)[1](torch.ones(4, 3)),
    "jvp": lambda x: jvp(lambda y: (y * y).sin(), (x,), (torch.ones_like(x),)),
    "vmap": lambda x: vmap(lambda r: F.softmax(r, 0) * r.sum(), in_dims=1, out_dims=1)(x),
    "vmap drawing": lambda x: vmap(lambda r: r + torch.rand(3), randomness="different")(x),
    "jacrev": lambda x: jacrev(lambda y: (y @ W).tanh())(x),
    "jacfwd": lambda x: jacfwd(lambda y: (y @ W).tanh())(x),
    "hessian": lambda x: hessian(lambda y: (y @ W).tanh().sum())(x[0]),
    "functional_call": lambda x: functional_call(LINEAR, {"weight": x[:3] * 2, "bias": x[0]}, (x,)),
    "function under vmap": lambda x: vmap(Cubed.apply)(x),
    "function under grad": lambda x: grad(lambda y: Cubed.apply(y).sum())(x),
    "checkpoint": lambda x: checkpoint(lambda y: F.dropout((y @ W).sin(), 0.5), x, use_reentrant=False),
    "jacobian": lambda x: torch.autograd.functional.jacobian(lambda y: y.sin(), x),
    "wrapper": lambda x: Scaled(x, 2.0).sin() + Scaled(x, 3.0),
    **{f.__name__: f for f in (tensor_hooks, saved, gradients_inside, dual_numbers, sample_gradients)},
}
MODULES: dict[str, Any] = {
    "parametrize": lambda: Holding(parametrized), "prune": lambda: Holding(pruned), "hooks": Hooked,
    "weight_norm": lambda: Holding(torch.nn.utils.weight_norm), "wrapper": WithWrapper,
    "weight_norm parametrized": lambda: Holding(parametrizations.weight_norm),
    "spectral_norm": lambda: Holding(torch.nn.utils.spectral_norm),
    "spectral_norm parametrized": lambda: Holding(parametrizations.spectral_norm),
    "orthogonal": lambda: Holding(parametrizations.orthogonal),
}


def outcome(call: Any, seed: int, with_grad: bool) -> Any:
    torch.manual_seed(seed)
    x = torch.randn(4, 3, requires_grad=with_grad)
    with torch.set_grad_enabled(with_grad):
        result = tree_leaves(call(x))
        ends = [leaf for leaf in result if leaf.requires_grad]
        if ends:
            sum(leaf.sin().sum() for leaf in ends).backward()
    gradients = [p.grad for p in call.parameters()] if isinstance(call, nn.Module) else []
    return [leaf.detach() for leaf in result], len(ends), x.grad, gradients, torch.rand(1)


@pytest.mark.parametrize("with_grad", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, with_grad: bool) -> None:
    fast = monograph.compile(FUNCTIONS[name], backend="reference")
    for seed in range(2):
        torch.testing.assert_close(outcome(fast, seed, with_grad), outcome(FUNCTIONS[name], seed, with_grad))


@pytest.mark.parametrize("with_grad", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, with_grad: bool) -> None:
    plain, fast = MODULES[name](), monograph.compile(MODULES[name](), backend="reference")
    for seed in range(2):
        torch.testing.assert_close(outcome(fast, seed, with_grad), outcome(plain, seed, with_grad))
    torch.testing.assert_close(list(fast.buffers()), list(plain.buffers()))


def test_the_content_of_a_wrapper_is_guarded() -> None:
    wrapped = Scaled(torch.randn(3, 3), 2.0)
    fast = monograph.compile(lambda x: x @ wrapped, backend="reference")
    x = torch.randn(3, 3)
    torch.testing.assert_close(fast(x), x @ wrapped)
    wrapped.scale = 4.0
    torch.testing.assert_close(fast(x), x @ wrapped)
    wrapped.inner = torch.randn(3, 3)
    torch.testing.assert_close(fast(x), x @ wrapped)
    wrapped.inner.mul_(3)
    torch.testing.assert_close(fast(x), x @ wrapped)


@pytest.mark.parametrize("function", [lambda x: Scaled(x, 2.0), lambda x: x.sin()])
def test_wrappers_do_not_cross_the_boundary(function: Any) -> None:
    with pytest.raises(monograph.UnsupportedError, match="Scaled"):
        x = torch.ones(3)
        monograph.compile(function)(Scaled(x, 1.0) if "sin" in function.__code__.co_names else x)
