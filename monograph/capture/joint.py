"""Forward and backward in one graph: autograd runs above the tracer, on fakes.

The forward runs under grad mode with fakes that require grad; then torch.autograd.grad is asked for
the gradients of everything that entered and requires grad, on tangents that are new graph inputs.
Its ops are recorded like any others, so custom autograd.Function, hooks and in-place writes need
nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture.captured import Binding, JointInfo
from monograph.capture.dims import dims
from monograph.capture.histories import Followed, refuse_uncut
from monograph.capture.layout import Layout, contiguous_strides
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import link_of
from monograph.capture.regions.requires import Requires
from monograph.ir.boundary import Boundary, Fresh, InputView, Require, own_result
from monograph.ir.graph import Source, Value
from monograph.ir.types import TensorType

if TYPE_CHECKING:
    from monograph.capture.boundary import Seal
    from monograph.capture.inputs import Entry
    from monograph.capture.tracer import Tracer

__all__ = ["arrive", "differentiable", "new_histories", "new_requirements",
           "record_backward"]


def arrive(fake: torch.Tensor, real: torch.Tensor, another: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Make `fake` require grad as `real` does, a leaf or not; it and the leaf behind it.

    `another` is a second fake of `real`.
    """
    if real.is_leaf:
        fake.requires_grad_(True)
        return fake, fake
    another.requires_grad_(True)
    with torch.enable_grad():
        return Followed.apply(another, [fake]), another


def new_histories(seal: Seal, boundary: Boundary) -> None:
    """Where the program wrote to an input under grad the input gets a new history: that of one more, hidden result."""
    for entry in seal.tracer.entries:
        if entry.fake.grad_fn is entry.history or entry.fake.grad_fn is None:
            continue
        position = next((place for place, write in enumerate(boundary.writes) if write.input == entry.input), None)
        if not _may_get_history(seal, entry) or position is None or boundary.writes[position].grown:
            raise errors.UnsupportedError(f"an in-place write under grad to {entry.source}",
                                          why="its history would begin in this call and outlive it",
                                          hint="write to a copy and return it")
        if compat.is_barred(entry.real):
            for site in seal.tracer.rewriting:        # perhaps
                raise Unmergeable("a view that autograd lets nobody write to is written in place", site)
            raise RuntimeError(f"{entry.source} is a view that autograd lets nobody write to in place")
        write = boundary.writes[position]
        layout = entry.layout
        boundary.writes[position] = replace(write, result=len(boundary.results))
        boundary.results.append(Fresh(write.output, dims(layout.sizes), dims(_strides(layout)), 0, layout.dtype))
        boundary.hidden += 1
        seal.leaves.append(entry.fake)


def _may_get_history(seal: Seal, entry: Entry) -> bool:
    """An argument alone in its memory, which lies as it did."""
    alone = all(other is entry or other.home != entry.home for other in seal.tracer.entries)
    return entry.source.kind == "argument" and alone and compat.storage_id(entry.fake) == entry.home \
        and Layout.of(entry.fake).key == entry.layout.key


def new_requirements(seal: Seal, boundary: Boundary) -> None:
    """Arguments that start to require grad inside the program, or cease to: `requires_grad_()`, `detach_()`."""
    tracer = seal.tracer
    rewritten = boundary.rewritten
    for entry in tracer.entries:
        if entry.source.kind == "argument" and entry.fake.requires_grad != entry.real.requires_grad \
                and entry.input not in rewritten:
            boundary.requires.append(Require(tracer.identity(entry), entry.fake.requires_grad))


def differentiable(seal: Seal, boundary: Boundary) -> list[int]:
    """Results that require grad: made by the program (an input handed back is not ours to differentiate, nor a view of
    one that gets its history by another result), no leaves."""
    rewritten = boundary.rewritten
    return [number for number, (leaf, result) in enumerate(zip(seal.leaves, boundary.results, strict=True))
            if isinstance(own := own_result(result), (Fresh, InputView)) and leaf.requires_grad and not own.leaf
            and not (isinstance(own, InputView) and own.input in rewritten)]


def record_backward(tracer: Tracer, seal: Seal, boundary: Boundary, results: list[int]) -> JointInfo:
    """Record the backward of `results`; the modes must be active. Appends gradients to the graph's outputs."""
    on_path = _on_path(tracer, seal, results)
    joint = JointInfo(len(tracer.graph.outputs), backward_start=len(tracer.graph.nodes), on_path=on_path)
    tangents = []
    for number in results:
        tangents.append(_tangent(tracer, seal.leaves[number], number))
        joint.tangents[number] = len(tracer.graph.inputs) - 1
    started = {require.input for require in boundary.requires if require.requires}
    sources = [entry for entry in tracer.entries
               if entry.leaf is not None or entry.real.requires_grad or entry.input in started]
    with tracer.quiet():
        for entry in sources:               # one that ceased to: what came before leads to it
            if entry.leaf is not None and not entry.leaf.requires_grad:
                entry.leaf.requires_grad_()
    wanted = [(entry.fake if entry.input in started else entry.real) if entry.leaf is None else entry.leaf
              for entry in sources]
    leaves = _keeping(seal, boundary)
    wanted += leaves.values()
    if not wanted:
        return joint
    reached, nodes = _reached({number: seal.leaves[number] for number in results}, wanted)
    refuse_uncut(tracer.entries, nodes)
    before = {key: storage.version for key, storage in tracer.memory.by_id.items()}
    hooks = [(entry.real, entry.real._backward_hooks) for entry in sources if entry.real._backward_hooks]
    try:
        for real, _ in hooks:           # they run when the caller's autograd receives the gradient
            real._backward_hooks = None
        grads = torch.autograd.grad([seal.leaves[number] for number in results], wanted, tangents, allow_unused=True)
    finally:
        for real, kept in hooks:
            real._backward_hooks = kept
    if any(storage.version != before.get(key, 0) for key, storage in tracer.memory.by_id.items()
           if key in before or storage.input is not None):
        raise errors.UnsupportedError("a backward writes to a tensor that was there before it",
                                      why="the program's results are made when its forward ends",
                                      hint="compute a new tensor, or write to it in a hook")
    with torch.no_grad(), torch._C.DisableTorchFunction():
        for position, (entry, gradient) in enumerate(zip(sources, grads)):
            if gradient is not None:
                input = tracer.identity(entry)
                joint.gradients[input] = _output(tracer, seal, gradient, entry.layout)
                _mark_absent(tracer, seal, joint, joint.gradients[input])
                joint.origins[input] = reached[position]
        for number, gradient, origin in zip(leaves, grads[len(sources):], reached[len(sources):]):
            if gradient is not None:
                joint.leaf_gradients[number] = _output(tracer, seal, gradient, Layout.of(leaves[number]))
                joint.leaf_origins[number] = origin
    return joint


def _on_path(tracer: Tracer, seal: Seal, results: list[int]) -> dict[int, int]:
    """For results that require grad on some path only, the output that says whether they do."""
    found: dict[int, int] = {}
    if not any(node.regions for node in tracer.graph.nodes):
        return found
    requires = Requires(tracer.graph, link_of)
    for number in results:
        with torch.no_grad(), torch._C.DisableTorchFunction():
            flag = requires.of(seal.leaves[number])
            if isinstance(flag, Value):
                found[number] = seal.output(flag, ())
    return found


def _mark_absent(tracer: Tracer, seal: Seal, joint: JointInfo, output: int) -> None:
    """Where a gradient may be absent, an output that says so."""
    if tracer.absence is None or not any(node.regions for node in tracer.graph.nodes):
        return
    flag = tracer.absence(tracer.graph, joint.backward_start, tracer.graph.outputs[output])
    if flag is not None:
        joint.absent[output] = seal.output(flag, ())


def _keeping(seal: Seal, boundary: Boundary) -> dict[int, torch.Tensor]:
    """Results that get a gradient: leaves made by the program, and what `retain_grad()` was called on; each once.
    A view that was made without grad is said to require it as its base does, but gets none."""
    found: dict[int, torch.Tensor] = {}
    for number, (leaf, result) in enumerate(zip(seal.leaves, boundary.results, strict=True)):
        own = own_result(result)
        new = isinstance(own, (Fresh, InputView)) and (own.leaf and leaf._base is None or leaf.retains_grad)
        if new and all(leaf is not other for other in found.values()):
            found[number] = leaf
    return found


def _reached(
    results: dict[int, torch.Tensor], wanted: list[torch.Tensor],
) -> tuple[list[frozenset[int]], Iterable[Any]]:
    """For each tensor of `wanted` the results whose history leads to it; and all autograd nodes behind the results."""
    ends: dict[Any, int] = {}
    for position, tensor in enumerate(wanted):
        node = compat.gradient_edge(tensor)
        ends[node] = ends.get(node, 0) | 1 << position
    known: dict[Any, int] = {}          # autograd node -> positions in `wanted`, as bits
    for result in results.values():
        stack = [compat.gradient_edge(result)]
        while stack:
            node = stack[-1]
            following = [] if node in known else [edge for edge, _ in node.next_functions if edge is not None]
            pending = [edge for edge in following if edge not in known]
            if pending:
                stack += pending
                continue
            stack.pop()
            if node not in known:
                known[node] = ends.get(node, 0)
                for edge in following:
                    known[node] |= known[edge]
    bits = {number: known[compat.gradient_edge(result)] for number, result in results.items()}
    origins = [frozenset(number for number in bits if bits[number] >> position & 1) for position in range(len(wanted))]
    return origins, known


def _tangent(tracer: Tracer, result: torch.Tensor, number: int) -> torch.Tensor:
    layout = Layout.of(result).at_zero()
    strides = layout.strides if layout.is_dense() else contiguous_strides(layout.sizes)
    with compat.plain_torch():
        fake = tracer.fresh(layout.sizes, strides, layout.dtype)
    type = TensorType(layout.dtype, dims(layout.sizes), "cpu", dims(strides))
    value = tracer.graph.add_input(type, f"tangent{number}", Source("tangent", str(number)))
    tracer.bindings.append(Binding("tangent", leaf=number))
    tracer.memory.add(fake, value)
    return fake


def _output(tracer: Tracer, seal: Seal, gradient: torch.Tensor, of: Layout) -> int:
    """The graph output for a gradient: laid out as the tensor it belongs to, which is what `.grad` asks for."""
    if not isinstance(gradient, compat.FakeTensor):
        gradient = tracer.lift(gradient)
    return seal.output(tracer.memory.read(gradient), _strides(of))


def _strides(layout: Layout) -> Any:
    return layout.strides if layout.at_zero().is_dense() else contiguous_strides(layout.sizes)
