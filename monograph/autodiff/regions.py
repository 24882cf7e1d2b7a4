"""Reverse derivatives of nodes with regions, graph in, graph out.

    gradients(node, cotangents, wrt, vjp, builder, root) -> {value of wrt: its gradient}
    pullback(graph, cotangents, wrt, vjp)                -> the same for all nodes of a graph

    cond     %g = cond(p) {then again; vjp(then)} {otherwise again; vjp(otherwise)}
             zeros for what a branch does not read
    custom   the backward that the user wrote, in the place of the node
    while    the forward loop keeps a history of what its iterations start from; a second loop counts down over it:
             while(trips, g*, a*) {t > 0} {c* = history[t - 1]; body(c*) again; g* = vjp by c*;
             a* += vjp by outer values}

A region's own values are computed again in the backward region; what turns out not to be needed goes, with the parts
of the history nobody reads. Regions inside regions are differentiated by the same rules. Stretches without regions go
to `vjp`, which the caller supplies:

    vjp(block, wrt) -> Graph      `block` is closed: it reads its inputs alone. The graph given back takes those inputs,
                                  then a cotangent for each output of the block, and returns a gradient for each of
                                  `wrt`, a full of zeros where there is none.

Integers and bools have no gradient. What a region draws is kept (`autodiff.draws`); a region whose derivative needs
what must not happen twice otherwise, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from monograph.autodiff import draws
from monograph.autodiff.draws import zeros
from monograph.autodiff.sizes import opened, tells_real
from monograph.errors import UnsupportedError
from monograph.ir.edit import copy_node, symbols_in, symbols_read
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Effect, Trait
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import own
from monograph.ops.build import Builder
from monograph.ops.table import lookup
from monograph.transform.prune import prune
from monograph.transform.rewrite import alike

__all__ = ["Vjp", "gradients", "pullback"]

Vjp: TypeAlias = Callable[[Graph, Sequence[Value]], Graph]
Gradients: TypeAlias = "dict[Value, Value]"


def gradients(
    node: Node, cotangents: Mapping[Value, Value], wrt: Collection[Value], vjp: Vjp, builder: Builder, root: Graph
) -> Gradients:
    """Add to `builder` what computes the gradients of the values in `wrt` that `node` reads; absent where there is
    none.

    `cotangents` has those of the results that have one. A while may get a history, in place: `root`, the whole graph,
    declares its symbol. Raises UnsupportedError where a region's derivative needs a draw, or a carry changes its size.
    """
    return _Reverse(vjp, root).node(builder, node, cotangents, set(wrt))


def pullback(graph: Graph, cotangents: Mapping[Value, Value], wrt: Collection[Value], vjp: Vjp) -> Gradients:
    """Add to the end of `graph` the gradients of `wrt` for `cotangents` of some of its values."""
    found = dict(cotangents)
    _Reverse(vjp, graph).block(Builder(graph), list(graph.nodes), found, set(wrt))
    return {value: found[value] for value in wrt if value in found}


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _is_real(value: Value) -> bool:
    """May have a gradient."""
    return isinstance(value.type, TensorType) and (value.type.dtype.is_floating_point or value.type.dtype.is_complex)


def _active(nodes: Iterable[Node], start: Iterable[Value]) -> set[Value]:
    """The values that depend on `start`, differentiably."""
    active = set(start)
    for node in nodes:
        if not active.isdisjoint(node.reads):
            active.update(value for value in node.results if _is_real(value))
    return active


class _Reverse:
    def __init__(self, vjp: Vjp, root: Graph) -> None:
        self.vjp = vjp
        self.root = root

    def node(self, builder: Builder, node: Node, cotangents: Mapping[Value, Value], wrt: set[Value]) -> Gradients:
        rule = self.loop if "body" in node.op.regions else self.cond
        if node.op is own.CUSTOM_VJP:
            rule = self.custom
        return rule(builder, node, cotangents, {value for value in wrt if _is_real(value)})

    # --- a block --------------------------------------------------------------------------------

    def block(self, builder: Builder, nodes: Sequence[Node], cotangents: Gradients, wrt: set[Value]) -> None:
        """Backwards over `nodes`: `cotangents` of values they make turn into those of what they read."""
        active = _active(nodes, wrt)
        for group in reversed(_groups(nodes)):
            seeds = {value: cotangents[value] for node in group for value in node.results
                     if value in cotangents and value in active}
            if not seeds:
                continue
            if group[0].regions:
                found = self.node(builder, group[0], seeds, active)
            else:
                found = self.stretch(builder, group, seeds, active)
            for value, gradient in found.items():
                _add(builder, cotangents, value, gradient)

    def stretch(self, builder: Builder, nodes: Sequence[Node], seeds: Gradients, active: set[Value]) -> Gradients:
        """Gradients by what straight-line `nodes` read."""
        # What tells sizes stays outside: a second run of it would tell them by other names.
        needed = _needed([node for node in nodes if not _tells(node)], seeds)
        _refuse_draws(needed)
        block = Graph("stretch", symbols=self.root.symbols)
        inside: dict[Value, Value] = {}
        reads: list[Value] = []

        def enter(value: Value) -> Value:
            if value not in inside:
                reads.append(value)
                inside[value] = block.add_input(_plain(value) if _is_tensor(value) else value.type, value.name)
            return inside[value]

        for node in needed:
            if tells_real(node):
                inside[node.results[0]] = opened(builder, node, block, enter)
                continue
            for value in node.inputs:
                enter(value)
            block.append(copy_node(node, inside))
        block.outputs = [inside[value] for value in seeds]
        wrt = [value for value in reads if value in active]
        if not wrt:
            return {}
        derived = self.vjp(block, [inside[value] for value in wrt])
        mapping = dict(zip(derived.inputs, [*reads, *seeds.values()], strict=True))
        for node in derived.nodes:
            copied = copy_node(node, mapping)
            copied.loc = copied.loc or builder.loc
            builder.insert(copied)
        found = zip(wrt, derived.outputs, strict=True)
        return {value: mapping.get(gradient, gradient) for value, gradient in found if not _is_zero(gradient)}

    def again(
        self, builder: Builder, region: Graph, mapping: dict[Value, Value], kept: Mapping[Value, Value]
    ) -> list[Node]:
        """The nodes of a region once more, but for its draws: `kept` has what they gave."""
        copies = [builder.insert(copy_node(node, mapping)) for node in region.nodes]
        draws.replace(builder.graph, {mapping[drawn]: value for drawn, value in kept.items() if drawn in mapping})
        left = set(builder.graph.nodes)
        return [node for node in copies if node in left]

    # --- cond -----------------------------------------------------------------------------------

    def cond(self, builder: Builder, node: Node, cotangents: Mapping[Value, Value], wrt: set[Value]) -> Gradients:
        kept = draws.keep(node, Builder(builder.graph, before=node))
        wanted = {value for region in node.regions for value in region.free_values()} & wrt
        backward: list[tuple[Builder, Gradients]] = []
        for region in node.regions:
            inner = Builder(Graph(f"{region.name}_backward"), loc=node.loc)
            mapping: dict[Value, Value] = {}
            nodes = self.again(inner, region, mapping, kept)
            found: Gradients = {}
            for result, given in zip(node.results, region.outputs, strict=True):
                if result in cotangents and _is_real(given):
                    _add(inner, found, mapping.get(given, given), _fitting(inner, cotangents[result], given))
            self.block(inner, nodes, found, wanted)
            backward.append((inner, found))
        used = [value for value in node.reads if value in wanted and any(value in found for _, found in backward)]
        if not used:
            return {}
        for inner, found in backward:
            inner.graph.outputs = [found.get(value) or zeros(inner, value) for value in used]
            _finish(inner.graph)
        results = builder.region("mono.cond", node.operands[0], regions=[inner.graph for inner, _ in backward])
        return dict(zip(used, results, strict=True))

    # --- the user's own ------------------------------------------------------------------------

    def custom(self, builder: Builder, node: Node, cotangents: Mapping[Value, Value], wrt: set[Value]) -> Gradients:
        backward, (_, given) = node.regions[0], node.operands
        assert isinstance(given, tuple)
        seeds = [cotangents.get(result) or zeros(builder, result) for result in node.results]
        mapping = dict(zip(backward.inputs, seeds, strict=True))
        for inner in backward.nodes:
            builder.insert(copy_node(inner, mapping))
        found: Gradients = {}
        for k, output in zip(node.attributes["wrt"], backward.outputs, strict=True):
            if given[k] in wrt:
                gradient = mapping.get(output, output)
                if _is_zero(gradient):           # zeros that the user returns are no missing gradient
                    gradient = builder.call("aten.clone.default", gradient)
                _add(builder, found, given[k], gradient)
        return found

    # --- while ----------------------------------------------------------------------------------

    def loop(self, builder: Builder, node: Node, cotangents: Mapping[Value, Value], wrt: set[Value]) -> Gradients:
        body = node.regions[1]
        wanted = [value for value in body.free_values() if value in wrt]
        active = _active_carries(node, wanted, wrt)
        if not active:
            return {}
        for k in active:
            if not _is_stackable(node, k):
                raise UnsupportedError("the gradient of a loop that changes the size of what it carries",
                                       loc=node.loc, why="the history of a loop is kept in stacks of one shape",
                                       hint="carry a tensor of full size and a mask")
        kept = draws.keep(node, Builder(builder.graph, before=node))
        trips, stacks, added = self.history(node)
        count = builder.call("mono.scalar", trips)
        sums = [cotangents.get(node.results[k]) or zeros(builder, node.results[k]) for k in active]
        carried = [count, *sums, *(zeros(builder, value) for value in wanted)]
        down, back = Graph("condition"), Graph("body")
        for region in (down, back):
            for value in carried:
                region.add_input(_plain(value))
        down.outputs = [Builder(down, loc=node.loc).call("aten.gt.Scalar", down.inputs[0], 0)]
        step = Builder(back, loc=node.loc)
        drawn = {value: self.drawn(step, last, stacks[last.index], count) for value, last in kept.items()}
        self.step(step, node, active, wanted, stacks, cotangents, drawn)
        read = back.free_values()
        _refuse_unknown(node, [taken for k, taken in enumerate(body.inputs) if k not in stacks], back)
        prune(node, lambda result: result not in added or result in read or result is trips)
        results = iter(builder.region("mono.while", carried, regions=(down, back))[1:])
        found: Gradients = {}
        for k in active:
            _add(builder, found, node.inputs[k], next(results))
        for value, gradient in zip(wanted, results, strict=True):
            _add(builder, found, value, gradient)
        return {value: gradient for value, gradient in found.items() if value in wrt}

    def step(
        self, inner: Builder, node: Node, active: Sequence[int], wanted: Sequence[Value],
        stacks: Mapping[int, Value], cotangents: Mapping[Value, Value], drawn: Mapping[Value, Value],
    ) -> None:
        """One iteration backwards, as the body of the second loop."""
        body, back = node.regions[1], inner.graph
        position = inner.call("aten.sub.Tensor", back.inputs[0], 1)
        starts = {k: inner.call("aten.index.Tensor", stack, (position,)) for k, stack in stacks.items()}
        mapping = {body.inputs[k]: start for k, start in starts.items()}
        nodes = self.again(inner, body, mapping, drawn)
        found: Gradients = {}
        for k, cotangent in zip(active, back.inputs[1:], strict=False):
            _add(inner, found, mapping.get(body.outputs[k], body.outputs[k]), cotangent)
        self.block(inner, nodes, found, {*(starts[k] for k in active), *wanted})
        back.outputs = [position]
        for k in active:
            if stacks[k] in cotangents:     # the history itself was used
                _add(inner, found, starts[k], inner.call("aten.index.Tensor", cotangents[stacks[k]], (position,)))
            back.outputs.append(found.get(starts[k]) or zeros(inner, starts[k]))
        for value, total in zip(wanted, back.inputs[1 + len(active):], strict=True):
            gradient = found.get(value)
            back.outputs.append(total if gradient is None else inner.call("aten.add.Tensor", total, gradient))
        _finish(back)

    def drawn(self, inner: Builder, last: Value, stack: Value, count: Value) -> Value:
        """What this iteration drew: the next one started from it, or it is what the loop ended with."""
        following = inner.graph.inputs[0]
        place = inner.call("aten.minimum.default", following, inner.call("aten.sub.Tensor", count, 1))
        ended = inner.call("aten.eq.Tensor", following, count)
        made: Value = inner.call("aten.where.self", ended, last, inner.call("aten.index.Tensor", stack, (place,)))
        return made

    def history(self, node: Node) -> tuple[Value, dict[int, Value], set[Value]]:
        """Make a loop keep what its iterations start from: the number of iterations, the stack of each carry, and
        which results are new."""
        count = len(node.inputs)
        had = node.attributes["history"]
        before = set(node.results)
        if node.attributes["trips"] is None:
            node.attributes["trips"] = self.symbol()
            _append(node, ScalarType("int", node.attributes["trips"]))
        size = self.root.symbols[node.attributes["trips"]]
        for k, taken in enumerate(node.regions[1].inputs):
            if k not in had and _is_stackable(node, k):
                node.attributes["history"] += (k,)
                _append(node, replace(_plain(taken), shape=(size, *taken.tensor.shape)))
        stacks = dict(zip(node.attributes["history"], node.results[count + 1:], strict=True))
        return node.results[count], stacks, set(node.results) - before

    def symbol(self) -> str:
        """A new symbol for a number of iterations."""
        number = len(self.root.symbols)
        while f"trips{number}" in self.root.symbols:
            number += 1
        self.root.symbols[f"trips{number}"] = Symbol(f"trips{number}")
        return f"trips{number}"


def _is_stackable(node: Node, k: int) -> bool:
    """Is carry `k` a tensor of one size in every iteration?"""
    body = node.regions[1]
    return alike(node.inputs[k], body.inputs[k]) and alike(body.outputs[k], body.inputs[k])


def _refuse_unknown(node: Node, carries: Sequence[Value], back: Graph) -> None:
    """UnsupportedError where going back needs a carry that no history can keep, or a size that it tells."""
    symbols = set().union(*(symbols_in(value.type) for value in carries))
    if not back.free_values().isdisjoint(carries) or any(symbols & symbols_read(inner) for inner in back.nodes):
        raise UnsupportedError("the gradient of a loop needs a number or a tensor of changing size that it carries",
                               loc=node.loc, why="the history of a loop is kept in stacks of one shape",
                               hint="carry the number in a tensor")


def _append(node: Node, type: TensorType | ScalarType) -> None:
    node.results = (*node.results, Value(type, node=node, index=len(node.results)))


def _active_carries(node: Node, wanted: Collection[Value], wrt: set[Value]) -> list[int]:
    """The carries that a gradient may flow through."""
    body = node.regions[1]
    active = {k for k, start in enumerate(node.inputs) if start in wrt}
    while True:
        reached = _active(body.nodes, [*wanted, *(body.inputs[k] for k in active)])
        found = {k for k, given in enumerate(body.outputs) if given in reached}
        if found <= active:
            return sorted(k for k in active if _is_real(body.inputs[k]))
        active |= found


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    """Stretches without regions, and between them the nodes that have some."""
    groups: list[list[Node]] = []
    for node in nodes:
        if groups and not node.regions and not groups[-1][-1].regions:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _needed(nodes: Iterable[Node], values: Iterable[Value]) -> list[Node]:
    """The nodes that compute `values`, in order, and those that tell the symbols that these need."""
    needed = set(values)
    symbols = set().union(*(symbols_in(value.type) for value in needed))
    found = []
    for node in reversed(list(nodes)):
        if not needed.isdisjoint(node.results) or not symbols.isdisjoint(_told(node)):
            found.append(node)
            needed.update(node.reads)
            symbols |= symbols_read(node)
    return found[::-1]


def _told(node: Node) -> set[str]:
    """The symbols of its results that a node does not take from what it is given."""
    given = [*(value.type for value in node.reads), *node.operands, *node.attributes.values()]
    return set().union(*(symbols_in(value.type) for value in node.results)).difference(*map(symbols_in, given))


def _tells(node: Node) -> bool:
    """Does it give integers of sizes (or a number) that only its values tell?"""
    return node.op.has(Trait.SYNC) and not any(map(_is_real, node.results))


def _finish(region: Graph) -> None:
    """Leave only what the outputs need. What was computed forward has passed its checks."""
    region.nodes[:] = _needed(region.nodes, region.outputs)
    _refuse_draws(region.nodes)


def _refuse_draws(nodes: Iterable[Node]) -> None:
    """UnsupportedError for what must not happen a second time."""
    for node in nodes:
        if not node.op.is_pure and node.op.effects != {Effect.RAISES}:
            raise UnsupportedError(f"the gradient of {node.op.name} inside of data-dependent control flow",
                                   loc=node.loc, why="its backward would have to draw the same numbers again",
                                   hint="move the random draw out of the branch or loop")
        for region in node.regions:
            _refuse_draws(region.nodes)


def _plain(value: Value) -> TensorType:
    return replace(value.tensor, strides=None)


def _fitting(builder: Builder, cotangent: Value, given: Value) -> Value:
    """The cotangent of a result whose size both branches leave open, as that of what this branch gives."""
    for dim, (size, wanted) in enumerate(zip(cotangent.tensor.shape, given.tensor.shape, strict=True)):
        if size != wanted and isinstance(wanted, int):
            cotangent = builder.call("aten.slice.Tensor", cotangent, dim, 0, wanted)
    if not alike(cotangent, given):     # two names of one size, which inference cannot know
        view = lookup("aten.view.default")
        operands, attributes = view.bind((cotangent, given.tensor.shape), {})
        cotangent = builder.insert(Node(view, operands, attributes, [_plain(given)], loc=builder.loc)).result
    return cotangent


def _is_zero(value: Value) -> bool:
    return value.node is not None and value.node.op.name == "aten.full.default" \
        and value.node.attributes["fill_value"] == 0


def _add(builder: Builder, table: Gradients, value: Value, gradient: Value) -> None:
    known = table.get(value)
    table[value] = gradient if known is None else builder.call("aten.add.Tensor", known, gradient)
