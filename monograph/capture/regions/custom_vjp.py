"""The user's autograd.Function in a branch or loop: what it makes stands beside the backward that the user wrote.

    %y = ... ops of forward(ctx, %x) ...
    %z = mono.custom_vjp((%y), (%x)) {backward(%g) {... ops of backward(ctx, %g) ...}}

The backward is recorded where the function is called, on gradients that are inputs of that region; `autodiff.regions`
puts it in the place of the node. A result that shares memory with what was there before (`x.view_as(x)`) becomes a
tensor of its own, which nobody may write to, nor to what it is a view of. Where the backward does more than compute,
the statement takes the path of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat
from monograph.capture.layout import Layout, compact
from monograph.capture.readset_journal import unchanged
from monograph.capture.recorder import type_of
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.regions.gradient import OURS
from monograph.capture.regions.objects import Objects
from monograph.capture.regions.rewritten import begin, saved_tensors
from monograph.capture.storage import Place, Storage
from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Effect, Trait
from monograph.ops import own

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["forget", "keep_history", "watching"]

USES = "a branch or loop uses an autograd.Function of the user's own, "
SHARED = "what an autograd.Function gave as a view of another tensor, or that one, is written"
READ = "what the backward of an autograd.Function reads is written after its forward"


@contextmanager
def watching(tracer: Tracer) -> Iterator[None]:
    """See the functions that are applied in regions under autograd."""
    def applied(cls: type, made: Any, args: tuple[Any, ...], fills: Callable[[Any], bool]) -> Any:
        if not tracer.in_region or not torch.is_grad_enabled() or f"{cls.__name__}Backward" in OURS:
            return made
        results = made if isinstance(made, tuple) else (made,)
        contexts = [x.grad_fn for x in results if isinstance(x, torch.Tensor)]
        ctx = next((node for node in contexts if getattr(node, "_forward_cls", None) is cls), None)
        if ctx is None:
            return made
        with torch._C.DisableTorchFunction():
            found = _Applied(tracer, ctx, args, results).record(fills(ctx))
        return found if isinstance(made, tuple) else found[0]

    with compat.custom_functions(applied):
        yield


def keep_history(tracer: Tracer, storage: Storage, before: Value) -> None:
    """`storage` was written past autograd: other numbers with the history of `before`, what it held."""
    type = before.tensor
    if storage.value.tensor.shape != type.shape or storage.value.tensor.dtype != type.dtype:
        raise Unmergeable("a branch or loop resizes a tensor that requires grad, past autograd")
    region = Graph("backward")
    region.outputs = [region.add_input(type_of(type.shape, type.dtype), "cotangent")]
    node = Node(own.CUSTOM_VJP, ((storage.value,), (before,)), {"wrt": (0,)}, [region.inputs[0].type],
                regions=[region], loc=tracer.record.loc)
    storage.become(tracer.record.graph.append(node).result)


def forget(graph: Graph) -> None:
    """No derivative is taken any more: what was made is what is there."""
    for node in graph.nodes:
        for region in node.regions:
            forget(region)
            nodes = [inner for inner in region.nodes if inner.op is own.CUSTOM_VJP]
            for inner in nodes:
                made = inner.operands[0]
                assert isinstance(made, tuple)
                region.replace({result: value for result, value in zip(inner.results, made, strict=True)
                                if isinstance(value, Value)})
            edit.erase(region, nodes)


class _Applied:
    """One call: `ctx`, its node of autograd's, what it took and what it made."""

    def __init__(self, tracer: Tracer, ctx: Any, args: Sequence[Any], results: Sequence[Any]) -> None:
        self.tracer = tracer
        self.ctx = ctx
        self.args = args
        self.results = results
        self.followed = [isinstance(x, torch.Tensor) and x.requires_grad and x.grad_fn is ctx for x in results]

    def record(self, fills: bool) -> tuple[Any, ...]:
        """The results as the program is to see them. `fills`: missing gradients are zeros to the backward."""
        if not all(isinstance(x, torch.Tensor) for x in self.results):
            raise Unmergeable(f"{USES}which gives more than tensors")
        if not fills and sum(self.followed) > 1:
            raise Unmergeable(f"{USES}which asks which gradients there are")
        if torch.is_autocast_enabled("cpu"):
            raise Unmergeable(f"{USES}under autocast")
        if any(x is y for x in self.results for y in self.args):
            raise Unmergeable(f"{USES}which writes to its arguments")
        tracer, memory = self.tracer, self.tracer.memory
        needed = [k for k, x in enumerate(self.args) if isinstance(x, torch.Tensor) and self.ctx.needs_input_grad[k]]
        with torch.no_grad():
            given = [tracer.operand(tracer.lift(self.args[k]), follow=True) for k in needed]
            made = [memory.read(x) for x, follows in zip(self.results, self.followed, strict=True) if follows]
        region = Graph("backward")
        gradients = self._backward(region, fills)
        read = [gradients.get(k) for k in needed]
        wrt = tuple(place for place, value in enumerate(read) if value is not None)
        region.outputs = [value for value in read if value is not None]
        if any(node.effects - {Effect.RAISES} or node.op.has(Trait.RANDOM) or node.op.has(Trait.SYNC)
               for node in region.walk()):
            raise Unmergeable(f"{USES}whose backward does more than compute")
        self._keep(region)
        node = tracer.record.graph.append(Node(own.CUSTOM_VJP, (tuple(made), tuple(given)), {"wrt": wrt},
                                         [type_of(value.tensor.shape, value.tensor.dtype) for value in made],
                                         regions=[region], loc=tracer.record.loc))
        values = iter(node.results)
        tracer.recorded.append(self.ctx)
        return tuple(self._become(x, next(values)) if follows else x
                     for x, follows in zip(self.results, self.followed, strict=True))

    # -- the backward ------------------------------------------------------------------

    def _backward(self, region: Graph, fills: bool) -> dict[int, Value]:
        """Record the user's backward in `region`: the gradients, by the number of the argument."""
        tracer, memory = self.tracer, self.tracer.memory
        before, outer = memory.save(), tracer.record.graph
        memory.sites[id(region)] = memory.sites.get(id(outer))
        objects, globals_before = Objects((self.ctx._forward_cls.backward,), tracer.watched()), tracer.globals_now()
        said, loc = tracer.count_messages(), tracer.record.loc
        tracer.record.graph = region
        memory.scopes.append(region)
        try:
            with torch.no_grad():
                cotangents = [self._cotangent(region, x, follows, fills)
                              for x, follows in zip(self.results, self.followed, strict=True)]
                try:
                    with compat.class_functions():
                        found = self.ctx.apply(*cotangents)
                except Exception as error:         # eager raises it in the backward, if there is one
                    raise Unmergeable(f"{USES}whose backward raises {type(error).__name__}: {error}") from error
                gradients = self._read(found)
            written = any(storage.version != (before[key][2] if key in before else 0)
                          for key, storage in memory.by_id.items() if key in before or storage.input is not None)
        finally:
            memory.scopes.pop()
            tracer.record.graph, tracer.record.loc = outer, loc
        now = objects.now()
        changed = not all(unchanged(was, now[key]) for key, (_, was) in objects.content.items())
        if written or changed or objects.has_advanced() or objects.altered() or tracer.count_messages() != said \
                or tracer.has_written(objects.content) or tracer.has_written_global(globals_before, ()):
            raise Unmergeable(f"{USES}whose backward does more than compute")
        memory.load(before)
        return gradients

    def _cotangent(self, region: Graph, result: torch.Tensor, follows: bool, fills: bool) -> torch.Tensor | None:
        """The gradient of a result, as the backward is given it."""
        if not follows and not fills:
            return None
        layout = compact(Layout.of(result))
        with compat.plain_torch():
            fake = self.tracer.fresh(layout.sizes, layout.strides, layout.dtype)
        if follows:
            value = region.add_input(type_of(layout.sizes, layout.dtype), "cotangent")
        else:
            value = self.tracer.record.full(layout.sizes, 0, layout.dtype)
        self.tracer.memory.add(fake, value)
        return fake

    def _read(self, found: Any) -> dict[int, Value]:
        """What the backward gave, as the engine takes it: summed to the size of the argument, in its dtype."""
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        while len(found) > len(self.args) and found[-1] is None:
            found = found[:-1]
        if len(found) != len(self.args):
            raise Unmergeable(f"{USES}whose backward gives {len(found)} gradients for {len(self.args)} arguments")
        gradients: dict[int, Value] = {}
        for k, (gradient, argument) in enumerate(zip(found, self.args, strict=True)):
            if gradient is None:
                continue
            if not isinstance(gradient, torch.Tensor) or not isinstance(argument, torch.Tensor):
                raise Unmergeable(f"{USES}whose backward gives a gradient of what is no tensor")
            if not self.ctx.needs_input_grad[k]:
                continue
            try:
                if gradient.shape != argument.shape:
                    gradient = gradient.sum_to_size(argument.shape)
            except RuntimeError as error:
                raise Unmergeable(f"{USES}whose backward gives a gradient of another size") from error
            if gradient.is_complex() and not argument.is_complex():
                gradient = gradient.real
            gradient = gradient.to(argument.dtype)
            gradients[k] = self.tracer.memory.read(self.tracer.lift(gradient))
        return gradients

    def _keep(self, region: Graph) -> None:
        """What the backward reads and autograd does not watch over is not written any more."""
        kept = {compat.storage_id(self.tracer.lift(x)) for x in saved_tensors(self.ctx)}
        free = set(region.free_values())
        memory = self.tracer.memory
        for key, storage in memory.by_id.items():
            if key not in kept and storage.frozen is None and not free.isdisjoint(
                    [storage.value, *(value for _, value in storage.cache.values())]):
                storage.frozen = READ, self._site()

    # -- the results -------------------------------------------------------------------

    def _become(self, result: torch.Tensor, value: Value) -> torch.Tensor:
        """A result with the value that has the user's derivative."""
        memory = self.tracer.memory
        storage, layout = memory.of(result), Layout.of(result)
        alone = sum(compat.storage_id(x) == compat.storage_id(result) for x in self.results) == 1
        if alone and storage.scope is self.tracer.record.graph and storage.base is result and not storage.places:
            storage.become(value)
            return result
        with compat.plain_torch():
            blank = self.tracer.fresh(compact(layout).sizes, compact(layout).strides, layout.dtype)
        with self.tracer.quiet(), torch.enable_grad():
            made: torch.Tensor = begin(result, blank)
        self.tracer.add_result(made, value, (SHARED, self._site()))
        never = self.tracer.record.full((), False, torch.bool)
        memory.lies_at(memory.of(made), (Place(never, storage, storage.layout),), self._site())
        self.tracer.identities.choose(made, [((), made)], self._site(), homes=self._homes(storage))
        return made

    def _homes(self, storage: Storage) -> frozenset[int]:
        found = self.tracer.identities.homes(storage.base)
        return found | {compat.storage_id(storage.base)}

    def _site(self) -> Any:
        return self.tracer.memory.sites.get(id(self.tracer.record.graph))
