"""Capture, evaluate, rebuild the results, and compare all of it with eager."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils import _pytree as pytree

import monograph
from monograph.capture import Captured, trace
from monograph.ir.boundary import Choice, Fresh, InputItself, InputView, Literal, Number
from monograph.ops.evaluate import evaluate
from monograph.results import write_back, write_grown


def execute(captured: Captured, args: Any, kwargs: Any | None = None) -> Any:
    """What a caller of the compiled function would see."""
    leaves = pytree.tree_leaves((tuple(args), dict(kwargs or {})))
    inputs = [torch.zeros(value.tensor.shape, dtype=value.tensor.dtype) if binding.kind == "tangent" else
              binding.resolve(leaves) for binding, value in zip(captured.bindings, captured.graph.inputs, strict=True)]
    with torch.no_grad():
        outputs = evaluate(captured.graph, inputs, check=True)
        count = captured.joint.forward_outputs if captured.joint else len(outputs)
        return finish(captured, inputs, outputs[:count])


def finish(captured: Captured, inputs: list[Any], outputs: list[Any]) -> Any:
    """The epilogue: write-back, relayouts, results laid over outputs and inputs."""
    boundary = captured.boundary
    for write in boundary.writes:
        (write_grown if write.grown else write_back)(inputs[write.input], outputs[write.output])
    for relayout in boundary.relayouts:
        inputs[relayout.input].data = place(relayout.place, inputs, outputs)
    made: dict[int, Any] = {}

    def value(result: Any) -> Any:
        if isinstance(result, Choice):
            return value(next((other for output, other in result.alternatives if outputs[output]), result.otherwise))
        if isinstance(result, Literal):
            return result.value
        if isinstance(result, Number):
            return outputs[result.output].item()
        if isinstance(result, InputItself):
            return inputs[result.input]
        if made.get(result.object) is None:
            made[result.object] = place(result, inputs, outputs)
        return made[result.object]
    return boundary.tree.unflatten([value(result) for result in boundary.results])


def place(result: Fresh | InputView, inputs: list[Any], outputs: list[Any]) -> torch.Tensor:
    if isinstance(result, Fresh):
        base, start = outputs[result.output], 0
    else:
        base = inputs[result.input].detach()
        start = base.storage_offset() * base.element_size() // result.dtype.itemsize
    view = torch.empty(0, dtype=result.dtype)
    view.set_(base.untyped_storage(), start + result.offset, result.sizes, result.strides)
    view = torch._neg_view(view) if result.neg else view
    return view.conj() if result.conj else view


def assert_change_is_seen(function: Any, change: Any, **options: Any) -> None:
    """`change(value)` sets what `function` reads: another value is another program, one that comes back known."""
    compiled, x = monograph.compile(function, **options), torch.zeros(1, dtype=torch.float64)
    try:
        for value in (1.0, 1.0, 2.0, 1.0):
            change(value)
            assert compiled(x) == function(x)
        assert len(compiled.recompiles) == 1
    finally:
        change(1.0)


def alias_relation(tensors: list[torch.Tensor]) -> list[Any]:
    """Who is whom, who shares a storage with whom, and how far apart."""
    relation = []
    for i, a in enumerate(tensors):
        for b in tensors[:i]:
            left, right = a.untyped_storage(), b.untyped_storage()
            shared = left.data_ptr() == right.data_ptr() and left.nbytes() > 0
            distance = a.storage_offset() * a.element_size() - b.storage_offset() * b.element_size() if shared else None
            relation.append((a is b, shared, distance))
    return relation


def assert_same(expected: Any, actual: Any, *, exact: bool = True) -> None:
    left, left_spec = pytree.tree_flatten(expected, is_leaf=lambda x: type(x) is torch.Size)
    right, right_spec = pytree.tree_flatten(actual, is_leaf=lambda x: type(x) is torch.Size)
    assert str(left_spec) == str(right_spec)
    for a, b in zip(left, right, strict=True):
        if not isinstance(a, torch.Tensor):
            assert type(a) is type(b) and (a == b or a is b), (a, b)
            continue
        assert (a.dtype, a.shape, a.is_conj(), a.is_neg()) == (b.dtype, b.shape, b.is_conj(), b.is_neg()), (a, b)
        if a.numel() > 1:
            assert normal(a) == normal(b), (a.shape, a.stride(), b.stride())
        if exact:
            assert torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)), (a, b)
        else:
            torch.testing.assert_close(b, a, equal_nan=True)


def normal(t: torch.Tensor) -> Any:
    return [step for size, step in zip(t.shape, t.stride(), strict=True) if size != 1]


def check(fn: Any, make: Any, *, state: Any = (), exact: bool = True) -> Captured:
    """`fn(*make())` captured once and run on fresh arguments equals eager in every way the caller can see.

    `state`: tensors that `fn` reads or writes on the side; they are put back after each run.
    """
    before = [t.clone() for t in state]

    def reset() -> None:
        with torch.no_grad():
            for t, old in zip(state, before, strict=True):
                t.copy_(old)

    def run(call: Any) -> Any:
        torch.manual_seed(0)
        arguments = make()
        result = call(arguments)
        seen = [t for t in pytree.tree_leaves((arguments, list(state), result)) if isinstance(t, torch.Tensor)]
        values = copy.deepcopy([t.detach().clone() for t in state])
        reset()
        return result, arguments, values, alias_relation(seen), torch.get_rng_state()

    captured = trace(fn, make(), {})
    for t, old in zip(state, before, strict=True):
        assert torch.equal(t, old), "the trace wrote to a real tensor"
    assert all(node.loc is not None for node in captured.graph.nodes)
    expected = run(lambda arguments: fn(*arguments))
    actual = run(lambda arguments: execute(captured, arguments))
    for left, right in zip(expected[:3], actual[:3], strict=True):
        assert_same(left, right, exact=exact)
    assert expected[3] == actual[3]
    assert torch.equal(expected[4], actual[4])
    return captured


def weights_of(results: Any) -> list[torch.Tensor]:
    """Fixed, uneven tangents for the differentiable results."""
    return [torch.arange(1.0, r.numel() + 1, dtype=r.dtype).reshape(r.shape) * 0.01 for r in results]


def check_gradients(fn: Any, make: Any, *, wrt: Any = (), state: Any = ()) -> Captured:
    """As `check`, and the gradients of all differentiable results by arguments and `wrt` equal eager's."""
    before = [t.detach().clone() for t in state]

    def reset() -> None:
        with torch.no_grad():
            for t, old in zip(state, before, strict=True):
                t.copy_(old)

    captured = trace(fn, make(), {})
    reset()
    joint = captured.joint
    assert joint is not None
    torch.manual_seed(0)
    arguments = make()
    leaves = [t for t in pytree.tree_leaves(arguments) if isinstance(t, torch.Tensor)]
    sources = [t for t in [*leaves, *wrt] if t.requires_grad]
    expected = fn(*arguments)
    flat = [t for t in pytree.tree_leaves(expected) if isinstance(t, torch.Tensor)]
    outs = [t for t in flat if t.requires_grad and not any(t is leaf for leaf in [*leaves, *wrt])]
    eager = torch.autograd.grad(outs, sources, weights_of(outs), allow_unused=True)
    reset()

    torch.manual_seed(0)
    arguments = make()
    flat_arguments = pytree.tree_leaves((tuple(arguments), {}))
    tangents: dict[int, torch.Tensor] = dict(zip(sorted(joint.tangents), weights_of(outs), strict=True))
    inputs = [b.resolve(flat_arguments, tangents) for b in captured.bindings]
    outputs = evaluate(captured.graph, inputs, check=True)
    with torch.no_grad():
        actual = finish(captured, [t.detach() if isinstance(t, torch.Tensor) else t for t in inputs],
                        outputs[:joint.forward_outputs])
    for a, b in zip(pytree.tree_leaves(expected), pytree.tree_leaves(actual), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b.detach(), a.detach())
    sources = [t for t in [*[t for t in flat_arguments if isinstance(t, torch.Tensor)], *wrt] if t.requires_grad]
    found = {id(inputs[i]): outputs[j] for i, j in joint.gradients.items()}
    for source, gradient in zip(sources, eager, strict=True):
        mine = found.get(id(source))
        assert (mine is None) == (gradient is None), source.shape
        if gradient is not None:
            torch.testing.assert_close(mine, gradient)
    reset()
    return captured
