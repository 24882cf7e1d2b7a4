"""Constants, and what branches know: a sweep that evaluates what depends on nothing and takes branches that are known.

    %c = aten.add.Tensor(full(2), 1)                 -> full(3)
    mono.cond(full(True)) {A} {B}                    -> A
    mono.cond(%p) {... mono.cond(%p) {A} {B} ...}    -> ... A ...       in the branch taken, p is true
    mono.while(x; full(9) < 3)                       -> x
    mono.number(full(3); symbol=n)                   -> 3 wherever n stood

Only tensors of one and the same number are written down, as `aten.full`; others are known while the sweep lasts.
A node evaluated here is gone, even one that might have raised: it did not.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

import torch

from monograph.ir.edit import substitute, symbols_read
from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ir.symbolic import Dim, Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops.build import Builder
from monograph.ops.effects import is_pure
from monograph.transform.known import AND, OR, Known, assume, is_flag, learn, results, truth
from monograph.transform.rewrite import alike, settle_outputs

__all__ = ["propagate"]

FULL = "aten.full.default"


def propagate(graph: Graph) -> bool:
    """Evaluate constants, take known branches, drop loops that never start."""
    sweep = _Sweep(graph)
    sweep.block(graph, ChainMap())
    return sweep.changed


class _Sweep:
    """Forward over the blocks, regions in the place of their node; operands are replaced as they are met."""

    def __init__(self, root: Graph) -> None:
        self.root = root
        self.mapping: dict[Value, Value] = {}
        self.numbers: dict[Value, int] = {}     # run-time numbers that are known; regions go on carrying the value
        self.changed = False

    def final(self, value: Value) -> Value:
        while value in self.mapping:
            value = self.mapping[value]
        return value

    def read(self, value: Value) -> Operand:
        found = self.final(value)
        return self.numbers.get(found, found)

    def block(self, graph: Graph, known: Known) -> None:
        place = 0
        while place < len(graph.nodes):
            node = graph.nodes[place]
            replaced = self.final if node.regions else self.read
            node.operands = tuple(map_operand(operand, replaced) for operand in node.operands)
            instead = self.instead(graph, node, known)
            if instead is not None:
                graph.nodes[place:place + 1] = instead
                self.changed = True
                continue
            if "body" in node.op.regions:
                self.loop(node, known)
            elif node.regions:
                self.branches(node, known)
            place += 1
        self.outputs(graph, known)

    def outputs(self, graph: Graph, known: Known) -> None:
        new: list[Value] = []
        for value in graph.outputs:
            final = self.final(value)
            written = not isinstance(final.type, TensorType) or (final.node is not None and final.node.op.name == FULL)
            if final in known and not written:
                loc = final.node.loc if final.node is not None else None
                final = self.constant(known[final], Builder(graph, loc=loc)) or final
            new.append(final)
        self.changed |= settle_outputs(graph, new)

    def instead(self, graph: Graph, node: Node, known: Known) -> list[Node] | None:
        """The nodes to put in place of `node`, which `mapping` then replaces; None to leave it."""
        if "body" in node.op.regions:
            return self.never_starts(graph, node, known)
        if node.regions:
            holds = truth(node.operands[0], known)
            if holds is None:
                return None
            taken = node.regions[0 if holds else 1]
            self.stand_for(graph, node.results, taken.outputs)
            return taken.nodes
        if node.op.name == "mono.number" and node.operands[0] in known:
            known[node.result] = known[node.operands[0]].reshape(())  # type: ignore[index]
            self.numbers[node.result] = int(known[node.result])
            symbol: str = node.attributes["symbol"]
            self.changed |= any(symbol in symbols_read(other) for other in graph.nodes if other is not node)
            substitute(graph, {symbol: self.numbers[node.result]})
            return None
        return self.evaluated(node, known)

    def evaluated(self, node: Node, known: Known) -> list[Node] | None:
        found = results(node, known)
        if found is None:
            kept = _neutral(node, known)
            if kept is not None:
                self.mapping[node.results[0]] = kept
                return []
            return None
        known.update(zip(node.results, found, strict=True))
        if node.op.name == FULL:
            return None
        scratch = Graph()
        constants = [self.constant(tensor, Builder(scratch, loc=node.loc)) for tensor in found]
        if None in constants:
            return None
        for value, made, tensor in zip(node.results, constants, found, strict=True):
            assert made is not None
            made.name = value.name
            self.mapping[value] = made
            known[made] = tensor
        return scratch.nodes

    def constant(self, tensor: torch.Tensor, builder: Builder) -> Value | None:
        """A node that makes `tensor`, if its elements are all the same."""
        numbers = tensor.reshape(-1).tolist()
        if len({repr(number) for number in numbers}) != 1:
            return None
        made: Value = builder.call(FULL, tuple(tensor.shape), numbers[0], dtype=tensor.dtype)
        return made

    def stand_for(self, graph: Graph, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Use `new` for `old`, and their sizes for the symbols that `old` told."""
        env: dict[str, Dim] = {}
        for before, after in zip(old, new, strict=True):
            self.mapping[before] = after
            if isinstance(before.type, TensorType):
                pairs = zip(before.type.shape, after.tensor.shape, strict=True)
                env.update({a.name: b for a, b in pairs if isinstance(a, Symbol) and a != b})
            elif isinstance(after.type, ScalarType) and before.type.symbol is not None:
                if after.type.symbol is None:
                    after.type = before.type
                env[before.type.symbol] = self.root.symbols[after.type.symbol or before.type.symbol]
        substitute(graph, env)

    def branches(self, node: Node, known: Known) -> None:
        predicate = node.operands[0]
        for region, holds in zip(node.regions, (True, False), strict=True):
            facts = assume(predicate, holds) if isinstance(predicate, Value) else {}
            self.block(region, known.new_child(facts))

    def loop(self, node: Node, known: Known) -> None:
        """In the body the condition holds, behind the loop it does not."""
        condition, body = node.regions
        self.block(condition, known.new_child())
        (going,) = condition.outputs
        self.block(body, known.new_child(_renamed(assume(going, True), condition, body.inputs)))
        known.update(_renamed(assume(going, False), condition, node.results[:len(body.inputs)]))

    def never_starts(self, graph: Graph, node: Node, known: Known) -> list[Node] | None:
        condition, body = node.regions
        given = zip(condition.inputs, node.inputs, strict=True)
        entry = known.new_child({taken: known[value] for taken, value in given if value in known})
        learn(condition, entry)
        if truth(condition.outputs[0], entry) is not False or not all(map(is_pure, condition.nodes)):
            return None
        scratch = Graph()
        builder = Builder(scratch, loc=node.loc)
        carried = len(body.inputs)
        instead = list(node.inputs)
        if node.attributes["trips"] is not None:
            zero = builder.call(FULL, (), 0, dtype=torch.int64)
            instead.append(builder.call("mono.number", zero, symbol=node.attributes["trips"]))
            for stack in node.results[carried + 1:]:
                instead.append(builder.call(FULL, stack.tensor.shape, 0, dtype=stack.tensor.dtype))
        self.stand_for(graph, node.results[:carried], instead[:carried])
        self.mapping.update(zip(node.results[carried:], instead[carried:], strict=True))
        return scratch.nodes


def _renamed(facts: dict[Value, torch.Tensor], condition: Graph, names: Sequence[Value]) -> dict[Value, torch.Tensor]:
    """Facts about what a condition takes as facts about `names`; what it computes itself nobody else sees."""
    taken = dict(zip(condition.inputs, names, strict=True))
    inside = {value for node in condition.nodes for value in node.results}
    return {taken.get(value, value): fact for value, fact in facts.items() if value not in inside}


def _neutral(node: Node, known: Known) -> Value | None:
    """True and x -> x;  False or x -> x;  where(True, x, y) -> x;  where(False, x, y) -> y"""
    if node.op.name in AND + OR:
        neutral = node.op.name in AND
        for flag, other in (node.operands, node.operands[::-1]):
            if is_flag(flag) and truth(flag, known) is neutral:
                return _like(node, other)
        return None
    if node.op.name == "aten.where.self":
        holds = truth(node.operands[0], known)
        return None if holds is None else _like(node, node.operands[1 if holds else 2])
    return None


def _like(node: Node, operand: Operand) -> Value | None:
    """The operand, where its type is that of the result."""
    return operand if isinstance(operand, Value) and alike(operand, node.results[0]) else None
